//! Segments of library memory are announced to peers of `sm`. A peer that makes no calls costs
//! neither descriptors nor memory, and knows all that there is once it goes on.

use cci::__binding::Contract;
use cci::{Endpoint, EventKind, Rights, RmaHandle, SharedMemory};
use cci_conformance::process::descriptors;
use cci_conformance::sm_raw::{Arrived, RawPeer, field, learn, packet_kind, receive_packet};
use cci_conformance::{LIMIT, alone, drain, open, readable, sm_device};
use rustix::fs::fstat;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Bytes of an allocation.
const LEN: usize = 1 << 16;

/// An endpoint, and a peer with a lane that reads nothing from its socket yet.
fn with_deaf_peer(id: u32) -> (Endpoint, RawPeer) {
    let (endpoint, honest) = (open(&sm_device()), open(&sm_device()));
    let hello = learn(&honest, id);
    let mut peer = RawPeer::enter(endpoint.uri(), &hello, || {
        drain(&endpoint);
    });
    // A lane without connections is closed.
    peer.open_connection(1, || {
        if let Some(event) = endpoint.get_event().expect("usable")
            && event.kind() == EventKind::ConnectRequest
        {
            event.into_request().expect("a request").accept(0).expect("an accept");
        }
    });
    (endpoint, peer)
}

fn register(endpoint: &Endpoint) -> (SharedMemory, RmaHandle) {
    let memory = SharedMemory::new(LEN).expect("memory of the library");
    memory.write(0, &[1; LEN]);
    let handle = endpoint
        .register_memory(memory.memory(), Rights::WRITE)
        .expect("a peer that makes no calls is nobody's concern");
    (memory, handle)
}

/// What a peer has learnt from its socket.
#[derive(Default)]
struct Known {
    segments: BTreeSet<u64>,
    /// Descriptors of all segments that it was ever sent.
    received: Vec<OwnedFd>,
}

impl Known {
    /// Reads what there is. True: something was.
    fn read(&mut self, peer: &RawPeer) -> bool {
        let mut found = false;
        loop {
            let (packet, descriptors) = match receive_packet(peer.socket.as_fd()) {
                Arrived::Packet(packet, descriptors) => (packet, descriptors),
                Arrived::Other(_) => continue,
                Arrived::Nothing => return found,
                Arrived::Closed => panic!("the endpoint has closed the lane"),
            };
            found = true;
            let number = packet.word64(field::SEGMENT);
            match packet.word32(field::KIND) {
                packet_kind::SEGMENT => assert!(self.segments.insert(number), "segment {number} comes twice"),
                packet_kind::SEGMENT_GONE => assert!(self.segments.remove(&number), "{number} was never sent"),
                other => panic!("a packet of kind {other}"),
            }
            self.received.extend(descriptors);
        }
    }

    /// Reads until as many segments are known, while the endpoint sleeps on its handle.
    fn read_until(&mut self, peer: &RawPeer, endpoint: &Endpoint, count: usize) {
        let (begun, handle) = (Instant::now(), endpoint.handle().expect("a handle"));
        while self.read(peer) || self.segments.len() != count {
            assert!(begun.elapsed() < LIMIT, "{} segments of {count}", self.segments.len());
            if readable(&handle, Duration::from_millis(1)) {
                drain(endpoint);
            }
        }
    }
}

/// Allocates, registers, deregisters and frees, again and again. Each segment waited for the peer
/// with its descriptor: after some 1,000 rounds there was none left.
#[test]
fn peer_that_makes_no_calls_takes_neither_descriptors_nor_memory() {
    let _alone = alone();
    let (endpoint, peer) = with_deaf_peer(98_500);
    let before = descriptors();
    for _ in 0..1_500 {
        let (memory, handle) = register(&endpoint);
        endpoint.deregister(&handle).expect("registered");
        drop(memory);
    }
    assert!(descriptors() <= before, "{} descriptors, {before} before", descriptors());
    let mut known = Known::default();
    known.read_until(&peer, &endpoint, 0);
    assert!(known.received.len() < 64, "{} segments were sent of which none lives", known.received.len());
    for segment in &known.received {
        assert_eq!(fstat(segment).expect("a segment").st_blocks, 0, "a freed segment has memory");
    }
}

/// More segments than wait by number, some of them gone before the peer reads: it is sent those
/// that live, each once.
#[test]
fn peer_that_goes_on_learns_what_there_is() {
    let _alone = alone();
    let (endpoint, peer) = with_deaf_peer(98_510);
    let mut known = Known::default();
    let mut living: Vec<_> = (0..10).map(|_| register(&endpoint)).collect();
    known.read_until(&peer, &endpoint, 10);
    for round in 0..3 {
        let all: Vec<_> = (0..300).map(|_| register(&endpoint)).collect();
        // Also of those that it knows.
        let (gone, stay): (Vec<_>, Vec<_>) =
            living.drain(..).chain(all).enumerate().partition(|(at, _)| at % 3 == round);
        for (_, (_, handle)) in &gone {
            endpoint.deregister(handle).expect("registered");
        }
        drop(gone);
        living.extend(stay.into_iter().map(|(_, kept)| kept));
        known.read_until(&peer, &endpoint, living.len());
    }
    assert!(living.len() > 300);
}

/// As long as the peer does not read, it gives an endpoint that sleeps nothing to do.
#[test]
fn peer_that_does_not_read_wakes_nobody() {
    let _alone = alone();
    let (endpoint, _peer) = with_deaf_peer(98_520);
    let handle = endpoint.handle().expect("a handle");
    let _living: Vec<_> = (0..100).map(|_| register(&endpoint)).collect();
    let (mut wakes, begun) = (0, Instant::now());
    while begun.elapsed() < Duration::from_millis(800) {
        if readable(&handle, Duration::from_millis(50)) {
            wakes += 1;
            drain(&endpoint);
        }
    }
    assert!(wakes < 30, "woken {wakes} times");
}
