//! `cci model fit`: components of latency from measured paths.

use super::answer::{Answer, Cell, Table};
use super::measured::{Measured, MeasuredArguments, observations};
use crate::results::FileArguments;
use cci_model::fit::{Estimate, Fit, Unknown};
use cci_model::{FirstTransmission, Link, Overhead, Parameters, Relay};
use cci_report::UserError;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct FitArguments {
    /// Documents that `cci perf pingpong --json`, or `cci perf sci --json` over mirror windows, has
    /// written, one for each path
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    measured: MeasuredArguments,
    #[command(flatten)]
    output: FileArguments,
}

pub(crate) fn answer(arguments: &FitArguments) -> Result<(), UserError> {
    arguments.measured.check(&[&arguments.files])?;
    let measured = arguments.measured.read(&arguments.files)?;
    let mut files = arguments.output.open(None)?;
    let fit = fitted(&arguments.measured, &measured)?;
    let mut answer = beginning(&fit, &measured);
    describe(&mut answer, &fit, &measured);
    answer.table("components", &components(&fit));
    explain(&mut answer, &fit);
    answer.tell(&mut files, None)
}

/// The components of these paths.
pub(crate) fn fitted(arguments: &MeasuredArguments, measured: &[Measured]) -> Result<Fit, UserError> {
    let reference = arguments.reference(measured);
    Fit::new(&observations(measured), &arguments.known()?, reference).map_err(|error| UserError(error.to_string()))
}

/// An answer with the fitted parameters, if they are separated.
pub(crate) fn beginning(fit: &Fit, measured: &[Measured]) -> Answer {
    parameters(fit, measured).map_or_else(Answer::without_parameters, |parameters| Answer::new(&parameters))
}

/// Tells what was fitted, and how well it fits.
pub(crate) fn describe(answer: &mut Answer, fit: &Fit, measured: &[Measured]) {
    let count: usize = measured.iter().map(|path| path.times.len()).sum();
    answer.say(&format!(
        "{count} times of {} paths; {} degrees of freedom; a time is off by {:.2} % (standard deviation); m_0 = {} bytes.",
        distinct(measured),
        fit.degrees,
        100.0 * fit.deviation,
        fit.reference_bytes
    ));
    answer.field("relative_deviation", fit.deviation);
    answer.field("degrees_of_freedom", fit.degrees);
}

/// What the fit determines.
pub(crate) fn components(fit: &Fit) -> Table {
    let mut table =
        Table::new(&[("component", "component"), ("ns", "value_ns"), ("+- (95 %)", "half_width_ns"), ("", "from")]);
    for unknown in Unknown::ALL {
        if let Some(estimate) = fit.unknown(unknown) {
            let unit = if unknown == Unknown::PerByte { "c (ns per byte)" } else { unknown.name() };
            table.rows.push(line(unit, estimate, if fit.is_known(unknown) { "given" } else { "fitted" }));
        }
    }
    for (name, estimate) in fit.sums() {
        if let Some(estimate) = estimate {
            table.rows.push(line(name, estimate, "fitted"));
        }
    }
    table
}

/// Why there is no more.
fn explain(answer: &mut Answer, fit: &Fit) {
    if fit.unknown(Unknown::PerByte).is_none() {
        answer.say("\nAll times are of one size: they say nothing of c. Measure another size.");
    }
    if !fit.is_separated() {
        answer.say(
            "\nOnly sums are told: on every path of two ends the links are one more than forwardings and switchings together, so that \
             time\ncan move from l_p to l_f, l_s and twice o_0 and change no path's time. No further path can separate them; give one \
             component\nthat is known from elsewhere, such as --fix l_p=7ns.",
        );
    }
}

fn line(name: &str, estimate: Estimate, from: &str) -> Vec<Cell> {
    vec![
        Cell::Text(name.into()),
        Cell::Number(estimate.value, 3),
        Cell::Number(estimate.half_width, 3),
        Cell::Text(from.into()),
    ]
}

/// Paths that were measured, each counted once.
fn distinct(measured: &[Measured]) -> usize {
    let mut names: Vec<_> = measured.iter().map(|path| path.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

/// What other commands take with --parameters; none while the components are not separated.
fn parameters(fit: &Fit, measured: &[Measured]) -> Option<Parameters> {
    let value = |unknown| fit.unknown(unknown).map(|estimate| estimate.value);
    let smallest = measured.iter().flat_map(|path| &path.times).map(|(bytes, _)| *bytes).fold(f64::INFINITY, f64::min);
    Some(Parameters {
        overhead: Overhead {
            at_reference_ns: value(Unknown::Overhead)?,
            reference_bytes: fit.reference_bytes,
            per_byte_ns: value(Unknown::PerByte).unwrap_or(0.0),
        },
        propagation_ns: value(Unknown::Propagation)?,
        forwarding_ns: value(Unknown::Forwarding)?,
        switching_ns: value(Unknown::Switching)?,
        link: Link {
            bytes_per_ns: None,
            header_bytes: 0.0,
            relay: Relay::CutThrough,
            first: FirstTransmission::InOverhead,
        },
        message_bytes: smallest,
    })
}
