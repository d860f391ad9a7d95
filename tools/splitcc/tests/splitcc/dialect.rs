//! What programs of the language's time rely on, beyond the language.

use super::{command, here, run, splitcc, text};
use std::os::unix::fs::PermissionsExt;
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

#[test]
fn what_belongs_to_an_option_may_stand_apart() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let dir = dir.path();
    for folder in ["inc", "sys", "quote", "after", "lib"] {
        std::fs::create_dir(dir.join(folder)).expect("a folder");
        write(dir, &format!("{folder}/{folder}.h"), &format!("#define FROM_{folder} 1\n"));
    }
    write(dir, "first.h", "#define FROM_first 1\n");
    write(dir, "macros.h", "#define FROM_macros 1\n");
    write(
        dir,
        "a.sc",
        "#include <inc.h>\n#include <sys.h>\n#include \"quote.h\"\n#include <after.h>\n#ifdef GONE\n#error GONE\n#endif\n\
         int twice(int);\nint splitc_main() { int n = FROM_inc + FROM_sys + FROM_quote + FROM_after + FROM_first + FROM_macros; \
         exit(twice(n) == 12 * X ? 0 : 1); }\n",
    );
    write(dir, "twice.c", "#include <inc.h>\nint twice(int x) { return 2 * x * FROM_inc; }\n");
    let options = [
        "-I",
        "inc",
        "-isystem",
        "sys",
        "-iquote",
        "quote",
        "-idirafter",
        "after",
        "-include",
        "first.h",
        "-imacros",
        "macros.h",
        "-D",
        "X=1",
        "-D",
        "GONE",
        "-U",
        "GONE",
        "-L",
        "lib",
        "-Xlinker",
        "--no-undefined",
    ];
    let with = |more: &[&'static str]| [&options[..], more].concat();
    builds(dir, &with(&["-o", "whole", "a.sc", "twice.c", "-l", "m"]));
    assert_eq!(run(&dir.join("whole"), 1, &[], ""), "");
    // Apart, with rules for `make`.
    builds(dir, &with(&["-c", "a.sc", "-MD", "-MT", "target", "-MF", "rules"]));
    let rules = std::fs::read_to_string(dir.join("rules")).expect("the rules");
    assert!(rules.starts_with("target: a.sc") && rules.contains("inc/inc.h") && rules.contains("first.h"), "{rules}");
    builds(dir, &with(&["-c", "twice.c", "-o", "other.o"]));
    builds(dir, &["-oparts", "a.o", "other.o", "-L", "lib"]);
    assert_eq!(run(&dir.join("parts"), 1, &[], ""), "");
    // The rules are named as the object is.
    builds(dir, &with(&["-c", "-MMD", "a.sc", "-o", "lib/x.o"]));
    let rules = std::fs::read_to_string(dir.join("lib/x.d")).expect("the rules");
    assert!(rules.starts_with("lib/x.o: a.sc") && !rules.contains("sys.h"), "{rules}");
    let output = splitcc(dir, &with(&["-MM", "a.sc"]));
    assert!(output.status.success() && text(&output.stdout).starts_with("a.o: a.sc"), "{output:?}");
}

#[test]
fn what_files_share_by_a_header_is_one_variable() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let dir = dir.path();
    write(dir, "shared.h", "int count, list[10];\n");
    write(dir, "arrays.h", "int blocks[8]::[2]; int *global shared;\n");
    write(
        dir,
        "a.sc",
        "#include \"shared.h\"\n#include \"arrays.h\"\nint b(), c();\nsplitc_main() {\n\
         count = 1; list[9] = 2; blocks[MYPROC][1] = MYPROC + 5; shared = toglobal(0, &count); barrier();\n\
         if (b() != 8 || c() != 3) exit(1); barrier(); }\n",
    );
    write(
        dir,
        "b.sc",
        "#include \"shared.h\"\n#include \"arrays.h\"\nint b() { return count + list[9] + blocks[0][1] * *shared; }\n",
    );
    write(dir, "c.c", "#include \"shared.h\"\nint c() { return count + list[9]; }\n");
    builds(dir, &["-o", "together", "a.sc", "b.sc", "c.c"]);
    assert_eq!(run(&dir.join("together"), 2, &[], ""), "");
    builds(dir, &["-c", "a.sc", "b.sc", "c.c"]);
    builds(dir, &["-o", "apart", "a.o", "b.o", "c.o"]);
    assert_eq!(run(&dir.join("apart"), 2, &[], ""), "");
}

#[test]
fn pointers_of_another_type_are_warned_of_as_in_c_of_that_time() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let dir = dir.path();
    // What newer compilers do by themselves.
    write(dir, "newer", "#!/bin/sh\nexec cc -Werror=incompatible-pointer-types -Werror=int-conversion \"$@\"\n");
    std::fs::set_permissions(dir.join("newer"), std::fs::Permissions::from_mode(0o755)).expect("it may run");
    write(
        dir,
        "a.sc",
        "int A[8]::[4];\nsplitc_main() {\ndouble *l; long n;\nl = tolocal(A[MYPROC]);\nn = l;\n*(int *)l = 7;\n\
         exit(n && A[MYPROC][0] == 7 ? 0 : 1); }\n",
    );
    let build = |more: &str| command(dir, &["-o", "a", more, "a.sc"]).env("CC", dir.join("newer")).output();
    let output = build("-O1").expect("it starts");
    let words = text(&output.stderr);
    assert!(output.status.success() && words.matches("warning: ").count() == 2 && words.contains("a.sc:4:"), "{words}");
    assert_eq!(run(&dir.join("a"), 2, &[], ""), "");
    // Who asks for errors has them.
    let output = build("-Werror").expect("it starts");
    assert!(!output.status.success() && text(&output.stderr).contains("a.sc:4:"), "{output:?}");
}

#[test]
fn a_string_may_go_on_over_lines() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let dir = dir.path();
    for (folder, number) in [("src", 1), ("inc", 2)] {
        std::fs::create_dir(dir.join(folder)).expect("a folder");
        write(dir, &format!("{folder}/number.h"), &format!("#define NUMBER {number}\n"));
    }
    write(dir, "number.h", "#define NUMBER 3\n");
    let program = "#include <stdio.h>\n#include \"number.h\"\n#ifdef NEVER\nIt's \"no string\n#endif\n/* \"a\n */\n\
        splitc_main() { char c = '\"';\non_one { printf(\"first %d, don't /* look\n\n // NUMBER\n\\\"last\\\"\", \
        NUMBER); printf(\"%c%s%d\n\", c, \"x\ny\",\n__LINE__); printf(\"%s it's\n\", __FILE__); }\nWRONG }\n";
    write(dir, "src/a.sc", program);
    let words = "first 1, don't /* look\n\n // NUMBER\n\"last\"\"x\ny15\nsrc/a.sc it's\n";
    for options in [&["-MD"][..], &["-w", "-Wall"]] {
        let all = [options, &["-D", "WRONG=", "-iquote", "inc", "-I", "inc", "-o", "a", "src/a.sc"]].concat();
        let output = splitcc(dir, &all);
        // The group that is left out has a word of the preprocessor, as ever.
        assert!(output.status.success() && !text(&output.stderr).contains("terminating \""), "{output:?}");
        assert_eq!(run(&dir.join("a"), 2, &[], ""), words);
    }
    let rules = std::fs::read_to_string(dir.join("a.d")).expect("the rules");
    assert!(rules.starts_with("a.o: src/a.sc") && rules.contains("src/number.h"), "{rules}");
    assert!(!text(&splitcc(dir, &["-w", "-C", "-D", "WRONG=", "src/a.sc"]).stderr).contains("warning"));
    // Errors stand in the program's lines.
    let words = splitcc(dir, &["-D", "WRONG=here = 1;", "-c", "src/a.sc"]).stderr;
    assert!(text(&words).contains("src/a.sc:17:"), "{}", text(&words));
    // Without an end it is no program.
    write(dir, "b.sc", "splitc_main() { puts(\"a\n); }\n");
    let output = splitcc(dir, &["-c", "b.sc"]);
    assert!(output.status.code() == Some(1) && text(&output.stderr).contains("b.sc:1: error: this is no Split-C"));
}

#[test]
fn a_number_is_taken_for_an_address_with_a_warning() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = "splitc_main() {\nint *l; long here = 0, *spread A = all_spread_malloc(PROCS, sizeof(long));\n\
        A[MYPROC] = (long)&here; barrier();\nl = tolocal(A[MYPROC]);\n*l = 7; exit(here == 7 ? 0 : 1); }\n";
    write(dir.path(), "a.sc", program);
    let output = splitcc(dir.path(), &["-o", "a", "a.sc"]);
    let warning = "a.sc:4: warning: tolocal() of a number as an address; write tolocal(&x) for where it lies\n";
    assert!(output.status.success() && text(&output.stderr) == warning, "{output:?}");
    assert_eq!(run(&dir.path().join("a"), 2, &[], ""), "");
    builds(dir.path(), &["-w", "-o", "a", "a.sc"]);
}
