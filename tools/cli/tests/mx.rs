//! `cci perf mx`, as its users run it.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::{cci, first_finding};
use std::process::Output;

fn run(arguments: &[&str]) -> Output {
    cci(&["perf", "mx", "--local"]).args(arguments).output().unwrap()
}

#[test]
fn each_experiment_has_a_figure_beside_its_own() {
    let plot = tempfile::NamedTempFile::new().unwrap();
    let path = plot.path().to_str().unwrap();
    let output = run(&["--transport", "sm", "--launches", "1", "--time", "10ms", "--json", "-", "--plot", path]);
    let found = first_finding(&output);
    assert_eq!((found["kind"].as_str(), found["transport"].as_str()), (Some("mx"), Some("sm")));
    let points = found["points"].as_array().unwrap();
    let ways = |experiment: &str| {
        let of = points.iter().filter(|point| point["experiment"].as_str() == Some(experiment));
        let mut ways: Vec<_> = of.map(|point| point["way"].as_str().unwrap()).collect();
        ways.sort_unstable();
        ways.dedup();
        ways.len()
    };
    for (experiment, least) in [
        ("pingpong", 2),
        ("locked", 2),
        ("again", 1),
        ("order", 1),
        ("random", 1),
        ("wildcards", 1),
        ("throughput", 2),
        ("alone", 2),
        ("memory", 1),
    ] {
        assert!(ways(experiment) >= least, "{experiment}: {points:?}");
    }
    for point in points {
        assert!(point["value"].as_f64().unwrap() > 0.0, "{point}");
    }
    assert!(std::fs::read_to_string(path).unwrap().starts_with("<svg"));
}

#[test]
fn a_transport_of_one_process_is_refused() {
    let output = run(&["--transport", "sim"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("use --transport sm or sock"), "{text}");
}
