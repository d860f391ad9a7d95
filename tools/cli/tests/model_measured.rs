//! `cci model simulate`, `fit` and `validate` as a person runs them.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn model(directory: &Path, arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_cci")).arg("model").args(arguments).current_dir(directory).output();
    command.expect("the command")
}

fn told(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The thesis's components.
fn time(links: f64, switchings: f64, bytes: f64) -> f64 {
    2.0 * (2085.0 + 11.6 * (bytes - 64.0)) + 7.0 * links + 60.0 * (links - switchings - 1.0) + 670.0 * switchings
}

/// A document with times of a path, as `cci perf pingpong --json` writes it.
fn document(links: f64, switchings: f64) -> Value {
    let row = |bytes: u32| {
        let ns = time(links, switchings, bytes.into());
        json!({
            "measurement": "pingpong", "transport": "sock", "attribute": "RO", "operation": "send", "size": bytes, "count": 1,
            "blocks": 1, "min_ns": ns, "median_ns": 2.0 * ns, "p99_ns": ns, "p999_ns": ns, "probe": null, "probe_ns": null,
            "ratio": null, "library": "cci", "abi": "rust", "mode": "polling", "threads": "many", "completion": "reaped",
            "touch": false, "spread": 0.0, "accurate": true, "pairs": [[ns, null]], "launches": [1], "setting": null,
            "window": 0, "bidirectional": false
        })
    };
    json!({
        "schema": "cci-perf/2",
        "environment": {
            "version": "0", "processor": "a", "cpus": 2, "kernel": "k", "load": 0.0, "load_after": 0.0, "began_s": 0,
            "settings": [], "virtual": false, "path": null, "pinned": null
        },
        "command": [], "complete": true, "rows": [row(64), row(256)], "findings": []
    })
}

/// The same times, as `cci perf sci --json` writes those of windows.
fn of_windows(links: f64, switchings: f64, window: &str) -> Value {
    let mut document = document(links, switchings);
    let point = |bytes: u32| {
        let ns = time(links, switchings, bytes.into());
        json!({ "experiment": "pingpong", "x": bytes, "way": "library", "value": ns, "spread": 0.0 })
    };
    document["rows"] = json!([]);
    document["findings"] = json!([{
        "kind": "sci", "transport": "sock", "window": window, "launches": 1, "runs": 1, "processors": 2, "rows": [],
        "points": [point(64), point(256)]
    }]);
    document
}

/// Files of some paths, each with its counts in it.
fn files(directory: &Path) -> Vec<PathBuf> {
    let paths = [("one", 1.0, 0.0), ("two", 2.0, 0.0), ("four", 4.0, 0.0), ("turn", 4.0, 1.0), ("left", 3.0, 1.0)];
    let write = |(name, links, switchings): (&str, f64, f64)| {
        let mut document = document(links, switchings);
        document["path"] = json!({ "name": name, "p": links, "s": switchings });
        let file = directory.join(format!("{name}.json"));
        std::fs::write(&file, document.to_string()).unwrap();
        file
    };
    paths.into_iter().map(write).collect()
}

#[test]
fn a_fit_with_a_known_component_finds_the_others_and_is_read_back() {
    let directory = tempfile::tempdir().unwrap();
    files(directory.path());
    let fit = ["fit", "one.json", "two.json", "four.json", "turn.json", "--fix", "l_p=7ns", "--json", "fit.json"];
    let table = told(&model(directory.path(), &fit));
    for text in ["o_0", "2085.000", "l_s", "670.000", "given"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let text = std::fs::read_to_string(directory.path().join("fit.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert!((document["parameters"]["l_f_ns"].as_f64().unwrap() - 60.0).abs() < 1e-6, "{document}");
    let average = ["average", "--parameters", "fit.json", "--topology", "torus:4x4"];
    assert!(told(&model(directory.path(), &average)).contains("torus:4x4"));
}

#[test]
fn a_fit_without_one_tells_sums_and_why() {
    let directory = tempfile::tempdir().unwrap();
    files(directory.path());
    let table = told(&model(directory.path(), &["fit", "one.json", "two.json", "four.json", "turn.json"]));
    for text in
        ["2 o_0 - l_f", "4110.000", "l_p + l_f", "67.000", "l_s - l_f", "610.000", "No further path", "--fix l_p=7ns"]
    {
        assert!(table.contains(text), "{text}: {table}");
    }
    assert!(!table.contains("\nl_p  "), "{table}");
}

#[test]
fn paths_left_out_are_predicted() {
    let directory = tempfile::tempdir().unwrap();
    files(directory.path());
    let left_out = ["--left-out", "left.json", "two.json", "--json", "v.json"];
    let fitted = ["validate", "one.json", "four.json", "turn.json"];
    let table = told(&model(directory.path(), &[&fitted[..], &left_out].concat()));
    assert!(table.trim_end().ends_with("Median error 0.00 %, largest 0.00 %; bar: median <= 5 %: ok"), "{table}");
    let drawn = told(&model(directory.path(), &["plot", "--validation", "v.json", "--out", "."]));
    assert!(drawn.contains("validation.svg"), "{drawn}");
    // A round that was disturbed counts neither among those fitted nor among those left out.
    let mut slow = document(1.0, 0.0);
    slow["path"] = json!({ "name": "one", "p": 1 });
    slow["rows"][0]["min_ns"] = 9e4.into();
    std::fs::write(directory.path().join("again.json"), slow.to_string()).unwrap();
    let again = [
        "validate",
        "again.json",
        "one.json",
        "four.json",
        "turn.json",
        "--left-out",
        "left.json",
        "again.json",
        "one.json",
    ];
    assert!(told(&model(directory.path(), &again)).contains("largest 0.00 %"));
    // Of the median times, which are twice the fastest here, the prediction from the fastest is
    // half.
    let median = [&fitted[..], &left_out, &["--statistic", "median"]].concat();
    assert!(told(&model(directory.path(), &median)).contains(": ok"));
}

#[test]
fn mirror_windows_are_fitted_as_messages_are() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let write = |name: &str, mut document: Value, (links, switchings): (f64, f64)| {
        document["path"] = json!({ "name": name, "p": links, "s": switchings });
        std::fs::write(at.join(format!("{name}.json")), document.to_string()).unwrap();
    };
    for (name, links, switchings) in [("one", 1.0, 0.0), ("four", 4.0, 0.0), ("turn", 4.0, 1.0), ("left", 3.0, 1.0)] {
        write(name, of_windows(links, switchings, "mirror"), (links, switchings));
    }
    let fitted = ["one.json", "four.json", "turn.json"];
    let fit = told(&model(at, &[&["fit"], &fitted[..], &["--fix", "l_p=7ns"]].concat()));
    assert!(fit.contains("2085.000") && fit.contains("670.000"), "{fit}");
    let validate = [&["validate"], &fitted[..], &["--left-out", "left.json"]].concat();
    assert!(told(&model(at, &validate)).contains("Median error 0.00 %"));
    // A path that does not have these parts.
    write("left", of_windows(16.0, 8.0, "mirror"), (3.0, 1.0));
    assert!(told(&model(at, &validate)).contains("MISSES bar"));
    // Windows within a host, and MPI beside them, have no path.
    let mut mpi = of_windows(1.0, 0.0, "shared");
    write("shared", mpi.clone(), (1.0, 0.0));
    mpi["findings"][0]["kind"] = "mpi".into();
    mpi["findings"][0]["programs"] = json!(["Open MPI 4.1"]);
    write("mpi", mpi, (1.0, 0.0));
    for file in ["shared.json", "mpi.json"] {
        let why = refused(&model(at, &["fit", file]));
        assert!(why.contains(file) && why.contains("`cci perf sci` over a network"), "{why}");
    }
}

#[test]
fn bad_documents_and_counts_are_refused_with_what_to_give_instead() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    files(at);
    let fit = |arguments: &[&str]| refused(&model(at, &[&["fit"], arguments].concat()));
    std::fs::write(at.join("empty.json"), "").unwrap();
    assert!(fit(&["empty.json"]).contains("empty.json is empty"));
    let mut other = document(1.0, 0.0);
    std::fs::write(at.join("bare.json"), other.to_string()).unwrap();
    assert!(fit(&["bare.json"]).contains("--path FILE=p:4"));
    other["rows"] = json!([]);
    std::fs::write(at.join("rows.json"), other.to_string()).unwrap();
    assert!(fit(&["rows.json", "--path", "rows.json=p:1"]).contains("no times of ping-pongs"));
    other["schema"] = "cci-perf/1".into();
    std::fs::write(at.join("old.json"), other.to_string()).unwrap();
    assert!(fit(&["old.json", "--path", "old.json=p:1"]).contains("cci-perf/1"));
    assert!(fit(&["missing.json"]).contains("cannot read missing.json"));
    assert!(fit(&["one.json", "two.json"]).contains("no path switches"));
    assert!(fit(&["one.json"]).contains("another number of links"));
    assert!(fit(&["one.json", "--fix", "l_q=7ns"]).contains("l_p, l_f and l_s"));
    assert!(fit(&["one.json", "--fix", "l_p=7"]).contains("7ns"));
    assert!(fit(&["one.json", "--path", "one.json=4"]).contains("is no count"));
    assert!(fit(&["one.json", "--path", "two.json=p:2"]).contains("no file of this name"));
}

#[test]
fn a_simulation_stands_beside_its_analysis() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["simulate", "--topology", "torus:3x3", "ring:4", "--json", "s.json", "--set", "c=12ns"];
    let preset = ["--preset", "sci2000"];
    told(&model(directory.path(), &[&arguments[..], &preset].concat()));
    let text = std::fs::read_to_string(directory.path().join("s.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    for row in document["simulations"].as_array().unwrap() {
        // Whole nanoseconds in, whole nanoseconds out.
        assert_eq!(
            (row["analysis_ns"].clone(), &row["different"]),
            (row["simulated_ns"].clone(), &json!(0.0)),
            "{row}"
        );
    }
    assert_eq!(document["parameters"]["header_bytes"], json!(60.0));
    let no_rate = ["simulate", "--topology", "ring:4", "--load", "0.5", "--set", "o_0=1us", "l_p=7ns"];
    let no_rate = [&no_rate[..7], &["--set", "l_p=7ns", "--set", "l_f=60ns", "--set", "l_s=1us"]].concat();
    assert!(refused(&model(directory.path(), &no_rate)).contains("rate"));
}
