//! The page as a whole: what is on it, and that it is well made.

use super::Run;
use super::page::page;
use crate::environment::Environment;
use crate::finding::{
    Am, AmPoint, Breakdown, Finding, Gups, Idle, Jitter, Logp, LogpPoint, MappingPoint, Mappings, Memory, MemoryPoint,
    Mx, Overlap, OverlapPoint, Portals, PortalsPoint, Share, Threads, ThreadsPoint, Via, ViaPoint,
};
use crate::names::Measurement;
use crate::row::tests::row;
use crate::row::{Document, Row};

/// Every section with what brings it about, alone.
fn sections() -> Vec<(&'static str, Vec<Row>, Vec<Finding>)> {
    let rows = |measurement| [8, 64, 512].map(|size| row(measurement, size)).to_vec();
    let transport = || String::from("sm");
    let operation = || String::from("write");
    let points = [0.0, 100.0, 200.0].map(|delay_ns| LogpPoint { burst: 4, delay_ns, ns_per_message: 50.0 + delay_ns });
    let logp = Logp {
        transport: transport(),
        size: 8,
        l_ns: 90.0,
        o_s_ns: 40.0,
        o_r_ns: 45.0,
        g_ns: 140.0,
        g_ns_per_byte: 0.07,
        residual: 0.01,
        points: points.into(),
        ..Logp::default()
    };
    let shares = ["base transport", "semantics"].map(|name| Share { name: name.into(), ns: 50.0, ..Share::default() });
    let shares = shares.into();
    let breakdown = Breakdown { transport: transport(), size: 8, total_ns: 100.0, shares, ..Breakdown::default() };
    let point =
        |connections: u64, bytes| MemoryPoint { connections, private_bytes: bytes, resident_bytes: 2.0 * bytes };
    let memory = Memory {
        transport: transport(),
        endpoint_private_bytes: 4e5,
        endpoint_resident_bytes: 9e5,
        points: vec![point(1, 200.0), point(100, 2e4)],
    };
    let jitter = Jitter {
        transport: transport(),
        size: 8,
        count: 100,
        min_ns: 400,
        median_ns: 500,
        p99_ns: 900,
        p999_ns: 2000,
        max_ns: 3000,
        clock_ns: 20.0,
        histogram: vec![(450, 40), (500, 50), (3000, 10)],
    };
    let point = |threads| ThreadsPoint { threads, shared_per_second: 1e6, own_per_second: 2e6 };
    let threads = Threads { transport: transport(), operation: operation(), size: 8, points: vec![point(1), point(2)] };
    let point = |size| OverlapPoint { size, transfer_ns: 10.0, compute_ns: 10.0, both_ns: 12.0, overlap: 0.8 };
    let overlap = Overlap { transport: transport(), operation: operation(), points: vec![point(64), point(4096)] };
    let point =
        AmPoint { name: "short, 4 arguments".into(), bytes: 24, am_ns: 440.0, own_ns: 400.0, ..AmPoint::default() };
    let am = Am { transport: transport(), cycle_ns: 0.5, launches: 12, points: vec![point], ..Am::default() };
    let point = MappingPoint { name: "v3".into(), credits: Some(8), half_ns: 500.0, ..MappingPoint::default() };
    let mappings = Mappings { transport: transport(), cycle_ns: 0.5, points: vec![point], ..Mappings::default() };
    let point = ViaPoint { name: "RDMA write".into(), bytes: 1 << 20, bar: Some(0.95), ..ViaPoint::default() };
    let via = Via { transport: transport(), cycle_ns: 0.5, launches: 6, points: vec![point] };
    let point =
        |x, way: &str| PortalsPoint { experiment: "pingpong".into(), x, way: way.into(), value: 300.0, spread: 3.0 };
    let points = vec![point(8, "mx"), point(64, "mx"), point(8, "cci")];
    let others = Vec::new();
    let mx = Mx { transport: transport(), others, launches: 6, processors: 2, points };
    let points = vec![point(8, "generic"), point(64, "generic"), point(8, "cci")];
    let portals = Portals { transport: transport(), launches: 6, processors: 2, points };
    let gups = Gups {
        transport: transport(),
        operation: operation(),
        table_bytes: 1 << 20,
        updates: 1 << 18,
        seconds: 0.5,
        gups: 5e-4,
        errors: 0,
        ..Gups::default()
    };
    let idle = Idle {
        transport: transport(),
        seconds: 10.0,
        processor_ms: 0.3,
        bare_processor_ms: 0.2,
        wakes: 0,
        switches: 2,
    };
    vec![
        ("latency", rows(Measurement::PingPong), vec![]),
        ("oneway", rows(Measurement::OneWay), vec![]),
        ("bandwidth", rows(Measurement::Bandwidth), vec![]),
        ("rate", rows(Measurement::Rate), vec![]),
        ("logp", vec![], vec![Finding::Logp(logp)]),
        ("breakdown", vec![], vec![Finding::Breakdown(breakdown)]),
        ("memory", vec![], vec![Finding::Memory(memory)]),
        ("memory-curves", vec![], vec![Finding::MemoryCurves(crate::memory_curves::tests::found())]),
        ("jitter", vec![], vec![Finding::Jitter(jitter)]),
        ("threads", vec![], vec![Finding::Threads(threads)]),
        ("overlap", vec![], vec![Finding::Overlap(overlap)]),
        ("gups", vec![], vec![Finding::Gups(gups)]),
        ("am", vec![], vec![Finding::Am(am)]),
        ("mappings", vec![], vec![Finding::Mappings(mappings)]),
        ("splitc", vec![], vec![Finding::SplitC(crate::output::splitc::tests::found())]),
        ("via", vec![], vec![Finding::Via(via)]),
        ("portals", vec![], vec![Finding::Portals(portals)]),
        ("mx", vec![], vec![Finding::Mx(mx)]),
        ("mpi", vec![], vec![Finding::Mpi(crate::output::mpi::tests::found())]),
        ("sci", vec![], vec![Finding::Sci(crate::output::sci::tests::found())]),
        ("idle", vec![], vec![Finding::Idle(idle)]),
    ]
}

fn run(rows: Vec<Row>, findings: Vec<Finding>) -> Run {
    Run { document: Document::new(Environment::default(), rows, findings, None), source: String::new() }
}

/// The page as a tree, once it has passed for well-formed: XML but for the document type and the
/// elements without an end.
fn checked(page: &str) -> String {
    let text = page.replace("<!DOCTYPE html>", "");
    let mut text = text;
    while let Some(begin) = text.find("<meta ") {
        let end = begin + text[begin..].find('>').unwrap();
        text.replace_range(begin..=end, "");
    }
    let tree = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut ids: Vec<_> = tree.descendants().filter_map(|node| node.attribute("id")).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "two elements have the same id");
    for node in tree.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            match attribute.name() {
                "href" => assert!(ids.contains(&value.strip_prefix('#').unwrap()), "{value}"),
                "aria-labelledby" => assert!(ids.contains(&value), "{value}"),
                "clip-path" => {
                    assert!(ids.contains(&value.strip_prefix("url(#").and_then(|it| it.strip_suffix(')')).unwrap()));
                }
                "src" | "srcset" | "data" | "action" | "style" => panic!("{} in {node:?}", attribute.name()),
                name => assert!(!name.starts_with("on"), "{name} in {node:?}"),
            }
            assert!(!value.contains("NaN") && !value.contains("inf"), "{value} in {node:?}");
        }
        assert!(!["script", "link", "img", "iframe", "object", "base"].contains(&node.tag_name().name()), "{node:?}");
    }
    for svg in tree.descendants().filter(|node| node.has_tag_name("svg") && !node.has_attribute("aria-hidden")) {
        assert_eq!(svg.attribute("role"), Some("img"));
        assert!(svg.children().any(|child| child.has_tag_name("title")), "{svg:?}");
    }
    text.clone()
}

#[test]
fn each_section_is_there_when_its_figures_are_and_only_then() {
    let all = sections();
    for (section, rows, findings) in &all {
        let page = page(&[run(rows.clone(), findings.clone())], &[]);
        checked(&page);
        for (other, ..) in &all {
            let is_there = page.contains(&format!("<section id=\"{other}\">"));
            assert_eq!(is_there, other == section, "{other} with figures of {section}");
        }
        let in_headline = matches!(*section, "latency" | "bandwidth" | "rate");
        assert_eq!(page.contains("id=\"headline\""), in_headline, "{section}");
    }
    let together: Vec<_> = all.iter().map(|(_, rows, findings)| run(rows.clone(), findings.clone())).collect();
    let page = page(&together, &[]);
    checked(&page);
    assert!(all.iter().all(|(section, ..)| page.contains(&format!("<section id=\"{section}\">"))));
}

#[test]
fn the_style_needs_no_other_file_and_is_no_markup() {
    let style = include_str!("style.css");
    for forbidden in ["url(", "@import", "http", "<", "&"] {
        assert!(!style.contains(forbidden), "{forbidden}");
    }
    for ground in ["prefers-color-scheme: dark", "@media print", "max-width: 30rem"] {
        assert!(style.contains(ground), "{ground}");
    }
}

#[test]
fn nothing_that_a_document_says_becomes_markup() {
    let evil = "<script>alert(1)</script>\"'&";
    let mut row = row(Measurement::PingPong, 8);
    (row.library, row.transport, row.setting) = (evil.into(), evil.into(), Some(evil.into()));
    let mut other = row.clone();
    other.size = 64;
    let mut run = run(vec![row, other], vec![]);
    run.document.command = vec!["cci".into(), evil.into()];
    run.document.environment.processor = evil.into();
    run.document.interrupted = Some(evil.into());
    (run.document.complete, run.source) = (false, evil.into());
    let page = page(&[run], &[(evil.into(), evil.into())]);
    checked(&page);
    assert!(!page.contains("<script") && page.matches("&lt;script&gt;").count() > 8);
}

#[test]
fn points_that_are_not_accurate_are_hollow_and_counted() {
    let count = |doubtful: bool| {
        let mut rows = [8, 64, 512].map(|size| row(Measurement::PingPong, size)).to_vec();
        rows.iter_mut().for_each(|row| row.accurate = true);
        rows[1].accurate = !doubtful;
        let page = page(&[run(rows, vec![])], &[]);
        (page.matches("hollow").count(), page.contains("1 of 3 points is not accurate"))
    };
    let (without, with) = (count(false), count(true));
    assert_eq!(with.0 - without.0, 2, "one point, and the words about it");
    assert!(with.1 && !without.1);
}

#[test]
fn a_partial_run_and_a_measurement_that_gave_nothing_are_told_above_all() {
    let mut run = run(vec![row(Measurement::Rate, 8)], vec![]);
    (run.document.complete, run.document.interrupted) = (false, Some("the server is gone".into()));
    let page = page(&[run], &[("cci perf logp".into(), "no such transport".into())]);
    let text = checked(&page);
    let head = &text[..text.find("</header>").unwrap()];
    assert!(head.contains("ended early: the server is gone."), "{head}");
    assert!(head.contains("<code>cci perf logp</code> gave nothing: no such transport."), "{head}");
}

#[test]
fn no_run_and_a_run_of_nothing_still_give_a_page_that_says_so() {
    for runs in [&[][..], &[run(vec![], vec![])]] {
        let page = page(runs, &[]);
        checked(&page);
        assert!(page.contains("Nothing was measured."));
    }
}

#[test]
fn figures_read_as_on_the_terminal() {
    let mut row = row(Measurement::PingPong, 8);
    row.median_ns = 1234.5;
    let page = page(&[run(vec![row], vec![])], &[]);
    assert!(page.contains("1.23 µs"), "one size, in bars");
}

#[test]
fn several_settings_of_a_library_have_the_same_colour_and_other_dashes_and_names() {
    let mut rows = Vec::new();
    for setting in ["tcp: a", "udp: b"] {
        for size in [8, 64] {
            let mut row = row(Measurement::PingPong, size);
            (row.library, row.setting) = ("libfabric".into(), Some(setting.into()));
            rows.push(row);
        }
    }
    let page = page(&[run(rows, vec![])], &[]);
    checked(&page);
    for text in [">libfabric tcp</text>", ">libfabric udp</text>", "line dash-1"] {
        assert!(page.contains(text), "{text}");
    }
}
