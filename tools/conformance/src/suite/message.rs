//! Send and receive: lengths, flags, payloads.

use super::lengths;
use crate::sys::RawEvent;
use crate::world::{LIMIT, World, most, open, pattern, while_polled};
use cci::__binding::{Contract, Flags};
use cci::{Attribute, Device, EventKind, Notify, SendError};
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};

const RO: Attribute = Attribute::ReliableOrdered;

/// So many bytes and fewer are tried one by one.
const SMALL: usize = 600;

/// Messages of every length up to the maximum (`lengths`) arrive intact, either way, on every kind
/// of connection.
pub fn every_length(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for attribute in [RO, Attribute::ReliableUnordered, Attribute::Unreliable] {
        let (to_b, to_a) = world.connect(0, 1, attribute);
        for len in lengths(device, SMALL, most(to_b)) {
            let message = pattern(len as u64, len);
            a.send(to_b, &message, len as u64).expect("a send");
            assert_eq!(world.message(1), message, "{len} bytes, {attribute:?}");
            assert_eq!(world.sent(0), len as u64);
            b.send(to_a, &message, len as u64).expect("a send");
            assert_eq!(world.message(0), message, "{len} bytes back, {attribute:?}");
            assert_eq!(world.sent(1), len as u64);
        }
    }
}

/// One byte more than the maximum is refused, and nothing is sent.
pub fn too_long(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for attribute in [RO, Attribute::ReliableUnordered, Attribute::Unreliable] {
        let (connection, _) = world.connect(0, 1, attribute);
        let message = vec![7; most(connection) + 1];
        for flags in [Flags::NONE, Flags::SILENT, Flags::BLOCKING] {
            assert_eq!(a.send_flags(connection, &message, 1, flags), Err(SendError::TooLong.into()));
        }
        a.send(connection, b"next", 2).expect("a send");
        assert_eq!((world.message(1).as_slice(), world.sent(0)), (&b"next"[..], 2));
    }
    assert_eq!(SendError::TooLong.status(), cci::Status::MsgSize);
}

/// A message gathered from parts arrives as their concatenation.
pub fn vectored(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..300u64 {
        let len = random.usize(0..=most(connection));
        let message = pattern(round, len);
        let mut cuts: Vec<_> = (0..random.usize(0..9)).map(|_| random.usize(0..=len)).collect();
        cuts.extend([0, len]);
        cuts.sort_unstable();
        let parts: Vec<_> = cuts.windows(2).map(|cut| IoSlice::new(&message[cut[0]..cut[1]])).collect();
        a.send_vectored(connection, &parts, round).expect("a send");
        assert_eq!(world.message(1), message, "cut at {cuts:?}");
        assert_eq!(world.sent(0), round);
    }
    let bytes = pattern(1, 512);
    let single: Vec<_> = bytes.iter().map(|byte| IoSlice::new(std::slice::from_ref(byte))).collect();
    a.send_vectored(connection, &single[..most(connection).min(512)], 0).expect("a send");
    assert_eq!(world.message(1), bytes[..most(connection).min(512)]);
}

/// Parts that together are longer than the maximum are refused.
pub fn vectored_too_long(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let half = vec![1; most(connection) / 2 + 1];
    let parts = [IoSlice::new(&half), IoSlice::new(&half)];
    assert_eq!(a.send_vectored(connection, &parts, 1), Err(SendError::TooLong));
    a.send(connection, b"next", 2).expect("a send");
    assert_eq!((world.message(1).as_slice(), world.sent(0)), (&b"next"[..], 2));
}

/// An empty message, and one of no parts or empty parts, arrive with length 0.
pub fn empty_messages(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, accepted) = World::joined([&a, &b], RO);
    a.send(connection, b"", 1).expect("a send");
    a.send_vectored(connection, &[], 2).expect("a send");
    a.send_vectored(connection, &[IoSlice::new(b""), IoSlice::new(b"")], 3).expect("a send");
    for context in 1..=3 {
        let event = world.next(1, EventKind::Recv);
        assert!(event.received().expect("a message").is_empty());
        assert_eq!(event.connection(), Some(accepted));
        assert_eq!(world.sent(0), context);
    }
}

/// Every bit of a context comes back.
pub fn every_context(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let contexts = (0..64).map(|bit| 1u64 << bit).chain([0, u64::MAX]);
    for context in contexts {
        a.send(connection, b"x", context).expect("a send");
        assert_eq!(world.sent(0), context);
        assert_eq!(world.message(1), b"x");
    }
}

/// SILENT gives no event; the sends around it do.
pub fn silent(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for round in 0..100u64 {
        a.send(connection, b"quiet", Notify::OnFailure(u64::MAX)).expect("a send");
        a.send(connection, b"loud", round).expect("a send");
        assert_eq!(world.message(1), b"quiet");
        assert_eq!(world.message(1), b"loud");
        // On RO completions come in order, so an event of the silent one would be first.
        let event = world.first(0);
        assert_eq!((event.kind(), event.context()), (EventKind::Send, round));
    }
}

/// BLOCKING returns when the message has been taken over, without an event.
pub fn blocking(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    while_polled(&b, || {
        a.send_flags(connection, b"first", 1, Flags::BLOCKING).expect("a send");
        a.send_flags(connection, b"second", 2, Flags::BLOCKING | Flags::SILENT).expect("a send");
    });
    a.send(connection, b"third", 3).expect("a send");
    let event = world.first(0);
    assert_eq!((event.kind(), event.context()), (EventKind::Send, 3));
}

/// BLOCKING sends of many messages wait for room, while another thread takes them slowly.
pub fn blocking_many_ways(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for attribute in [RO, Attribute::ReliableUnordered] {
        let (connection, _) = world.connect(0, 1, attribute);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let begun = std::time::Instant::now();
                let mut taken = 0u64;
                // Until the sender has ended, not until the last has come: its acknowledgement may
                // be lost.
                while begun.elapsed() < LIMIT {
                    let is_over = over.load(Ordering::Acquire);
                    match b.get_event() {
                        Ok(Some(event)) => taken += u64::from(event.received().is_some()),
                        _ if is_over => break,
                        _ => {}
                    }
                }
                taken
            });
            let message = pattern(1, most(connection));
            let outcome = (0..1000).try_for_each(|_| a.send_flags(connection, &message, 0, Flags::BLOCKING));
            over.store(true, Ordering::Release);
            assert_eq!((outcome, receiver.join().expect("the receiver")), (Ok(()), 1000));
        });
        assert!(!world.poll(0), "BLOCKING gives no event");
    }
}

/// NO_COPY sends the bytes that stand there; with SILENT only on RO.
pub fn no_copy(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for attribute in [RO, Attribute::ReliableUnordered, Attribute::Unreliable] {
        let (connection, _) = world.connect(0, 1, attribute);
        let message = pattern(3, most(connection));
        a.send_flags(connection, &message, 1, Flags::NO_COPY).expect("a send");
        assert_eq!(world.message(1), message);
        assert_eq!(world.sent(0), 1);
        let both = a.send_flags(connection, &message, 2, Flags::NO_COPY | Flags::SILENT);
        if attribute == RO {
            assert_eq!(both, Ok(()));
            assert_eq!(world.message(1), message);
        } else {
            assert_eq!(both, Err(SendError::BadFlags.into()));
        }
    }
}

/// Flags of RMA do not fit a send.
pub fn foreign_flags(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for flag in [Flags::READ, Flags::WRITE, Flags::FENCE] {
        assert_eq!(a.send_flags(connection, b"x", 1, flag), Err(SendError::BadFlags.into()), "{flag:?}");
    }
    a.send(connection, b"next", 2).expect("a send");
    assert_eq!((world.message(1).as_slice(), world.sent(0)), (&b"next"[..], 2));
}

/// A zero byte follows every payload, whatever the slot held before.
pub fn zero_byte_after_payload(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let most = most(connection);
    // A long message of ones first, so that every slot has been full once.
    for len in lengths(device, SMALL, most).into_iter().flat_map(|len| [most, len]) {
        a.send(connection, &vec![0xff; len], Notify::OnFailure(0)).expect("a send");
        let payload = RawEvent::of(world.next(1, EventKind::Recv)).take_apart();
        assert_eq!((payload.bytes.len(), payload.after), (len, 0), "{len} bytes");
        assert!(payload.bytes.iter().all(|byte| *byte == 0xff));
    }
}

/// A payload of at least one byte is 8-byte aligned.
pub fn payload_is_aligned(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for len in lengths(device, SMALL, most(connection)).into_iter().filter(|len| *len > 0) {
        a.send(connection, &vec![1; len], Notify::OnFailure(0)).expect("a send");
        let payload = RawEvent::of(world.next(1, EventKind::Recv)).take_apart();
        assert!(payload.address.is_multiple_of(8), "{len} bytes at {:#x}", payload.address);
    }
}

/// Programs write into what they receive; later messages are not spoilt.
pub fn payload_is_writable(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let lengths = lengths(device, SMALL, most(connection));
    for (round, len) in (0..500u64).zip(lengths.into_iter().cycle()) {
        let message = pattern(round, len);
        a.send(connection, &message, Notify::OnFailure(0)).expect("a send");
        assert_eq!(RawEvent::of(world.next(1, EventKind::Recv)).overwrite(0xa5), message);
    }
}

/// 8,192 sends with none reaped, of short messages and of the longest; then they arrive in order.
pub fn many_outstanding(device: &Device) {
    const COUNT: u64 = 8192;
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for len in [64, most(connection)] {
        let mut message = pattern(1, len);
        for number in 0..COUNT {
            message[..8].copy_from_slice(&number.to_ne_bytes());
            a.send(connection, &message, number)
                .unwrap_or_else(|error| panic!("number {number} of {len} bytes with none reaped: {error}"));
        }
        for number in 0..COUNT {
            message[..8].copy_from_slice(&number.to_ne_bytes());
            assert!(world.message(1) == message, "number {number} of {len} bytes");
            assert_eq!(world.sent(0), number);
        }
    }
}
