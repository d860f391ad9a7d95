//! The examples of `docs/wire.md` are what this code writes.

use crate::frames;

const DOCUMENT: &str = include_str!("../../../../docs/wire.md");

/// The examples: what stands in blocks of `hex`, each under the heading that names it.
fn examples() -> Vec<(&'static str, Vec<u8>)> {
    let mut examples = Vec::new();
    let mut heading = "";
    let mut open: Option<Vec<u8>> = None;
    for line in DOCUMENT.lines() {
        match (line, open.as_mut()) {
            ("```hex", None) => open = Some(Vec::new()),
            ("```", Some(_)) => examples.push((heading, open.take().expect("a block is open"))),
            (line, Some(bytes)) => bytes.extend(bytes_of(line)),
            (line, None) => heading = line.strip_prefix("### ").unwrap_or(heading),
        }
    }
    examples
}

/// The bytes of a line: two digits each, or with `*` how often, up to a remark.
fn bytes_of(line: &str) -> Vec<u8> {
    let digits = line.split('#').next().unwrap_or_default();
    let repeated = |word: &str| {
        let (byte, times) = word.split_once('*').unwrap_or((word, "1"));
        assert_eq!(byte.len(), 2, "{line}");
        vec![u8::from_str_radix(byte, 16).expect("a byte"); times.parse().expect("a number")]
    };
    digits.split_whitespace().flat_map(repeated).collect()
}

#[test]
fn every_frame_of_the_tests_is_an_example_and_is_as_the_document_says() {
    let documented = examples();
    let written = frames::all();
    let names = |all: &[(&'static str, Vec<u8>)]| all.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(names(&documented), names(&written));
    for ((name, documented), (_, written)) in documented.iter().zip(&written) {
        assert_eq!(documented, written, "{name}");
    }
}

#[test]
fn the_examples_show_every_kind_and_every_record() {
    use cci_proto::wire::{Data, Kind, Record};
    let mut kinds = [false; 11];
    let mut records = [false; 14];
    for (_, bytes) in examples() {
        kinds[usize::from(bytes[1])] = true;
        let Some((.., found)) = Data::parse(&bytes) else { continue };
        for record in found {
            let number = match record {
                Record::Message { .. } => 1,
                Record::Part { .. } => 2,
                Record::Write { .. } => 3,
                Record::Read { .. } => 4,
                Record::ReadBytes { .. } => 5,
                Record::Result { .. } => 6,
                Record::Probe { .. } => 7,
                Record::ProbeReply { .. } => 8,
                Record::Slice { .. } => 9,
                Record::Atomic { .. } => 10,
                Record::Value { .. } => 11,
                Record::Large { .. } => 12,
                Record::Landing { .. } => 13,
            };
            records[number] = true;
        }
    }
    assert!((1..=10).all(|kind| kinds[kind] && Kind::from_u8(kind as u8).is_some()), "{kinds:?}");
    assert!(records[1..].iter().all(|shown| *shown), "{records:?}");
}
