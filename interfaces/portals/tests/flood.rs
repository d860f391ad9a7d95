//! Messages that nobody wants, alone in this process, whose memory is measured.

use cci::Endpoint;
use cci_conformance::{LIMIT, sm_device};
use cci_peers::{Name, Table};
use cci_portals::{Descriptor, Error, Interface, Limits, Place, ProcessId, Target, Unlink, buffer, endpoint_options};
use std::time::Instant;

/// Puts, unless `CCI_UNMATCHED` has another number of them: `make soak` sends a million.
const COUNT: u64 = 100_000;

fn count() -> u64 {
    let asked = std::env::var("CCI_UNMATCHED").ok();
    asked.map_or(COUNT, |count| count.parse().expect("CCI_UNMATCHED is a number"))
}

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("a process");
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * rustix::param::page_size() as u64
}

fn until(sides: &[Interface], mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "waited in vain");
        sides.iter().for_each(|side| assert!(side.status(0).is_ok()));
    }
}

/// Puts that may be open at once where engines make the progress: how many more would be depends on
/// their turns, and so how large the table of operations is.
const OPEN: usize = 1_000;

fn flood(sides: &[Interface], from: u64, to: u64) {
    let source = sides[0].bind(Descriptor::new(&buffer(vec![1; 32])), Unlink::Retain).expect("room");
    let whom = Target::at(ProcessId { nid: 9, pid: 1 }, 4);
    for number in from..to {
        if sides[0].is_accelerated() && number.is_multiple_of(64) {
            until(sides, || sides[0].counts().0 < OPEN);
        }
        until(sides, || match sides[0].put(source, None, true, &Target { bits: number, ..whom }) {
            Ok(()) => true,
            Err(why) => {
                assert_eq!(why, Error::NoSpace);
                false
            }
        });
    }
    until(sides, || sides[1].status(0) == Ok(to) && sides[0].counts().0 == 0);
    assert_eq!(sides[0].status(4), Ok(to), "each was sent");
    sides[0].unlink_memory(source).expect("nothing is pending");
}

/// Nothing is kept of them, neither at the target nor, once they are answered, at the initiator;
/// whoever makes the progress, calls or an engine of both.
#[test]
fn unmatched_puts_are_counted_and_keep_no_memory() {
    for open in [Interface::new, Interface::accelerated] {
        send_and_count(open);
    }
}

fn send_and_count(open: fn(Place, u32, Limits) -> Result<Interface, cci_portals::NotOpened>) {
    let count = count();
    let ends = [(); 2].map(|()| Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint"));
    let mut table = Table::new();
    (0..).zip(&ends).for_each(|(pid, end)| table.insert(Name::Number(9 << 32 | pid), end.uri()));
    let side = |(pid, end)| {
        let place = Place::of(end, ProcessId { nid: 9, pid }, Box::new(table.clone()));
        open(place, 0, Limits::default()).expect("an interface")
    };
    let sides: Vec<_> = (0..).zip(ends).map(side).collect();
    // So many at once that all tables have been as full as they will be.
    flood(&sides, 0, count / 2);
    let before = resident();
    flood(&sides, count / 2, count);
    let grown = resident().saturating_sub(before);
    assert!(grown < 1 << 20, "{grown} bytes more");
    assert_eq!((sides[1].status(1), sides[1].counts()), (Ok(32 * count), (0, 0)));
}
