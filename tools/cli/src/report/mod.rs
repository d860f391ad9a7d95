//! `cci perf report`: runs as one HTML page that needs nothing else.

pub(crate) mod arguments;
mod measuring;

use crate::model::section::Section;
use arguments::ReportArguments;
use cci_report::documents;
use cci_report::html;
use cci_report::html::Run;
use cci_report::output::Sink;
use cci_report::{UserError, while_doing};

/// Writes the page of documents, once those are measured that are to be.
pub(crate) fn report(arguments: &ReportArguments) -> Result<(), UserError> {
    let read = |path: &std::path::PathBuf| {
        documents::read(path).map(|document| Run { document, source: path.display().to_string() })
    };
    let mut runs = arguments.documents.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let models = arguments.model.iter().map(|path| Section::read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut failures = Vec::new();
    // Opened before anything is measured, so that a mistake in its name costs nothing.
    let mut out = match &arguments.measure {
        None => Sink::open(&arguments.out)?,
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .map_err(while_doing(&format!("cannot make the directory {}", directory.display())))?;
            let out = Sink::open(&arguments.out)?;
            let measured = measuring::measure(directory)?;
            runs.extend(measured.runs);
            failures = measured.failures;
            out
        }
    };
    let models: Vec<_> = models.iter().map(Section::draw).collect();
    out.write(&html::page_beside(&runs, &failures, &models))?;
    let partial = runs.iter().filter(|run| !run.document.complete).count();
    match (&arguments.measure, failures.len(), partial) {
        (None, ..) | (Some(_), 0, 0) => Ok(()),
        (Some(_), missing, partial) => Err(UserError(format!(
            "the page is written, but {missing} measurements gave nothing and {partial} ended early; it says why"
        ))),
    }
}
