//! Memory does not grow with the number of frames that a peer sends, whatever they are.
//!
//! One test, since it counts the bytes of the whole process.

#![forbid(unsafe_code)]

use cci_instruments::{CountingAllocator, peak_of};
use std::path::Path;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Lists double when they grow; what grows with each of 18,000 frames shows as more.
const SLACK: usize = 16 << 10;

/// The step of the engine's target that sends the last frame again with other numbers: how often,
/// which two of its words beside the usual ones are counted up, and that everything that answers
/// may leave.
fn flood(times: u16, first: u8, second: u8) -> [u8; 6] {
    let [high, low] = (times << 4).to_be_bytes();
    [13, high, low, first, second, 0]
}

#[test]
fn memory_does_not_grow_with_a_flood() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/engine");
    let mut seen = 0;
    let mut growing = Vec::new();
    for file in std::fs::read_dir(corpus).expect("the corpus") {
        let path = file.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !name.starts_with("flood-") {
            continue;
        }
        seen += 1;
        let once = std::fs::read(&path).expect("a file that can be read");
        let [.., first, second, _] = once[..] else { panic!("{name} is short") };
        let peak = |rounds: usize| {
            let mut bytes = once.clone();
            (0..rounds).for_each(|_| bytes.extend(flood(2000, first, second)));
            peak_of(|| cci_fuzz::engine(&bytes))
        };
        let (few, many) = (peak(1), peak(10));
        if many > few + SLACK {
            growing.push(format!("{name}: {few} bytes, then {many}"));
        }
    }
    assert!(seen >= 10, "{seen} floods");
    assert!(growing.is_empty(), "{growing:#?}");
}
