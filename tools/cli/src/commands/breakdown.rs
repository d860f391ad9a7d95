//! `cci perf breakdown`: what the time of a request and its reply goes to.

use crate::choice::choice;
use crate::conclusion::{conclude_found, say};
use crate::device::DeviceArguments;
use crate::results::ResultsArguments;
use cci_perf::methods::breakdown::{BreakdownOptions, measure};
use cci_report::UserError;
use cci_report::names::Threads;
use cci_report::sizes::{parse_size, parse_time};
use clap::Args;
use std::time::Duration;

/// Arguments of `cci perf breakdown`.
#[derive(Args, Debug)]
pub(crate) struct BreakdownArguments {
    /// Run both ends as processes of this host, pinned to different processors
    #[arg(long, required = true)]
    local: bool,
    #[command(flatten)]
    device: DeviceArguments,
    /// Bytes of the request and of the reply
    #[arg(short, long, default_value = "8", value_parser = parse_size)]
    size: u64,
    /// Endpoints for one thread, or for many
    #[arg(long, value_parser = choice::<Threads>(), default_value = "many")]
    threads: Threads,
    /// Time for all rounds: short, normal, long, or such as 250ms
    #[arg(short, long, default_value = "normal", value_parser = parse_time)]
    time: Duration,
    #[command(flatten)]
    results: ResultsArguments,
}

/// Measures.
pub(crate) fn breakdown(arguments: &BreakdownArguments) -> Result<(), UserError> {
    let files = arguments.results.open()?;
    let options = BreakdownOptions {
        device: arguments.device.asked(),
        size: arguments.size,
        threads: arguments.threads,
        time: arguments.time,
    };
    conclude_found(files, || measure(&options, &say))
}
