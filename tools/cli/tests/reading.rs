//! What is made of runs afterwards: `cci perf report` and `cci perf compare`, as their users run
//! them.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::text;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

fn cci(arguments: &[&str]) -> Output {
    command_line::cci(arguments).output().unwrap()
}

/// A directory with a document in it that a real run has written, and with the page of that run.
struct Place {
    directory: TempDir,
    document: Value,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let output = cci(&[
            "perf",
            "pingpong",
            "--local",
            "--transport",
            "sm",
            "--size",
            "8,64",
            "--count",
            "20",
            "--blocks",
            "4",
            "--launches",
            "2",
            "--accuracy",
            "1000000%",
            "--json",
            &path("run.json"),
            "--report",
            &path("run.html"),
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let document = serde_json::from_str(&std::fs::read_to_string(path("run.json")).unwrap()).unwrap();
        Self { directory, document }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn word(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The run's document with blocks that are as many times as long as their probes, a little more
    /// or less each time.
    fn keep(&self, name: &str, ratio: f64, launches: u64) -> String {
        let mut document = self.document.clone();
        for row in document["rows"].as_array_mut().unwrap() {
            let blocks = 0..launches * 5;
            let block = |at: u64| json!([100.0 * ratio * (1.0 + 0.002 * ((at * 7 % 11) as f64 - 5.0)), 100.0]);
            row["pairs"] = blocks.map(block).collect();
            row["launches"] = vec![5; usize::try_from(launches).unwrap()].into();
        }
        std::fs::write(self.path(name), document.to_string()).unwrap();
        self.word(name)
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_run_writes_its_page_and_the_page_of_its_document_is_the_same_figures() {
    let place = Place::new();
    let (json, page) = (place.word("run.json"), place.word("again.html"));
    let output = cci(&["perf", "report", &json, "--out", &page]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (at_once, afterwards) = (read(&place.path("run.html")), read(&place.path("again.html")));
    for row in place.document["rows"].as_array().unwrap() {
        let median = row["median_ns"].as_f64().unwrap();
        let shown = match median {
            ns if ns < 1e3 => format!("{ns:.1} ns"),
            ns if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
            ns => format!("{:.2} ms", ns / 1e6),
        };
        assert!(at_once.contains(&shown) && afterwards.contains(&shown), "{shown}");
    }
    assert!(afterwards.contains("cci perf pingpong --local --transport sm --size 8,64"));
    let without_its_name = afterwards.replace(&format!("<p class=\"environment\">Read from {json}.</p>"), "");
    assert_eq!(without_its_name, at_once);
}

#[test]
fn a_page_goes_to_standard_output_as_well() {
    let place = Place::new();
    let output = cci(&["perf", "report", &place.word("run.json"), "--out", "-"]);
    assert!(text(&output.stdout).starts_with("<!DOCTYPE html>"));
}

#[test]
fn what_cannot_be_read_or_written_is_told_and_no_page_made() {
    let place = Place::new();
    std::fs::write(place.path("old.json"), r#"{"schema": "cci-perf/1"}"#).unwrap();
    std::fs::write(place.path("no.json"), "{").unwrap();
    let out = place.word("page.html");
    for (file, expected) in [("missing.json", "cannot read"), ("old.json", "cci-perf/1"), ("no.json", "no JSON")] {
        let output = cci(&["perf", "report", &place.word(file), "--out", &out]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(expected) && said.contains(file), "{said}");
        assert!(!place.path("page.html").exists());
    }
    let output = cci(&["perf", "report", &place.word("run.json"), "--out", &place.word("nowhere/page.html")]);
    assert!(text(&output.stderr).contains("cannot write to"), "{}", text(&output.stderr));
    let output = cci(&["perf", "report", "--out", &out]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_comparison_tells_slower_from_the_same_by_its_status() {
    let place = Place::new();
    let (before, same, slower) =
        (place.keep("a.json", 2.0, 8), place.keep("b.json", 2.02, 8), place.keep("c.json", 2.1, 8));
    for (after, status, word) in [(&same, 0, "same"), (&slower, 1, "SLOWER")] {
        let output = cci(&["perf", "compare", &before, after]);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{said}{}", text(&output.stderr));
        assert_eq!(said.matches(&format!(" {word}\n")).count(), 2, "{said}");
    }
    let output = cci(&["perf", "compare", &slower, &before, "--json", "-"]);
    assert_eq!(output.status.code(), Some(0));
    let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&comparison["schema"], &comparison["lines"][0]["verdict"]),
        (&"cci-compare/1".into(), &"faster".into())
    );
    assert_eq!(comparison["lines"][1]["key"]["size"], 64);
}

#[test]
fn several_files_of_a_side_are_more_launches_and_one_launch_says_nothing() {
    let place = Place::new();
    let (before, after) = (place.keep("a.json", 2.0, 1), place.keep("b.json", 2.5, 1));
    let output = cci(&["perf", "compare", &before, &after]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("--launches"), "{}", text(&output.stderr));
    let several = |file: &str| [file; 4].join(",");
    let output = cci(&["perf", "compare", &several(&before), &several(&after)]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(cci(&["perf", "compare", &before, &after, "--between", "2%"]).status.code(), Some(1));
}

#[test]
fn documents_that_cannot_be_compared_are_told_with_status_2() {
    let place = Place::new();
    let before = place.keep("a.json", 2.0, 8);
    let mut other = place.document.clone();
    other["rows"].as_array_mut().unwrap().iter_mut().for_each(|row| row["transport"] = "other".into());
    std::fs::write(place.path("other.json"), other.to_string()).unwrap();
    std::fs::write(place.path("old.json"), r#"{"schema": "cci-perf/1"}"#).unwrap();
    let mut damaged = place.document.clone();
    damaged["rows"][0]["launches"] = json!([1_000_000]);
    std::fs::write(place.path("damaged.json"), damaged.to_string()).unwrap();
    for (file, expected) in [
        ("other.json", "no row in common"),
        ("old.json", "cci-perf/1"),
        ("missing.json", "cannot read"),
        ("damaged.json", "launches of"),
    ] {
        let output = cci(&["perf", "compare", &before, &place.word(file)]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{file}: {said}");
    }
}

#[test]
fn a_partial_document_is_compared_and_told() {
    let place = Place::new();
    let before = place.keep("a.json", 2.0, 8);
    let mut partial: Value = serde_json::from_str(&read(Path::new(&before))).unwrap();
    (partial["complete"], partial["interrupted"]) = (false.into(), "the server is gone".into());
    std::fs::write(place.path("partial.json"), partial.to_string()).unwrap();
    let output = cci(&["perf", "compare", &before, &place.word("partial.json")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("partial.json is partial"), "{}", text(&output.stderr));
}
