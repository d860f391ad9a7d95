//! `cci perf memory` and `cci perf idle`: what the library takes beside time of operations.

use crate::conclusion::conclude_found;
use crate::results::ResultsArguments;
use cci_perf::interrupt;
use cci_perf::methods::footprints;
use cci_report::UserError;
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
    let mut files = arguments.shared.results.open(None)?;
    interrupt::watch()?;
    let found = footprints::memory(arguments.shared.transport.as_deref(), arguments.connections)?;
    conclude_found(found, &mut files)
}

/// Measures idleness.
pub(crate) fn idle(arguments: &IdleArguments) -> Result<(), UserError> {
    let mut files = arguments.shared.results.open(None)?;
    interrupt::watch()?;
    conclude_found(footprints::idle(arguments.shared.transport.as_deref(), arguments.seconds)?, &mut files)
}
