//! Hostile peers of `sm` that want to use up what the endpoint has: memory, descriptors, address
//! space. And lies about sizes.

use crate::program;
use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connection, Device, Endpoint, Notify};
use cci_conformance::process::resident_bytes;
use cci_conformance::sm_raw::{
    BACK, GRANTS, LANE_SEALS, Packet, REGISTRY_SEALS, RawPeer, field, frame_kind, learn, memfd, packet_kind,
    send_packet, words,
};
use cci_conformance::{LIMIT, Peer, World, alone, drain, most, open, pattern, sm_device};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// A device of `sm` with this largest message.
fn device_with(mss: u32) -> Device {
    let mut device = sm_device();
    device.arguments.push(("mss".into(), mss.to_string()));
    device
}

/// Enters a lane of an endpoint of this process and is accepted.
fn accepted(endpoint: &Endpoint, hello: &Packet, max_send_size: u32) -> (RawPeer, Connection) {
    let world = World::new([endpoint]);
    let mut peer = RawPeer::enter(endpoint.uri(), hello, || world.step());
    peer.publish(frame_kind::CONNECT, 0, 3, &words([0, max_send_size, u32::MAX, 0, 0, 0]));
    let connection = world.accept(0);
    (peer, connection)
}

/// A client whose lane has small slots claims to take large messages: no message may be larger than
/// what the lane holds.
#[test]
fn hostile_claim_of_more_than_the_lane_holds() {
    let _alone = alone();
    let small = open(&device_with(64));
    let hello = learn(&small, 98_000);
    assert!(hello.word32(field::SLOT_STRIDE) < 4096);
    let endpoint = open(&sm_device());
    let (peer, connection) = accepted(&endpoint, &hello, u32::MAX);
    // The peer grants a slot, as an honest one would, so that the message is copied at once.
    peer.write(BACK + GRANTS, &(1u32 << 16).to_ne_bytes());
    let message = pattern(1, most(connection));
    for flags in [Flags::NONE, Flags::SILENT] {
        // Refused, queued or sent: all is well but a panic, or a byte behind the slot.
        let _ = endpoint.send_flags(connection, &message, 0, flags);
        drain(&endpoint);
    }
    let slot = peer.back_slots() + u64::from(hello.word32(field::SLOT_STRIDE));
    let behind: [u8; 64] = peer.read(slot);
    assert_eq!(behind, [0; 64], "written behind the slot");
}

/// A peer sends one frame again and again and takes no answer: the endpoint closes the lane, or
/// takes no more, or drops what it cannot answer, but its memory does not grow.
fn floods(what: &str, kind: u8, body: [u32; 14]) {
    let mut victim = Peer::spawn(program(), "echo", &[]);
    let uri = victim.line();
    let endpoint = open(&sm_device());
    let old = World::new([&endpoint]).connect_to(0, &uri, Attribute::ReliableOrdered);
    let own = open(&sm_device());
    let hello = learn(&own, 98_100);
    let mut peer = RawPeer::enter(&uri, &hello, std::thread::yield_now);
    peer.open_connection(3, std::thread::yield_now);
    let before = resident_bytes(Some(victim.pid()));
    let body = words(body);
    let mut taken = Instant::now();
    let mut frames = 0u32;
    while frames < 200_000 && taken.elapsed() < Duration::from_secs(1) && !peer.is_closed() {
        while peer.has_room() && frames < 200_000 {
            peer.publish_quietly(kind, 0, frames, &body);
            frames += 1;
            taken = Instant::now();
        }
        peer.wake();
    }
    let grown = resident_bytes(Some(victim.pid())).saturating_sub(before);
    assert!(grown < 8 << 20, "{frames} times {what} made memory grow by {grown} bytes");
    still_serves(what, &endpoint, old, &uri);
}

#[test]
fn hostile_flood_of_pings() {
    let _alone = alone();
    floods("PING", 7, [0; 14]);
}

#[test]
fn hostile_flood_of_reads_with_invented_handles() {
    let _alone = alone();
    floods("READ", 11, [7, 7, 7, 7, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn hostile_flood_of_connects_with_invented_tokens() {
    let _alone = alone();
    floods("CONNECT", frame_kind::CONNECT, [0, 8192, u32::MAX, 0, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn hostile_flood_of_accepts_of_nothing() {
    let _alone = alone();
    floods("ACCEPT", frame_kind::ACCEPT, [5, 8192, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn hostile_flood_of_results_and_disconnects_of_nothing() {
    let _alone = alone();
    floods("RESULT", 13, [0; 14]);
    floods("DISCONNECT", 6, [0; 14]);
}

/// The process at `uri` still serves an old peer and takes new ones.
fn still_serves(what: &str, endpoint: &Endpoint, old: Connection, uri: &str) {
    let world = World::new([endpoint]);
    endpoint.send(old, b"old", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.message(0), b"old", "{what}");
    let newcomer = open(&sm_device());
    let connection = World::new([&newcomer]).connect_to(0, uri, Attribute::ReliableOrdered);
    let world = World::new([&newcomer]);
    for len in [8, 4000] {
        newcomer.send(connection, &pattern(1, len), Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(0), pattern(1, len), "{what}");
    }
}

/// Offers segments of these sizes to a process that serves an honest peer too.
fn offers_segments(what: &str, role: &str, arguments: &[&str], sizes: &[u64]) {
    let mut victim = Peer::spawn(program(), role, arguments);
    let uri = victim.line();
    let endpoint = open(&sm_device());
    let old = World::new([&endpoint]).connect_to(0, &uri, Attribute::ReliableOrdered);
    let own = open(&sm_device());
    let hello = learn(&own, 98_200);
    let peer = RawPeer::enter(&uri, &hello, std::thread::yield_now);
    for (number, size) in (1u64..).zip(sizes) {
        let segment = memfd(*size, LANE_SEALS);
        let offer = hello.clone().with32(field::KIND, 4).with64(field::LANE_LEN, *size).with64(field::SEGMENT, number);
        let begun = Instant::now();
        while !peer.is_closed()
            && send_packet(peer.socket.as_fd(), &offer.0, &[segment.as_fd()]) == Err(rustix::io::Errno::AGAIN)
        {
            assert!(begun.elapsed() < LIMIT, "{what}: the endpoint does not read its socket");
            std::thread::yield_now();
        }
    }
    still_serves(what, &endpoint, old, &uri);
    drop(peer);
    still_serves(what, &endpoint, old, &uri);
}

/// Thousands of segments: the endpoint keeps descriptors for others.
#[test]
fn hostile_segments_do_not_use_up_descriptors() {
    let _alone = alone();
    offers_segments("many segments", "echo-with-descriptors", &["100"], &[4096; 3000]);
}

/// Segments larger than the address space: the endpoint keeps room for others and for itself.
#[test]
fn hostile_segments_do_not_use_up_the_address_space() {
    let _alone = alone();
    let sizes: Vec<u64> = (20..47).rev().flat_map(|shift| [1u64 << shift; 3]).collect();
    offers_segments("huge segments", "echo", &[], &sizes);
}

/// Further chunks of registrations that no honest peer sends: out of turn, or of another length.
#[test]
fn hostile_chunks_of_registrations_end_their_lane() {
    const CHUNK: u64 = 4 << 20;
    let _alone = alone();
    let endpoint = open(&sm_device());
    let hello = learn(&open(&sm_device()), 98_300);
    let world = World::new([&endpoint]);
    let offer = |peer: &RawPeer, number: u64, len: u64| {
        let chunk = memfd(len, REGISTRY_SEALS);
        let packet = hello.clone().with32(field::KIND, packet_kind::REGISTRY).with64(field::LANE_LEN, len);
        send_packet(peer.socket.as_fd(), &packet.with64(field::SEGMENT, number).0, &[chunk.as_fd()]).expect("room");
    };
    let (honest, _) = accepted(&endpoint, &hello, 8192);
    offer(&honest, 1, CHUNK);
    offer(&honest, 2, 2 * CHUNK);
    for (number, len) in [(0, CHUNK), (1, CHUNK - 4096), (2, 2 * CHUNK), (9, 1 << 30), (u64::MAX, CHUNK)] {
        let peer = RawPeer::enter(endpoint.uri(), &hello, || world.step());
        offer(&peer, number, len);
        world.until("the end of its lane", || peer.is_closed());
    }
    assert!(!honest.is_closed(), "one and the next are as they should be");
}
