//! The command line of `cci run` with several programs, and words of other launchers.

use crate::run::{Part, RunArguments};
use clap::{Args, CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// Options that other launchers write with one dash.
const SHORT: [(&str, &str); 5] = [
    ("-np", "--ranks"),
    ("-host", "--hosts"),
    ("-hosts", "--hosts"),
    ("-hostfile", "--hostfile"),
    ("-machinefile", "--hostfile"),
];

/// The command line of the first program, and those of the programs behind it. Other commands than
/// `run` stay as they are.
pub(crate) fn split(mut words: Vec<OsString>) -> (Vec<OsString>, Vec<Vec<OsString>>) {
    if words.get(1).is_none_or(|word| word != "run") {
        return (words, Vec::new());
    }
    let run = RunArguments::augment_args(clap::Command::new("run"));
    let (mut start, mut parts) = (2, Vec::new());
    loop {
        let program = program(&run, &mut words, start);
        let end = program.and_then(|program| (program..words.len()).find(|at| words[*at] == ":"));
        let rest = end.map(|end| words.split_off(end));
        parts.push(words);
        let Some(rest) = rest else { break };
        (words, start) = (rest[1..].to_vec(), 0);
    }
    let first = parts.remove(0);
    (first, parts)
}

/// Where the program begins; nothing if its words are to be left as they are, because `--` stands
/// before it, or if there is none. Translates the options before it.
fn program(run: &clap::Command, words: &mut Vec<OsString>, start: usize) -> Option<usize> {
    let mut at = start;
    while let Some(word) = words.get_mut(at) {
        if let Some((_, own)) = SHORT.iter().find(|(other, _)| *word == *other) {
            *word = own.into();
        }
        let is_text = word.to_str().is_some();
        let text = word.to_string_lossy().into_owned();
        // The parser would take `-n2` for a program, as a program may begin with a dash.
        if let Some((option, value)) = text.split_at_checked(2).filter(|(_, value)| !value.is_empty())
            && is_text
            && option != "--"
            && option.strip_prefix('-').is_some_and(|short| takes_next(run, short))
        {
            words.splice(at..=at, [option.into(), value.strip_prefix('=').unwrap_or(value).into()]);
            at += 2;
            continue;
        }
        match text.strip_prefix('-') {
            Some("-") => return None,
            Some(rest) if !rest.is_empty() => at += if takes_next(run, rest) { 2 } else { 1 },
            _ => return Some(at),
        }
    }
    None
}

/// Whether the value of an option, without its first dash, is the next word.
fn takes_next(run: &clap::Command, option: &str) -> bool {
    let has_name = |known: &clap::Arg| match option.strip_prefix('-') {
        Some(long) => {
            let aliases = known.get_all_aliases().unwrap_or_default();
            known.get_long().into_iter().chain(aliases).any(|name| name == long)
        }
        None => option.chars().eq(known.get_short()),
    };
    let takes = |known: &clap::Arg| known.get_action().takes_values() && !known.is_require_equals_set();
    run.get_arguments().find(|known| has_name(known)).is_some_and(takes)
}

/// Understands the command lines of the programs behind the first one.
///
/// # Errors
///
/// What is wrong with one.
pub(crate) fn parse(parts: Vec<Vec<OsString>>) -> Result<Vec<Part>, clap::Error> {
    parts.into_iter().map(|words| Part::from_arg_matches(&Part::command().try_get_matches_from(words)?)).collect()
}

#[cfg(test)]
mod tests {
    use crate::arguments::{Arguments, Command};
    use std::ffi::OsString;

    /// The programs of a command line, with their ranks.
    fn programs(line: &str) -> Result<Vec<(u32, String)>, String> {
        let words = line.split(' ').map(OsString::from);
        let Command::Run(run) = Arguments::read(words).map_err(|error| error.to_string())?.command else {
            return Err("another command".into());
        };
        let options = run.options().map_err(|why| why.0)?;
        let text = |program: &OsString, arguments: &[OsString]| {
            let words = std::iter::once(program).chain(arguments).map(|word| word.to_string_lossy());
            words.collect::<Vec<_>>().join(" ")
        };
        let first = (options.ranks, text(&options.program, &options.arguments));
        let more = options.more.iter().map(|more| (more.ranks, text(&more.program, &more.arguments)));
        Ok(std::iter::once(first).chain(more).collect())
    }

    #[test]
    fn programs_stand_between_colons_each_with_its_ranks() {
        let of = |line: &str| programs(line).expect("a command line");
        let expected = [(2, "./server -v".to_owned()), (3, "./client".to_owned()), (1, "./last x".to_owned())];
        assert_eq!(of("cci run -n 2 ./server -v : -n 3 ./client : --ranks=1 ./last x"), expected);
        assert_eq!(of("cci run --label -H a:2,b -n2 ./server -v : -np 3 ./client : -n1 ./last x"), expected);
        assert_eq!(of("cci run -n 1 a b:c :d"), [(1, "a b:c :d".to_owned())]);
        assert_eq!(of("cci run --mpi=own -n 1 /a : -n2 /b"), [(1, "/a".to_owned()), (2, "/b".to_owned())]);
        assert_eq!(of("cci run -n 1 -- expr a : b"), [(1, "expr a : b".to_owned())]);
        let last = (1, "expr a : b".to_owned());
        assert_eq!(of("cci run -n 2 a : -n 1 -- expr a : b"), [(2, "a".to_owned()), last]);
    }

    #[test]
    fn words_of_other_launchers_are_understood_before_the_program_alone() {
        let of = |line: &str| programs(line).expect("a command line");
        assert_eq!(of("cci run -np 4 ./program -np 5"), [(4, "./program -np 5".to_owned())]);
        for hosts in ["-hosts a,b", "-host a,b", "--host a,b", "-H a,b"] {
            assert_eq!(of(&format!("cci run {hosts} --np 4 x")), [(4, "x".to_owned())]);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("hosts");
        std::fs::write(&file, "a:2\n").expect("a file");
        for option in ["-f", "-hostfile", "-machinefile", "--machinefile", "--hostfile"] {
            assert_eq!(of(&format!("cci run {option} {} -n 1 x", file.display())), [(1, "x".to_owned())]);
        }
    }

    #[test]
    fn a_program_without_its_ranks_is_refused_with_both_forms() {
        for line in ["cci run -n 2 a : b", "cci run -n 2 a :", "cci run -n 2 a : --label b"] {
            let why = programs(line).expect_err("a refusal");
            assert!(why.contains(": -n <N> <PROGRAM>...") && why.contains("-n <N> -- <PROGRAM>"), "{line}: {why}");
        }
        assert!(programs("cci run -n 2 a : -n 0 b").expect_err("a refusal").contains("0 is not in 1.."));
        assert!(programs("cci run -n 2 : -n 2 a").expect_err("a refusal").contains("<PROGRAM>"));
    }
}
