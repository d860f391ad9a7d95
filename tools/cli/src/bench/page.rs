//! The tables of a page that hold what was measured. They stand between marks, which the page
//! keeps:
//!
//! ```text
//! <!-- cci bench sm -->
//! (what was measured, where, and a table)
//! <!-- end of cci bench sm -->
//! ```

use super::verdict::Line;
use cci_report::environment::Environment;
use cci_report::{UserError, while_doing};
use std::path::Path;

/// Which page, and what it says of the build that was measured.
pub(super) struct Target<'a> {
    pub(super) page: &'a Path,
    pub(super) commit: &'a str,
}

/// Writes the lines into the tables of their transports.
pub(super) fn write(target: &Target<'_>, environment: &Environment, lines: &[Line]) -> Result<(), UserError> {
    let name = target.page.display();
    let text = std::fs::read_to_string(target.page).map_err(while_doing("cannot read the page"))?;
    let text = rewritten(&text, &measured(target.commit, environment), lines)
        .map_err(|transport| UserError(format!(
            "{name} has no place for the figures of {transport}; add <!-- cci bench {transport} --> and <!-- end of cci bench {transport} --> to it"
        )))?;
    std::fs::write(target.page, text).map_err(while_doing("cannot write the page"))
}

/// What was measured, and where. The system's version without what its builder appended.
fn measured(commit: &str, environment: &Environment) -> String {
    let Environment { processor, cpus, kernel, load, .. } = environment;
    let kernel = kernel.split('-').next().unwrap_or_default();
    format!(
        "Commit {commit}, {cpus} processors ({processor}), {kernel}, load {load:.2}, medians of five runs.\nA bar in bold is missed."
    )
}

/// The page with these lines in its tables, or a transport that it has no table for.
fn rewritten<'a>(page: &str, measured: &str, lines: &'a [Line]) -> Result<String, &'a str> {
    let mut page = page.to_owned();
    for of_one in lines.chunk_by(|one, other| one.transport == other.transport) {
        let transport = of_one[0].transport;
        let marks = ["<!-- cci bench", "<!-- end of cci bench"].map(|mark| format!("{mark} {transport} -->\n"));
        let begin = page.find(&marks[0]).map(|at| at + marks[0].len());
        let Some((begin, end)) = begin.and_then(|begin| Some((begin, begin + page[begin..].find(&marks[1])?))) else {
            return Err(transport);
        };
        let rows: String = of_one.iter().map(Line::markdown).collect();
        page.replace_range(
            begin..end,
            &format!("{measured}\n\n| row | measured | bar | target |\n|---|---|---|---|\n{rows}"),
        );
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::verdict::Standard;

    fn line(transport: &'static str, what: &str, value: f64) -> Line {
        let standard = Standard::AtMost { bar: Some(2.0), target: Some(1.0) };
        Line { transport, ..Line::new(what, "x", standard, Ok(value)) }
    }

    #[test]
    fn figures_replace_those_between_their_marks() {
        let page = "# Page\n<!-- cci bench sm -->\nold\n<!-- end of cci bench sm -->\nrest\n";
        let lines = [line("sm", "one", 1.5), line("sm", "other", 3.0)];
        let expected = "# Page\n<!-- cci bench sm -->\nCommit c.\n\n| row | measured | bar | target |\n|---|---|---|---|\n\
             | one | 1.50 x | <= 2.00 x | <= 1.00 x |\n| other | 3.00 x | **<= 2.00 x** | <= 1.00 x |\n\
             <!-- end of cci bench sm -->\nrest\n";
        assert_eq!(rewritten(page, "Commit c.", &lines), Ok(expected.into()));
        assert_eq!(rewritten(expected, "Commit c.", &lines), Ok(expected.into()), "once more");
    }

    #[test]
    fn a_transport_without_a_table_is_named() {
        let lines = [line("sock", "one", 1.5)];
        assert_eq!(rewritten("<!-- cci bench sock -->\nno end\n", "", &lines), Err("sock"));
    }
}
