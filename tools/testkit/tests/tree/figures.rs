//! Tables of measured figures: each says of which commit it is, and which command measured it.

use crate::pages::{pages, root};
use std::path::Path;

/// Units of what is measured.
const UNITS: [&str; 12] =
    ["ns", "us", "µs", "ms", "s", "GB/s", "MB/s", "GiB/s", "MiB/s", "x", "cycles", "million messages a second"];

/// Tables whose numbers with units are no figures: limits, bars, layouts. Page, the start of the
/// head, and the reason.
const NOT_MEASURED: [(&str, &str, &str); 1] =
    [("docs/design/admission.md", "| server | file | places | time |", "limits that the servers keep")];

/// Whether a cell is a figure: a number, perhaps several or a range, with a unit.
fn is_figure(cell: &str) -> bool {
    let cell = cell.trim().trim_matches('*');
    let number = |word: &str| {
        let word = word.trim_matches([',', ';', '*', '-', '~']);
        word.starts_with(|first: char| first.is_ascii_digit()) && word.replace(',', "").parse::<f64>().is_ok()
    };
    let mut words = cell.split(' ').filter(|word| !word.is_empty());
    let is_number = words.next().is_some_and(number);
    let after: Vec<&str> = words.skip_while(|word| number(word) || ["to", "±"].contains(word)).collect();
    let is_with_unit = |unit: &&str| after.first().is_some_and(|word| word.trim_matches([',', ';', '*']) == *unit);
    let is_compared = after.first().is_some_and(|word| *word == "of" || *word == "times");
    is_number && (UNITS.iter().any(is_with_unit) || is_compared)
}

fn cells(row: &str) -> impl Iterator<Item = &str> {
    row.trim_matches('|').split('|').map(str::trim)
}

/// Whether a table has figures: every second row or more, in a column that is not of bars, or below
/// a head that says so.
fn has_figures(table: &[&str]) -> bool {
    let (Some(head), Some(rows)) = (table.first(), table.get(2..)) else { return false };
    let heads: Vec<&str> = cells(head).collect();
    let is_of_bars = |at: usize| heads.get(at).is_some_and(|head| ["bar", "target"].contains(head));
    let has_one = |row: &&&str| cells(row).enumerate().skip(1).any(|(at, cell)| !is_of_bars(at) && is_figure(cell));
    let says_so =
        |head: &&str| head.starts_with("measured") || *head == "instructions" || head.starts_with("instructions of");
    rows.iter().filter(has_one).count() * 2 >= rows.len().max(1) || heads.iter().any(says_so)
}

/// Whether a text names a commit, and a command, or that a program measured which is not kept.
fn names_its_commit(text: &str) -> bool {
    let is_hash = |word: &str| {
        let word = word.trim_matches([',', '.', ':', '`', '(', ')']);
        word.len() >= 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let commit =
        words.windows(2).any(|pair| pair[0].trim_start_matches('(').eq_ignore_ascii_case("commit") && is_hash(pair[1]));
    let starts = ["`cci ", "`ci/", "`make ", "`cargo ", "`bindings/", "cci bench", "ci/instructions", "is not kept"];
    commit && starts.iter().any(|start| text.contains(start))
}

/// The heads of tables of figures whose paragraph above or below names no commit or command.
fn without_commit(page: &Path, text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split("\n\n").collect();
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let table: Vec<&str> = part.lines().filter(|line| line.starts_with('|')).collect();
        let is_known =
            |head: &str| NOT_MEASURED.iter().any(|(of, start, _)| page == Path::new(of) && head.starts_with(start));
        let Some(head) = table.first().filter(|head| has_figures(&table) && !is_known(head)) else { continue };
        let beside = parts[at.saturating_sub(1)..parts.len().min(at + 4)].join("\n");
        if !names_its_commit(&beside) {
            found.push(format!("{}: {head}", page.display()));
        }
    }
    found
}

#[test]
fn every_table_of_figures_names_its_commit_and_its_command() {
    let found: Vec<String> = pages()
        .iter()
        .flat_map(|page| without_commit(page, &std::fs::read_to_string(root().join(page)).expect("a page")))
        .collect();
    assert!(found.is_empty(), "write \"Commit HASH, `command`.\" above these tables:\n{}", found.join("\n"));
}

#[test]
fn a_table_of_figures_without_a_commit_is_found() {
    let table = |head: &str, row: &str| format!("# A\n\n{head}\n|---|---|\n{row}\n\nText.\n");
    let of = |text: &str| without_commit(Path::new("a.md"), text).len();
    for row in ["| a | 96 ns |", "| a | **1,060 ns** (1.5) |", "| a | 0.70 to 1.2 us |", "| a | 0.99 of its time |"] {
        let text = table("| what | here |", row);
        assert_eq!(of(&text), 1, "{row}");
        assert_eq!(of(&text.replace("# A", "Commit 0123abcd, `cci perf rate`.")), 0, "{row}");
        assert_eq!(of(&text.replace("# A", "Commit 0123abcd.")), 1, "{row}");
        assert_eq!(of(&text.replace("# A", "`cci perf rate`")), 1, "{row}");
    }
    assert_eq!(of(&table("| what | instructions |", "| a | 12 |")), 1);
    for row in ["| a | 12 |", "| a | within 10 ms it ends |", "| a | 24 bits |"] {
        assert_eq!(of(&table("| what | here |", row)), 0, "{row}");
    }
    assert_eq!(of(&table("| what | bar |", "| a | 12 ns |")), 0);
}

/// A table of figures says of which commit it is: whoever reads it can tell whether it is old.
#[test]
fn the_tables_of_figures_say_of_which_commit_they_are() {
    let page = std::fs::read_to_string(root().join("docs/performance.md")).expect("the page");
    let tables: Vec<&str> = page.split("<!-- c").skip(1).filter(|table| !table.starts_with("end of")).collect();
    assert!(tables.len() >= 5, "the tables are not found");
    for table in tables {
        let (mark, text) = table.split_once(" -->\n").expect("a mark ends");
        assert!(text.starts_with("Commit"), "c{mark}: begin with the commit that was measured");
        assert!(text.contains(&format!("<!-- end of c{mark} -->")), "c{mark}: close the place of the table");
    }
    assert_eq!(page.matches("| measured |").count(), page.matches("<!-- cci bench").count(), "a table has no mark");
}
