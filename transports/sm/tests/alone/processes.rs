//! Two processes over `sm`: what only shows when the peer is another process.

use crate::program;
use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connect, EventKind, Failure, Notify, Rights, Rma, RmaHandle, SendError};
use cci_conformance::memory::Origin;
use cci_conformance::{LIMIT, Peer, World, alone, most, open, pattern, sm_device};
use rustix::process::Signal;
use std::collections::HashSet;
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

#[test]
fn echo_of_every_length() {
    let _alone = alone();
    let mut peer = Peer::spawn(program(), "echo", &[]);
    let uri = peer.line();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    for attribute in [RO, Attribute::ReliableUnordered] {
        let connection = world.connect_to(0, &uri, attribute);
        for len in (0..=600).chain((600..=most(connection)).step_by(89)) {
            endpoint.send(connection, &pattern(len as u64, len), len as u64).expect("a send");
            assert_eq!(world.message(0), pattern(len as u64, len));
            assert_eq!(world.sent(0), len as u64);
        }
        endpoint.disconnect(connection).expect("a disconnect");
    }
}

#[test]
fn published_is_delivered_after_exit() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    for (count, len) in [("1", "8"), ("50", "56"), ("4", "1000")] {
        let mut peer = Peer::spawn(program(), "send-and-exit", &[endpoint.uri(), count, len]);
        let connection = world.accept(0);
        // Nobody receives until the sender is gone.
        assert!(peer.wait().success());
        for number in 0..count.parse().expect("a number") {
            assert_eq!(world.message(0), pattern(number, len.parse().expect("a number")));
        }
        endpoint.disconnect(connection).expect("a disconnect");
    }
}

#[test]
fn rma_between_processes() {
    let _alone = alone();
    const LEN: usize = 5 << 20;
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    for origin in ["library", "program"] {
        let mut peer = Peer::spawn(program(), "target", &[endpoint.uri(), origin]);
        let connection = world.accept(0);
        let remote = RmaHandle::from_bytes(&world.message(0)).expect("a handle");
        assert_eq!(peer.line_while(|| world.step()), "connected");
        for own in Origin::ALL {
            let memory = own.allocate(2 * LEN);
            memory.write(0, &pattern(3, LEN));
            let local = endpoint.register_memory(memory.memory(), Rights::NONE).expect("a registration");
            for (len, remote_offset) in [(1, 0), (4096, 77), (LEN as u64, 0), (LEN as u64 - 3, 1 << 20)] {
                let there = Rma::new(&local, &remote, len).remote_offset(remote_offset);
                let back = there.local_offset(LEN as u64);
                endpoint.rma(connection, &there, 1, Flags::WRITE).expect("a write");
                assert_eq!(world.sent(0), 1);
                endpoint.rma(connection, &back, 2, Flags::READ).expect("a read");
                assert_eq!(world.sent(0), 2);
                let len = usize::try_from(len).expect("small");
                assert!(memory.to_vec(LEN, len) == pattern(3, LEN)[..len], "{len} bytes, {own:?} and {origin}");
            }
            endpoint.deregister(&local).expect("own registration");
        }
        let report = endpoint.report(connection).expect("open");
        assert!(report.rma_bytes > 0 && !report.rma_path.is_empty(), "{report:?}");
        endpoint.disconnect(connection).expect("a disconnect");
    }
}

#[test]
fn stopped_for_two_seconds_and_continued() {
    let _alone = alone();
    let mut peer = Peer::spawn(program(), "echo", &[]);
    let uri = peer.line();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let connection = world.connect_to(0, &uri, RO);
    let (mut sent, mut back) = (0u64, 0u64);
    let step = |sent: &mut u64, back: &mut u64| {
        let len = usize::try_from(*sent % 500).expect("small").max(8);
        match endpoint.send(connection, &pattern(*sent, len), Notify::OnFailure(0)) {
            Ok(()) => *sent += 1,
            Err(error) => assert_eq!(error, SendError::NoBuffers, "after {sent} messages"),
        }
        world.step();
        while world.waiting(0, EventKind::Recv) > 0 {
            let len = usize::try_from(*back % 500).expect("small").max(8);
            assert_eq!(world.message(0), pattern(*back, len), "message {back}");
            *back += 1;
        }
    };
    while back < 1000 {
        step(&mut sent, &mut back);
    }
    peer.signal(Signal::STOP);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        step(&mut sent, &mut back);
    }
    peer.signal(Signal::CONT);
    let before = back;
    while back < before + 1000 {
        step(&mut sent, &mut back);
    }
    world.until("the rest", || {
        while world.waiting(0, EventKind::Recv) > 0 {
            let len = usize::try_from(back % 500).expect("small").max(8);
            assert_eq!(world.message(0), pattern(back, len), "message {back}");
            back += 1;
        }
        back == sent
    });
}

#[test]
fn connect_to_a_process_that_is_gone_is_refused() {
    let _alone = alone();
    let mut peer = Peer::spawn(program(), "echo", &[]);
    let uri = peer.line();
    drop(peer);
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    endpoint.connect(&Connect::to(&uri).context(1).timeout(LIMIT)).expect("a connect");
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Err(Failure::Refused));
}

#[test]
fn handles_of_fresh_processes_differ() {
    let _alone = alone();
    let mut words = HashSet::new();
    for _ in 0..5 {
        let mut peer = Peer::spawn(program(), "handles", &[]);
        for _ in 0..4 {
            for word in peer.line().split(' ') {
                assert!(words.insert(word.to_owned()), "{word} came twice");
            }
        }
    }
}
