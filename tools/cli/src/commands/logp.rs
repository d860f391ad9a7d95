//! `cci perf logp`: the parameters of the LogP model.

use crate::choice::choice;
use crate::conclusion::{conclude_found, say};
use crate::device::DeviceArguments;
use crate::results::{NarrowPlot, ResultsArguments};
use cci_perf::methods::logp::{LogpOptions, measure};
use cci_report::UserError;
use cci_report::names::{AttributeName, Threads};
use cci_report::sizes::{parse_size, parse_time};
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `cci perf logp`.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("where").required(true).args(["local", "connect"])))]
#[command(mut_arg("key", |key| key.help(
    "A key of both devices, as in the configuration file. With sim: --key delay=5000 --key send_overhead=1000 \
     --key recv_overhead=1500 --key gap=3000 (ns) --key bandwidth=1000000000 (bytes/s)"
)))]
pub(crate) struct LogpArguments {
    /// Run both ends on this host: as processes; over sim, in this process and in virtual time
    #[arg(long)]
    local: bool,
    /// Measure against the server with this URI
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    #[command(flatten)]
    device: DeviceArguments,
    /// Bytes of a request and of a reply
    #[arg(short, long, default_value = "8", value_parser = parse_size)]
    size: u64,
    /// What the connection promises; ro when absent, but uu over sim, where a message is then one
    /// frame and nothing else travels
    #[arg(long, value_parser = choice::<AttributeName>())]
    attribute: Option<AttributeName>,
    /// Endpoints for one thread, or for many
    #[arg(long, value_parser = choice::<Threads>(), default_value = "many")]
    threads: Threads,
    /// Measure Active Messages in place of CCI's own messages; local only
    #[arg(long)]
    am: bool,
    /// Time for all bursts: short, normal, long, or such as 250ms; up to 500ms it may take longer
    #[arg(short, long, default_value = "normal", value_parser = parse_time)]
    time: Duration,
    #[command(flatten)]
    results: ResultsArguments,
    /// Draw the signature, time per message over the length of the burst, to this SVG file, - for
    /// standard output
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    narrow: NarrowPlot,
}

/// Measures.
pub(crate) fn logp(arguments: &LogpArguments) -> Result<(), UserError> {
    let files = arguments.results.open_with_plots(arguments.plot.as_deref(), &arguments.narrow)?;
    let options = LogpOptions {
        server: arguments.connect.clone(),
        device: arguments.device.asked(),
        size: arguments.size,
        attribute: arguments.attribute,
        threads: arguments.threads,
        active: arguments.am,
        time: arguments.time,
    };
    conclude_found(files, || measure(&options, &say))
}
