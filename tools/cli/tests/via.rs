//! `cci perf via`, as its users run it.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::{cci, first_finding};
use std::process::Output;

fn run(arguments: &[&str]) -> Output {
    cci(&["perf", "via", "--local"]).args(arguments).output().unwrap()
}

#[test]
fn each_row_has_a_figure_beside_its_reference_and_its_bar() {
    let output = run(&["--transport", "sm", "--launches", "1", "--time", "10ms", "--json", "-"]);
    let found = first_finding(&output);
    assert_eq!((found["kind"].as_str(), found["transport"].as_str()), (Some("via"), Some("sm")));
    let points = found["points"].as_array().unwrap();
    let bars: Vec<_> = points.iter().map(|point| (point["told"].as_str().unwrap(), point["bar"].as_f64())).collect();
    let cycles = |bar| ("cycles", bar);
    let expected = [
        cycles(Some(150.0)),
        cycles(Some(220.0)),
        cycles(None),
        ("speed", Some(0.95)),
        ("time", Some(1.1)),
        ("time", None),
        cycles(Some(300.0)),
    ];
    assert_eq!(bars, expected);
    for point in points {
        assert!(point["ns"].as_f64().unwrap() > 0.0 && point["reference_ns"].as_f64().unwrap() > 0.0, "{point}");
    }
}

#[test]
fn a_transport_of_one_process_is_refused() {
    let output = run(&["--transport", "sim"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("use --transport sm or sock"), "{text}");
}
