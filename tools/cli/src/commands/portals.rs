//! `cci perf portals`: Portals 3.3 beside CCI's own.

use crate::conclusion::{conclude_found, say};
use crate::device::DeviceArguments;
use crate::results::{NarrowPlot, ResultsArguments};
use cci_perf::methods::portals::{PortalsOptions, measure};
use cci_report::UserError;
use cci_report::sizes::parse_time;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `cci perf portals`.
#[derive(Args, Debug)]
pub(crate) struct PortalsArguments {
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
    /// Modes: generic, or generic,accelerated
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum, default_value = "generic")]
    mode: Vec<Mode>,
    /// Measure CCI over Portals too, over this library: libportals3.so.2, or a path
    #[arg(long, value_name = "LIBRARY")]
    over: Option<String>,
    #[command(flatten)]
    results: ResultsArguments,
    /// Draw figures over bytes and entries to this SVG file, - for standard output
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    narrow: NarrowPlot,
}

/// Who makes the progress of an interface: calls of the program, or an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    Generic,
    Accelerated,
}

/// Measures.
pub(crate) fn portals(arguments: &PortalsArguments) -> Result<(), UserError> {
    let files = arguments.results.open_with_plots(arguments.plot.as_deref(), &arguments.narrow)?;
    let options = PortalsOptions {
        device: arguments.device.asked(),
        time: arguments.time,
        launches: arguments.launches,
        has_accelerated: arguments.mode.contains(&Mode::Accelerated),
        over: arguments.over.clone(),
    };
    conclude_found(files, || measure(&options, &say))
}
