//! The command line of `cci perf compare`.

use crate::sizes::parse_percent;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct CompareArguments {
    /// What it was: a file of `cci perf --json`, or several with commas between them: more launches of the same build
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
    /// Standard deviation between launches of one build, for rows of a single launch, which cannot show it
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) between: Option<f64>,
    /// Write JSON to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
