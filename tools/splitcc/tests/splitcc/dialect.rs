//! What programs of the language's time rely on, beyond the language.

use super::{here, run, splitcc, text};
use std::path::Path;

fn write(dir: &Path, name: &str, program: &str) {
    std::fs::write(dir.join(name), program).expect("a file");
}

/// Compiles a program without a word.
fn builds(dir: &Path, arguments: &[&str]) {
    let output = splitcc(dir, arguments);
    assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {}", text(&output.stderr));
}

#[test]
fn sizes_of_run_time_are_evaluated_once() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let source = here().join("tests/sc/sizes.sc");
    for level in ["-O0", "-O2"] {
        builds(dir.path(), &[level, "-o", "sizes", source.to_str().expect("text")]);
        for ranks in 1..=3 {
            assert_eq!(run(&dir.path().join("sizes"), ranks, &[], ""), format!("{ranks} ranks have sizes\n"));
        }
    }
}

#[test]
fn a_program_that_states_no_status_ends_with_0() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for program in [
        "splitc_main() { f(); }",
        "splitc_main(argc, argv) int argc; char **argv; { if (f()) return; exit(3); }",
        "int splitc_main(int argc, char **argv) { if (!f()) return 3; }",
        "void splitc_main() { f(); }",
        "void splitc_main(); void splitc_main(int argc, char **argv) { if (f() && argc) return; exit(3); }",
        "extern void splitc_main(int, char **);\nvoid splitc_main(argc, argv) int argc; char **argv;\n{ f();\n}",
        "static void other() { return; } void splitc_main() { other(); f(); } /* } */",
    ] {
        // Another status than 0 in the register of the value.
        write(dir.path(), "a.sc", &format!("#include <stdlib.h>\nint f() {{ barrier(); return 77; }}\n{program}\n"));
        for level in ["-O0", "-O2"] {
            builds(dir.path(), &[level, "-o", "a", "a.sc"]);
            assert_eq!(run(&dir.path().join("a"), 2, &[], ""), "", "{program}");
        }
    }
}

/// What stands in each wrong program, and what is said of its line.
const WRONG: [(&str, &str); 8] = [
    ("x = 0[g];", "an index before its pointer; write p[i]"),
    ("x = y[s] + 1;", "an index before its pointer; write p[i]"),
    ("1[a] = x;", "an index before its pointer; write p[i]"),
    ("x = sizeof a;", "`sizeof` of a spread array; multiply that of a block by their number"),
    ("x = sizeof(a);", "`sizeof` of a spread array; multiply that of a block by their number"),
    ("bulk_read(q, g, sizeof m);", "`sizeof` of a spread array; multiply that of a block by their number"),
    ("x = sizeof m[1];", "a spread array with fewer indices than it has dimensions left of `::`; index all"),
    ("typeof(a) b;", "`typeof` of a spread array; name the type of a block"),
];

#[test]
fn what_would_be_taken_for_something_else_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (statement, sentence) in WRONG {
        let variables = "int x = 0, y = 0, q[9], *global g = 0, *spread s = 0;";
        let program = format!(
            "int a[8]::[4]; int m[4][4]::;\nint splitc_main() {{ {variables}\n{statement}\nsync(); return x + y; }}\n"
        );
        write(dir.path(), "wrong.sc", &program);
        let output = splitcc(dir.path(), &["-C", "wrong.sc"]);
        assert_eq!(text(&output.stderr), format!("wrong.sc:3: error: {sentence}\n"), "{statement}");
        assert!(output.status.code() == Some(1) && output.stdout.is_empty());
    }
    // Of a file too.
    write(dir.path(), "wrong.sc", "int a[8]::;\nint n = sizeof a;\n");
    let words = splitcc(dir.path(), &["-C", "wrong.sc"]).stderr;
    assert!(text(&words).starts_with("wrong.sc:2: error: `sizeof` of a spread array"), "{}", text(&words));
}
