//! `cci perf memory` and `cci perf idle`: what the library takes beside time of operations. `cci bench` holds the same figures
//! against their bars.

use crate::arguments::Footprint;
use crate::bench::{connections, footprint};
use crate::measure::machine;
use crate::perf::{conclude, document, real_transport};
use crate::results::ResultsArguments;
use cci_report::UserError;
use cci_report::finding::{Finding, Idle, Memory};
use clap::Args;

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
    /// Connections, at most; figures are given for each power of ten below
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    connections: u32,
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
    measured(&arguments.shared, |transport| {
        let endpoint = footprint::in_a_child(Footprint::Endpoint, transport, 0)?;
        let figures = connections::in_a_child(transport, &stops(arguments.connections))?;
        Ok(Finding::Memory(Memory {
            transport: transport.into(),
            endpoint_private_bytes: endpoint.private,
            endpoint_resident_bytes: endpoint.value,
            points: figures.points,
        }))
    })
}

/// Measures idleness.
pub(crate) fn idle(arguments: &IdleArguments) -> Result<(), UserError> {
    measured(&arguments.shared, |transport| {
        let [idle, bare] = footprint::idle_beside_a_sleeper(transport, arguments.seconds);
        let (idle, bare) = (idle?, bare?);
        #[expect(clippy::cast_precision_loss, reason = "at most an hour")]
        let seconds = arguments.seconds as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
        let (wakes, switches) = (idle.wakes as u64, idle.switches as u64);
        let (processor_ms, bare_processor_ms) = (idle.value, bare.value);
        let transport = transport.into();
        Ok(Finding::Idle(Idle { transport, seconds, processor_ms, bare_processor_ms, wakes, switches }))
    })
}

fn measured(
    arguments: &FootprintsArguments,
    find: impl FnOnce(&str) -> Result<Finding, UserError>,
) -> Result<(), UserError> {
    let mut files = arguments.results.open(None)?;
    let environment = machine::here(None);
    let finding = find(&real_transport(arguments.transport.as_deref())?)?;
    conclude(&document(environment, Vec::new(), vec![finding], None), &mut files)
}

/// Each power of ten from 10, and the last.
fn stops(last: u32) -> Vec<u32> {
    let mut stops: Vec<_> =
        std::iter::successors(Some(10), |stop: &u32| stop.checked_mul(10)).take_while(|stop| *stop < last).collect();
    stops.push(last);
    stops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_given_at_powers_of_ten_and_at_the_end() {
        assert_eq!(stops(2), [2]);
        assert_eq!(stops(10), [10]);
        assert_eq!(stops(2500), [10, 100, 1000, 2500]);
    }
}
