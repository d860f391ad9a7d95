//! A mirror for tests.

use crate::{Host, LocalSegment, Nodes, Options, RemoteSegment};

/// A host with a segment of 4 KiB, and another one that is connected to it by a network.
pub(crate) fn connected() -> (Host, LocalSegment, Host, RemoteSegment) {
    connected_with(Options::new())
}

/// The same of hosts with these options.
pub(crate) fn connected_with(options: Options) -> (Host, LocalSegment, Host, RemoteSegment) {
    connected_to(4096, options)
}

/// The same with a segment of so many bytes.
pub(super) fn connected_to(len: usize, options: Options) -> (Host, LocalSegment, Host, RemoteSegment) {
    let device = cci_conformance::device_of("sock", &[("ip", "127.0.0.1")]);
    let options = options.nodes(Nodes::new()).device(device);
    let open = || Host::open(&options).expect("a host");
    let (owner, other) = (open(), open());
    let segment = owner.create(fastrand::u32(..), len).expect("memory");
    segment.prepare().and_then(|()| segment.publish()).expect("room");
    let far = other.connect(owner.node(), segment.id(), Some(cci_conformance::LIMIT)).expect("published");
    (owner, segment, other, far)
}

/// Waits until something is so.
pub(crate) fn until(what: &str, is_so: &dyn Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < cci_conformance::LIMIT, "{what}");
        std::thread::yield_now();
    }
}
