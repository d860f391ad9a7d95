//! Registered memory of `sm` under fire: never written after deregister has returned, and cut
//! copies end with a failure.

use crate::program;
use cci::__binding::{Contract, Flags};
use cci::{Attribute, EventKind, Failure, Notify, RegisterError, Rights, Rma};
use cci_conformance::memory::Origin;
use cci_conformance::sys::PrivateMemory;
use cci_conformance::{LIMIT, Peer, World, alone, open, pattern, sm_device};
use rustix::process::Signal;
use std::time::Instant;

const LEN: usize = 256 << 10;

/// Deregister, free and reuse in a loop against two writers that never stop.
#[test]
fn deregistered_memory_is_never_written() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let mut writers: Vec<_> = (0..2).map(|_| Peer::spawn(program(), "writer", &[endpoint.uri()])).collect();
    let connections = [world.accept(0), world.accept(0)];
    for writer in &mut writers {
        assert_eq!(writer.line_while(|| world.step()), "connected");
    }
    for origin in Origin::ALL {
        let memory = origin.allocate(LEN);
        for round in 0..100u8 {
            let handle = endpoint.register_memory(memory.memory(), Rights::WRITE).expect("a registration");
            memory.write(0, &vec![0; LEN]);
            let message = [&handle.to_bytes()[..], &(LEN as u64).to_ne_bytes()].concat();
            for connection in connections {
                endpoint.send(connection, &message, Notify::OnFailure(0)).expect("a send");
            }
            world.until("a write", || memory.to_vec(0, LEN).contains(&0xff));
            let begun = Instant::now();
            while let Err(error) = endpoint.deregister(&handle) {
                assert_eq!(error, RegisterError::Busy);
                assert!(begun.elapsed() < LIMIT, "busy for ever");
            }
            // The memory is the program's alone now: no byte of this may change.
            let own = vec![round & 0x7f; LEN];
            memory.write(0, &own);
            for _ in 0..3 {
                (0..30).for_each(|_| world.step());
                assert!(memory.to_vec(0, LEN) == own, "written after deregister, round {round}, {origin:?}");
            }
        }
    }
}

/// A peer stopped in the midst of copying holds the registration: deregister says Busy or waits,
/// and never lets the peer write later.
#[test]
fn stopped_writer_never_writes_after_deregister() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let mut writer = Peer::spawn(program(), "writer", &[endpoint.uri()]);
    let connection = world.accept(0);
    assert_eq!(writer.line_while(|| world.step()), "connected");
    let memory = Origin::Library.allocate(LEN);
    for round in 0..15u8 {
        let handle = endpoint.register_memory(memory.memory(), Rights::WRITE).expect("a registration");
        memory.write(0, &vec![0; LEN]);
        let message = [&handle.to_bytes()[..], &(LEN as u64).to_ne_bytes()].concat();
        endpoint.send(connection, &message, Notify::OnFailure(0)).expect("a send");
        world.until("a write", || memory.to_vec(0, LEN).contains(&0xff));
        writer.signal(Signal::STOP);
        let stopped = endpoint.deregister(&handle);
        let own = vec![round; LEN];
        if stopped.is_ok() {
            memory.write(0, &own);
        }
        writer.signal(Signal::CONT);
        if let Err(error) = stopped {
            assert_eq!(error, RegisterError::Busy);
            let begun = Instant::now();
            while endpoint.deregister(&handle).is_err() {
                assert!(begun.elapsed() < LIMIT, "busy for ever");
            }
            memory.write(0, &own);
        }
        (0..100).for_each(|_| world.step());
        assert!(memory.to_vec(0, LEN) == own, "written after deregister, round {round}");
    }
}

/// A target whose pages are gone: the copy ends with the failure, and the connection lives.
#[test]
fn copies_across_unmapped_pages_fail() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], Attribute::ReliableOrdered);
    let mut cut = PrivateMemory::new(8 << 20);
    let whole = Origin::Program.allocate(8 << 20);
    whole.write(0, &pattern(1, 8 << 20));
    let local = a.register_memory(whole.memory(), Rights::NONE).expect("a registration");
    let remote = b.register_memory(cut.memory(), Rights::READ_WRITE).expect("a registration");
    cut.unmap_from(3 << 20);
    for flags in [Flags::WRITE, Flags::READ] {
        for (offset, len) in [(0, 8 << 20), (2 << 20, 2 << 20), (4 << 20, 64), ((3 << 20) - 1, 2)] {
            let rma = Rma::new(&local, &remote, len).remote_offset(offset).message(&b"no"[..]);
            a.rma(connection, &rma, 1, flags).expect("an RMA");
            let event = world.next(0, EventKind::Send);
            assert_eq!((event.outcome(), event.context()), (Err(Failure::Copy), 1), "{len} bytes at {offset}");
        }
        let fits = Rma::new(&local, &remote, 3 << 20).message(&b"yes"[..]);
        a.rma(connection, &fits, 2, flags).expect("an RMA");
        assert_eq!((world.sent(0), world.message(1).as_slice()), (2, &b"yes"[..]));
    }
}
