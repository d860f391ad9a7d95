//! The command `cci model` as people call it.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use serde_json::Value;
use std::process::{Command, Output};

fn run(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cci")).arg("model").args(words.split_whitespace()).output().unwrap()
}

fn told(words: &str) -> String {
    let output = run(words);
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(words: &str) -> String {
    let output = run(words);
    assert!(!output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stdout));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn json(words: &str) -> Value {
    serde_json::from_str(&told(&format!("{words} --json -"))).unwrap()
}

#[test]
fn without_arguments_a_worked_example() {
    let text = told("");
    for words in ["sci2000", "2o + 3 l_p + 2 l_f = 4311 ns", "From 18.2 nodes on, torus:2d", "From 1832.6 nodes on"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn the_published_crossovers_stand_beside_ours_with_the_note() {
    let text = told("crossover --preset sci2000");
    for words in ["1831  1832.6", "232  228.9", "do not follow from its formulas as printed", "torus:2d to torus:3d"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let document = json("crossover --preset sci2000");
    assert_eq!(document["schema"], "cci-model/1");
    assert_eq!(document["published"][0]["unicasts"], 20.0);
    assert_eq!(document["published"].as_array().unwrap().len(), 3);
    assert_eq!(document["parameters"]["l_s_ns"], 670.0);
    // With parameters of one's own nothing was published.
    let changed = json("crossover --preset sci2000 --set l_s=335ns");
    assert!(changed.get("published").is_none());
    assert!((changed["crossovers"][1]["nodes"].as_f64().unwrap() - 44.716).abs() < 0.001);
}

#[test]
fn a_route_is_told_step_by_step() {
    let text = told("latency --topology torus:4x4 --from 0 --to 6");
    assert!(text.contains("0 - 1 (forwards) - 2 (switches) - 6"), "{text}");
    let document = json("latency --topology torus:4x4 --to 6");
    assert_eq!(document["request_components"].as_array().unwrap().len(), 7);
    assert_eq!(document["latency"][0]["latency_ns"], 4921.0);
    assert_eq!(document["latency"][2]["latency_ns"], 4921.0 + 5055.0);
    // Too long to list, not to count.
    assert!(told("latency --topology ring:9007199254740992 --to 9007199254740991").contains("9007199254740991"));
}

#[test]
fn averages_are_closed_and_counted() {
    let document = json("average --topology dragonfly:h=2 mesh:5x4 --enumerate");
    for row in document["averages"].as_array().unwrap() {
        let (closed, counted) = (row["propagations"].as_f64().unwrap(), row["counted_propagations"].as_f64().unwrap());
        assert!((closed - counted).abs() < 1e-9, "{row}");
    }
    let csv = told("average --topology dragonfly:p=2,a=4,h=2 --csv -");
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "topology,nodes,propagations,forwardings,switchings,latency_ns");
    assert!(lines[1].starts_with("\"dragonfly:p=2,a=4,h=2\",72,"), "{csv}");
    assert!(told("average --family torus:2d --nodes 1000 --real").contains("6736.4 ns"));
}

#[test]
fn every_pattern_is_told_idle_and_under_load() {
    let document = json("pattern --topology torus:4x4 --load 0.7");
    let rows = document["patterns"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    for row in rows {
        assert!(row["loaded_ns"].as_f64().unwrap() >= row["idle_ns"].as_f64().unwrap(), "{row}");
        assert!(row["saturation_per_second"].as_f64().unwrap() > 0.0);
    }
    // Transposition is left out with a sentence, unless it was asked for.
    assert!(told("pattern --topology ring:6").contains("Left out: a transposition"));
    assert!(refused("pattern --topology ring:6 --pattern transpose").contains("4 and 9"));
    let without_rate = json("pattern --topology ring:9 --set o_0=1us --set l_p=1ns --set l_f=1ns --set l_s=1ns");
    assert!(without_rate["patterns"][0]["loaded_ns"].is_null() && without_rate["patterns"][0]["idle_ns"].is_number());
}

#[test]
fn the_cheapest_change_is_told() {
    let document = json("sensitivity --between ring torus:2d --move-to 60");
    assert_eq!(document["changes"][0]["parameter"], "l_s");
    assert!((document["changes"][0]["factor"].as_f64().unwrap() - 3.0896).abs() < 1e-4);
    let time = json("sensitivity --topology ring:100");
    let shares: f64 =
        time["elasticities"].as_array().unwrap().iter().map(|row| row["elasticity"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-3);
    assert!(told("sensitivity --between ring star --most 10").contains("does not become better"));
}

#[test]
fn without_a_change_the_best_is_named() {
    let text = told("crossover --family torus:2d mesh:2d hypercube --pattern multicast");
    assert!(text.contains("hypercube is the best at every size"), "{text}");
    assert!(refused("crossover --family torus:2d ring --rate 1e12").contains("lower --rate"));
}

#[test]
fn figures_are_written_and_marked() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("figures");
    told(&format!("plot --preset sci2000 --out {}", out.display()));
    for (name, marks) in [
        ("topologies.svg", ["18: torus:2d", "1833: torus:4d"]),
        ("topologies-l_s-halved.svg", ["45: torus:3d", "229: torus:4d"]),
    ] {
        let svg = std::fs::read_to_string(out.join(name)).unwrap();
        assert!(marks.iter().all(|mark| svg.contains(mark)), "{name}");
        assert_eq!(svg.matches("<circle").count(), 6, "{name}");
    }
    let one = directory.path().join("one.svg");
    told(&format!("crossover --family all --most 1000 --plot {}", one.display()));
    assert!(std::fs::read_to_string(one).unwrap().contains("dragonfly"));
    assert!(refused("crossover --preset sci2000 --plot figure.png").contains(".svg"));
}

#[test]
fn what_cannot_be_asked_is_answered_with_what_can() {
    for (words, instead) in [
        ("latency --topology hypercube:1000 --to 1", "hypercube:512 with 512 nodes or hypercube:1024"),
        ("latency --topology torus:4294967296x4294967296 --to 1", "smaller size"),
        ("latency --topology ring:18446744073709551616 --to 1", "smaller size"),
        ("latency --topology ring:8 --to 8", "from 0 to 7"),
        ("latency --topology ring:8 --to 0", "another node"),
        ("average --family torus:3d --nodes 30", "torus:3x3x3 with 27 nodes or torus:4x3x3 with 36 nodes"),
        ("average --family cube --nodes 8", "hypercube"),
        ("average --family torus:3d --nodes 5 --real", "at least 8"),
        ("predict", "there are latency, average, pattern"),
        ("average", "--topology"),
        ("average --topology ring:100000 --enumerate", "closed form"),
        ("crossover --set l_s=1us", "o_0, l_p, l_f are missing"),
        ("crossover --preset sci2000 --set l_p=0ns", "l_p is 0"),
        ("crossover --preset sci2000 --set l_p=-7ns", "l_p is -7"),
        ("crossover --preset sci2000 --set l_p=7", "7ns"),
        ("crossover --preset vic20", "sci2000"),
        ("crossover --family ring", "name another"),
        ("crossover --family ring torus:2d --pattern transpose", "no closed form"),
        ("crossover --parameters /nonexistent/fit.json --family ring star", "cannot read"),
        ("crossover --set o_0=1us --set l_p=1ns --set l_f=1ns --set l_s=1ns", "--family all"),
        ("pattern --topology ring:8 --load 1.5", "below 1"),
        ("pattern --topology ring:8 --pattern average --rate 1e9", "lower rate"),
        ("pattern --topology ring:8 --pattern gossip", "all-to-all"),
        ("sensitivity --between ring torus:3d --move-to 3", "8 nodes"),
        ("plot --preset sci2000", "--out"),
    ] {
        let why = refused(words);
        assert!(why.contains(instead), "{words}: {why}");
        assert!(!why.contains("panicked"), "{words}: {why}");
    }
}
