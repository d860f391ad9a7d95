//! Messages that are written in place: reserve, and send.

use super::handle::wait_for;
use crate::world::{World, drain, most, open, open_with, pattern};
use cci::{Attribute, Connection, Device, Endpoint, EventKind, Failure, Notify, Reserved, Rights, Rma, SendError};
use std::io::Write;

const RO: Attribute = Attribute::ReliableOrdered;

/// Room for a message, with these bytes in it.
fn written<'e>(endpoint: &'e Endpoint, connection: Connection, bytes: &[u8]) -> Reserved<'e> {
    let mut message = endpoint.reserve(connection, bytes.len()).expect("room");
    assert!(message.write_at(0, bytes));
    message
}

/// Lengths at which the way of a message changes.
fn lengths(connection: Connection) -> Vec<usize> {
    let most = most(connection);
    [0, 1, 8, 55, 56, 57, 64, 1000, most - 1, most].into_iter().filter(|len| *len <= most).collect()
}

/// Every length, by offsets, by appending and by an address, and less than there is room for.
pub fn every_way_of_writing(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for attribute in [RO, Attribute::ReliableUnordered] {
        let (connection, _) = world.connect(0, 1, attribute);
        for len in lengths(connection) {
            let bytes = pattern(len as u64, len);
            let mut message = a.reserve(connection, len).expect("room");
            assert_eq!((message.capacity(), message.len(), message.is_empty()), (len, 0, true));
            // The end first.
            assert!(message.write_at(len / 2, &bytes[len / 2..]) && message.write_at(0, &bytes[..len / 2]));
            assert!(!message.write_at(len, b"x") && !message.write_at(usize::MAX, b"x") && !message.set_len(len + 1));
            assert_eq!(message.len(), len);
            message.send(1).expect("a send");
            assert_eq!((world.message(1), world.sent(0)), (bytes.clone(), 1), "{len} bytes, {attribute:?}");
            let mut message = a.reserve(connection, most(connection)).expect("room");
            for part in bytes.chunks(7) {
                message.write_all(part).expect("there is room");
            }
            message.send(Notify::OnFailure(2)).expect("a send");
            assert_eq!(world.message(1), bytes, "{len} bytes appended, {attribute:?}");
        }
        let mut message = a.reserve(connection, 4).expect("room");
        assert_eq!(message.write(b"12345678").expect("some of it"), 4);
        assert!(message.write_all(b"9").is_err());
        assert!(message.set_len(2));
        message.send(3).expect("a send");
        assert_eq!((world.message(1).as_slice(), world.sent(0)), (&b"12"[..], 3));
    }
}

/// Several at a time, sent in another order than they were asked for, between other messages: they
/// arrive as they were sent.
pub fn in_the_order_of_sending(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for len in lengths(connection).into_iter().filter(|len| *len >= 8) {
        for round in 0..20_u64 {
            let first = round * 100;
            let mut rooms: Vec<_> =
                (0..8).map(|number| (number, written(&a, connection, &pattern(first + number, len)))).collect();
            rooms.reverse();
            rooms.swap(2, 5);
            let mut expected = Vec::new();
            for (number, room) in rooms {
                room.send(Notify::OnFailure(0)).expect("a send");
                a.send(connection, &pattern(first + 50 + number, len), Notify::OnFailure(0)).expect("a send");
                expected.extend([first + number, first + 50 + number]);
            }
            for number in expected {
                assert_eq!(world.message(1), pattern(number, len), "{len} bytes");
            }
        }
    }
}

/// A receiver that does not poll for a while: what does not fit waits, in order, with what was sent
/// otherwise; nothing is lost.
pub fn behind_a_full_peer(device: &Device) {
    let (a, b) = (open(device), open_with(device, |options| options.recv_buffers = 16));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let (mut sent, mut kept) = (0_u64, None);
    // Until the send buffers are full.
    while sent < 100_000 {
        let bytes = pattern(sent, 300);
        let error = if sent.is_multiple_of(2) {
            written(&a, connection, &bytes).send(Notify::Always(sent)).map_err(|unsent| {
                kept = Some(unsent.message);
                unsent.why
            })
        } else {
            a.send(connection, &bytes, sent)
        };
        match error {
            Ok(()) => sent += 1,
            Err(SendError::NoBuffers) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(sent > 16, "{sent}");
    // A message that was refused is still there.
    let mut kept = kept.unwrap_or_else(|| written(&a, connection, &pattern(sent, 300)));
    // Messages share frames on links: their ends come when the last of a frame has its buffer.
    (0..sent).for_each(|number| assert_eq!(world.message(1), pattern(number, 300)));
    (0..sent).for_each(|number| assert_eq!(world.sent(0), number));
    assert!(kept.write_at(0, &pattern(sent, 300)));
    kept.send(sent).expect("buffers are free again");
    assert_eq!((world.message(1), world.sent(0)), (pattern(sent, 300), sent));
}

/// A program that keeps rooms keeps nobody else from sending, by messages or RMA; those that it
/// drops are there again.
pub fn kept_and_dropped(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let len = most(connection).min(2000);
    let kept: Vec<_> = (0..200).map(|_| a.reserve(connection, len).expect("room")).collect();
    let local = a.register(vec![3; 100_000], Rights::NONE).expect("a registration");
    let remote = b.register(vec![0; 100_000], Rights::WRITE).expect("a registration");
    for round in 0..50 {
        a.send(connection, &pattern(round, len), round).expect("a send");
        assert_eq!((world.message(1), world.sent(0)), (pattern(round, len), round));
        a.write(connection, &Rma::new(local.handle(), remote.handle(), 100_000), round).expect("a write");
        assert_eq!(world.sent(0), round);
    }
    assert_eq!(remote.to_vec(0, 100_000), Some(vec![3; 100_000]));
    drop(kept);
    for round in 0..2000 {
        let message = a.reserve(connection, len).expect("room");
        if round % 100 == 0 {
            drop(message);
            written(&a, connection, &pattern(round, len)).send(round).expect("a send");
            assert_eq!((world.message(1), world.sent(0)), (pattern(round, len), round));
        }
    }
}

/// No more rooms than send buffers, and none for a message that is too long or has nowhere to go.
pub fn refused_rooms(device: &Device) {
    let (a, b) = (open_with(device, |options| options.send_buffers = 8), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    assert_eq!(a.reserve(connection, most(connection) + 1).err(), Some(SendError::TooLong));
    let mut rooms: Vec<_> = (0..8).map(|_| a.reserve(connection, 100).expect("room")).collect();
    assert_eq!(a.reserve(connection, 100).err(), Some(SendError::NoBuffers));
    rooms.pop();
    rooms.push(a.reserve(connection, 100).expect("room again"));
    drop(rooms);
    let mut late = written(&a, connection, &pattern(1, 100));
    a.disconnect(connection).expect("a connection");
    assert_eq!(a.reserve(connection, 100).err(), Some(SendError::Disconnected));
    for _ in 0..2 {
        let unsent = late.send(1).expect_err("no connection");
        assert_eq!(unsent.why, SendError::Disconnected);
        late = unsent.message;
    }
    drop(late);
    let (next, _) = world.connect(0, 1, RO);
    written(&a, next, &pattern(2, 100)).send(2).expect("a send");
    assert_eq!((world.message(1), world.sent(0)), (pattern(2, 100), 2));
}

/// Rooms outlive the peer: it goes, time after time, and they are given back after that, or sent in
/// vain.
pub fn peer_goes_away(device: &Device) {
    let a = open(device);
    let mut old = Vec::new();
    for round in 0..10_u64 {
        let b = open(device);
        let rooms: Vec<_> = {
            let (world, connection, _) = World::joined([&a, &b], RO);
            let rooms = (0..3).map(|number| written(&a, connection, &pattern(number, 500))).collect();
            written(&a, connection, &pattern(round, 500)).send(7).expect("a send");
            assert_eq!((world.message(1), world.sent(0)), (pattern(round, 500), 7));
            rooms
        };
        b.close().expect("it closes");
        drain(&a);
        old.extend(rooms.into_iter().filter_map(|room| room.send(1).err()));
        if round == 5 {
            old.clear();
        }
        while let Ok(Some(event)) = a.get_event() {
            // What was taken before the end was noticed ends as all that is open does.
            if event.kind() == EventKind::Send {
                assert_ne!(event.outcome(), Err(Failure::RemoteHandle));
            }
        }
    }
    assert!(old.iter().all(|unsent| unsent.why == SendError::Disconnected));
}

/// A receiver that sleeps is woken by a message that was written in place.
pub fn sleeper_wakes(device: &Device) {
    let (a, b) = (open(device), open(device));
    let handle = b.handle().expect("a handle");
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            for number in 0..20 {
                let event = wait_for(&b, &handle, EventKind::Recv);
                assert_eq!(event.received().expect("a message").to_vec(), pattern(number, 400));
            }
        });
        for number in 0..20 {
            written(&a, connection, &pattern(number, 400)).send(Notify::OnFailure(0)).expect("a send");
            while !receiver.is_finished() && drain(&a) > 0 {}
            std::thread::sleep(std::time::Duration::from_millis(3));
            drain(&a);
        }
        while !receiver.is_finished() {
            drain(&a);
        }
        receiver.join().expect("the receiver");
    });
}
