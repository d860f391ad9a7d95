//! The command line of `cci perf report`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// Files of `cci perf --json`
    #[arg(value_name = "FILE.json", required_unless_present = "measure")]
    pub(crate) documents: Vec<PathBuf>,
    /// Measure everything first, over sm and sock, beside the peers that are installed, and keep
    /// the documents in this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) measure: Option<PathBuf>,
    /// Show this answer of a model beside the measurements: a file of `cci model ... --json`;
    /// several, each with --model
    #[arg(long, value_name = "FILE.json")]
    pub(crate) model: Vec<PathBuf>,
    /// The page to write, - for standard output
    #[arg(long, value_name = "FILE.html")]
    pub(crate) out: PathBuf,
}
