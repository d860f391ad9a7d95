//! Pages of section 3.

use crate::header::{Function, functions, introduction};
use std::fmt::Write as _;

const CCI: &str = include_str!("../../../include/cci.h");
const CCIX: &str = include_str!("../../../include/ccix.h");

/// What each function returns that returns a number.
const STATUS: &str = "CCI_SUCCESS, or why the call was refused: a value of enum cci_status, whose meaning \
                      cci_strerror(3) returns. ccix_last_error(3) returns the exact sentence.";

/// Characters of what a function does, in one line.
const LONGEST: usize = 100;

/// Each page, with its name.
pub(crate) fn all() -> Vec<(String, String)> {
    let of = |header: &'static str, name: &'static str| functions(header).into_iter().map(move |it| (it, name));
    let all: Vec<_> = of(CCI, "cci.h").chain(of(CCIX, "ccix.h")).collect();
    let names: Vec<_> = all.iter().map(|(function, _)| function.name.clone()).collect();
    let mut pages: Vec<_> =
        all.iter().map(|(function, header)| (function.name.clone(), page(function, header, &names))).collect();
    pages.push(("cci".into(), overview(&all)));
    pages
}

/// Text that the formatter shows as it is.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

fn title(name: &str) -> String {
    format!(".TH {} 3 \"\" \"cci {}\" \"Common Communication Interface\"\n", escaped(name), env!("CARGO_PKG_VERSION"))
}

/// The first sentence of a comment, without its full stop and on one line.
fn first_sentence(comment: &str) -> String {
    let paragraph = comment.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = paragraph.find([';', ':']).into_iter().chain(paragraph.find(". ")).min();
    let sentence = paragraph[..end.unwrap_or(paragraph.len())].trim_end_matches('.');
    // `apropos` shows it on one line.
    let end = sentence.find(", ").filter(|_| sentence.len() > LONGEST);
    sentence[..end.unwrap_or(sentence.len())].to_owned()
}

fn page(function: &Function, header: &str, names: &[String]) -> String {
    let mut text = title(&function.name);
    let _ = write!(
        text,
        ".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.nf\n#include <{header}>\n.sp\n{}\n.fi\n.SH DESCRIPTION\n",
        escaped(&function.name),
        escaped(&first_sentence(&function.comment)),
        escaped(&function.declaration)
    );
    body(&mut text, &function.comment);
    if function.declaration.starts_with("int ") {
        let _ = write!(text, ".SH RETURN VALUE\n{}\n", escaped(STATUS));
    }
    let mentioned =
        names.iter().filter(|name| **name != function.name && function.comment.contains(&format!("{name}()")));
    let others: String = mentioned.map(|name| format!(",\n.BR {} (3)", escaped(name))).collect();
    let _ = writeln!(text, ".SH SEE ALSO\n.BR cci (3){others}");
    text
}

fn overview(functions: &[(Function, &str)]) -> String {
    let mut text = title("cci");
    text.push_str(".SH NAME\ncci \\- the Common Communication Interface\n.SH SYNOPSIS\n.nf\n");
    text.push_str("#include <cci.h>\n#include <ccix.h>\n.sp\ncc \\-o program program.c $(pkg\\-config \\-\\-cflags \\-\\-libs cci)\n.fi\n");
    text.push_str(".SH DESCRIPTION\n");
    body(&mut text, &introduction(CCI));
    text.push_str(".SH FUNCTIONS\n");
    for (function, _) in functions {
        let about = first_sentence(&function.comment);
        let _ = writeln!(text, ".TP\n.BR {} (3)\n{}", escaped(&function.name), escaped(&about));
    }
    text.push_str(".SH SEE ALSO\n.BR cci (1)\n");
    text
}

/// Writes a comment: paragraphs, and lists whose lines are a name, two spaces, and what it means.
fn body(text: &mut String, comment: &str) {
    for (number, paragraph) in comment.split("\n\n").enumerate() {
        if number > 0 {
            text.push_str(".PP\n");
        }
        for line in paragraph.lines() {
            let item = line.split_once("  ").filter(|(name, _)| !name.is_empty() && !name.ends_with('.'));
            let _ = match item {
                Some((name, about)) => writeln!(text, ".TP\n\\fI{}\\fR\n{}", escaped(name), escaped(about.trim())),
                None => writeln!(text, "{}", escaped(line.trim())),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_what_the_comment_has() {
        let pages = all();
        let text = |wanted: &str| &pages.iter().find(|(name, _)| name == wanted).unwrap().1;
        let send = text("cci_send");
        assert!(send.contains("cci_send \\- Sends a message\n"), "{send}");
        assert!(
            send.contains("#include <cci.h>") && send.contains("\nint cci_send(cci_connection_t *connection,"),
            "{send}"
        );
        assert!(send.contains(".TP\n\\fIflags\\fR\nCCI_FLAG_BLOCKING"), "{send}");
        assert!(send.contains(".SH RETURN VALUE"), "{send}");
        let error = text("ccix_last_error");
        assert!(error.contains("#include <ccix.h>") && !error.contains("RETURN VALUE"), "{error}");
        let overview = text("cci");
        assert!(overview.contains(".BR cci_rma_register (3)") && overview.contains("Every function may be called"));
    }

    #[test]
    fn each_exported_function_has_a_page_with_a_name_line() {
        let exported = include_str!("../../../bindings/c/exported.list");
        let pages = all();
        for name in exported.lines() {
            let page = pages.iter().find(|(page, _)| page == name).map(|(_, text)| text);
            let page = page.unwrap_or_else(|| panic!("{name} has no page"));
            let line = page.lines().skip_while(|line| *line != ".SH NAME").nth(1).unwrap();
            let about = line.split_once(" \\- ").map(|(_, about)| about).unwrap_or_default();
            assert!((8..120).contains(&about.len()), "{line}");
        }
    }

    #[test]
    fn what_the_formatter_would_take_for_its_own_is_escaped() {
        assert_eq!(escaped(".so x"), "\\&.so x");
        assert_eq!(escaped("a-b\\n"), "a\\-b\\en");
    }
}
