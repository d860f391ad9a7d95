//! `cci perf gups`: HPCC RandomAccess.

use crate::choice::choice;
use crate::conclusion::{conclude_found, say};
use crate::device::DeviceArguments;
use crate::results::ResultsArguments;
use cci_perf::methods::gups::{GupsOptions, Way, measure};
use cci_report::UserError;
use cci_report::finding::Finding;
use cci_report::sizes::parse_size;
use clap::Args;

/// Arguments of `cci perf gups`.
#[derive(Args, Debug)]
pub(crate) struct GupsArguments {
    /// Run all processes on this host
    #[arg(long, required = true)]
    local: bool,
    /// Processes that share the table
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..=64))]
    processes: u64,
    /// Bytes of the whole table: a power of two
    #[arg(long, default_value = "64M", value_parser = parse_table)]
    table: u64,
    /// Updates over all processes; four for each word of the table when absent
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    updates: Option<u64>,
    /// How updates travel
    #[arg(long, value_parser = choice::<Way>(), default_value = "send")]
    op: Way,
    #[command(flatten)]
    device: DeviceArguments,
    #[command(flatten)]
    results: ResultsArguments,
}

/// Parses the size of a table.
fn parse_table(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    if bytes.is_power_of_two() && (1 << 10..=1 << 40).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("a table has a power of two of bytes between 1K and 1024G, such as 64M, and not {text}"))
}

/// Measures.
pub(crate) fn gups(arguments: &GupsArguments) -> Result<(), UserError> {
    let files = arguments.results.open()?;
    let options = GupsOptions {
        processes: arguments.processes,
        table: arguments.table,
        updates: arguments.updates,
        way: arguments.op,
        device: arguments.device.asked(),
    };
    let mut errors = 0;
    conclude_found(files, || {
        let found = measure(&options, &say)?;
        errors = if let Finding::Gups(gups) = &found.finding { gups.errors } else { 0 };
        Ok(found)
    })?;
    match errors {
        0 => Ok(()),
        errors => Err(UserError(format!(
            "the table is wrong in {errors} places, and should be in none: updates were lost or made twice"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_power_of_two() {
        assert_eq!(parse_table("64M"), Ok(64 << 20));
        for text in ["100M", "512", "2048G", "much"] {
            assert!(parse_table(text).is_err(), "{text}");
        }
        assert!(parse_table("100M").unwrap_err().contains("power of two"));
    }
}
