//! Receive buffers among lanes of `sm`: one may have all of them while no other wants one; another
//! one gets its quarter first.

use cci::{Attribute, Connection, Endpoint, Event, Notify, PollError, SendError};
use cci_conformance::{LIMIT, World, alone, drain, open, open_with, readable, sm_device};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;
/// Limits with and without quarters, and smaller than that.
const BUFFERS: [u32; 8] = [1, 2, 3, 4, 5, 15, 16, 64];

/// Three senders and a receiver with so many buffers; more messages of the first sender are under
/// way than these hold.
struct Site {
    flooder: Endpoint,
    other: Endpoint,
    third: Endpoint,
    receiver: Endpoint,
    /// From `other` and `third`.
    connections: [Connection; 2],
    /// The receiver's side of the first.
    accepted: Connection,
}

/// Places among the lanes that the first sender may have: which one is looked at first depends on
/// it.
const RANKS: std::ops::Range<usize> = 0..3;

impl Site {
    fn flooded(buffers: u32, rank: usize) -> Self {
        let (flooder, other, third) = (open(&sm_device()), open(&sm_device()), open(&sm_device()));
        let receiver = open_with(&sm_device(), |options| options.recv_buffers = buffers);
        let world = World::new([&flooder, &other, &third, &receiver]);
        let mut order = [1, 2, 0];
        order[rank..].rotate_right(1);
        let mut pairs = order.map(|from| (from, world.connect(from, 3, RO)));
        pairs.sort_by_key(|(from, _)| *from);
        let [(_, (flood, _)), (_, (second, accepted)), (_, (third_one, _))] = pairs;
        for number in 0..1000 {
            match flooder.send(flood, b"flood", Notify::OnFailure(number)) {
                Ok(()) => {}
                Err(SendError::NoBuffers) => break,
                Err(error) => panic!("{error}"),
            }
        }
        drop(world);
        Self { flooder, other, third, receiver, connections: [second, third_one], accepted }
    }

    /// The senders get a turn.
    fn senders(&self) {
        for sender in [&self.flooder, &self.other, &self.third] {
            drain(sender);
        }
    }

    /// What the receiver has now, until it holds every buffer.
    fn take_all<'s>(&'s self, held: &mut Vec<Event<'s>>) {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < LIMIT, "only {} buffers are used", held.len());
            self.senders();
            match self.receiver.get_event() {
                Ok(event) => held.extend(event),
                Err(PollError::NoBuffers) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn one_lane_may_have_all_buffers_while_no_other_wants_one() {
    let _alone = alone();
    for buffers in BUFFERS {
        let site = Site::flooded(buffers, 0);
        let mut held = Vec::new();
        site.take_all(&mut held);
        assert_eq!(held.len(), buffers as usize, "the other lane is there, and silent");
    }
}

#[test]
fn another_lane_gets_its_quarter_first() {
    let _alone = alone();
    for buffers in BUFFERS {
        RANKS.for_each(|rank| gets_its_quarter(buffers, rank));
    }
}

fn gets_its_quarter(buffers: u32, rank: usize) {
    let site = Site::flooded(buffers, rank);
    let mut held = Vec::new();
    site.take_all(&mut held);
    let quarter = buffers.div_ceil(4) as usize;
    for number in 0..quarter + 1 {
        site.other.send(site.connections[0], b"other", Notify::OnFailure(number as u64)).expect("a send");
    }
    // It wants, and is refused.
    site.take_all(&mut held);
    let mut late = Vec::new();
    for number in 0..quarter {
        drop(held.remove(0));
        site.take_all(&mut late);
        assert_eq!(late.len(), number + 1);
        let message = late[number].received().expect("a message").to_vec();
        assert_eq!(message, b"other", "buffer {number} of a quarter of {buffers}, rank {rank}");
    }
    // Both have their share now: what comes next is the luck of the turn, but both come.
    drop((held, late));
    let begun = Instant::now();
    let mut seen = [false; 2];
    while seen != [true; 2] {
        assert!(begun.elapsed() < LIMIT, "flood and other: {seen:?}");
        site.senders();
        if let Some(event) = site.receiver.get_event().expect("buffers are free") {
            seen[usize::from(event.received().expect("a message").to_vec() == b"other")] = true;
        }
    }
}

/// Three lanes that all want everything: each gets something of every few buffers that become free.
#[test]
fn no_lane_starves_among_several_that_want_all() {
    let _alone = alone();
    for buffers in BUFFERS {
        let site = Site::flooded(buffers, 0);
        let mut counts = [0; 3];
        let mut held = Vec::new();
        let begun = Instant::now();
        while counts.iter().sum::<u32>() < 300 {
            assert!(begun.elapsed() < LIMIT, "{buffers} buffers: {counts:?}");
            // Those that find no room are not needed.
            let _ = site.other.send(site.connections[0], b"other", Notify::OnFailure(0));
            let _ = site.third.send(site.connections[1], b"third", Notify::OnFailure(0));
            site.senders();
            match site.receiver.get_event() {
                Ok(Some(event)) => {
                    let message = event.received().expect("a message").to_vec();
                    let which = [&b"flood"[..], b"other", b"third"].iter().position(|text| *text == message);
                    counts[which.expect("one of three")] += 1;
                    held.push(event);
                }
                Ok(None) => {}
                // The program gives one back at a time, the oldest first.
                Err(PollError::NoBuffers) => drop(held.remove(0)),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(counts.iter().all(|count| *count >= 30), "{buffers} buffers: flood, other, third: {counts:?}");
    }
}

/// A lane that made way for another is told when that one needs nothing after all, although the
/// program sleeps and returns nothing more.
#[test]
fn who_made_way_goes_on_though_the_program_sleeps() {
    let _alone = alone();
    for rank in RANKS {
        let site = Site::flooded(16, rank);
        let handle = site.receiver.handle().expect("a handle");
        let mut held = Vec::new();
        site.take_all(&mut held);
        site.other.send(site.connections[0], b"other", Notify::OnFailure(0)).expect("a send");
        site.take_all(&mut held);
        let begun = Instant::now();
        while readable(&handle, Duration::ZERO) {
            assert!(begun.elapsed() < LIMIT, "the handle stays readable");
            assert_eq!(site.receiver.get_event().err(), Some(PollError::NoBuffers));
        }
        // What the other lane wants a buffer for is nobody's any more.
        site.receiver.disconnect(site.accepted).expect("a disconnect");
        drop(held.remove(0));
        let event = loop {
            // At once: later a timer would hide it.
            assert!(readable(&handle, Duration::ZERO), "asleep with a free buffer and messages, rank {rank}");
            if let Some(event) = site.receiver.get_event().expect("a buffer is free") {
                break event;
            }
        };
        assert_eq!(event.received().expect("a message").to_vec(), b"flood");
    }
}
