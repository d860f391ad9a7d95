//! The command: the language, the example programs as ranks of a job, and wrong programs.

#[path = "splitcc/dialect.rs"]
mod dialect;

use cci_conformance::installed::{self, Installed, finish, succeed, use_transport};
use cci_conformance::namespace;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The run time as it is installed, once per run of this test.
static INSTALLED: LazyLock<Installed> = LazyLock::new(|| {
    let splitc = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bindings/splitc");
    Installed::new("cci-splitc-c", "splitc", splitc, env!("CARGO_TARGET_TMPDIR"))
});

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("text")
}

/// `splitcc` in a folder.
fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_splitcc"));
    // `pkg-config` prints an absolute path of it.
    let flags = INSTALLED.pkg_config("splitc", &["--variable=libdir"]);
    command.current_dir(dir).args(arguments).env("PKG_CONFIG_PATH", Path::new(&flags[0]).join("../../pkgconfig"));
    command
}

/// Runs `splitcc` in a folder.
fn splitcc(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().expect("it starts")
}

/// Translates a program of the project into a folder; it has no warnings.
fn compile(source: &Path, dir: &Path) -> PathBuf {
    let program = dir.join(source.file_stem().expect("a name"));
    let paths = [source, &program].map(|path| path.to_str().expect("text"));
    let output = splitcc(dir, &["-O2", "-o", paths[1], paths[0], "-lm"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{source:?}: {}", text(&output.stderr));
    program
}

/// Runs a program as ranks of a job.
fn run(program: &Path, ranks: u32, arguments: &[&str], transport: &str) -> String {
    let mut command = installed::command(INSTALLED.cci());
    command.args(["run", "-n", &ranks.to_string()]).arg(program).args(arguments);
    use_transport(&mut command, transport, program.parent().expect("a folder"));
    finish(command.spawn().expect("it starts"), &format!("{program:?} of {ranks} over '{transport}'"))
}

#[test]
fn every_construct_of_the_language_does_what_it_states() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile(&here().join("tests/sc/language.sc"), dir.path());
    for ranks in 1..=4 {
        assert_eq!(run(&program, ranks, &[], ""), format!("{ranks} ranks speak it\n"));
    }
    // Everything by messages.
    assert_eq!(run(&program, 3, &[], "sock"), "3 ranks speak it\n");
}

#[test]
fn a_side_effect_of_an_operand_happens_once() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let source = here().join("tests/sc/effects.sc");
    for level in ["-O0", "-O2"] {
        let output = splitcc(dir.path(), &[level, "-o", "effects", source.to_str().expect("text")]);
        assert!(output.status.success() && output.stderr.is_empty(), "{level}: {}", text(&output.stderr));
        for ranks in 1..=3 {
            let printed = run(&dir.path().join("effects"), ranks, &[], "");
            assert_eq!(printed, format!("{ranks} ranks did it once\n"), "{level}");
        }
    }
}

/// Each program compares its result with that of one process.
fn example(name: &str, larger: &[&str], last: impl Fn(u32) -> String) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile(&here().join(format!("../../examples/splitc/{name}.sc")), dir.path());
    for ranks in 1..=most_ranks() {
        let lines = run(&program, ranks, &[], "");
        assert_eq!(lines.lines().last(), Some(&*last(ranks)), "{name}");
        run(&program, ranks, larger, "");
    }
    assert_eq!(run(&program, 2, &[], "sock").lines().last(), Some(&*last(2)), "{name} by messages");
}

/// 4; as many as `CCI_SPLITC_RANKS` states, for a long test.
fn most_ranks() -> u32 {
    std::env::var("CCI_SPLITC_RANKS").map_or(4, |ranks| ranks.parse().expect("a number of ranks"))
}

#[test]
fn em3d_is_right_in_all_versions() {
    example("em3d", &["37", "9", "4"], |ranks| format!("em3d bulk: {} nodes are right", 120 * ranks));
}

#[test]
fn matrix_multiply_is_right() {
    example("matmul", &["7"], |_| "matmul: 40 x 40 is right".to_owned());
}

#[test]
fn sample_sort_sorts() {
    example("sample_sort", &["777"], |ranks| format!("sample sort: {} keys are in order", 3000 * ranks));
}

#[test]
fn radix_sort_sorts() {
    example("radix_sort", &["777"], |ranks| format!("radix sort: {} keys are in order", 2000 * ranks));
}

#[test]
fn a_fast_fourier_transform_is_right() {
    example("fft", &["32"], |_| "fft: 256 points are right".to_owned());
}

#[test]
fn a_decomposition_is_right() {
    example("lu", &["7"], |_| "lu: 40 x 40 is right".to_owned());
}

#[test]
fn fish_swim_as_in_one_process() {
    example("wator", &["45", "30"], |ranks| format!("wator: {} fish are right", 60 * ranks));
}

#[test]
fn components_are_those_of_one_process() {
    example("components", &["3000", "2000"], |ranks| format!("components: {} vertices are right", 1000 * ranks));
}

/// The words of the language dropped, a program is one of C, and does the same as on one rank.
#[test]
fn a_program_on_one_rank_does_what_it_does_as_plain_c() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let examples = here().join("../../examples/splitc");
    for name in ["em3d", "matmul", "sample_sort", "radix_sort", "fft", "lu", "wator", "components"] {
        let source = examples.join(format!("{name}.sc"));
        let mut text = std::fs::read_to_string(&source).expect("an example");
        for (word, plain) in [("*global", "*"), ("*spread", "*"), ("::", ""), (":=", "="), (":-", "=")] {
            text = text.replace(word, plain);
        }
        let (plain, serial) = (dir.path().join(format!("{name}.c")), dir.path().join(format!("{name}-serial")));
        std::fs::write(&plain, text).expect("a program");
        let mut cc = Command::new("cc");
        // A spread array's name is a pointer to its first block, and that of C to its first row.
        cc.args(["-std=gnu89", "-O2", "-w", "-I"]).arg(here().join("tests/serial")).arg("-I").arg(&examples);
        succeed(cc.arg("-o").arg(&serial).arg(plain).arg("-lm"));
        let wanted = succeed(&mut Command::new(serial)).stdout;
        assert_eq!(run(&compile(&source, dir.path()), 1, &[], "").as_bytes(), wanted, "{name}");
    }
}

/// Its program, and what the page states of it.
#[test]
fn the_tutorial_is_true() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let page = std::fs::read_to_string(here().join("../../docs/splitc-tutorial.md")).expect("the page");
    let program = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let source = dir.path().join("sum.sc");
    std::fs::write(&source, program).expect("a program");
    let sum = compile(&source, dir.path());
    for ranks in 1..=4 {
        let printed = run(&sum, ranks, &[], "");
        assert!(page.contains(&format!("It prints `{}`", printed.trim_end())), "{printed}");
    }
    let line = program.lines().position(|line| line.contains("toglobal(rank")).expect("a line") + 1;
    std::fs::write(&source, program.replace("toglobal(rank, &part)", "&part")).expect("a program");
    let words = splitcc(dir.path(), &["-C", "sum.sc"]).stderr;
    assert_eq!(
        text(&words).lines().next().map(|first| first.starts_with(&format!("sum.sc:{line}: error: a local"))),
        Some(true)
    );
    assert!(page.contains(&format!("sum.sc:{line}: error: a local pointer")), "the page names line {line}");
}

#[test]
fn headers_of_the_system_pass_through() {
    const HEADERS: &str = "assert ctype errno fcntl float inttypes limits locale math complex setjmp signal stdarg \
        stddef stdint stdio stdlib string strings time unistd wchar pthread sys/time sys/types sys/stat sys/wait \
        sys/mman sys/socket netinet/in poll dlfcn regex getopt dirent semaphore sys/resource tgmath";
    let dir = tempfile::tempdir().expect("a temporary directory");
    let includes: String = HEADERS.split_whitespace().map(|name| format!("#include <{name}.h>\n")).collect();
    let program =
        "int *global g;\nint splitc_main() { double x = sin(1.0); g = 0; puts(strerror(0)); return x > 1; }\n";
    std::fs::write(dir.path().join("all.sc"), format!("{includes}{program}")).expect("a program");
    let output = splitcc(dir.path(), &["-D_GNU_SOURCE", "-o", "all", "all.sc", "-lm"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    assert_eq!(run(&dir.path().join("all"), 2, &[], ""), "Success\nSuccess\n");
}

/// Two ranks on each of two hosts, which are network name spaces: mapped in pairs, and by messages.
#[test]
fn programs_run_over_two_hosts() {
    if !namespace::may_be_made() {
        return;
    }
    let nets = namespace::pair(1500);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let [one, other] = [nets[0].path(), nets[1].path()];
    let rsh = dir.path().join("rsh");
    let enter = format!("case $1 in one) net={one};; *) net={other};; esac; shift; exec nsenter --net=$net \"$@\"");
    std::fs::write(&rsh, format!("#!/bin/sh\n{enter}\n")).expect("a script");
    std::fs::set_permissions(&rsh, std::fs::Permissions::from_mode(0o755)).expect("it may run");
    for (source, last) in [
        ("tests/sc/language.sc", "4 ranks speak it"),
        ("../../examples/splitc/em3d.sc", "em3d bulk: 480 nodes are right"),
        ("../../examples/splitc/radix_sort.sc", "radix sort: 8000 keys are in order"),
    ] {
        let program = compile(&here().join(source), dir.path());
        let mut job = installed::command(INSTALLED.cci());
        job.args(["run", "-n", "4", "-H", "one:2,other:2", "--rsh"]).arg(&rsh).arg(program);
        let printed = finish(job.spawn().expect("it starts"), source);
        assert_eq!(printed.lines().last(), Some(last));
    }
}

/// What stands in each wrong program after two lines, and what is said of its third.
const WRONG: [(&str, &str); 22] = [
    ("p = &x;", "a local pointer where a global pointer is wanted; write toglobal(MYPROC, p), or cast it"),
    ("q = g;", "a global pointer where a local pointer is wanted; write tolocal(p), or cast it"),
    ("g = s;", "a spread pointer where a global pointer is wanted; cast it"),
    ("takes(&x);", "a local pointer where a global pointer is wanted; write toglobal(MYPROC, p), or cast it"),
    ("*g := *p;", "`:=` between two places in the global address space; get into a variable first"),
    ("x := y;", "`:=` with no side in the global address space; write `=`"),
    ("x :- y;", "`:-` to a place that is not in the global address space; store through a global pointer"),
    ("x = *v;", "what a pointer to void leads to has no type; cast the pointer"),
    ("*v = x;", "what a pointer to void leads to has no type; cast the pointer"),
    ("q = &t->bits;", "the address of a bit field; make it a member of its own"),
    ("x = t->bits;", "a bit field in the global address space; make it a member of its own"),
    ("x = m[1];", "a spread array with fewer indices than it has dimensions left of `::`; index all"),
    ("m = 0;", "an assignment to a spread array; assign its elements"),
    ("x = &m == 0;", "the address of a spread array; the array itself is a spread pointer"),
    ("x = g == q;", "a comparison of pointers of different kinds; cast one of them"),
    ("x = g - s;", "a difference of pointers of different kinds; cast one of them"),
    ("x = g * 2;", "arithmetic that pointers do not have; add or subtract numbers"),
    ("x = -g;", "a global pointer where a number is wanted; access what it leads to"),
    ("x = tolocal(x);", "tolocal() of something that is no global or spread pointer; see what it is given"),
    ("x = *(y ? g : q);", "a conditional of pointers of different kinds; cast one of them"),
    ("int a[3]:: = {1};", "a spread array with an initializer, or of a typedef; assign its elements"),
    ("static int a[3]::;", "a static spread array within a function; declare it outside"),
];

#[test]
fn a_wrong_program_is_refused_in_its_own_lines() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let names = "int m[4][4]::; void takes(int *global p); struct tiny { int bits : 3; };";
    let variables = "int x = 0, y = 0, *q = 0, *global g = 0, *global p = 0, *spread s = 0; void *global v = 0; struct tiny *global t = 0;";
    for (statement, sentence) in WRONG {
        let program = format!("{names}\nint splitc_main() {{ {variables}\n{statement}\nsync(); return x + y; }}\n");
        std::fs::write(dir.path().join("wrong.sc"), program).expect("a program");
        let output = splitcc(dir.path(), &["-C", "wrong.sc"]);
        assert_eq!(text(&output.stderr), format!("wrong.sc:3: error: {sentence}\n"), "{statement}");
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty(), "nothing is translated");
    }
}

#[test]
fn what_is_no_program_is_refused_where_it_ends_to_be_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (program, sentence) in [
        (
            "int x;\nint splitc_main() { x = ; }\n",
            "wrong.sc:2: error: this is no Split-C, at `; }`; see what stands before\n",
        ),
        ("int m::;\n", "wrong.sc:1: error: a spread array has a dimension left of `::`; write T A[n]::[m]\n"),
        (
            "struct s {\nint m[3]::; };\n",
            "wrong.sc:2: error: a spread array within a structure; declare a spread pointer there\n",
        ),
        ("int m[]::;\n", "wrong.sc:1: error: a spread array without a size; give all dimensions left of `::`\n"),
    ] {
        std::fs::write(dir.path().join("wrong.sc"), program).expect("a program");
        assert_eq!(text(&splitcc(dir.path(), &["-C", "wrong.sc"]).stderr), sentence, "{program}");
    }
    // The C compiler's errors, and lines of the program, stay where they are.
    let program =
        "int splitc_main()\n{\n    int *global g = 0, x;\n    x = *\n        g;\n    nowhere = 1;\n    return x;\n}\n";
    std::fs::write(dir.path().join("wrong.sc"), program).expect("a program");
    let output = splitcc(dir.path(), &["-c", "wrong.sc"]);
    assert!(text(&output.stderr).contains("wrong.sc:6:") && text(&output.stderr).contains("nowhere"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_get_into_a_variable_that_ends_before_sync_is_warned_of() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program =
        |after: &str| format!("int *global g;\nint splitc_main() {{\n{{ int x; x := *g;\n{after} }}\nreturn 0; }}\n");
    let warning = "a.sc:3: warning: `x` ends before a sync() completes this get\n";
    for (after, wanted) in [("", warning), ("g++;", warning), ("sync();", ""), ("all_store_sync();", ""), ("f();", "")]
    {
        std::fs::write(dir.path().join("a.sc"), program(after)).expect("a program");
        let output = splitcc(dir.path(), &["-C", "a.sc"]);
        assert!(output.status.success(), "it is a program all the same: {output:?}");
        assert_eq!(text(&output.stderr), wanted, "{after}");
    }
}

#[test]
fn files_are_compiled_apart_and_linked() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let of = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a file");
    of(
        "main.sc",
        "#include <stdio.h>\nextern int a[8]::; int twice();\nint splitc_main() { a[MYPROC] = MYPROC + 1; barrier(); if (MYPROC == 0) printf(\"%d\\n\", twice(a[PROCS - 1])); barrier(); return 0; }\n",
    );
    of("array.sc", "int a[8]::;\n");
    of("twice.c", "int twice(int x) { return FACTOR * x; }\n");
    let output = splitcc(dir.path(), &["-c", "main.sc", "array.sc"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let output = splitcc(dir.path(), &["-o", "program", "main.o", "array.o", "twice.c", "-DFACTOR=2", "-lm"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(run(&dir.path().join("program"), 3, &[], ""), "6\n");
    let output = splitcc(dir.path(), &["-o", "program", "main.sc", "array.sc", "twice.c", "-DFACTOR=3"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(run(&dir.path().join("program"), 2, &[], ""), "6\n");
}

#[test]
fn the_command_explains_itself() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let output = splitcc(dir.path(), &["--help"]);
    assert!(output.status.success() && text(&output.stdout).starts_with("usage: splitcc"));
    let output = splitcc(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("splitcc: error: no file; give a Split-C program"));
    let output = splitcc(dir.path(), &["nowhere.sc"]);
    assert!(output.status.code() == Some(1) && text(&output.stderr).contains("nowhere.sc"), "{output:?}");
    let nowhere = Command::new(env!("CARGO_BIN_EXE_splitcc"))
        .arg("a.sc")
        .env("PKG_CONFIG_LIBDIR", dir.path())
        .env_remove("PKG_CONFIG_PATH")
        .output();
    let words = nowhere.expect("it starts").stderr;
    assert!(text(&words).starts_with("splitcc: error: the run time is not found: "), "{}", text(&words));
}
