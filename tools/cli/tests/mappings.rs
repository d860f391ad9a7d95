//! `cci perf am --mapping`, as its users run it.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::{cci, first_finding};
use serde_json::Value;
use std::process::Output;

fn run(arguments: &[&str]) -> Output {
    cci(&["perf", "am", "--local", "--transport", "sm", "--launches", "1"]).args(arguments).output().unwrap()
}

#[test]
fn every_mapping_has_a_line_beside_native_vi_and_a_bandwidth_for_each_size() {
    let output = run(&["--mapping", "v1,v2,v3,v4,cci", "--credits", "4", "--time", "20ms", "--json", "-"]);
    let found = first_finding(&output);
    assert_eq!(found["kind"], "mappings");
    let points = found["points"].as_array().unwrap();
    let names: Vec<_> = points.iter().map(|point| point["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["via", "v1", "v2", "v3", "v4", "cci"]);
    for point in points {
        assert!(point["half_ns"].as_f64().unwrap() > 0.0, "{point}");
        let is_native = point["name"] == "via";
        assert_eq!(point["difference_ns"].is_null(), is_native);
        let has_credits = !is_native && point["name"] != "cci";
        assert_eq!(point["credits"].as_u64(), has_credits.then_some(4));
        assert_eq!(point["wire_bytes"], if point["name"] == "cci" { 16 } else { 24 });
    }
    let bulk = found["bulk"].as_array().unwrap();
    assert!(bulk.len() > 6 && bulk.len().is_multiple_of(points.len()));
    assert!(bulk.iter().all(|point| point["mb_per_s"].as_f64().unwrap() > 0.0));
    assert!(found["copy_ns"].as_f64().unwrap() > 0.0);
    for point in points {
        assert_eq!(point["store_ns"].is_null(), point["name"] == "via", "{point}");
    }
    // Each mapping over VI tells the same parts, of which none is wholly absent.
    let parts = found["parts"].as_array().unwrap();
    for mapping in ["v1", "v2", "v3", "v4"] {
        let its: Vec<_> = parts.iter().filter(|part| part["mapping"] == mapping).collect();
        assert_eq!(its.len(), 11, "{mapping}");
        let of = |category: &str| -> f64 {
            its.iter().filter(|part| part["category"] == category).map(|part| part["ns"].as_f64().unwrap()).sum()
        };
        for category in ["Base VI", "Event notification", "Flow control", "Semantics"] {
            assert!(of(category) > 0.0, "{mapping}, {category}: {its:?}");
        }
    }
    assert_eq!(parts.len(), 4 * 11);
}

#[test]
fn a_sweep_of_credits_has_a_line_for_each() {
    let output = run(&["--mapping", "v3,cci", "--credits", "1,16", "--time", "20ms", "--json", "-"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = document["findings"][0]["points"].as_array().unwrap();
    let lines: Vec<_> = points.iter().map(|point| (point["name"].as_str(), point["credits"].as_u64())).collect();
    assert_eq!(lines, [(Some("via"), None), (Some("v3"), Some(1)), (Some("v3"), Some(16)), (Some("cci"), None)]);
}

#[test]
fn a_sweep_of_updates_has_a_line_for_each_and_a_plot() {
    let directory = tempfile::tempdir().unwrap();
    let plot = directory.path().join("updates.svg");
    let output = run(&[
        "--mapping",
        "v3",
        "--update-every",
        "1,4",
        "--time",
        "20ms",
        "--plot",
        plot.to_str().unwrap(),
        "--json",
        "-",
    ]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = document["findings"][0]["points"].as_array().unwrap();
    let lines: Vec<_> = points.iter().map(|point| point["update_every"].as_u64()).collect();
    assert_eq!(lines, [None, Some(1), Some(4)]);
    let picture = std::fs::read_to_string(plot).unwrap();
    for words in ["Bulk data", "v3, n 4", "v3: store", "messages after which credits go back"] {
        assert!(picture.contains(words), "{words}");
    }
}

#[test]
fn what_is_no_mapping_is_refused() {
    for (arguments, sentence) in [
        (&["--mapping", "v5"][..], "v5 is no mapping; give v1, v2, v3, v4 or cci"),
        (&["--mapping", "v3", "--credits", "257"], "257 is not in 1..=256"),
        (&["--power"], "--mapping"),
    ] {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(sentence), "{text}");
    }
}
