//! `cci model plot`: the figures.

use super::against::validation_svg;
use super::crossover::ComparedArguments;
use super::figure::{Curves, curves_svg};
use cci_model::{Comparison, Parameter, Pattern};
use cci_report::output::Sink;
use cci_report::{UserError, while_doing};
use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct PlotArguments {
    #[command(flatten)]
    compared: ComparedArguments,
    /// Draw model against measurement instead, from what `cci model validate --json` wrote
    #[arg(long, value_name = "FILE.json")]
    validation: Option<PathBuf>,
    /// Directory to write the figures to; made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn plot(arguments: &PlotArguments) -> Result<(), UserError> {
    let figures = match &arguments.validation {
        Some(path) => vec![("validation.svg".into(), validation_svg(path)?)],
        None => comparisons_svg(&arguments.compared)?,
    };
    let directory = arguments.out.display().to_string();
    std::fs::create_dir_all(&arguments.out).map_err(while_doing(&format!("cannot make {directory}")))?;
    for (name, svg) in figures {
        let path = arguments.out.join(name);
        Sink::open(&path)?.write(&svg)?;
        writeln!(stdout(), "plot: {}", path.display()).map_err(while_doing("cannot write the answer"))?;
    }
    Ok(())
}

/// Names and figures of a comparison.
fn comparisons_svg(compared: &ComparedArguments) -> Result<Vec<(String, String)>, UserError> {
    let comparison = compared.comparison(&compared.system.system()?)?;
    let most = compared.most as f64;
    let figure = |(name, comparisons): (String, Vec<Comparison>)| {
        let panels: Result<Vec<_>, _> = comparisons.iter().map(|comparison| Curves::new(comparison, most)).collect();
        Ok((name, curves_svg(&panels?)?))
    };
    figures(&comparison, compared.pattern).into_iter().map(figure).collect()
}

/// File names and what is in them: one figure for a pattern; without one, average and unicasts side
/// by side, for the system as it is and with the switching latency halved, as in figures 14 and 15
/// of the thesis.
fn figures(comparison: &Comparison, pattern: Option<Pattern>) -> Vec<(String, Vec<Comparison>)> {
    if let Some(pattern) = pattern {
        return vec![(format!("{}.svg", pattern.to_string().replace('=', "-")), vec![comparison.clone()])];
    }
    let both = |factor: f64| {
        let parameters = Parameter::Switching.scaled(&comparison.parameters, factor);
        [Pattern::Average, Pattern::Unicasts]
            .map(|pattern| Comparison { pattern, parameters, ..comparison.clone() })
            .into()
    };
    vec![("topologies.svg".into(), both(1.0)), ("topologies-l_s-halved.svg".into(), both(0.5))]
}
