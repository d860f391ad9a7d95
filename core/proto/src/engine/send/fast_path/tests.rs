//! The short way and the long one side by side: the same frames, the same times.

use crate::engine::tests::{Pair, message};
use crate::engine::{Engine, Host, Index, Op, Post, RecordingHost};
use crate::{Attribute, Time};
use alloc::vec;
use alloc::vec::Vec;
use std::format;

extern crate std;

const MTU: usize = 1400;

/// The frames of two engines at a time.
struct Twins {
    /// Messages take the long way in the first pair, the short way in the second.
    pairs: [Pair; 2],
    indices: [Index; 2],
    at_once: u32,
}

impl Twins {
    fn new(attribute: Attribute) -> Self {
        let mut pairs = [Pair::new(0), Pair::new(0)];
        let mut indices = [Index(0); 2];
        for pair in &mut pairs {
            indices = pair.connect(attribute);
            pair.run(|pair| pair.engines.iter().all(Engine::is_quiet));
        }
        Self { pairs, indices, at_once: 0 }
    }

    /// Both send this; the frame that leaves.
    fn send(&mut self, side: usize, bytes: &[u8], op: Op, prompt: bool) -> Vec<u8> {
        let (parts, index) = (&[&bytes[..1], &bytes[1..]], self.indices[side]);
        let [long, short] = &mut self.pairs;
        long.engines[side].send(long.now, index, parts, op, prompt).expect("a send");
        let expected = next(long, side).expect("a frame");
        let (mut buffer, mut shown) = (vec![0; MTU], Vec::new());
        let post = Post { parts, op, prompt };
        let leave = |transmit: &super::Transmit<Vec<u8>>, frame: &mut [u8], _: &mut RecordingHost| {
            shown.extend(&frame[..transmit.len])
        };
        let sent = short.engines[side]
            .send_now(short.now, index, &post, &mut buffer, &mut short.hosts[side], leave)
            .expect("a send");
        let frame = match sent {
            Some(transmit) => {
                self.at_once += 1;
                assert_eq!(shown, buffer[..transmit.len], "what was shown is what is returned");
                shown
            }
            None => next(short, side).expect("a frame"),
        };
        assert_eq!(frame, expected, "operation {}", op.0);
        assert_eq!(self.next(side), None, "operation {}", op.0);
        frame
    }

    /// Both send this behind what is in flight; the frames that leave, if any may.
    fn send_behind(&mut self, side: usize, bytes: &[u8], op: Op) -> Vec<Vec<u8>> {
        let (parts, index) = (&[bytes], self.indices[side]);
        let [long, short] = &mut self.pairs;
        long.engines[side].send(long.now, index, parts, op, false).expect("a send");
        let (mut buffer, mut frames) = (vec![0; MTU], Vec::new());
        let post = Post { parts, op, prompt: false };
        let leave = |transmit: &super::Transmit<Vec<u8>>, frame: &mut [u8], _: &mut RecordingHost| {
            frames.push(frame[..transmit.len].to_vec())
        };
        let (engine, host) = (&mut short.engines[side], &mut short.hosts[side]);
        let sent = engine.send_now(short.now, index, &post, &mut buffer, host, leave).expect("a send");
        self.at_once += u32::from(sent.is_some());
        frames.extend(core::iter::from_fn(|| next(short, side)));
        let expected: Vec<_> = core::iter::from_fn(|| next(long, side)).collect();
        assert_eq!(frames, expected, "operation {}", op.0);
        frames
    }

    /// Everything that is to be said is said and heard.
    fn settle(&mut self) {
        while (0..2).any(|side| self.next(side).map(|frame| self.give(1 - side, &frame)).is_some()) {}
    }

    fn give(&mut self, to: usize, frame: &[u8]) {
        for pair in &mut self.pairs {
            let from = crate::engine::tests::ADDRESSES[1 - to];
            pair.engines[to].handle_verified(pair.now, &from, frame, false, &mut pair.hosts[to]);
        }
    }

    /// What both say next, which is the same.
    fn next(&mut self, side: usize) -> Option<Vec<u8>> {
        let [long, short] = &mut self.pairs;
        let expected = next(long, side);
        assert_eq!(next(short, side), expected);
        expected
    }

    fn wait(&mut self, until: impl Fn(&Pair) -> Time) {
        for pair in &mut self.pairs {
            pair.now = until(pair);
            for side in 0..2 {
                pair.engines[side].handle_timeout(pair.now, &mut pair.hosts[side]);
            }
        }
        assert_eq!(self.pairs[0].now, self.pairs[1].now);
    }

    fn compare(&self, side: usize, what: &str) {
        let [long, short] = &self.pairs;
        assert_eq!(long.engines[side].stats(), short.engines[side].stats(), "{what}");
        assert_eq!(long.engines[side].report(self.indices[side]), short.engines[side].report(self.indices[side]));
        assert_eq!(long.engines[side].poll_timeout(), short.engines[side].poll_timeout(), "{what}");
        assert_eq!(long.hosts[side].received, short.hosts[side].received, "{what}");
        assert_eq!(long.hosts[side].order, short.hosts[side].order, "{what}");
    }
}

fn next(pair: &mut Pair, side: usize) -> Option<Vec<u8>> {
    let mut buffer = vec![0; MTU];
    let out = pair.engines[side].poll_transmit(pair.now, false, &mut buffer, &mut pair.hosts[side])?;
    buffer.truncate(out.len);
    Some(buffer)
}

#[test]
fn a_message_on_the_fast_path_leaves_as_the_same_frame_at_once() {
    for attribute in [Attribute::ReliableOrdered, Attribute::ReliableUnordered] {
        let mut twins = Twins::new(attribute);
        for round in 0..300 {
            let side = round as usize % 2;
            let bytes = message(round, [4, 8, 60, 700, 1100][round as usize % 5]);
            let mut frame = twins.send(side, &bytes, Op(round), round % 6 == 5);
            if round % 7 == 3 {
                // Lost: it comes again in time.
                while twins.pairs[0].now < Time(u64::MAX) {
                    twins.wait(|pair| pair.engines[side].poll_timeout().expect("a timeout"));
                    if let Some(again) = twins.next(side) {
                        frame = again;
                        break;
                    }
                }
            }
            twins.wait(|pair| Time(pair.now.0 + 10_000));
            twins.give(1 - side, &frame);
            while let Some(ack) = twins.next(1 - side) {
                twins.give(side, &ack);
            }
            for side in 0..2 {
                twins.compare(side, &format!("round {round}, side {side}"));
            }
            twins.wait(|pair| Time(pair.now.0 + 3_000));
        }
        assert!(twins.at_once > 250, "{} of 300 took the fast path", twins.at_once);
        for host in &twins.pairs[1].hosts {
            assert_eq!(host.received.len(), 150);
        }
    }
}

#[test]
fn a_message_behind_others_in_flight_leaves_as_the_same_frame_at_once() {
    for attribute in [Attribute::ReliableOrdered, Attribute::ReliableUnordered] {
        let (mut twins, mut op) = (Twins::new(attribute), 0);
        for round in 0..120_usize {
            let (side, mut frames) = (round % 2, Vec::new());
            for _ in 0..=round % 6 {
                frames.extend(twins.send_behind(side, &message(op, [4, 60, 64, 65, 900][op as usize % 5]), Op(op)));
                twins.wait(|pair| Time(pair.now.0 + 7_000));
                op += 1;
            }
            // The peer says now and then that it has room for little, and every fifth row loses its
            // first frame.
            for pair in &mut twins.pairs {
                pair.hosts[1 - side].claim = (round % 4 == 3).then_some(2);
            }
            for frame in frames.iter().skip(usize::from(round % 5 == 4)) {
                twins.give(1 - side, frame);
            }
            if round % 3 == 0 {
                // Before the next row nothing has been heard of this one.
                continue;
            }
            twins.settle();
            for side in 0..2 {
                twins.compare(side, &format!("round {round}, side {side}"));
            }
        }
        for _ in 0..1000 {
            if twins.pairs[0].hosts.iter().map(|host| host.received.len()).sum::<usize>() == op as usize {
                break;
            }
            twins.wait(|pair| {
                pair.engines.iter().filter_map(Engine::poll_timeout).min().expect("a timeout").max(pair.now)
            });
            twins.settle();
        }
        let [long, short] = &twins.pairs;
        for side in 0..2 {
            assert_eq!(long.hosts[side].received, short.hosts[side].received);
            assert_eq!(long.hosts[side].order, short.hosts[side].order);
        }
        assert_eq!(short.hosts.iter().map(|host| host.received.len()).sum::<usize>(), op as usize, "all have come");
        assert!(twins.at_once > op / 2, "{} of {op} left at once", twins.at_once);
    }
}

#[test]
fn a_message_that_may_not_go_first_waits_its_turn() {
    let mut pair = Pair::new(0);
    let [client, _] = pair.connect(Attribute::ReliableOrdered);
    pair.run(|pair| pair.engines.iter().all(Engine::is_quiet));
    let mut buffer = vec![0; MTU];
    let mut send = |pair: &mut Pair, op: u32, len: usize| {
        let bytes = message(op, len);
        let post = Post { parts: &[&bytes], op: Op(op), prompt: false };
        let engine = &mut pair.engines[0];
        engine.send_now(pair.now, client, &post, &mut buffer, &mut pair.hosts[0], |_, _, _| {})
    };
    // Longer than a frame, and behind another.
    assert_eq!(send(&mut pair, 0, 3000).map(|sent| sent.is_some()), Ok(false));
    assert_eq!(send(&mut pair, 1, 8).map(|sent| sent.is_some()), Ok(false));
    pair.pump();
    // What is in flight does not keep it back.
    assert_eq!(send(&mut pair, 2, 8).map(|sent| sent.is_some()), Ok(true));
    pair.run(|pair| pair.hosts[0].ended.len() == 3);
    assert_eq!(pair.hosts[1].received.iter().map(Vec::len).collect::<Vec<_>>(), [3000, 8, 8]);
    // And a refused one is refused as by `send`.
    assert_eq!(send(&mut pair, 3, 1 << 20).err(), Some(crate::SendError::TooLong));
    assert!(pair.hosts[0].credit() > 0);
}
