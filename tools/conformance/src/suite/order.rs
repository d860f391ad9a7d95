//! What each attribute promises about order and loss.

use crate::world::{World, most, open, pattern};
use cci::{Attribute, Connection, Device, Endpoint, Event, EventKind, Notify, SendError};
use std::collections::VecDeque;

const MESSAGES: u64 = 10_000;

/// A message with its number in front, of a length that follows from the number.
fn numbered(number: u64, most: usize) -> Vec<u8> {
    let len = 8 + usize::try_from(number.wrapping_mul(2_654_435_761) % 700).expect("small");
    let mut message = pattern(number, len.min(most.max(8)));
    message[..8].copy_from_slice(&number.to_ne_bytes());
    message
}

/// The number of a message, after a look at all of its bytes.
fn number_of(message: &[u8], most: usize) -> u64 {
    let number = u64::from_ne_bytes(message[..8].try_into().expect("8 bytes"));
    assert_eq!(message, numbered(number, most), "message {number} is not what was sent");
    number
}

/// Sends all numbered messages and gives what arrived and the contexts of the completions, each in
/// its order.
fn exchange(world: &World<'_>, from: &Endpoint, connection: Connection) -> (Vec<u64>, Vec<u64>) {
    let most = most(connection);
    let (mut next, mut arrived, mut completed) = (0, Vec::new(), Vec::new());
    world.until("all completions", || {
        while next < MESSAGES {
            match from.send(connection, &numbered(next, most), next) {
                Ok(()) => next += 1,
                Err(SendError::NoBuffers) => break,
                Err(error) => panic!("{error}"),
            }
        }
        arrived.extend((0..world.waiting(1, EventKind::Recv)).map(|_| number_of(&world.message(1), most)));
        completed.extend((0..world.waiting(0, EventKind::Send)).map(|_| world.sent(0)));
        completed.len() as u64 == MESSAGES
            && (!connection.attribute().is_some_and(Attribute::is_reliable) || arrived.len() as u64 >= MESSAGES)
    });
    // What an unreliable connection still holds, and what must not come twice.
    for _ in 0..1000 {
        world.step();
    }
    arrived.extend((0..world.waiting(1, EventKind::Recv)).map(|_| number_of(&world.message(1), most)));
    (arrived, completed)
}

/// RO: 10,000 messages arrive once and in order.
pub fn reliable_ordered(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], Attribute::ReliableOrdered);
    let (arrived, completed) = exchange(&world, &a, connection);
    assert!(arrived.iter().copied().eq(0..MESSAGES), "arrived out of order, twice, or not at all");
    assert!(completed.iter().copied().eq(0..MESSAGES), "completed out of order");
}

/// RO: completions come in order even when some sends have to wait and lengths are mixed.
pub fn completions_in_order(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], Attribute::ReliableOrdered);
    let mut accepted = 0u64;
    // Nobody receives: at some time messages wait, long ones before short ones.
    while accepted < 2000 {
        let len = if accepted.is_multiple_of(3) { most(connection) } else { 4 };
        match a.send(connection, &vec![1; len], accepted) {
            Ok(()) => accepted += 1,
            Err(SendError::NoBuffers) => break,
            Err(error) => panic!("{error}"),
        }
    }
    for context in 0..accepted {
        assert_eq!(world.sent(0), context);
    }
}

/// RU: 10,000 messages arrive exactly once.
pub fn reliable_unordered(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], Attribute::ReliableUnordered);
    let (mut arrived, mut completed) = exchange(&world, &a, connection);
    arrived.sort_unstable();
    completed.sort_unstable();
    assert!(arrived.iter().copied().eq(0..MESSAGES), "not exactly once");
    assert!(completed.iter().copied().eq(0..MESSAGES), "not exactly one completion each");
}

/// UU: what arrives is intact and comes once; every send completes.
pub fn unreliable(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], Attribute::Unreliable);
    let (mut arrived, mut completed) = exchange(&world, &a, connection);
    completed.sort_unstable();
    assert!(completed.iter().copied().eq(0..MESSAGES), "not exactly one completion each");
    assert!(!arrived.is_empty(), "nothing arrived at all");
    arrived.sort_unstable();
    assert!(arrived.windows(2).all(|pair| pair[0] != pair[1]), "a message came twice");
    assert!(arrived.last().is_none_or(|last| *last < MESSAGES), "a message that nobody sent");
}

/// Both sides send at once, as much as they may; each direction keeps its order.
pub fn both_directions(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, to_b, to_a) = World::joined([&a, &b], Attribute::ReliableOrdered);
    let most = most(to_b).min(most(to_a));
    let sides: [(&Endpoint, Connection); 2] = [(&a, to_b), (&b, to_a)];
    let (mut next, mut got) = ([0u64; 2], [0u64; 2]);
    world.until("both directions", || {
        for side in 0..2 {
            let (endpoint, connection) = sides[side];
            while next[side] < MESSAGES
                && endpoint.send(connection, &numbered(next[side], most), Notify::OnFailure(0)).is_ok()
            {
                next[side] += 1;
            }
            let events: VecDeque<Event<'_>> =
                (0..world.waiting(side, EventKind::Recv)).map(|_| world.next(side, EventKind::Recv)).collect();
            for event in events {
                assert_eq!(number_of(&event.received().expect("a message").to_vec(), most), got[side]);
                got[side] += 1;
            }
        }
        got == [MESSAGES; 2]
    });
}
