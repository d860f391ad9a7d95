//! `cci perf via`: VIs beside CCI's own messages and RMA.

use crate::conclusion::{conclude_found, say};
use crate::device::DeviceArguments;
use crate::results::ResultsArguments;
use cci_perf::methods::via::{ViaOptions, measure};
use cci_report::UserError;
use cci_report::sizes::parse_time;
use clap::Args;
use std::time::Duration;

/// Arguments of `cci perf via`.
#[derive(Args, Debug)]
pub(crate) struct ViaArguments {
    /// Run both ends on this host
    #[arg(long, required = true)]
    local: bool,
    #[command(flatten)]
    device: DeviceArguments,
    /// Time for each row: short, normal, long, or such as 250ms
    #[arg(short, long, default_value = "normal", value_parser = parse_time)]
    time: Duration,
    /// Pairs of processes that the time is shared out to; each connects 1,024 VIs
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: u32,
    #[command(flatten)]
    results: ResultsArguments,
}

/// Measures.
pub(crate) fn via(arguments: &ViaArguments) -> Result<(), UserError> {
    let files = arguments.results.open()?;
    let options = ViaOptions { device: arguments.device.asked(), time: arguments.time, launches: arguments.launches };
    conclude_found(files, || measure(&options, &say))
}
