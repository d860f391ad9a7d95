//! `cci perf am`: Active Messages beside CCI's own, or by several mappings beside native VI.

use crate::conclusion::{conclude_found, say};
use crate::device::DeviceArguments;
use crate::results::{NarrowPlot, ResultsArguments};
use cci_perf::methods::am::{AmOptions, measure};
use cci_perf::methods::mappings::{self, MappingName, MappingsOptions};
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
    /// Mappings over the VI Architecture, and cci, beside native VI: v1, v2, v3, v4, cci
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = MappingName::parse)]
    mapping: Vec<MappingName>,
    /// With --mapping: credits of a channel; with several, a line for each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "8", requires = "mapping",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    credits: Vec<u16>,
    /// With --mapping: messages after which credits go back by themselves; with several, a line for
    /// each; unless given, a quarter of the credits
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "mapping",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    update_every: Vec<u16>,
    /// With --mapping: as many buffers as 2 to the power of the credits, as the paper prints it
    #[arg(long, requires = "mapping")]
    power: bool,
    #[command(flatten)]
    results: ResultsArguments,
    /// Draw the times of both to this SVG file, - for standard output; with --mapping, bulk data
    /// over size, and short messages over credits where there are several numbers of these
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    narrow: NarrowPlot,
}

/// Measures.
pub(crate) fn am(arguments: &AmArguments) -> Result<(), UserError> {
    let files = arguments.results.open_with_plots(arguments.plot.as_deref(), &arguments.narrow)?;
    if !arguments.mapping.is_empty() {
        let options = MappingsOptions {
            device: arguments.device.asked(),
            mappings: arguments.mapping.clone(),
            credits: arguments.credits.clone(),
            update_every: arguments.update_every.clone(),
            by_power: arguments.power,
            time: arguments.time,
        };
        return conclude_found(files, || mappings::measure(&options, &say));
    }
    let options = AmOptions {
        device: arguments.device.asked(),
        time: arguments.time,
        launches: arguments.launches,
        peers_in: arguments.peers_in.clone(),
    };
    conclude_found(files, || measure(&options, &say))
}
