//! Hosts of one process over the loop-back interface.

use cci_conformance::{LIMIT, device_of};
use cci_sci::{Access, Host, LocalSegment, Nodes, Options, RemoteSegment, Sequence, SequenceStatus, Window};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// A number that no other test has.
pub(crate) fn id() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    std::process::id() << 8 | LAST.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn options(own: u32) -> Options {
    let nodes = Nodes::parse("4 localhost\n8 localhost\n").and_then(|nodes| nodes.at(own)).expect("a table");
    Options::new().nodes(nodes).device(device_of("sock", &[("ip", "127.0.0.1")]))
}

pub(crate) fn host(own: u32) -> Host {
    Host::open(&options(own)).expect("a host")
}

/// Hosts of nodes 4 and 8, whose windows are write-protected or compared.
pub(crate) fn two(protect: bool) -> [Host; 2] {
    [4, 8].map(|own| Host::open(&options(own).protect(protect)).expect("a host"))
}

/// A segment that others can connect to.
pub(crate) fn published(host: &Host, size: usize) -> LocalSegment {
    let segment = host.create(id(), size).expect("memory");
    segment.prepare().expect("room");
    segment.publish().expect("prepared");
    segment
}

/// The memory of a segment, as its owner sees it.
pub(crate) fn seen(segment: &LocalSegment) -> Window {
    segment.map(0..segment.len(), Access::ReadWrite).expect("mapped")
}

pub(crate) fn connect(host: &Host, owner: &Host, segment: &LocalSegment) -> (RemoteSegment, Window) {
    let connection = host.connect(owner.node(), segment.id(), Some(LIMIT)).expect("it is published");
    let window = connection.map(0..segment.len(), Access::ReadWrite).expect("mapped");
    (connection, window)
}

pub(crate) fn bytes(window: &Window) -> Vec<u8> {
    let mut bytes = vec![0; window.len()];
    window.read(0, &mut bytes).expect("inside");
    bytes
}

/// Waits for something that another thread does.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

pub(crate) fn until_is(sequence: &Sequence, status: SequenceStatus) {
    until("the status of a sequence", || sequence.check() == status);
}
