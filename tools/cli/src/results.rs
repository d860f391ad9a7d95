//! Where the results of a run go.

use cci_report::UserError;
use cci_report::output::{Files, Paths};
use clap::Args;
use std::path::{Path, PathBuf};

/// Files besides the table.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FileArguments {
    /// Write JSON to this file; to standard output without a file, or with -
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Write CSV to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

impl FileArguments {
    fn paths<'a>(&'a self, plot: Option<&'a Path>) -> Paths<'a> {
        Paths { json: self.json.as_deref(), csv: self.csv.as_deref(), plot, ..Paths::default() }
    }

    /// Opens them, and the plot where there is one, before anything is computed.
    pub(crate) fn open(&self, plot: Option<&Path>) -> Result<Files, UserError> {
        Files::open(self.paths(plot))
    }
}

/// The plot for a page on which the other one would be too small to read.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NarrowPlot {
    /// Draw it for a narrow page too, its panels below each other, to this SVG file
    #[arg(long, value_name = "FILE.svg", requires = "plot")]
    pub(crate) plot_narrow: Option<PathBuf>,
}

/// Files of a measurement.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ResultsArguments {
    #[command(flatten)]
    pub(crate) files: FileArguments,
    /// Write a page that needs nothing else to this HTML file, - for standard output
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// End with status 1 when more than one point in ten is not accurate
    #[arg(long)]
    pub(crate) strict: bool,
}

impl ResultsArguments {
    /// Opens them before the run, so that a mistake in a name costs none.
    pub(crate) fn open(&self) -> Result<Files, UserError> {
        self.open_with_plots(None, &NarrowPlot::default())
    }

    /// The same, with the plots where there are any.
    pub(crate) fn open_with_plots(&self, plot: Option<&Path>, narrow: &NarrowPlot) -> Result<Files, UserError> {
        let narrow = narrow.plot_narrow.as_deref();
        let files = Files::open(Paths { narrow, report: self.report.as_deref(), ..self.files.paths(plot) })?;
        Ok(Files { strict: self.strict, ..files })
    }
}
