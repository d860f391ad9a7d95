//! What a run gives: a table on the terminal, and files.

pub(crate) mod arguments;
mod csv;
pub(crate) mod findings;
pub(crate) mod plot;
pub(crate) mod table;

use crate::measure::row::Document;
use crate::measure::{UserError, while_doing};
use crate::report;
use arguments::FileArguments;
use std::fs::File;
use std::io::{Write, stdout};
use std::path::Path;

/// A file that was opened before the run, so that a mistake in its name does not cost a run.
pub(crate) enum Sink {
    Terminal,
    File(File, String),
}

impl Sink {
    /// Opens a file for writing; `-` is standard output.
    pub(crate) fn open(path: &Path) -> Result<Self, UserError> {
        if path == Path::new("-") {
            return Ok(Self::Terminal);
        }
        let name = path.display().to_string();
        let failed = format!("cannot write to {name}; name a file in a directory that exists and is writable");
        File::create(path).map(|file| Self::File(file, name)).map_err(while_doing(&failed))
    }

    /// Writes it all.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), UserError> {
        match self {
            Self::Terminal => stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the results")),
            Self::File(file, name) => {
                file.write_all(text.as_bytes()).map_err(while_doing(&format!("cannot write to {name}")))
            }
        }
    }
}

/// Files of a run.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) json: Option<Sink>,
    pub(crate) csv: Option<Sink>,
    pub(crate) plot: Option<Sink>,
    pub(crate) report: Option<Sink>,
    /// A run whose points are not accurate fails.
    pub(crate) strict: bool,
}

impl Files {
    fn open(files: &FileArguments, plot: Option<&Path>, report: Option<&Path>) -> Result<Self, UserError> {
        let open = |path: Option<&Path>| path.map(Sink::open).transpose();
        plot.map_or(Ok(()), must_be_svg)?;
        let (json, csv) = (files.json.as_deref(), files.csv.as_deref());
        Ok(Self { json: open(json)?, csv: open(csv)?, plot: open(plot)?, report: open(report)?, strict: false })
    }

    /// Whether standard output is taken by one of them, so that the table goes to standard error.
    pub(crate) fn take_the_terminal(&self) -> bool {
        [&self.json, &self.csv, &self.plot, &self.report].iter().any(|sink| matches!(sink, Some(Sink::Terminal)))
    }

    /// Fills them.
    pub(crate) fn write(&mut self, document: &Document) -> Result<(), UserError> {
        if let Some(sink) = &mut self.json {
            let text = serde_json::to_string_pretty(document).map_err(while_doing("cannot write JSON"))?;
            sink.write(&(text + "\n"))?;
        }
        if let Some(sink) = &mut self.csv {
            sink.write(&csv::text(document))?;
        }
        if let Some(sink) = &mut self.plot {
            sink.write(&plot::svg(document)?)?;
        }
        if let Some(sink) = &mut self.report {
            sink.write(&report::page_of(document))?;
        }
        Ok(())
    }
}

/// Whoever names a file by another format would get one that nothing opens.
fn must_be_svg(path: &Path) -> Result<(), UserError> {
    match path.extension() {
        Some(other) if !other.eq_ignore_ascii_case("svg") => Err(UserError(format!(
            "the plot is drawn as SVG, not as {}: name a file that ends in .svg, which browsers show and inkscape or \
             rsvg-convert turn into other formats",
            other.display()
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_in_another_format_is_refused_and_no_file_made() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["plot.png", "plot.PDF", "plot.svg.gz"] {
            let path = directory.path().join(name);
            let error = FileArguments::default().open(Some(&path)).err().unwrap().0;
            assert!(error.contains(".svg") && error.contains(name.rsplit('.').next().unwrap()), "{error}");
            assert!(!path.exists(), "{name}");
        }
        for name in ["plot.svg", "plot.SVG", "plot"] {
            assert!(FileArguments::default().open(Some(&directory.path().join(name))).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_before_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("missing").join("rows.json");
        let files = FileArguments { json: Some(path), csv: None };
        let error = files.open(None).err().unwrap().0;
        assert!(error.contains("rows.json") && error.contains("directory that exists"), "{error}");
    }

    #[test]
    fn a_dash_takes_the_terminal() {
        let files = FileArguments { json: None, csv: Some("-".into()) };
        assert!(files.open(None).unwrap().take_the_terminal());
        assert!(!Files::default().take_the_terminal());
    }
}
