//! `cci perf am`: Active Messages beside CCI's own.

use crate::conclusion::{conclude_found, say};
use crate::device::DeviceArguments;
use crate::results::ResultsArguments;
use cci_perf::interrupt;
use cci_perf::methods::am::{AmOptions, measure};
use cci_report::UserError;
use cci_report::sizes::parse_time;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `cci perf am`.
#[derive(Args, Debug)]
pub(crate) struct AmArguments {
    /// Run both ends on this host
    #[arg(long, required = true)]
    local: bool,
    #[command(flatten)]
    device: DeviceArguments,
    /// Time for each kind of exchange: short, normal, long, or such as 250ms
    #[arg(short, long, default_value = "normal", value_parser = parse_time)]
    time: Duration,
    /// Pairs of processes that the time is shared out to
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: u32,
    /// Directory of the programs of other libraries: UCX's active messages are measured too
    #[arg(long, value_name = "DIR")]
    peers_in: Option<PathBuf>,
    #[command(flatten)]
    results: ResultsArguments,
    /// Draw the times of both to this SVG file, - for standard output
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// Measures.
pub(crate) fn am(arguments: &AmArguments) -> Result<(), UserError> {
    let mut files = arguments.results.open(arguments.plot.as_deref())?;
    interrupt::watch()?;
    let options = AmOptions {
        device: arguments.device.asked(),
        time: arguments.time,
        launches: arguments.launches,
        peers_in: arguments.peers_in.clone(),
    };
    conclude_found(measure(&options, &say)?, &mut files)
}
