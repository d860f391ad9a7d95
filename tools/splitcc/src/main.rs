//! `splitcc`: translates Split-C to C with calls of its run time, and compiles it.
//!
//! `docs/design/splitc.md` has the language that it takes and the route.

#![forbid(unsafe_code)]

mod arguments;
mod compile;
mod edits;
mod lex;
mod translate;
mod types;

use std::io::Write;
use std::process::ExitCode;

/// What `--help` prints.
const HELP: &str = "usage: splitcc [-c | -C] [-o FILE] [options of cc] FILE...

Translates Split-C (.sc) to C, compiles it with other files, and links it with the run time.

  -c        compile each file to an object, and do not link
  -C        print the translation of each .sc file, or write it to the file of -o
  -o FILE   where the result goes
  --help    this text

Other options go to the C compiler ($CC, or cc). The run time is what `pkg-config splitc` names, also
beside this command. Run a program by: cci run -n 4 PROGRAM
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        let _ = std::io::stdout().write_all(HELP.as_bytes());
        return ExitCode::SUCCESS;
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
