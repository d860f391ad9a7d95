//! Atomic operations on words of a peer's memory.

use super::handle::wait_for;
use super::rma::Ranges;
use crate::memory::Origin;
use crate::world::{World, open, pattern};
use cci::__binding::Contract;
use cci::{Atomic, Attribute, Device, EventKind, Failure, Rights, Rma, RmaError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const RO: Attribute = Attribute::ReliableOrdered;
const LEN: usize = 64;
const BOTH: Rights = Rights::READ_WRITE;

fn compare_swap(expected: u64, desired: u64) -> Atomic {
    Atomic::CompareSwap { expected, desired }
}

/// The bytes of a number, as a word of that length.
fn bytes(value: u64, len: usize) -> Vec<u8> {
    Atomic::bytes(value, len as u64)[..len].to_vec()
}

/// Each operation, on both words, at each offset, in all memories: the word, its neighbours, and
/// the old value.
pub fn each_operation(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for attribute in [RO, Attribute::ReliableUnordered] {
        let (connection, _) = world.connect(0, 1, attribute);
        for (origin, len) in Origin::ALL.into_iter().flat_map(|origin| [(origin, 4), (origin, 8)]) {
            let ranges = Ranges::new(&a, &b, [origin; 2], LEN, BOTH);
            let top = if len == 4 { u64::from(u32::MAX) } else { u64::MAX };
            let cases = [
                (Atomic::FetchAdd(5), 7, 12),
                (Atomic::FetchAdd(u64::MAX), 7, 6),
                (Atomic::FetchAdd(2), top, 1),
                (compare_swap(7, 9), 7, 9),
                (compare_swap(8, 9), 7, 7),
                (compare_swap(top, 0), top, 0),
            ];
            for (number, (atomic, before, after)) in cases.into_iter().enumerate() {
                let at = len * (number % (LEN / len));
                let what = format!("{atomic:?} of {before}, {len} bytes at {at}, {origin:?}, {attribute:?}");
                let mut expected = pattern(2, LEN);
                expected[at..at + len].copy_from_slice(&bytes(before, len));
                ranges.target.write(0, &expected);
                ranges.source.write(0, &pattern(1, LEN));
                // The old value may go to any address.
                let rma = ranges.rma(3, at as u64, len as u64).message(&b"changed"[..]);
                a.atomic(connection, &rma.atomic(atomic), 4).unwrap_or_else(|why| panic!("{what}: {why}"));
                assert_eq!(world.message(1), b"changed", "{what}");
                assert_eq!(world.sent(0), 4, "{what}");
                expected[at..at + len].copy_from_slice(&bytes(after, len));
                assert_eq!(ranges.target.to_vec(0, LEN), expected, "{what}");
                let mut local = pattern(1, LEN);
                local[3..3 + len].copy_from_slice(&bytes(before, len));
                assert_eq!(ranges.source.to_vec(0, LEN), local, "{what}");
            }
        }
    }
}

/// Without both rights, beyond the range, or at an address that is no multiple of the length
/// nothing is changed.
pub fn refused_words(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for origin in Origin::ALL {
        let fails = |rights: Rights, at: u64, len: u64| {
            let ranges = Ranges::new(&a, &b, [origin; 2], LEN, rights);
            ranges.target.write(0, &pattern(2, LEN));
            ranges.source.write(0, &pattern(1, LEN));
            a.atomic(connection, &ranges.rma(0, at, len).atomic(Atomic::FetchAdd(1)), 5).expect("it begins");
            let event = world.next(0, EventKind::Send);
            let what = format!("{len} bytes at {at} with {rights:?}, {origin:?}");
            assert_eq!((event.outcome(), event.context()), (Err(Failure::RemoteHandle), 5), "{what}");
            assert_eq!(ranges.target.to_vec(0, LEN), pattern(2, LEN), "{what}");
            assert_eq!(ranges.source.to_vec(0, LEN), pattern(1, LEN), "{what}");
        };
        for rights in [Rights::NONE, Rights::READ, Rights::WRITE] {
            fails(rights, 8, 8);
        }
        for (at, len) in [(4, 8), (2, 4), (1, 4), (60, 8), (64, 4), (u64::MAX - 3, 8)] {
            fails(BOTH, at, len);
        }
        let ranges = Ranges::new(&a, &b, [origin; 2], LEN, BOTH);
        b.deregister(&ranges.remote).expect("a registration");
        a.atomic(connection, &ranges.rma(0, 0, 8).atomic(Atomic::FetchAdd(1)), 6).expect("it begins");
        assert_eq!(world.next(0, EventKind::Send).outcome(), Err(Failure::RemoteHandle));
    }
}

/// What is wrong on this side is refused at once.
pub fn refused_at_once(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let ranges = Ranges::new(&a, &b, [Origin::Program; 2], LEN, BOTH);
    let refused = |rma: &Rma<'_>| a.atomic(connection, &rma.atomic(Atomic::FetchAdd(1)), 1).expect_err("refused");
    for len in [1, 2, 3, 5, 16, LEN as u64] {
        assert_eq!(refused(&ranges.rma(0, 0, len)), RmaError::WordLength, "{len} bytes");
    }
    assert_eq!(refused(&ranges.rma(0, 0, 0)), RmaError::ZeroLength);
    assert_eq!(refused(&ranges.rma(LEN as u64 - 3, 0, 4)), RmaError::LocalHandle);
    let (unreliable, _) = world.connect(0, 1, Attribute::Unreliable);
    let error = a.atomic(unreliable, &ranges.rma(0, 0, 8).atomic(Atomic::FetchAdd(1)), 1);
    assert_eq!(error, Err(RmaError::Unreliable));
    a.disconnect(connection).expect("a connection");
    assert_eq!(refused(&ranges.rma(0, 0, 8)), RmaError::Disconnected);
}

/// Operations of two peers and of the owner's own program: none is lost, and each of the peers'
/// brings a value of its own.
pub fn all_agree(device: &Device) {
    const COUNT: u64 = 300;
    let (a, b, c) = (open(device), open(device), open(device));
    let world = World::new([&a, &b, &c]);
    let clients = [world.connect(0, 1, RO).0, world.connect(2, 1, RO).0];
    let words: Arc<[AtomicU64]> = (0..2).map(|_| AtomicU64::new(0)).collect();
    let target = b.register(Arc::clone(&words), BOTH).expect("a registration");
    let locals = [&a, &c].map(|end| end.register(vec![0; 8 * COUNT as usize], Rights::NONE).expect("a registration"));
    let over = AtomicBool::new(false);
    let own = std::thread::scope(|scope| {
        let owner = scope.spawn(|| {
            let mut count = 0;
            while !over.load(Ordering::Relaxed) {
                words[1].fetch_add(1, Ordering::Relaxed);
                count += 1;
                std::thread::yield_now();
            }
            count
        });
        let (mut begun, mut ended) = ([0; 2], 0);
        world.until("all operations", || {
            for (client, (end, connection)) in [&a, &c].into_iter().zip(clients).enumerate() {
                let rma = Rma::new(locals[client].handle(), target.handle(), 8).remote_offset(8);
                let rma = rma.local_offset(8 * begun[client]);
                if begun[client] < COUNT && end.atomic(connection, &rma.atomic(Atomic::FetchAdd(1)), 1).is_ok() {
                    begun[client] += 1;
                }
                while world.waiting(2 * client, EventKind::Send) > 0 {
                    assert_eq!(world.next(2 * client, EventKind::Send).outcome(), Ok(()));
                    ended += 1;
                }
            }
            ended == 2 * COUNT
        });
        over.store(true, Ordering::Relaxed);
        owner.join().expect("the owner")
    });
    assert_eq!((words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed)), (0, 2 * COUNT + own));
    let values: BTreeSet<u64> = locals
        .iter()
        .flat_map(|local| local.to_vec(0, 8 * COUNT as usize).expect("all of it").as_chunks::<8>().0.to_vec())
        .map(u64::from_ne_bytes)
        .collect();
    assert_eq!(values.len() as u64, 2 * COUNT, "two operations brought one value");
}

/// A fenced one comes after the write before it, and before the one behind it.
pub fn fenced(device: &Device) {
    const BIG: usize = 2 << 20;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], Attribute::ReliableUnordered);
    let big = Ranges::new(&a, &b, [Origin::Program; 2], BIG, BOTH);
    let word = Ranges::new(&a, &b, [Origin::Program; 2], 16, BOTH);
    for round in 1..5_u64 {
        big.source.write(0, &pattern(round, BIG));
        word.target.write(0, &bytes(round, 8));
        a.write(connection, &big.rma(0, 0, BIG as u64), 1).expect("a write");
        a.atomic(connection, &word.rma(0, 0, 8).fence().atomic(Atomic::FetchAdd(100)), 2).expect("an atomic operation");
        a.atomic(connection, &word.rma(8, 0, 8).message(&b"all"[..]).atomic(Atomic::FetchAdd(0)), 3).expect("another");
        assert_eq!(world.message(1), b"all");
        assert!(big.target.to_vec(0, BIG) == pattern(round, BIG), "the fence passed a write");
        let mut contexts = [world.sent(0), world.sent(0), world.sent(0)];
        contexts.sort_unstable();
        assert_eq!(contexts, [1, 2, 3]);
        assert_eq!(word.source.to_vec(0, 16), [bytes(round, 8), bytes(round + 100, 8)].concat());
    }
}

/// A call that waits has the value when it returns, also on an endpoint connected to itself.
pub fn blocking(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (_world, connection, _) = World::joined([&a, &b], RO);
    let ranges = Ranges::new(&a, &b, [Origin::Program; 2], 8, BOTH);
    ranges.target.write(0, &bytes(40, 8));
    let taken = crate::world::while_polled(&b, || {
        a.atomic_blocking(connection, &ranges.rma(0, 0, 8).atomic(Atomic::FetchAdd(2)))
    });
    assert_eq!((taken, ranges.source.to_vec(0, 8)), (Ok(()), bytes(40, 8)));
    let alone = World::new([&a]);
    let (itself, _) = alone.connect(0, 0, RO);
    let own = Ranges::new(&a, &a, [Origin::Program; 2], 8, BOTH);
    own.target.write(0, &bytes(7, 8));
    a.atomic_blocking(itself, &own.rma(0, 0, 8).atomic(compare_swap(7, 8))).expect("swapped");
    assert_eq!((own.source.to_vec(0, 8), own.target.to_vec(0, 8)), (bytes(7, 8), bytes(8, 8)));
}

/// Two that sleep between events wake each other: the word changes, its message and its end come.
pub fn sleepers_wake(device: &Device) {
    let (a, b) = (open(device), open(device));
    let handles = (a.handle().expect("a handle"), b.handle().expect("a handle"));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    for origin in Origin::ALL {
        let ranges = Ranges::new(&a, &b, [origin; 2], 8, BOTH);
        ranges.target.write(0, &bytes(1, 8));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let message = wait_for(&b, &handles.1, EventKind::Recv);
                assert_eq!(message.received().expect("a message").to_vec(), b"changed");
            });
            let rma = ranges.rma(0, 0, 8).message(&b"changed"[..]);
            a.atomic(connection, &rma.atomic(Atomic::FetchAdd(1)), 8).expect("an atomic operation");
            let event = wait_for(&a, &handles.0, EventKind::Send);
            assert_eq!((event.outcome(), event.context()), (Ok(()), 8));
        });
        assert_eq!(ranges.target.to_vec(0, 8), bytes(2, 8), "{origin:?}");
    }
}
