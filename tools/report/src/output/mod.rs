//! What a run gives: a table on the terminal, and files.

pub(crate) mod am;
mod breakdown;
mod columns;
pub(crate) mod csv;
pub(crate) mod experiments;
pub mod findings;
pub mod grounds;
mod gups;
mod legend;
mod logp;
mod mapping_curves;
mod mappings;
mod memory_curves;
pub(crate) mod mpi;
mod mpi_figures;
pub(crate) mod mx;
mod parts;
pub mod plot;
pub(crate) mod portals;
pub(crate) mod sci;
pub mod sheet;
mod side_by_side;
mod signature;
pub(crate) mod splitc;
mod style;
pub mod table;
pub(crate) mod via;

use self::sheet::Shape;
use crate::html;
use crate::row::Document;
use crate::{UserError, while_doing};
use std::fs::File;
use std::io::{Write, stdout};
use std::path::Path;

/// A file that was opened before the run, so that a mistake in its name does not cost a run.
pub enum Sink {
    /// Standard output.
    Terminal,
    /// A file, and its name for people.
    File(File, String),
}

impl Sink {
    /// Opens a file for writing; `-` is standard output.
    pub fn open(path: &Path) -> Result<Self, UserError> {
        if path == Path::new("-") {
            return Ok(Self::Terminal);
        }
        let name = path.display().to_string();
        let failed = format!("cannot write to {name}; name a file in a directory that exists and is writable");
        File::create(path).map(|file| Self::File(file, name)).map_err(while_doing(&failed))
    }

    /// Writes it all.
    pub fn write(&mut self, text: &str) -> Result<(), UserError> {
        match self {
            Self::Terminal => stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the results")),
            Self::File(file, name) => {
                file.write_all(text.as_bytes()).map_err(while_doing(&format!("cannot write to {name}")))
            }
        }
    }
}

/// Names of the files of a run; `-` is standard output.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paths<'a> {
    /// For the document.
    pub json: Option<&'a Path>,
    /// For rows, or the table of a finding, as comma-separated values.
    pub csv: Option<&'a Path>,
    /// For the plot.
    pub plot: Option<&'a Path>,
    /// For the plot of a narrow page.
    pub narrow: Option<&'a Path>,
    /// For the page.
    pub report: Option<&'a Path>,
}

/// Files of a run.
#[derive(Default)]
pub struct Files {
    /// For the document.
    pub json: Option<Sink>,
    /// For rows, or the table of a finding, as comma-separated values.
    pub csv: Option<Sink>,
    /// For the plot.
    pub plot: Option<Sink>,
    /// For the plot of a narrow page.
    pub narrow: Option<Sink>,
    /// For the page.
    pub report: Option<Sink>,
    /// A run whose points are not accurate fails.
    pub strict: bool,
}

impl Files {
    /// Opens them before the run, so that a mistake in a name costs none.
    ///
    /// # Errors
    ///
    /// A file cannot be written, or the plot's is named as one of another format than SVG.
    pub fn open(paths: Paths<'_>) -> Result<Self, UserError> {
        let open = |path: Option<&Path>| path.map(Sink::open).transpose();
        paths.plot.into_iter().chain(paths.narrow).try_for_each(must_be_svg)?;
        let (json, csv, plot, narrow) = (open(paths.json)?, open(paths.csv)?, open(paths.plot)?, open(paths.narrow)?);
        Ok(Self { json, csv, plot, narrow, report: open(paths.report)?, strict: false })
    }

    /// Whether standard output is taken by one of them, so that the table goes to standard error.
    pub fn take_the_terminal(&self) -> bool {
        [&self.json, &self.csv, &self.plot, &self.narrow, &self.report]
            .iter()
            .any(|sink| matches!(sink, Some(Sink::Terminal)))
    }

    /// Fills them.
    pub fn write(&mut self, document: &Document) -> Result<(), UserError> {
        if let Some(sink) = &mut self.json {
            let text = serde_json::to_string_pretty(document).map_err(while_doing("cannot write JSON"))?;
            sink.write(&(text + "\n"))?;
        }
        if let Some(sink) = &mut self.csv {
            sink.write(&csv::text(document))?;
        }
        for (sink, shape) in [(&mut self.plot, Shape::Wide), (&mut self.narrow, Shape::Narrow)] {
            if let Some(sink) = sink {
                sink.write(&plot::svg(document, shape)?)?;
            }
        }
        if let Some(sink) = &mut self.report {
            sink.write(&html::page_of(document))?;
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

    fn plot(path: &Path) -> Result<Files, UserError> {
        Files::open(Paths { plot: Some(path), ..Paths::default() })
    }

    #[test]
    fn a_plot_in_another_format_is_refused_and_no_file_made() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["plot.png", "plot.PDF", "plot.svg.gz"] {
            let path = directory.path().join(name);
            let error = plot(&path).err().unwrap().0;
            assert!(error.contains(".svg") && error.contains(name.rsplit('.').next().unwrap()), "{error}");
            assert!(!path.exists(), "{name}");
        }
        for name in ["plot.svg", "plot.SVG", "plot"] {
            assert!(plot(&directory.path().join(name)).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_before_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("missing").join("rows.json");
        let error = Files::open(Paths { json: Some(&path), ..Paths::default() }).err().unwrap().0;
        assert!(error.contains("rows.json") && error.contains("directory that exists"), "{error}");
    }

    #[test]
    fn a_dash_takes_the_terminal() {
        let files = Files::open(Paths { csv: Some(Path::new("-")), ..Paths::default() });
        assert!(files.unwrap().take_the_terminal());
        assert!(!Files::default().take_the_terminal());
    }
}
