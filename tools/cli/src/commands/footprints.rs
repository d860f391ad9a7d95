//! `cci perf memory` and `cci perf idle`: what the library takes beside time of operations.

use crate::conclusion::conclude_found;
use crate::results::{NarrowPlot, ResultsArguments};
use cci_perf::methods::{footprints, memory_curves};
use cci_report::UserError;
use cci_report::sizes::{Counts, parse_counts, parse_time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// What both have.
#[derive(Args, Debug)]
struct FootprintsArguments {
    /// All processes are of this host in any case
    #[arg(long)]
    local: bool,
    /// Transport to use; the default device's when absent
    #[arg(long)]
    transport: Option<String>,
    #[command(flatten)]
    results: ResultsArguments,
}

#[derive(Args, Debug)]
pub(crate) struct MemoryArguments {
    /// Connections, at most; figures are given for each power of ten below. A range such as 1..1M
    /// draws curves over peers and over connections, of every transport and of bare sockets
    #[arg(long, default_value = "1000", value_name = "COUNT|RANGE", value_parser = parse_counts)]
    connections: Counts,
    /// Time for each curve of a range, such as 20s; what it does not suffice for is computed
    #[arg(short, long, default_value = "60s", value_parser = parse_time)]
    time: Duration,
    /// Draw the curves of a range to this SVG file, - for standard output
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    narrow: NarrowPlot,
    #[command(flatten)]
    shared: FootprintsArguments,
}

#[derive(Args, Debug)]
pub(crate) struct IdleArguments {
    /// Seconds to idle
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    #[command(flatten)]
    shared: FootprintsArguments,
}

/// Measures memory.
pub(crate) fn memory(arguments: &MemoryArguments) -> Result<(), UserError> {
    if arguments.plot.is_some() && matches!(arguments.connections, Counts::UpTo(_)) {
        return Err(UserError::new("--plot draws the curves of a range: give --connections a range such as 1..1M"));
    }
    let files = arguments.shared.results.open_with_plots(arguments.plot.as_deref(), &arguments.narrow)?;
    let transport = arguments.shared.transport.as_deref();
    conclude_found(files, || match arguments.connections {
        Counts::UpTo(most) => footprints::memory(transport, most),
        Counts::Range(least, most) => memory_curves::memory_curves(transport, [least, most], arguments.time),
    })
}

/// Measures idleness.
pub(crate) fn idle(arguments: &IdleArguments) -> Result<(), UserError> {
    let files = arguments.shared.results.open()?;
    conclude_found(files, || footprints::idle(arguments.shared.transport.as_deref(), arguments.seconds))
}
