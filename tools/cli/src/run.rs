//! `cci run`: starts a parallel job.

use crate::choice::choice;
use crate::mpi::{self, Network};
use cci_launcher::{Bind, Host, Program, RunOptions, Security, parse_hostfile, parse_hosts};
use cci_report::UserError;
use clap::{Args, Parser};
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `cci run`.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// How many processes
    #[arg(short = 'n', long = "ranks", alias = "np", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), required_unless_present = "remote")]
    ranks: Option<u32>,
    /// Hosts, with the processes that each gets at first: HOST:SLOTS,...
    #[arg(short = 'H', long, alias = "host", value_name = "HOST:SLOTS,...", conflicts_with = "hostfile")]
    hosts: Option<String>,
    /// A file with a host a line: HOST:SLOTS
    #[arg(short = 'f', long, alias = "machinefile", value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// What starts programs on other hosts, called as COMMAND HOST PROGRAM...; ssh if not given
    #[arg(long, value_name = "COMMAND")]
    rsh: Option<String>,
    /// Give each process one processor, in turn, or none of its own
    #[arg(long, value_parser = choice::<Bind>(), default_value = "none")]
    bind: Bind,
    /// What protects connections between ranks of several hosts
    #[arg(long, value_parser = choice::<Security>(), default_value = "psk")]
    security: Security,
    /// Begin each line of output with its rank
    #[arg(long)]
    label: bool,
    /// Serve PMI to the ranks of an MPI, such as MPICH; its messages go over this network
    #[arg(long, value_name = "NETWORK", num_args = 0..=1, require_equals = true, default_missing_value = "cci", value_parser = choice::<Network>())]
    mpi: Option<Network>,
    /// Show the variables that --mpi sets
    #[arg(short, long, requires = "mpi")]
    verbose: bool,
    /// Serve the launcher of another host by standard input
    #[arg(long, hide = true)]
    remote: bool,
    /// The program and its arguments; more programs of the same job follow as `: -n N PROGRAM...`
    #[arg(
        value_name = "PROGRAM",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "remote"
    )]
    program: Vec<OsString>,
    /// The programs behind `:`, which have a command line of their own.
    #[arg(skip)]
    pub(crate) more: Vec<Part>,
}

/// A program behind `:`, with its ranks.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "cci run",
    no_binary_name = true,
    disable_help_flag = true,
    override_usage = "cci run [OPTIONS] -n <N> <PROGRAM>... : -n <N> <PROGRAM>...\n       \
                      cci run [OPTIONS] -n <N> -- <PROGRAM>...  where ':' is an argument"
)]
pub(crate) struct Part {
    /// How many processes
    #[arg(short = 'n', long = "ranks", alias = "np", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks: u32,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) program: Vec<OsString>,
}

/// Runs a job; the status that it ends with.
pub(crate) fn run(arguments: &RunArguments) -> Result<u8, UserError> {
    if arguments.remote {
        return cci_launcher::remote().map(|()| 0);
    }
    cci_launcher::run(&arguments.options()?)
}

impl RunArguments {
    /// What the launcher is to do.
    pub(crate) fn options(&self) -> Result<RunOptions, UserError> {
        let (program, arguments) = self.program.split_first().expect("required without --remote");
        Ok(RunOptions {
            ranks: self.ranks.expect("required without --remote"),
            hosts: hosts(self)?,
            rsh: self.rsh.clone(),
            bind: self.bind,
            security: self.security,
            label: self.label,
            mpi: self.mpi.map(|network| mpi::options(network, self.verbose, program)).transpose()?,
            program: program.clone(),
            arguments: arguments.to_vec(),
            more: self.more.iter().filter_map(program_of).collect(),
            ..Default::default()
        })
    }
}

fn program_of(part: &Part) -> Option<Program> {
    let (program, arguments) = part.program.split_first()?;
    Some(Program { ranks: part.ranks, program: program.clone(), arguments: arguments.to_vec() })
}

fn hosts(arguments: &RunArguments) -> Result<Vec<Host>, UserError> {
    match (&arguments.hosts, &arguments.hostfile) {
        (Some(hosts), _) => parse_hosts(hosts),
        (None, Some(file)) => parse_hostfile(file),
        (None, None) => Ok(Vec::new()),
    }
}
