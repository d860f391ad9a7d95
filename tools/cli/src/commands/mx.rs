//! `cci perf mx`: Myrinet Express beside CCI's own.

use crate::conclusion::{conclude_found, say};
use crate::device::DeviceArguments;
use crate::results::{NarrowPlot, ResultsArguments};
use cci_perf::methods::mx::{MxOptions, measure};
use cci_report::UserError;
use cci_report::sizes::parse_time;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `cci perf mx`.
#[derive(Args, Debug)]
pub(crate) struct MxArguments {
    /// Run both ends on this host
    #[arg(long, required = true)]
    local: bool,
    #[command(flatten)]
    device: DeviceArguments,
    /// Time for each figure: short, normal, long, or such as 250ms
    #[arg(short, long, default_value = "normal", value_parser = parse_time)]
    time: Duration,
    /// Pairs of processes that the time is shared out to
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: u32,
    /// Measure CCI over MX too, over this library: libmyriexpress.so, or a path
    #[arg(long, value_name = "LIBRARY")]
    over: Option<String>,
    /// Where the programs of other libraries are; where `make peers` puts them when absent
    #[arg(long, value_name = "DIRECTORY")]
    peers_in: Option<PathBuf>,
    #[command(flatten)]
    results: ResultsArguments,
    /// Draw figures over bytes and receives to this SVG file, - for standard output
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    narrow: NarrowPlot,
}

/// Measures.
pub(crate) fn mx(arguments: &MxArguments) -> Result<(), UserError> {
    let files = arguments.results.open_with_plots(arguments.plot.as_deref(), &arguments.narrow)?;
    let options = MxOptions {
        device: arguments.device.asked(),
        time: arguments.time,
        launches: arguments.launches,
        over: arguments.over.clone(),
        peers_in: arguments.peers_in.clone(),
    };
    conclude_found(files, || measure(&options, &say))
}
