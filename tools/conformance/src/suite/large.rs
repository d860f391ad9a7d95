//! Messages longer than the connection's maximum, each as one event.

use super::handle::wait_for;
use crate::world::{World, drain, most, open, open_with, pattern};
use cci::{
    Attribute, BlockingError, Device, Endpoint, Event, EventKind, Failure, HeapBytes, Memory, Notify, SendError,
};
use std::sync::Arc;

const RO: Attribute = Attribute::ReliableOrdered;
const RU: Attribute = Attribute::ReliableUnordered;
const LIMIT: u64 = 16 << 20;

fn memory(number: u64, len: usize) -> Memory {
    Memory::of_bytes(&Arc::new(HeapBytes::new(pattern(number, len))))
}

/// An endpoint that allows large messages of so many bytes.
fn allowing(device: &Device, limit: u64) -> Endpoint {
    let endpoint = open(device);
    endpoint.set_large_limit(limit).expect("usable");
    endpoint
}

/// Every length at which something changes, the short ones too. Bytes are shown in place where no
/// peer can write them any more.
pub fn every_length(device: &Device) {
    let (a, b) = (open(device), allowing(device, LIMIT));
    let world = World::new([&a, &b]);
    for attribute in [RO, RU] {
        let (connection, _) = world.connect(0, 1, attribute);
        let most = most(connection);
        for len in [0, 1, most - 1, most, most + 1, 2 * most + 7, 100_000, (1 << 20) + 3, 5 << 20] {
            a.send_large(connection, &memory(len as u64, len), 7).expect("a send");
            let event = world.next(1, EventKind::Recv);
            let message = event.received().expect("a message");
            assert_eq!(message.len(), len, "{attribute:?}");
            assert!(message.to_vec() == pattern(len as u64, len), "{len} bytes, {attribute:?}");
            let can_be_written = super::carrier(device) == "sm";
            assert!(len <= most || message.bytes().is_none() == can_be_written, "{len} bytes in place");
            assert_eq!(world.sent(0), 7);
        }
    }
}

/// Between other messages, without waiting: on an ordered connection everything comes in order.
pub fn among_others(device: &Device) {
    let (a, b) = (open(device), allowing(device, LIMIT));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let len =
        |number: u64| if number.is_multiple_of(3) { 30_000 + number as usize } else { 40 * (number % 5) as usize };
    for number in 0..60 {
        if number % 3 == 0 {
            a.send_large(connection, &memory(number, len(number)), number).expect("a send");
        } else {
            a.send(connection, &pattern(number, len(number)), number).expect("a send");
        }
    }
    for number in 0..60 {
        assert!(world.message(1) == pattern(number, len(number)), "message {number}");
    }
    (0..60).for_each(|number| assert_eq!(world.sent(0), number, "completions in order"));
}

/// On an unordered connection all come, once.
pub fn many_at_once(device: &Device) {
    const COUNT: usize = 200;
    let (a, b) = (open(device), allowing(device, 1 << 20));
    let (world, connection, _) = World::joined([&a, &b], RU);
    for number in 0..COUNT {
        a.send_large(connection, &memory(number as u64, 60_000 + number), 1).expect("a send");
    }
    let mut seen = [false; COUNT];
    for _ in 0..COUNT {
        let message = world.message(1);
        let number = message.len() - 60_000;
        assert!(message == pattern(number as u64, message.len()) && !std::mem::replace(&mut seen[number], true));
    }
    (0..COUNT).for_each(|_| assert_eq!(world.sent(0), 1));
}

/// Both sides at once, over one connection, each with room for one message: neither waits for the
/// other for ever.
pub fn both_ways(device: &Device) {
    const LEN: usize = 300_000;
    let (a, b) = (allowing(device, LEN as u64), allowing(device, LEN as u64));
    let world = World::new([&a, &b]);
    for attribute in [RO, RU] {
        let (from_a, from_b) = world.connect(0, 1, attribute);
        for number in 0..5 {
            a.send_large(from_a, &memory(number, LEN), number).expect("a send");
            b.send_large(from_b, &memory(100 + number, LEN), number).expect("a send");
        }
        for number in 0..5 {
            let (to_b, to_a) = (world.message(1), world.message(0));
            if attribute == RO {
                assert!(to_b == pattern(number, LEN) && to_a == pattern(100 + number, LEN));
            }
            assert_eq!((to_b.len(), to_a.len()), (LEN, LEN));
        }
        for _ in 0..5 {
            world.sent(0);
            world.sent(1);
        }
    }
}

/// While the program holds what it allows, the next message waits; others pass, on other
/// connections and of other peers.
pub fn waits_for_room(device: &Device) {
    const LEN: usize = 200_000;
    let (a, b, c) = (open(device), allowing(device, LEN as u64), open(device));
    let world = World::new([&a, &b, &c]);
    for attribute in [RO, RU] {
        let ((first, _), (second, _), (third, _)) =
            (world.connect(0, 1, attribute), world.connect(0, 1, attribute), world.connect(2, 1, RO));
        for number in 0..3 {
            a.send_large(first, &memory(number, LEN), number).expect("a send");
        }
        let mut held = world.next(1, EventKind::Recv);
        for number in 0..3 {
            let message = held.received().expect("a message").to_vec();
            let is_it = |of: &u64| (attribute == RU || *of == number) && message == pattern(*of, LEN);
            let of = (0..3).find(is_it).expect("one of the messages");
            assert_eq!(world.sent(0), of);
            for round in 0..20 {
                a.send(second, &pattern(round, 100), 9).expect("a send");
                assert_eq!((world.message(1), world.sent(0)), (pattern(round, 100), 9), "another connection");
                c.send(third, &pattern(round, 100), 9).expect("a send");
                assert_eq!((world.message(1), world.sent(2)), (pattern(round, 100), 9), "another peer");
            }
            assert_eq!((world.waiting(1, EventKind::Recv), world.waiting(0, EventKind::Send)), (0, 0));
            drop(held);
            if number == 2 {
                break;
            }
            held = world.next(1, EventKind::Recv);
        }
    }
}

/// What the receiver does not allow ends with a failure, at once or as an event, and nothing else
/// happens.
pub fn refused(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let fails = |len: usize| {
        a.send_large(connection, &memory(1, len), 4).expect("a send");
        let failure = world.next(0, EventKind::Send).outcome().expect_err("refused");
        assert_eq!(failure, Failure::TooLong, "{len} bytes");
        assert!(failure.to_string().contains("longer than the receiver allows"), "{failure}");
        a.send(connection, b"alive", 5).expect("a send");
        assert_eq!((world.message(1).as_slice(), world.sent(0)), (&b"alive"[..], 5));
    };
    fails(100_000);
    b.set_large_limit(100_000).expect("usable");
    fails(100_001);
    a.send_large(connection, &memory(1, 100_000), 6).expect("a send");
    assert_eq!((world.message(1) == pattern(1, 100_000), world.sent(0)), (true, 6));
    b.set_large_limit(0).expect("usable");
    fails(100_000);
    let (unreliable, _) = world.connect(0, 1, Attribute::Unreliable);
    let long = memory(1, most(unreliable) + 1);
    assert_eq!(a.send_large(unreliable, &long, 1), Err(SendError::TooLong));
    a.disconnect(connection).expect("a connection");
    assert_eq!(a.send_large(connection, &long, 1), Err(SendError::Disconnected));
}

/// A sender or a receiver that goes away in the middle: what is open ends once, and the room is
/// there for others.
pub fn peer_goes_away(device: &Device) {
    const LEN: usize = 400_000;
    let b = allowing(device, LEN as u64);
    for round in 0..6 {
        let (a, c) = (open(device), allowing(device, LEN as u64));
        let mut ends = {
            let world = World::new([&a, &b, &c]);
            let ((first, _), (second, _)) = (world.connect(0, 1, RO), world.connect(0, 2, RU));
            for _ in 0..3 {
                a.send_large(first, &memory(round, LEN), 1).expect("a send");
                a.send_large(second, &memory(round, LEN), 2).expect("a send");
            }
            drop((world.next(1, EventKind::Recv), world.next(2, EventKind::Recv)));
            if round % 2 == 0 {
                // The next ones get on their way.
                world.step();
            }
            if round % 3 == 0 {
                a.disconnect(first).expect("a connection");
            }
            world.waiting(0, EventKind::Send)
        };
        c.close().expect("it closes");
        while ends < 6 {
            while let Ok(Some(event)) = a.get_event() {
                if event.kind() == EventKind::Send {
                    ends += 1;
                    let outcome = event.outcome();
                    assert!(matches!(outcome, Ok(()) | Err(Failure::Disconnected)), "{outcome:?}");
                }
            }
            drain(&b);
        }
        a.close().expect("it closes");
        drain(&b);
    }
    // All of it is there again.
    let d = open(device);
    let (world, connection, _) = World::joined([&d, &b], RO);
    d.send_large(connection, &memory(9, LEN), 3).expect("a send");
    assert_eq!((world.message(1) == pattern(9, LEN), world.sent(0)), (true, 3));
}

/// Silently, and blocking, by a thread of its own.
pub fn silent_and_blocking(device: &Device) {
    let (a, b) = (open(device), allowing(device, LIMIT));
    let (world, connection, _) = World::joined([&a, &b], RO);
    a.send_large(connection, &memory(1, 70_000), Notify::OnFailure(1)).expect("a send");
    a.send_large(connection, &memory(2, 1 << 30), Notify::OnFailure(2)).expect("a send");
    assert!(world.message(1) == pattern(1, 70_000));
    let failed = world.next(0, EventKind::Send);
    assert_eq!(failed.outcome(), Err(Failure::TooLong));
    assert!(matches!(failed, Event::Completed(ref sent) if sent.context() == 2));
    let (sent, refused) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let sent = a.send_large_blocking(connection, &memory(3, 90_000));
            (sent, a.send_large_blocking(connection, &memory(4, 20 << 20)))
        });
        let mut message = None;
        while !sender.is_finished() {
            if let Ok(Some(event)) = b.get_event()
                && let Some(received) = event.received()
            {
                message = Some(received.to_vec());
            }
        }
        assert!(message.or_else(|| Some(world.message(1))) == Some(pattern(3, 90_000)));
        sender.join().expect("the sender")
    });
    assert_eq!((sent, refused), (Ok(()), Err(BlockingError::Failed(Failure::TooLong))));
}

/// Sender and receiver sleep on their handles, and the receiver keeps each message for a while.
pub fn sleepers_wake(device: &Device) {
    const LEN: usize = 150_000;
    const COUNT: u64 = 15;
    let (a, b) = (open(device), allowing(device, LEN as u64));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let handle = b.handle().expect("a handle");
            for number in 0..COUNT {
                let event = wait_for(&b, &handle, EventKind::Recv);
                assert!(event.received().expect("a message").to_vec() == pattern(number, LEN));
                std::thread::sleep(std::time::Duration::from_millis(number % 4));
                drop(event);
            }
            // The sender's last answer may still be on its way.
            drain(&b);
        });
        let handle = a.handle().expect("a handle");
        for number in 0..COUNT {
            a.send_large(connection, &memory(number, LEN), number).expect("a send");
        }
        for number in 0..COUNT {
            let sent = wait_for(&a, &handle, EventKind::Send);
            assert!(matches!(sent, Event::Completed(ref sent) if sent.context() == number));
        }
        receiver.join().expect("the receiver");
    });
}

/// Page faults of this thread so far, also those that the kernel takes for it.
fn page_faults() -> usize {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("what the kernel counts");
    // The eighth field after the name, which ends with the last parenthesis.
    let fields = stat.rsplit_once(')').expect("a name").1;
    fields.split_whitespace().nth(7).expect("a field").parse().expect("a number")
}

/// What a connection delivers again and again goes to the same memory: the kernel clears no pages
/// for it.
pub fn memory_is_used_again(device: &Device) {
    const LEN: usize = 4 << 20;
    let (a, b) = (open(device), allowing(device, LIMIT));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let sent = memory(1, LEN);
    let mut faults = [0; 6];
    for taken in &mut faults {
        let before = page_faults();
        a.send_large(connection, &sent, 1).expect("a send");
        assert_eq!(world.next(1, EventKind::Recv).received().map(|message| message.len()), Some(LEN));
        assert_eq!(world.sent(0), 1);
        *taken = page_faults() - before;
    }
    let least = faults[1..].iter().min().expect("five");
    assert!(*least < LEN / 4096 / 4, "page faults: {faults:?}");
}

/// The same memory, again and again.
pub fn many_times(device: &Device) {
    let (a, b) = (open(device), allowing(device, 50_000));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for round in 0..500 {
        let len = 20_000 + (round as usize * 7919) % 30_000;
        a.send_large(connection, &memory(round, len), round).expect("a send");
        assert!(world.message(1) == pattern(round, len), "round {round}");
        assert_eq!(world.sent(0), round);
    }
}

/// A receiver with few buffers, whose program holds some of them.
pub fn few_buffers(device: &Device) {
    let (a, b) = (open(device), open_with(device, |options| options.recv_buffers = 4));
    b.set_large_limit(LIMIT).expect("usable");
    let (world, connection, _) = World::joined([&a, &b], RU);
    for number in 0..20 {
        a.send_large(connection, &memory(number, 50_000), 1).expect("a send");
    }
    for _ in 0..20 {
        let first = world.next(1, EventKind::Recv);
        assert_eq!(first.received().expect("a message").len(), 50_000);
    }
    (0..20).for_each(|_| assert_eq!(world.sent(0), 1));
}
