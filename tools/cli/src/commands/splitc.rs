//! `cci perf splitc`: accesses of the global address space of Split-C.

use crate::choice::choice;
use crate::conclusion::{conclude_found, say};
use crate::results::{NarrowPlot, ResultsArguments};
use cci_perf::methods::splitc::{SplitcMapping, SplitcOptions, measure};
use cci_report::UserError;
use cci_report::sizes::parse_time;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `cci perf splitc`.
#[derive(Args, Debug)]
pub(crate) struct SplitcArguments {
    /// Run both ranks on this host
    #[arg(long, required = true)]
    local: bool,
    /// Transport of both ranks
    #[arg(long, default_value = "sm")]
    transport: String,
    /// Transport of a network, for a get beside an RMA read
    #[arg(long, default_value = "sock")]
    network: String,
    /// How the run time reaches the other rank: direct, am, vi, vi2; with several, all in one table
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "direct", value_parser = choice::<SplitcMapping>())]
    mapping: Vec<SplitcMapping>,
    /// Time for each line of the first table, and a tenth of it for each other point: short,
    /// normal, long, or such as 250ms
    #[arg(short, long, default_value = "200ms", value_parser = parse_time)]
    time: Duration,
    /// The translator, if it is not beside this command or in PATH
    #[arg(long, value_name = "FILE")]
    splitcc: Option<PathBuf>,
    #[command(flatten)]
    results: ResultsArguments,
    /// Draw words by type, and bulk puts over size, to this SVG file, - for standard output
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    narrow: NarrowPlot,
}

/// Measures.
pub(crate) fn splitc(arguments: &SplitcArguments) -> Result<(), UserError> {
    let files = arguments.results.open_with_plots(arguments.plot.as_deref(), &arguments.narrow)?;
    let options = SplitcOptions {
        transport: arguments.transport.clone(),
        network: Some(arguments.network.clone()),
        mappings: arguments.mapping.clone(),
        time: arguments.time,
        splitcc: arguments.splitcc.clone(),
    };
    conclude_found(files, || measure(&options, &say))
}
