//! `cci perf sci` and `cci perf mpi`, as their users run them.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::{cci, first_finding};
use std::process::Output;

fn run(arguments: &[&str]) -> Output {
    run_of("sci", arguments)
}

fn run_of(what: &str, arguments: &[&str]) -> Output {
    let mut command = cci(&["perf", what, "--local", "--transport"]);
    command.args(arguments).env_remove("SCI_NODES").env_remove("SCI_NODE").output().unwrap()
}

#[test]
fn each_test_has_a_figure_of_each_way_and_each_row_its_bar() {
    let plot = tempfile::NamedTempFile::new().unwrap();
    let path = plot.path().to_str().unwrap();
    let quick = ["sm", "--launches", "1", "--runs", "2", "--time", "2ms", "--size", "8,64K"];
    let output = run(&[&quick[..], &["--json", "-", "--plot", path]].concat());
    let found = first_finding(&output);
    assert_eq!((found["kind"].as_str(), found["window"].as_str()), (Some("sci"), Some("shared")));
    let points = found["points"].as_array().unwrap();
    let count = |experiment: &str| points.iter().filter(|point| point["experiment"] == experiment).count();
    // Two sizes by four ways; a queue beside writes one after the other and at a time.
    assert_eq!(["oneway", "pingpong", "check", "dma"].map(count), [8, 8, 2, 3], "{points:?}");
    for point in points {
        assert!(point["value"].as_f64().unwrap() > 0.0 && point["spread"].as_f64().unwrap() >= 0.0, "{point}");
    }
    let rows = found["rows"].as_array().unwrap();
    assert!(rows.len() == 4 && rows.iter().all(|row| row["bar"].as_f64().is_some()), "{rows:?}");
    assert!(std::fs::read_to_string(path).unwrap().starts_with("<svg"));
}

#[test]
fn mirror_windows_have_their_own_tests_and_rows_beside_rma() {
    let plot = tempfile::NamedTempFile::new().unwrap();
    let path = plot.path().to_str().unwrap();
    let quick = ["sock", "--launches", "1", "--runs", "1", "--time", "2ms", "--size", "8"];
    let output = run(&[&quick[..], &["--json", "-", "--plot", path]].concat());
    let found = first_finding(&output);
    assert_eq!(found["window"].as_str(), Some("mirror"));
    let points = found["points"].as_array().unwrap();
    let count = |experiment: &str| points.iter().filter(|point| point["experiment"] == experiment).count();
    // Two windows by four ways and by three; one window by three; two percentiles by two ways.
    assert_eq!(["pingpong", "turn", "confirm", "change", "watched"].map(count), [5, 8, 6, 3, 4], "{points:?}");
    assert!(points.iter().all(|point| point["value"].as_f64().unwrap() > 0.0), "{points:?}");
    let rows = found["rows"].as_array().unwrap();
    let barred = rows.iter().filter(|row| row["bar"].as_f64().is_some());
    assert_eq!((rows.len(), barred.count()), (11, 5), "{rows:?}");
    assert!(std::fs::read_to_string(path).unwrap().contains("mirror window"));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused = |arguments: &[&str]| {
        let output = run(arguments);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["sim"]).contains("use --transport sm or sock"));
    assert!(refused(&["sm", "--size", "12"]).contains("no last element"));
}

#[test]
fn without_an_mpi_there_is_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let quick = ["sm", "--launches", "1", "--runs", "1", "--time", "1ms", "--size", "8,64", "--peers-in", path];
    let output = run_of("mpi", &quick);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && why.contains("no MPI is there") && why.contains("libopenmpi-dev"), "{why}");
}
