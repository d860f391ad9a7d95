//! The arguments of the command.

use std::path::{Path, PathBuf};

/// What is made of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Program,
    Objects,
    Translation,
    /// The rules of `make`, of `-M` or `-MM`.
    Rules,
}

/// Who needs an argument, besides the linker, which gets all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A file that the C compiler compiles by itself, or links.
    File,
    Preprocessor,
    /// The preprocessor and the compiler.
    Both,
    Compiler,
    Linker,
}

/// An argument for the C compiler: a file, or an option with what belongs to it.
#[derive(Debug, PartialEq, Eq)]
struct Other {
    kind: Kind,
    words: Vec<String>,
}

/// The arguments, sorted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) goal: Goal,
    pub(crate) output: Option<PathBuf>,
    /// Files of Split-C.
    pub(crate) sources: Vec<PathBuf>,
    /// The rest, in order.
    others: Vec<Other>,
}

impl Arguments {
    fn of(&self, wanted: impl Fn(&Other) -> bool) -> Vec<&str> {
        self.others.iter().filter(|other| wanted(other)).flat_map(|other| &other.words).map(String::as_str).collect()
    }

    pub(crate) fn for_preprocessor(&self) -> Vec<&str> {
        self.of(|other| matches!(other.kind, Kind::Preprocessor | Kind::Both))
    }

    /// Without what has rules of `make` written.
    pub(crate) fn for_preprocessor_without_rules(&self) -> Vec<&str> {
        self.of(|other| {
            let is_rule = other.words[0].starts_with("-M") || other.words[0].starts_with("-Wp,-M");
            matches!(other.kind, Kind::Preprocessor | Kind::Both) && !is_rule
        })
    }

    pub(crate) fn for_compiler(&self) -> Vec<&str> {
        self.of(|other| matches!(other.kind, Kind::Compiler | Kind::Both))
    }

    /// What a file of C needs that is not linked.
    pub(crate) fn for_c(&self) -> Vec<&str> {
        self.of(|other| !matches!(other.kind, Kind::File | Kind::Linker))
    }

    /// What the linker needs, and the files of C on the way there.
    pub(crate) fn for_linker(&self) -> Vec<&str> {
        let has_c = !self.c_files().is_empty();
        self.of(|other| has_c || other.kind != Kind::Preprocessor)
    }

    /// Files of C, which the C compiler compiles.
    pub(crate) fn c_files(&self) -> Vec<&str> {
        self.of(|other| other.kind == Kind::File && other.words.iter().any(|file| is_compiled(file)))
    }

    pub(crate) fn has(&self, option: &str) -> bool {
        self.others.iter().any(|other| other.words[0] == option)
    }

    /// Whether an option stands there, with what belongs to it apart or behind it.
    pub(crate) fn has_start(&self, start: &str) -> bool {
        self.others.iter().any(|other| other.words[0].starts_with(start))
    }
}

fn is_compiled(file: &str) -> bool {
    let end = Path::new(file).extension().and_then(|end| end.to_str());
    end.is_some_and(|end| ["c", "i", "s", "S", "C", "cc", "cpp", "cxx"].contains(&end))
}

/// Whether the next argument belongs to an option.
fn takes_next(option: &str) -> bool {
    const OPTIONS: [&str; 42] = [
        "-A",
        "-B",
        "-D",
        "-F",
        "-G",
        "-I",
        "-L",
        "-MF",
        "-MQ",
        "-MT",
        "-R",
        "-T",
        "-U",
        "-Xassembler",
        "-Xclang",
        "-Xlinker",
        "-Xpreprocessor",
        "--param",
        "--sysroot",
        "-arch",
        "-aux-info",
        "-dumpbase",
        "-dumpbase-ext",
        "-dumpdir",
        "-e",
        "-framework",
        "-h",
        "-idirafter",
        "-imacros",
        "-include",
        "-iprefix",
        "-iquote",
        "-isysroot",
        "-isystem",
        "-iwithprefix",
        "-iwithprefixbefore",
        "-l",
        "-target",
        "-u",
        "-wrapper",
        "-x",
        "-z",
    ];
    OPTIONS.contains(&option)
}

fn kind_of(option: &str) -> Kind {
    const LINKER: [&str; 21] = [
        "-R",
        "-T",
        "-Xlinker",
        "-e",
        "-framework",
        "-h",
        "-no-pie",
        "-nodefaultlibs",
        "-nolibc",
        "-nostartfiles",
        "-nostdlib",
        "-pie",
        "-r",
        "-rdynamic",
        "-s",
        "-shared",
        "-static",
        "-u",
        "-x",
        "-z",
        "-F",
    ];
    const PREPROCESSOR: [&str; 5] = ["-Xpreprocessor", "-nostdinc", "-undef", "-H", "-trigraphs"];
    let starts = |starts: &[&str]| starts.iter().any(|start| option.starts_with(start));
    if !option.starts_with('-') || option == "-" {
        Kind::File
    } else if LINKER.contains(&option) || starts(&["-l", "-L", "-Wl,", "-static-", "-shared-"]) {
        Kind::Linker
    } else if PREPROCESSOR.contains(&option) || starts(&["-A", "-D", "-I", "-M", "-U", "-Wp,", "-i"]) {
        Kind::Preprocessor
    } else if matches!(option, "-E" | "-S")
        || starts(&["-g", "-Wa,", "-Xassembler", "-aux-info", "-dump", "-save-temps"])
    {
        Kind::Compiler
    } else {
        Kind::Both
    }
}

pub(crate) fn parse(arguments: Vec<String>) -> Result<Arguments, String> {
    let mut parsed = Arguments { goal: Goal::Program, output: None, sources: Vec::new(), others: Vec::new() };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-c" => parsed.goal = Goal::Objects,
            "-C" => parsed.goal = Goal::Translation,
            "-o" => {
                let file = arguments.next().ok_or("splitcc: error: -o without a file; name the result")?;
                parsed.output = Some(file.into());
            }
            joined if joined.starts_with("-o") => parsed.output = Some(joined[2..].into()),
            _ if Path::new(&argument).extension().is_some_and(|end| end == "sc") && !argument.starts_with('-') => {
                parsed.sources.push(argument.into());
            }
            _ => {
                let mut other = Other { kind: kind_of(&argument), words: vec![argument] };
                if takes_next(&other.words[0]) {
                    let next = arguments.next();
                    other.words.push(next.ok_or_else(|| {
                        format!("splitcc: error: {} without what belongs to it; add it", other.words[0])
                    })?);
                }
                parsed.others.push(other);
            }
        }
    }
    if parsed.has("-M") || parsed.has("-MM") {
        parsed.goal = Goal::Rules;
    }
    let compiled = parsed.sources.len() + parsed.c_files().len();
    if parsed.sources.is_empty() && parsed.others.iter().all(|other| other.kind != Kind::File) {
        return Err("splitcc: error: no file; give a Split-C program, NAME.sc, or --help".to_owned());
    }
    if parsed.output.is_some() && parsed.goal != Goal::Program && compiled > 1 {
        return Err("splitcc: error: -o with several files that are not linked; leave it out".to_owned());
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Arguments, String> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn arguments_are_sorted() {
        let arguments = of("-O2 -o prog -I dir a.sc b.c -lm -DX=1").expect("right");
        assert_eq!((arguments.goal, arguments.output.clone()), (Goal::Program, Some("prog".into())));
        assert_eq!(arguments.sources, [PathBuf::from("a.sc")]);
        assert_eq!(arguments.for_linker(), ["-O2", "-I", "dir", "b.c", "-lm", "-DX=1"]);
        assert_eq!(arguments.for_preprocessor(), ["-O2", "-I", "dir", "-DX=1"]);
        assert_eq!(arguments.for_compiler(), ["-O2"]);
        assert_eq!(arguments.c_files(), ["b.c"]);
        assert_eq!(of("-C a.sc").expect("right").goal, Goal::Translation);
        assert_eq!(of("-oprog a.sc").expect("right").output, Some("prog".into()));
        for wrong in ["", "-c", "-o", "a.sc -o", "-c a.sc b.sc -o x", "-c a.sc b.c -o x", "a.sc -I", "-include a.sc"] {
            assert!(of(wrong).is_err_and(|why| why.starts_with("splitcc: error: ")), "{wrong}");
        }
    }

    #[test]
    fn what_stands_apart_stays_with_its_option() {
        for option in "-I -D -U -include -imacros -isystem -iquote -idirafter -isysroot -MT -MQ -MF".split(' ') {
            let arguments = of(&format!("-g {option} a.sc -Wall b.sc")).expect("right");
            assert_eq!(arguments.sources, [PathBuf::from("b.sc")], "{option}");
            assert_eq!(arguments.for_preprocessor(), [option, "a.sc", "-Wall"]);
            assert_eq!(arguments.for_compiler(), ["-g", "-Wall"]);
            assert_eq!(arguments.for_c(), ["-g", option, "a.sc", "-Wall"]);
        }
        for option in "-L -l -Xlinker -T -u -z -x".split(' ') {
            let arguments = of(&format!("{option} x -I i b.sc")).expect("right");
            assert_eq!((arguments.for_linker(), arguments.for_c().len()), (vec![option, "x"], 2));
        }
        let arguments = of("--param x=1 -B dir -target t b.sc").expect("right");
        assert_eq!(arguments.for_compiler(), arguments.for_preprocessor());
        assert_eq!(arguments.for_compiler(), ["--param", "x=1", "-B", "dir", "-target", "t"]);
    }
}
