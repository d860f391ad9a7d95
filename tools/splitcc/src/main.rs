//! `splitcc`: translates Split-C to C with calls of its run time, and compiles it.
//!
//! `docs/design/splitc.md` has the language that it takes and the route.

#![forbid(unsafe_code)]

mod arguments;
mod compile;
mod edits;
mod lex;
mod strings;
mod translate;
mod types;

use std::io::Write;
use std::process::ExitCode;

/// What `--help` prints.
const HELP: &str = include_str!("help.txt");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        return match std::io::stdout().write_all(HELP.as_bytes()) {
            Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => {
                let _ = std::io::stderr().write_all(format!("splitcc: cannot write the help: {why}\n").as_bytes());
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        };
    }
    let outcome = arguments::parse(arguments)
        .map_err(|why| (2, vec![why]))
        .and_then(|arguments| compile::run(&arguments).map_err(|lines| (1, lines)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, lines)) => {
            for line in lines {
                let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
            }
            ExitCode::from(status)
        }
    }
}
