//! The arguments of the command.

use std::path::{Path, PathBuf};

/// What is made of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Program,
    Objects,
    Translation,
}

/// The arguments, sorted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) goal: Goal,
    pub(crate) output: Option<PathBuf>,
    /// Files of Split-C.
    pub(crate) sources: Vec<PathBuf>,
    /// Options for the preprocessor and the compiler, and other files, in order.
    pub(crate) others: Vec<String>,
}

impl Arguments {
    /// The options that the preprocessor needs.
    pub(crate) fn for_preprocessor(&self) -> Vec<&str> {
        let mut wanted = Vec::new();
        let mut others = self.others.iter();
        while let Some(option) = others.next() {
            let is_wanted = ["-I", "-D", "-U", "-O", "-m", "-f"].iter().any(|start| option.starts_with(start));
            if is_wanted || matches!(option.as_str(), "-include" | "-isystem") {
                wanted.push(option.as_str());
                if takes_next(option) {
                    wanted.extend(others.next().map(String::as_str));
                }
            }
        }
        wanted
    }
}

/// Whether the next argument belongs to an option.
fn takes_next(option: &str) -> bool {
    matches!(option, "-I" | "-D" | "-U" | "-L" | "-l" | "-include" | "-isystem" | "-Xlinker" | "-x")
}

pub(crate) fn parse(arguments: Vec<String>) -> Result<Arguments, String> {
    let mut parsed = Arguments { goal: Goal::Program, output: None, sources: Vec::new(), others: Vec::new() };
    let mut has_file = false;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-c" => parsed.goal = Goal::Objects,
            "-C" => parsed.goal = Goal::Translation,
            "-o" => {
                let file = arguments.next().ok_or("splitcc: error: -o without a file; name the result")?;
                parsed.output = Some(file.into());
            }
            _ if Path::new(&argument).extension().is_some_and(|end| end == "sc") => {
                parsed.sources.push(argument.into());
                has_file = true;
            }
            _ => {
                let next = takes_next(&argument).then(|| arguments.next()).flatten();
                has_file |= !argument.starts_with('-');
                parsed.others.push(argument);
                parsed.others.extend(next);
            }
        }
    }
    if !has_file {
        return Err("splitcc: error: no file; give a Split-C program, NAME.sc, or --help".to_owned());
    }
    if parsed.output.is_some() && parsed.goal != Goal::Program && parsed.sources.len() > 1 {
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
        assert_eq!((arguments.goal, arguments.output), (Goal::Program, Some("prog".into())));
        assert_eq!(arguments.sources, [PathBuf::from("a.sc")]);
        assert_eq!(arguments.others, ["-O2", "-I", "dir", "b.c", "-lm", "-DX=1"]);
        let arguments = of("-O2 -o prog -I dir a.sc b.c -lm -DX=1").expect("right");
        assert_eq!(arguments.for_preprocessor(), ["-O2", "-I", "dir", "-DX=1"]);
        assert_eq!(of("-C a.sc").expect("right").goal, Goal::Translation);
        for wrong in ["", "-c", "-o", "a.sc -o", "-c a.sc b.sc -o x"] {
            assert!(of(wrong).is_err_and(|why| why.starts_with("splitcc: error: ")), "{wrong}");
        }
    }
}
