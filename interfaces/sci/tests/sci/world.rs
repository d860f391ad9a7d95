//! Hosts of one process.

use cci_conformance::{LIMIT, sm_device};
use cci_sci::{Error, Host, LocalSegment, Nodes, Options, RemoteSegment, Sequence, SequenceStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// The nodes of these tests: three on this host, one elsewhere.
pub(crate) const NODES: &str = "4 localhost\n8 localhost\n12 127.0.0.1\n16 192.0.2.1 # documentation\n";

/// A number that no other test has.
pub(crate) fn id() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    std::process::id() << 8 | LAST.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn nodes(own: u32) -> Nodes {
    Nodes::parse(NODES).and_then(|nodes| nodes.at(own)).expect("a table")
}

pub(crate) fn host(own: u32) -> Host {
    Host::open(&Options::new().nodes(nodes(own)).device(sm_device())).expect("a host")
}

/// Hosts of nodes 4 and 8.
pub(crate) fn two() -> [Host; 2] {
    [4, 8].map(host)
}

/// A segment that others can connect to.
pub(crate) fn published(host: &Host, size: usize) -> LocalSegment {
    let segment = host.create(id(), size).expect("memory");
    segment.prepare().expect("room");
    segment.publish().expect("prepared");
    segment
}

pub(crate) fn connect(host: &Host, owner: &Host, segment: &LocalSegment) -> RemoteSegment {
    host.connect(owner.node(), segment.id(), Some(LIMIT)).expect("it is published")
}

pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> Error {
    result.expect_err("refused")
}

/// Waits for something that another thread does.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

pub(crate) fn until_lost(sequence: &Sequence) {
    until("a sequence is lost", || sequence.check() == SequenceStatus::NotRetriable);
}
