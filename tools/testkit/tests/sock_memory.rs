//! What `sock` endpoints take of memory: little at rest, and no more than they promise with
//! everything outstanding.

#![forbid(unsafe_code)]

use cci::{Attribute, Device};
use cci_conformance::{World, alone, device_of, most, open, pattern};

fn device() -> Device {
    device_of("sock", &[("ip", "127.0.0.1")])
}

/// Bytes of this process that are resident.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("the size of this process");
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("resident pages");
    pages * rustix::param::page_size()
}

/// Bytes of address space that this process can write to. The allocator sets aside more for each of
/// its threads.
fn writable() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the maps of this process");
    let range = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        Some(if rest.starts_with("rw") { address(end)? - address(start)? } else { 0 })
    };
    maps.lines().map(|line| range(line).expect("a range")).sum()
}

/// What endpoints have left to the allocator is not held a second time by those that come after
/// them.
#[test]
fn an_idle_endpoint_holds_little_memory() {
    const COUNT: usize = 50;
    const LIMIT: usize = 1 << 20;
    let (_alone, device) = (alone(), device());
    for round in 0..3 {
        let before = resident();
        let endpoints: Vec<_> = (0..COUNT).map(|_| open(&device)).collect();
        let after = resident();
        assert!(after <= before + COUNT * LIMIT, "{} bytes each in round {round}", (after - before) / COUNT);
        drop(endpoints);
    }
}

/// 8,192 sends of the largest message, none of them acknowledged.
#[test]
fn an_endpoint_with_everything_outstanding_keeps_to_its_address_space() {
    const LIMIT: usize = 160 << 20;
    let (_alone, device) = (alone(), device());
    let b = open(&device);
    let before = writable();
    let a = open(&device);
    let opened = writable();
    let (_world, connection, _) = World::joined([&a, &b], Attribute::ReliableOrdered);
    let message = pattern(1, most(connection));
    for number in 0..8192 {
        a.send(connection, &message, number).expect("a send");
    }
    let after = writable();
    assert!(after - before <= LIMIT, "{} bytes, {} of them at first", after - before, opened - before);
}
