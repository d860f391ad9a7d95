//! The end of a measurement: what is shown, written, and said beside it.

use cci_perf::interrupt;
use cci_perf::machine::load;
use cci_perf::methods::Found;
use cci_report::environment::Environment;
use cci_report::finding::Finding;
use cci_report::output::{Files, findings, table};
use cci_report::row::{Document, Row};
use cci_report::{UserError, while_doing};
use std::io::{Write, stderr, stdout};

/// The environment of a run that has ended now.
pub(crate) fn at_end(environment: Environment) -> Environment {
    Environment { load_after: load(), ..environment }
}

/// What this command line gave, now that its run has ended, and why there is no more if it ended
/// early.
pub(crate) fn document(
    environment: Environment,
    rows: Vec<Row>,
    findings: Vec<Finding>,
    interrupted: Option<String>,
) -> Document {
    let environment = at_end(environment);
    let typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let command = std::iter::once("cci".into()).chain(typed).collect();
    Document { command, ..Document::new(environment, rows, findings, interrupted) }
}

/// Measures by a method, which the user may interrupt, and shows and writes what it found.
///
/// # Errors
///
/// The method fails; or as of [`conclude`].
pub(crate) fn conclude_found(
    mut files: Files,
    measure: impl FnOnce() -> Result<Found, UserError>,
) -> Result<(), UserError> {
    interrupt::watch()?;
    let found = measure()?;
    conclude(&document(found.environment, Vec::new(), vec![found.finding], found.interrupted), &mut files)
}

/// A run says so, and fails with `--strict`, when more than one point in so many is not accurate.
const VAGUE: usize = 10;

/// Shows and writes what was measured.
///
/// # Errors
///
/// Nothing was measured, or not all; what was measured has been shown and written nevertheless.
pub(crate) fn conclude(document: &Document, files: &mut Files) -> Result<(), UserError> {
    report(document, files)?;
    let vague = document.rows.iter().filter(|row| !row.accurate).count();
    match &document.interrupted {
        None if vague * VAGUE > document.rows.len() => {
            let why = format!(
                "{vague} of {} points are not accurate, and marked: measure for longer (--time long), or on a machine that \
                 does nothing else",
                document.rows.len()
            );
            if files.strict {
                return Err(UserError(why));
            }
            say(&format!("{why}."));
            Ok(())
        }
        None if document.rows.is_empty() && document.findings.is_empty() => Err(UserError::new(
            "nothing was measured: every size exceeds the largest message; give smaller sizes by --size",
        )),
        None => Ok(()),
        Some(why) => Err(UserError(format!("the run is incomplete, and its results are kept: {why}"))),
    }
}

fn report(document: &Document, files: &mut Files) -> Result<(), UserError> {
    let mut text = String::new();
    if !document.rows.is_empty() || document.findings.is_empty() {
        text += &table::table(&document.rows);
    }
    document.findings.iter().for_each(|finding| text += &findings::text(finding));
    text += &document.environment.line();
    text.push('\n');
    if files.take_the_terminal() {
        say(text.trim_end());
    } else {
        stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the table"))?;
    }
    files.write(document)
}

/// Tells the user something beside the results.
pub(crate) fn say(text: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_read_when_the_run_has_ended() {
        let environment = Environment { load_after: -1.0, ..Environment::default() };
        assert!(document(environment, vec![], vec![], None).environment.load_after >= 0.0);
    }
}
