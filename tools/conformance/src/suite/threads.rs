//! Many threads, and endpoints for one thread.

use crate::memory::Origin;
use crate::world::{LIMIT, World, open, open_with, pattern, while_polled};
use cci::__binding::{Contract, Flags, Threading, set_threading};
use cci::{Attribute, Connection, Device, Endpoint, EventKind, Notify, PollError, Rights, Rma, SendError, Unusable};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

const RO: Attribute = Attribute::ReliableOrdered;

/// Sends, waiting for buffers.
fn send(endpoint: &Endpoint, connection: Connection, message: &[u8]) {
    let begun = Instant::now();
    while let Err(error) = endpoint.send(connection, message, Notify::OnFailure(0)) {
        assert_eq!(error, SendError::NoBuffers);
        assert!(begun.elapsed() < LIMIT, "no buffer comes free");
        // A send that waits is moved by the endpoint's progress.
        drop(endpoint.get_event().expect("usable"));
    }
}

/// Four threads poll one endpoint: every message is got by exactly one.
pub fn many_pollers(device: &Device) {
    const MESSAGES: u64 = 10_000;
    let (a, b) = (open(device), open(device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let seen: Vec<_> = (0..MESSAGES).map(|_| AtomicU8::new(0)).collect();
    let count = AtomicU64::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while count.load(Ordering::Relaxed) < MESSAGES && begun.elapsed() < LIMIT {
                    let Some(event) = b.get_event().expect("usable") else {
                        std::thread::yield_now();
                        continue;
                    };
                    let message = event.received().expect("a message").to_vec();
                    let number = u64::from_ne_bytes(message[..8].try_into().expect("8 bytes"));
                    assert_eq!(message[8..], pattern(number, 92));
                    seen[usize::try_from(number).expect("small")].fetch_add(1, Ordering::Relaxed);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for number in 0..MESSAGES {
            let message = [&number.to_ne_bytes()[..], &pattern(number, 92)].concat();
            send(&a, connection, &message);
        }
        while count.load(Ordering::Relaxed) < MESSAGES && begun.elapsed() < LIMIT {
            drop(a.get_event().expect("usable"));
        }
    });
    assert!(seen.iter().all(|times| times.load(Ordering::Relaxed) == 1), "not exactly once");
}

/// Four threads send on one connection: each one's messages arrive in its order.
pub fn many_senders(device: &Device) {
    const EACH: u64 = 2500;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let a = &a;
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut message = pattern(number, 100);
                    message[..8].copy_from_slice(&(thread << 32 | number).to_ne_bytes());
                    send(a, connection, &message);
                }
            });
        }
        let mut next = [0u64; 4];
        for _ in 0..4 * EACH {
            let message = world.message(1);
            let word = u64::from_ne_bytes(message[..8].try_into().expect("8 bytes"));
            let (thread, number) = (usize::try_from(word >> 32).expect("small"), word & 0xffff_ffff);
            assert_eq!(number, next[thread], "thread {thread}");
            assert_eq!(message[8..], pattern(number, 100)[8..]);
            next[thread] += 1;
        }
    });
}

/// Four threads write to their own parts of one registration over one connection.
pub fn many_rma(device: &Device) {
    const PART: usize = 10_000;
    let (a, b) = (open(device), open(device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let target = Origin::Program.allocate(4 * PART);
    let source = Origin::Program.allocate(4 * PART);
    let remote = b.register_memory(target.memory(), Rights::WRITE).expect("a registration");
    let local = a.register_memory(source.memory(), Rights::NONE).expect("a registration");
    let write = |thread: usize| {
        for round in 0..200u64 {
            source.write(thread * PART, &pattern(round * 4 + thread as u64, PART));
            let (offset, len) = ((thread * PART) as u64, PART as u64);
            let rma = Rma::new(&local, &remote, len).local_offset(offset).remote_offset(offset);
            a.rma(connection, &rma, 0, Flags::WRITE | Flags::BLOCKING).expect("a write");
        }
    };
    while_polled(&b, || {
        std::thread::scope(|scope| {
            let write = &write;
            (0..4).for_each(|thread| {
                scope.spawn(move || write(thread));
            });
        });
    });
    for thread in 0..4usize {
        assert_eq!(target.to_vec(thread * PART, PART), pattern(199 * 4 + thread as u64, PART), "thread {thread}");
    }
}

/// An endpoint for one thread refuses every other one, and serves its own on.
pub fn one_thread_only(device: &Device) {
    let (a, b) = (open_with(device, |options| set_threading(options, Threading::One)), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            assert_eq!(a.get_event().err(), Some(PollError::Unusable(Unusable::WrongThread)));
            let sent = a.send(connection, b"x", 0);
            assert_eq!(sent, Err(SendError::Unusable(Unusable::WrongThread)));
            assert!(a.disconnect(connection).is_err() && a.handle().is_err() && a.recv_buffers().is_err());
        });
        other.join().expect("the other thread");
    });
    assert_eq!(Unusable::WrongThread.status(), cci::Status::Inval);
    a.send(connection, b"own", 1).expect("a send");
    assert_eq!((world.message(1).as_slice(), world.sent(0)), (&b"own"[..], 1));
}

/// Events of an endpoint for one thread may be returned by any.
pub fn returned_by_another_thread_when_single(device: &Device) {
    let b = open_with(device, |options| {
        set_threading(options, Threading::One);
        options.recv_buffers = 16;
    });
    let a = open(device);
    let (world, connection, _) = World::joined([&a, &b], RO);
    for round in 0..100u64 {
        let events: Vec<_> = (0..16)
            .map(|_| {
                a.send(connection, &pattern(round, 200), Notify::OnFailure(0)).expect("a send");
                world.next(1, EventKind::Recv)
            })
            .collect();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for event in events {
                    assert_eq!(event.received().expect("a message").to_vec(), pattern(round, 200));
                    drop(event);
                }
            });
        });
    }
}

/// Endpoints are opened, used and closed by several threads at once.
pub fn open_and_close(device: &Device) {
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                for round in 0..20u64 {
                    let (a, b) = (open(device), open(device));
                    let (world, connection, _) = World::joined([&a, &b], RO);
                    a.send(connection, &pattern(thread * 100 + round, 500), Notify::OnFailure(0)).expect("a send");
                    assert_eq!(world.message(1), pattern(thread * 100 + round, 500));
                }
            });
        }
    });
}
