//! Everything behind the command `cci`.
#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod choice;
mod commands;
mod compare;
mod conclusion;
mod device;
mod doctor;
mod examples;
mod explain;
mod info;
mod job;
mod key;
mod model;
mod mpi;
mod perf;
mod programs;
mod report;
mod results;
mod run;
mod top;

use arguments::{Arguments, Command};
use cci_report::{UserError, while_doing};
use clap::CommandFactory;
use std::io::Write;
use std::process::ExitCode;

/// Runs the command of this process. It writes errors to standard error and returns a status other
/// than 0: 2 for a malformed command line, 1 for every other error.
#[must_use]
pub fn run() -> ExitCode {
    if let Some(status) = cci_perf::child::run() {
        return status;
    }
    let arguments = match Arguments::read(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => return show(&error),
    };
    let outcome = match &arguments.command {
        Command::Info(arguments) => info::info(arguments),
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Doctor(arguments) => match doctor::doctor(arguments) {
            Ok(works) => return exit(works),
            Err(why) => Err(why),
        },
        Command::Completion(arguments) => completion(arguments.shell),
        Command::Perf(arguments) => match perf::perf(arguments) {
            // A comparison has statuses of its own.
            Ok(status) => return status,
            Err(why) => Err(why),
        },
        Command::Run(arguments) => match run::run(arguments) {
            Ok(status) => return ExitCode::from(status),
            Err(why) => Err(why),
        },
        Command::MpiEnv(arguments) => mpi::mpi_env(arguments),
        Command::Job(arguments) => job::job(arguments),
        Command::Key(arguments) => key::key(arguments),
        Command::Model(arguments) => model::model(arguments),
        Command::Top(arguments) => top::top(arguments),
        Command::Bench(arguments) => bench::bench(arguments),
    };
    // What does not end with a line is written last.
    let outcome = outcome.and_then(|()| std::io::stdout().flush().map_err(while_doing("cannot write the answer")));
    if let Err(why) = &outcome {
        complain(&why.0);
    }
    exit(outcome.is_ok())
}

/// The command line, from which help, completions and manual pages are made.
#[must_use]
pub fn command_line() -> clap::Command {
    Arguments::command()
}

/// Prints the completion for a shell.
fn completion(shell: clap_complete::Shell) -> Result<(), UserError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command_line(), "cci", &mut text);
    match std::io::stdout().write_all(&text) {
        // A reader of only the beginning has closed the pipe.
        Err(why) if why.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(while_doing("cannot write the completion")),
    }
}

/// Shows the help that was asked for, or what is wrong with the command line; the status to end
/// with.
fn show(error: &clap::Error) -> ExitCode {
    let shown = error.print().and_then(|()| std::io::stdout().flush());
    match shown {
        // A reader of only the beginning has closed the pipe.
        Err(why) if !error.use_stderr() && why.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write the help: {why}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}

/// Writes an error to standard error, and adds a full stop unless it ends with `?` or `!`.
fn complain(why: &str) {
    let why = why.trim_end_matches('.');
    let stop = if why.ends_with(['?', '!']) { "" } else { "." };
    // A failure to write to standard error cannot be reported.
    let _ = writeln!(std::io::stderr(), "cci: {why}{stop}");
}

fn exit(well: bool) -> ExitCode {
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
