//! `cci perf compare`: what changed between two builds beyond noise.

use cci_report::comparison::{Bar, Comparison, Side};
use cci_report::documents;
use cci_report::output::Sink;
use cci_report::sizes::parse_percent;
use cci_report::{UserError, while_doing};
use clap::Args;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct CompareArguments {
    /// What it was: a file of `cci perf --json`, or several with commas between them: more launches
    /// of the same build
    #[arg(value_name = "A.json[,...]", value_delimiter = ',', num_args = 1, required = true)]
    pub(crate) before: Vec<PathBuf>,
    /// What it is now, in the same way
    #[arg(value_name = "B.json[,...]", value_delimiter = ',', num_args = 1, required = true)]
    pub(crate) after: Vec<PathBuf>,
    /// A change below this counts as none
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = parse_percent)]
    pub(crate) smallest: f64,
    /// Probability of any false alarm in the whole table
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = parse_percent)]
    pub(crate) chance: f64,
    /// Standard deviation between launches of one build, for rows of a single launch, which cannot
    /// show it
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) between: Option<f64>,
    /// Write JSON to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Compares. The status is 0 when nothing is slower, 1 when something is, 2 when that cannot be
/// said.
pub(crate) fn compare(arguments: &CompareArguments) -> ExitCode {
    match is_slower(arguments) {
        Ok(true) => ExitCode::from(1),
        Ok(false) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("cci: {}.", why.0.trim_end_matches('.')));
            ExitCode::from(2)
        }
    }
}

fn is_slower(arguments: &CompareArguments) -> Result<bool, UserError> {
    let (before, after) = (side(&arguments.before)?, side(&arguments.after)?);
    let mut sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let bar = Bar { smallest: arguments.smallest, chance: arguments.chance, between: arguments.between };
    let comparison = Comparison::new(&before, &after, bar)?;
    let text = comparison.text();
    if matches!(sink, Some(Sink::Terminal)) {
        say(text.trim_end());
    } else {
        stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the table"))?;
    }
    if let Some(sink) = &mut sink {
        let json = serde_json::to_string_pretty(&comparison);
        sink.write(&(json.map_err(while_doing("cannot write JSON"))? + "\n"))?;
    }
    comparison.is_slower()
}

/// Reads the documents of a side.
fn side(paths: &[PathBuf]) -> Result<Side, UserError> {
    let mut side = Side::default();
    for path in paths {
        let document = documents::read(path)?;
        let name = path.display().to_string();
        if let Some(why) = &document.interrupted {
            say(&format!("{name} is partial, its run ended early: {why}"));
        }
        side.take(&document, &name)?;
    }
    Ok(side)
}

fn say(text: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(stderr(), "{text}");
}
