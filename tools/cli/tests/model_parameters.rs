//! `cci perf logp`, `breakdown` and `gups` as their users run them.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::cci;
use serde_json::Value;
use std::process::Output;

fn perf(arguments: &[&str]) -> Output {
    cci(&["perf"]).args(arguments).output().unwrap()
}

/// The finding of a run that writes JSON to standard output.
fn finding(arguments: &[&str]) -> Value {
    let output = perf(&[arguments, &["--local", "--json", "-"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["schema"], &document["complete"]), (&"cci-perf/2".into(), &true.into()));
    assert_eq!(document["findings"].as_array().unwrap().len(), 1);
    document["findings"][0].clone()
}

/// Runs what must fail: its sentence.
fn refused(arguments: &[&str]) -> String {
    let output = perf(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn number(finding: &Value, field: &str) -> f64 {
    finding[field].as_f64().unwrap_or_else(|| panic!("{field} in {finding}"))
}

/// Runs over sim with these parameters: each must come back within 2 %.
fn recovered(latency: f64, send: f64, receive: f64, gap: f64) {
    let keys = [("delay", latency), ("send_overhead", send), ("recv_overhead", receive), ("gap", gap)];
    let keys = keys.map(|(key, value)| format!("{key}={value}"));
    let mut arguments = vec!["logp", "--transport", "sim"];
    arguments.extend(keys.iter().flat_map(|key| ["--key", key]));
    let found = finding(&arguments);
    for (field, given) in [("L_ns", latency), ("o_s_ns", send), ("o_r_ns", receive), ("g_ns", gap)] {
        let value = number(&found, field);
        assert!((value - given).abs() <= 0.02 * given, "{field} of {given} was found as {value}");
    }
    assert!(number(&found, "residual") < 0.05, "{found}");
    assert!(!found["points"].as_array().unwrap().is_empty());
}

#[test]
fn the_parameters_of_a_virtual_network_are_recovered() {
    recovered(5000.0, 1000.0, 1500.0, 3000.0);
    recovered(45_000.0, 2700.0, 5300.0, 48_000.0);
    recovered(29_600.0, 3100.0, 2900.0, 30_000.0);
    recovered(800.0, 70.0, 110.0, 260.0);
}

#[test]
fn the_bandwidth_of_a_virtual_network_is_recovered_as_the_gap_per_byte() {
    let keys = ["delay=5000", "send_overhead=1000", "recv_overhead=1500", "gap=3000", "bandwidth=500000000"];
    let mut arguments = vec!["logp", "--transport", "sim"];
    arguments.extend(keys.iter().flat_map(|key| ["--key", key]));
    let found = finding(&arguments);
    assert!((number(&found, "G_ns_per_byte") - 2.0).abs() <= 0.04, "{found}");
}

#[test]
fn ordered_messages_are_another_machine_that_collects_and_acknowledges() {
    let keys =
        ["--key", "delay=5000", "--key", "send_overhead=1000", "--key", "recv_overhead=1500", "--key", "gap=3000"];
    let with = |attribute: &str| {
        let found = finding(&[&["logp", "--transport", "sim", "--attribute", attribute], &keys[..]].concat());
        assert_eq!(found["attribute"], attribute.to_uppercase());
        number(&found, "g_ns")
    };
    let (bare, acknowledged) = (with("uu"), with("ro"));
    assert!(acknowledged > 0.0 && (acknowledged - bare).abs() > 100.0, "{acknowledged} with, {bare} without");
}

#[test]
fn parameters_are_told_between_processes() {
    for transport in ["sm", "sock"] {
        let directory = tempfile::tempdir().unwrap();
        let plot = directory.path().join("signature.svg");
        let path = plot.to_str().unwrap();
        let found = finding(&["logp", "--transport", transport, "--time", "short", "--plot", path]);
        assert_eq!(found["transport"], transport);
        assert!(number(&found, "round_trip_ns") > 0.0, "{found}");
        let points = found["points"].as_array().unwrap();
        assert!(points.len() > 20 && points.iter().all(|point| number(point, "ns_per_message") > 0.0), "{found}");
        let text = std::fs::read_to_string(plot).unwrap();
        assert!(text.starts_with("<svg") && text.contains("requests in the burst"));
    }
}

#[test]
fn a_shared_table_is_right_after_random_updates_however_they_travel() {
    for (transport, way, processes) in [
        ("sm", "send", 2),
        ("sm", "write", 2),
        ("sock", "send", 2),
        ("sock", "write", 2),
        ("sm", "send", 3),
        ("sm", "write", 3),
    ] {
        let processes = processes.to_string();
        let found = finding(&[
            "gups",
            "--transport",
            transport,
            "--op",
            way,
            "--processes",
            &processes,
            "--table",
            "64K",
            "--updates",
            "30001",
        ]);
        assert_eq!(found["errors"], 0, "{found}");
        assert_eq!((&found["updates"], &found["table_bytes"]), (&30_001.into(), &65_536.into()), "{found}");
        assert!(number(&found, "gups") > 0.0 && number(&found, "probe_gups") > 0.0, "{found}");
    }
}

#[test]
fn the_shares_of_a_request_and_its_reply_make_up_the_whole() {
    for transport in ["sm", "sock"] {
        let found = finding(&["breakdown", "--transport", transport, "--time", "1ms"]);
        assert_eq!((&found["transport"], &found["kind"]), (&transport.into(), &"breakdown".into()));
        let shares = found["shares"].as_array().unwrap();
        let names: Vec<_> = shares.iter().map(|share| share["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["base-transport", "event-notification", "flow-control", "semantics"]);
        let sum: f64 = shares.iter().map(|share| number(share, "ns")).sum();
        let total = number(&found, "total_ns");
        assert!(total > 0.0 && (sum - total).abs() < 1e-6 * total, "{found}");
        // Those of the stamps alone: nothing that else runs makes them less than nothing.
        assert!(number(&shares[1], "ns") > 0.0 && number(&shares[3], "ns") > 0.0, "{found}");
        assert!(number(&found, "probe_ns") > 0.0, "{found}");
    }
}

#[test]
fn what_cannot_be_done_is_told() {
    for (arguments, expected) in [
        (&["logp"][..], "--local"),
        (&["logp", "--local", "--size", "many"], "8,64,4096"),
        (&["logp", "--local", "--size", "1M"], "at most 8192 bytes"),
        (&["logp", "--local", "--transport", "pigeon"], "pigeon"),
        (&["logp", "--local", "--transport", "sim", "--key", "gap=wide"], "'gap'"),
        (&["logp", "--local", "--transport", "sim", "--key", "loss=100"], "did not connect"),
        (&["logp", "--local", "--plot", "x.png"], "drawn as SVG"),
        (&["breakdown", "--local", "--transport", "sim"], "sm or sock"),
        (&["breakdown", "--local", "--size", "0"], "at least one byte"),
        (&["breakdown", "--local", "--size", "1M"], "at most 8192 bytes"),
        (&["gups", "--local", "--table", "100M"], "power of two"),
        (&["gups", "--local", "--processes", "1"], "2..=64"),
        (&["gups", "--local", "--op", "read"], "send, write"),
        (&["gups", "--local", "--transport", "sim"], "sm or sock"),
        (&["gups", "--local", "--transport", "pigeon"], "pigeon"),
    ] {
        let text = refused(arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}
