//! `cci perf threads`: operations per second over threads.

use crate::choice::choice;
use crate::conclusion::conclude_found;
use crate::device::DeviceArguments;
use crate::results::ResultsArguments;
use cci_perf::methods::threads::{ThreadsOptions, measure};
use cci_report::UserError;
use cci_report::names::{AttributeName, Operation};
use cci_report::sizes::{Sizes, parse_sizes, parse_time};
use clap::Args;
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct ThreadsArguments {
    /// All threads are of this process in any case
    #[arg(long)]
    local: bool,
    /// Threads, at most; when absent as many as there are processors, and 2 at least
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    upto: Option<u32>,
    /// Operation
    #[arg(long, value_parser = choice::<Operation>(), default_value = "send")]
    op: Operation,
    /// Size in bytes
    #[arg(short, long, default_value = "8", value_parser = parse_sizes)]
    size: Sizes,
    /// What the connections promise
    #[arg(long, value_parser = choice::<AttributeName>(), default_value = "ro")]
    attribute: AttributeName,
    #[command(flatten)]
    device: DeviceArguments,
    /// Time for each number of threads: short, normal, long, or such as 250ms
    #[arg(short, long, default_value = "normal", value_parser = parse_time)]
    time: Duration,
    #[command(flatten)]
    results: ResultsArguments,
}

/// Measures.
pub(crate) fn threads(arguments: &ThreadsArguments) -> Result<(), UserError> {
    let files = arguments.results.open()?;
    let [size] = arguments.size.0[..] else {
        return Err(UserError::new("threads are measured with one size: give one"));
    };
    let options = ThreadsOptions {
        upto: arguments.upto,
        operation: arguments.op,
        attribute: arguments.attribute,
        size,
        device: arguments.device.asked(),
        time: arguments.time,
    };
    conclude_found(files, || measure(&options))
}
