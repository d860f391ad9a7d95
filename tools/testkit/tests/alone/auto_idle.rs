//! What an endpoint of `auto` costs at rest, with every way open: no processor time, little
//! memory and few descriptors.

use cci_conformance::idle::Idle;
use cci_conformance::process::{describe_descriptors, descriptors, resident_bytes};
use cci_conformance::{alone, device_of, open};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

/// Processor time of an idle process, microseconds.
const MOST: u64 = 10_000;

/// A process waits on the handle of an endpoint with a connection: no processor time, and no
/// context switch but its own going to sleep and that of the progress thread.
#[test]
fn idle_endpoint_uses_no_processor_time_and_switches_no_context() {
    let _alone = alone();
    let seconds = if std::env::var_os("CCI_TEST_LONG").is_some() { "10" } else { "2" };
    let device = device_of("auto", &[]);
    // By the best way, and by each alone.
    for way in &["", "sm", "sock", "tcp"] {
        let endpoint = open(&device);
        let part = |part: &&str| part.starts_with(&format!("{way}=")) || part == way;
        let uri = match endpoint.uri().split(',').position(|text| part(&text)) {
            // Of the same text as the way before it, where it has none.
            Some(at) => {
                let texts = endpoint.uri().split(',').take(at + 1).filter_map(|text| text.split_once('='));
                format!("{way}://{}", texts.last().expect("a text").1)
            }
            None => endpoint.uri().to_owned(),
        };
        let goes_the_way = |connection| {
            let path = endpoint.report(connection).expect("open").path;
            assert!(path.starts_with(way), "{way}: {path}");
        };
        // A host that takes a virtual processor away meanwhile adds to the time: one of three is
        // enough.
        let mut tries = (0..3).map(|_| Idle::of(&endpoint, (PROGRAM, "auto", &uri), seconds, goes_the_way));
        let first = tries.next().expect("three");
        let Idle { micros, switches, wakes, threads } =
            if first.micros < MOST { first } else { tries.find(|idle| idle.micros < MOST).unwrap_or(first) };
        assert!(threads <= 2, "more threads than the program's and the progress thread");
        assert!(micros < MOST, "{way}: {micros} us of processor time");
        assert!(switches <= 7, "{way}: {switches} context switches");
        assert!(wakes <= 2, "{way}: woken {wakes} times without reason");
    }
}

/// As docs/limits.md states.
#[test]
fn a_fresh_endpoint_holds_few_descriptors() {
    let _alone = alone();
    for (transport, expected) in [("auto", 19), ("sm", 7), ("sock", 5), ("tcp", 6)] {
        let device = device_of(transport, &[]);
        let before = descriptors();
        let endpoint = open(&device);
        assert_eq!(descriptors() - before, expected, "{transport}: {:?}", describe_descriptors());
        drop(endpoint);
        assert_eq!(descriptors(), before, "{transport}");
    }
}

/// What endpoints have left to the allocator is not held a second time by those that come after
/// them.
#[test]
fn a_fresh_endpoint_holds_little_memory() {
    const COUNT: usize = 20;
    const LIMIT: usize = 5 << 19;
    let (_alone, device) = (alone(), device_of("auto", &[]));
    for round in 0..3 {
        let before = resident_bytes(None);
        let endpoints: Vec<_> = (0..COUNT).map(|_| open(&device)).collect();
        let each = resident_bytes(None).saturating_sub(before) / COUNT;
        assert!(each <= LIMIT, "{each} bytes each in round {round}");
        drop(endpoints);
    }
}
