//! `cci perf sci`: windows of SCI beside bare memory.

use crate::conclusion::{conclude_found, say};
use crate::device::DeviceArguments;
use crate::results::{NarrowPlot, ResultsArguments};
use cci_perf::methods::sci::{SIZES, SciOptions, measure};
use cci_report::UserError;
use cci_report::sizes::{Sizes, parse_sizes, parse_time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `cci perf sci`.
#[derive(Args, Debug)]
pub(crate) struct SciArguments {
    /// Run both ends on this host
    #[arg(long, required = true)]
    local: bool,
    #[command(flatten)]
    device: DeviceArguments,
    /// Bytes of messages: 1, 2, 4, or multiples of 8 to 256K; 17 of them by default, 1 to 64K
    #[arg(short, long, value_parser = parse_sizes)]
    size: Option<Sizes>,
    /// Time for each figure: short, normal, long, or such as 250ms
    #[arg(short, long, default_value = "300ms", value_parser = parse_time)]
    time: Duration,
    /// Runs of each figure that the time is shared out to; the fastest is its figure
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Pairs of processes that the runs are shared out to
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: u32,
    #[command(flatten)]
    results: ResultsArguments,
    /// Draw both tests over bytes to this SVG file, - for standard output
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    narrow: NarrowPlot,
}

/// Measures.
pub(crate) fn sci(arguments: &SciArguments) -> Result<(), UserError> {
    let files = arguments.results.open_with_plots(arguments.plot.as_deref(), &arguments.narrow)?;
    let options = SciOptions {
        device: arguments.device.asked(),
        sizes: arguments.size.clone().map_or_else(|| SIZES.to_vec(), |sizes| sizes.0),
        time: arguments.time,
        runs: arguments.runs,
        launches: arguments.launches,
        between: None,
    };
    conclude_found(files, || measure(&options, &say))
}
