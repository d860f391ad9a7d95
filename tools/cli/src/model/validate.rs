//! `cci model validate`: paths that a fit has not seen, predicted.

use super::answer::{Cell, Table};
use super::fit::{beginning, components, describe, fitted};
use super::measured::{Measured, MeasuredArguments};
use crate::results::FileArguments;
use cci_model::fit::Fit;
use cci_report::UserError;
use clap::Args;
use std::path::PathBuf;

/// Half of the paths left out are to be predicted at least as well as this.
const BAR: f64 = 0.05;

#[derive(Args, Debug)]
pub(crate) struct ValidateArguments {
    /// Documents to fit
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Documents of paths to predict
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    left_out: Vec<PathBuf>,
    #[command(flatten)]
    measured: MeasuredArguments,
    #[command(flatten)]
    output: FileArguments,
}

/// A time that was predicted.
struct Predicted<'m> {
    path: &'m Measured,
    bytes: f64,
    measured: f64,
    predicted: f64,
    half_width: f64,
}

impl Predicted<'_> {
    fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

pub(crate) fn answer(arguments: &ValidateArguments) -> Result<(), UserError> {
    arguments.measured.check(&[&arguments.files, &arguments.left_out])?;
    let seen = arguments.measured.read(&arguments.files)?;
    let left_out = arguments.measured.read(&arguments.left_out)?;
    let mut files = arguments.output.open(None)?;
    let fit = fitted(&arguments.measured, &seen)?;
    let predicted = predict(&fit, &left_out)?;
    let mut answer = beginning(&fit, &seen);
    describe(&mut answer, &fit, &seen);
    answer.aside("components", &components(&fit));
    answer.say("");
    answer.table("validation", &table(&predicted));
    let errors = sorted(predicted.iter().map(|one| one.error().abs()));
    let (median, largest) = (median(&errors), errors.last().copied().unwrap_or(0.0));
    answer.field("median_error", median);
    answer.field("largest_error", largest);
    let verdict = if median <= BAR { "ok" } else { "MISSES bar" };
    answer.say(&format!(
        "\nMedian error {:.2} %, largest {:.2} %; bar: median <= {:.0} %: {verdict}",
        100.0 * median,
        100.0 * largest,
        100.0 * BAR
    ));
    answer.tell(&mut files, None)
}

fn predict<'m>(fit: &Fit, left_out: &'m [Measured]) -> Result<Vec<Predicted<'m>>, UserError> {
    let times = left_out.iter().flat_map(|path| path.times.iter().map(move |(bytes, ns)| (path, *bytes, *ns)));
    let predict = |(path, bytes, measured): (&'m Measured, f64, f64)| {
        let estimate = fit.predict(&path.counts, bytes).ok_or_else(|| {
            UserError(format!(
                "the fit does not determine the time of {} at {bytes} bytes: fit paths of two ends and of more than one size",
                path.name
            ))
        })?;
        Ok(Predicted { path, bytes, measured, predicted: estimate.value, half_width: estimate.half_width })
    };
    times.map(predict).collect()
}

fn table(predicted: &[Predicted<'_>]) -> Table {
    let mut table = Table::new(&[
        ("path left out", "path"),
        ("links", "hops"),
        ("forwardings", "forwardings"),
        ("switchings", "switchings"),
        ("bytes", "message_bytes"),
        ("measured", "measured_ns"),
        ("predicted", "predicted_ns"),
        ("+- (95 %)", "half_width_ns"),
        ("error %", "error_percent"),
    ]);
    table.rows.extend(predicted.iter().map(|one| {
        let counts = one.path.counts;
        vec![
            Cell::Text(one.path.name.clone()),
            Cell::Number(counts.propagations, 0),
            Cell::Number(counts.forwardings, 0),
            Cell::Number(counts.switchings, 0),
            Cell::Number(one.bytes, 0),
            Cell::Time(one.measured),
            Cell::Time(one.predicted),
            Cell::Time(one.half_width),
            Cell::Number(100.0 * one.error(), 2),
        ]
    }));
    table
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values.
fn median(sorted: &[f64]) -> f64 {
    let at = sorted.len() / 2;
    match sorted {
        [] => 0.0,
        _ if sorted.len() % 2 == 1 => sorted[at],
        _ => f64::midpoint(sorted[at - 1], sorted[at]),
    }
}
