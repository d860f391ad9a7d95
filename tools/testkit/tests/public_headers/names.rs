//! The names that public programs use of each interface are in its headers, with the values that
//! the interface's documents give them. `names/*.txt` lists them, a file for each dialect:
//!
//! | line | |
//! |---|---|
//! | `header H...` | what a program includes |
//! | `type T...` | types |
//! | `size N T...` | types of N bytes, on machines of 64 bits |
//! | `value NAME=VALUE...` | constants that programs compile in |
//! | `name N...` | constants and macros whose value is the library's own |
//! | `function F...` | functions, or macros in their place; `F0..16` are 17 of them |
//! | `absent PAGE F...` | what is not there, and the page that says so |

use std::fmt::Write as _;
use std::path::Path;

use super::{compile, root};

/// A C program that does not compile where a name is missing, and whose lines tell which.
fn program(list: &str) -> String {
    let mut includes = String::from("#include <stdint.h>\n#include <stddef.h>\n");
    let mut checks = String::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let kind = words.next().unwrap_or_else(|| panic!("an empty line"));
        let size = if kind == "size" { words.next().expect("a size") } else { "" };
        let page = if kind == "absent" { words.next().expect("a page") } else { "" };
        for word in words.flat_map(expand) {
            match kind {
                "header" => writeln!(includes, "#include <{word}>"),
                "type" => writeln!(checks, "extern char is_a_type_{word}[sizeof(struct {{ {word} it; }})];"),
                "size" => writeln!(checks, "_Static_assert(sizeof({word}) == {size}, \"{word} is not of {size} B\");"),
                "value" => {
                    let (name, value) = word.split_once('=').expect("NAME=VALUE");
                    let compared = |text: &str| format!("(unsigned long long)({text})");
                    // A negative one may be of 32 bits without a sign.
                    let same = format!("{} == {}", compared(name), compared(value));
                    let low = format!("(uint32_t)({name}) == (uint32_t)({value}) && (long long)({value}) < 0");
                    writeln!(checks, "_Static_assert({same} || ({low}), \"{name} is not {value}\");")
                }
                "name" => writeln!(
                    checks,
                    "#ifndef {word}\nstatic inline void names_{word}(void) {{ (void)({word}); }}\n#endif"
                ),
                "function" => writeln!(
                    checks,
                    "#ifndef {word}\nstatic inline void calls_{word}(void) {{ (void)&{word}; }}\n#endif"
                ),
                "absent" => {
                    let said = std::fs::read_to_string(root().join(page)).expect("the page");
                    assert!(said.contains(&word), "{page} does not say that {word} is absent");
                    writeln!(checks, "static inline void {word}_is_there(void) {{ int {word} = 0; (void){word}; }}")
                }
                _ => panic!("a line begins with {kind}"),
            }
            .expect("to a text");
        }
    }
    includes + &checks
}

/// `F0..2` as F0, F1, F2; any other word as itself.
fn expand(word: &str) -> Vec<String> {
    let Some((first, last)) = word.split_once("..") else { return vec![word.to_owned()] };
    let name = first.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let number = |digits: &str| digits.parse::<u32>().expect("a number");
    (number(&first[name.len()..])..=number(last)).map(|count| format!("{name}{count}")).collect()
}

/// What the compiler says of a list's program, without the places.
fn missing(list: &Path) -> Option<String> {
    let text = std::fs::read_to_string(list).expect("the list");
    let complaint = compile("cc", "c", "gnu11", &program(&text)).err()?;
    let errors: Vec<_> = complaint.lines().filter(|line| line.contains("error:")).collect();
    Some(format!("{}:\n{}", list.display(), errors.join("\n")))
}

#[test]
fn each_name_that_public_programs_use_is_in_its_header() {
    let folder = root().join("tools/testkit/tests/public_headers/names");
    let lists: Vec<_> = folder.read_dir().expect("the lists").map(|entry| entry.expect("an entry").path()).collect();
    assert!(lists.len() > 8, "{lists:?}");
    let found: Vec<_> = lists.iter().filter_map(|list| missing(list)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_is_missing_or_has_another_value_is_found() {
    for wrong in [
        "header vipl.h\ntype VIP_NO_TYPE",
        "header vipl.h\nsize 8 VIP_MEM_HANDLE",
        "header vipl.h\nvalue VIP_NOT_DONE=2",
        "header vipl.h\nname VIP_NO_NAME",
        "header vipl.h\nfunction VipNoFunction",
        "header no_header_of_ours.h",
    ] {
        assert!(compile("cc", "c", "gnu11", &program(wrong)).is_err(), "{wrong} is not found missing");
    }
}
