//! Frames that are forged, replayed, or in clear; resets; reports of the network.

use super::*;
use crate::wire::{Close, Confirm, Data, Reset, SealedReset, begin_seal, flags};

/// Everything that a frame must not change.
fn state(pair: &Pair, side: usize) -> (u64, u32, usize, Vec<u8>, usize) {
    let (engine, host) = (&pair.engines[side], &pair.hosts[side]);
    (engine.stats().received, host.events, host.received.len(), host.memory.clone(), host.ended.len())
}

/// **On a sealed connection a frame without 0x80 does nothing, whatever its kind.**
#[test]
fn frames_in_clear_do_nothing() {
    for (side, other) in [(0, 1), (1, 0)] {
        let (mut pair, ends) = sealed_pair(Attribute::ReliableOrdered, 0);
        pair.deliver(0, ends[0], 1, b"there");
        pair.deliver(1, ends[1], 1, b"back");
        pair.run(|pair| pair.engines.iter().all(Engine::is_quiet));
        let [to, from] = [side, other].map(|side| pair.engines[side].identifier(ends[side]).expect("open"));
        let number = pair.engines[side].table.get(ends[side].0).expect("open").number;
        let before = state(&pair, side);
        let header = |kind| Header { kind, to, from, number: 50_000, time: 0 };
        let mut frame = vec![0; 1400];
        let mut frames: Vec<Vec<u8>> = Vec::new();
        let next = pair.engines[side].table.get(ends[side].0).expect("open").recv_next;
        let ack =
            wire::Ack { credit: 9, ack: 0, echo_number: number.wrapping_sub(1), echo_time: 0, delay: 0, congested: 0 };
        let data =
            Data { header: header(Kind::Data), seq: next, flags: flags::SEQUENCED | flags::PROMPT, ack, sack_words: 0 };
        let at = data.emit(&[], &mut frame);
        let end = wire::emit_message(&mut frame, at, false, &[b"forged"]);
        frames.push(frame[..end].to_vec());
        let target = Target { handle: [7, 7], offset: 0, len: 5000 };
        let end = wire::emit_write(&mut frame, at, 1, &target, 0, 1000) + 1000;
        frames.push(frame[..end].to_vec());
        for is_answer in [false, true] {
            let end = Close { is_answer, ..Close::answer(header(Kind::Close)) }.emit(&[], &mut frame);
            frames.push(frame[..end].to_vec());
        }
        let end = Reset { header: header(Kind::Reset), number: number.wrapping_sub(1) }.emit(&mut frame);
        frames.push(frame[..end].to_vec());
        let end = Confirm { header: header(Kind::Confirm) }.emit(&mut frame);
        frames.push(frame[..end].to_vec());
        for kind in [Kind::Retry, Kind::Accept, Kind::Reject, Kind::Redirect] {
            frames.push(clear(kind, to, from, &[0; 40]));
        }
        for (count, mut frame) in frames.into_iter().enumerate() {
            wire::seal(&mut frame, 0, |check| check);
            pair.inject(side, &frame).expect("a sound frame");
            assert_eq!(state(&pair, side), before, "kind {}", frame[1]);
            assert_eq!(pair.engines[side].stats().clear, count as u64 + 1, "kind {}", frame[1]);
            assert!(pair.engines[side].is_quiet(), "nothing is answered");
        }
        pair.deliver(other, ends[other], 2, b"still open");
    }
}

/// Each bit of a sealed frame, each length of it, and its body under another header.
#[test]
fn frames_that_are_changed_do_nothing() {
    let (mut pair, ends) = sealed_pair(Attribute::ReliableOrdered, 0);
    let frames = capture(&mut pair, 0);
    pair.deliver(0, ends[0], 1, b"first");
    pair.engines[0].send(pair.now, ends[0], &[b"second"], Op(2), false).expect("send");
    pair.filter = std::boxed::Box::new(move |_, _| false);
    let kept = frames.clone();
    pair.filter = std::boxed::Box::new(move |side, frame| {
        if side == 0 {
            kept.borrow_mut().push(frame.to_vec());
        }
        false
    });
    pair.pump();
    let frame = frames.borrow().last().expect("sent").clone();
    let earlier = frames.borrow()[0].clone();
    let before = state(&pair, 1);
    let mut tries = 0;
    let mut give = |pair: &mut Pair, frame: &[u8]| {
        let _ = pair.inject(1, frame);
        assert_eq!(state(pair, 1), before, "{frame:02x?}");
        tries += 1;
    };
    for bit in 0..8 * frame.len() {
        let mut changed = frame.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        give(&mut pair, &changed);
    }
    for len in 0..frame.len() {
        let mut cut = frame[..len].to_vec();
        give(&mut pair, &cut);
        if len >= 4 {
            cut[2..4].copy_from_slice(&u16::try_from(len).expect("short").to_be_bytes());
            give(&mut pair, &cut);
        }
    }
    give(&mut pair, &[&frame[..wire::HEADER], &earlier[wire::HEADER..]].concat());
    give(&mut pair, &[&earlier[..wire::HEADER], &frame[wire::HEADER..]].concat());
    // Sent back to its sender, with the identifiers exchanged so that it is looked at.
    let mut reflected = frame.clone();
    reflected[8..16].copy_from_slice(&frame[16..24]);
    reflected[16..24].copy_from_slice(&frame[8..16]);
    let before = state(&pair, 0);
    let _ = pair.inject(0, &reflected);
    assert_eq!(state(&pair, 0), before);
    assert!(tries > 800, "{tries}");
    pair.inject(1, &frame).expect("the frame itself");
    assert_eq!(pair.hosts[1].received.len(), 2);
}

/// Replays of everything that was sent, at once and much later, on each kind of connection.
#[test]
fn frames_that_come_again_do_nothing() {
    for attribute in [Attribute::ReliableOrdered, Attribute::ReliableUnordered, Attribute::Unreliable] {
        let (mut pair, ends) = sealed_pair(attribute, 0);
        let frames = capture(&mut pair, 0);
        for op in 0..3000 {
            pair.engines[0].send(pair.now, ends[0], &[&message(op, 8)], Op(op), false).expect("send");
            if op % 2 == 0 {
                pair.run(|pair| pair.hosts[0].ended.len() > op as usize);
            }
        }
        let count = frames.borrow().len();
        pair.run(|pair| pair.hosts[1].received.len() == 3000);
        assert!(count > 1024, "more frames than a window has numbers");
        let received = pair.hosts[1].received.clone();
        for round in 0..2 {
            for frame in frames.borrow().iter() {
                pair.inject(1, frame).expect("sealed");
                let _ = pair.inject(0, frame);
            }
            assert_eq!(pair.hosts[1].received, received, "{attribute:?}, round {round}");
        }
        // A frame that is older than the window is known by its sequence number.
        let stats = pair.engines[1].stats();
        assert!(stats.replayed + stats.duplicates > 1024, "{stats:?}");
        pair.filter = std::boxed::Box::new(|_, _| true);
        pair.deliver(0, ends[0], 9999, b"still open");
    }
}

/// Reordering by more than the window of numbers costs sequenced frames nothing.
#[test]
fn sequenced_frames_may_be_late_by_thousands() {
    let (mut pair, ends) = sealed_pair(Attribute::ReliableOrdered, 0);
    let late = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let kept = late.clone();
    pair.filter = std::boxed::Box::new(move |side, frame: &[u8]| {
        if side == 0 && kept.borrow().is_empty() && frame.len() > 1000 {
            kept.borrow_mut().push(frame.to_vec());
            return false;
        }
        true
    });
    pair.engines[0].send(pair.now, ends[0], &[&message(0, 1000)], Op(0), false).expect("send");
    pair.pump();
    assert_eq!(late.borrow().len(), 1);
    // Acknowledgements of the server are numbered too: make the client's numbers grow by its own.
    let mut echoes = 0;
    while echoes < 3000 {
        let conn = pair.engines[0].table.get_mut(ends[0].0).expect("open");
        conn.set(crate::engine::connection::conn::bit::PING);
        pair.engines[0].mark_ready(ends[0].0);
        pair.pump();
        echoes += 1;
    }
    pair.run(|pair| pair.wire.is_empty() || !pair.hosts[1].received.is_empty());
    let before = pair.hosts[1].received.len();
    pair.inject(1, &late.borrow()[0]).expect("sealed");
    assert_eq!(pair.hosts[1].received.len().max(before), 1, "delivered once, by the late frame or another");
}

#[test]
fn reset_tokens_end_a_connection_and_nothing_else_does() {
    let (mut pair, ends) = sealed_pair(Attribute::ReliableOrdered, 0);
    pair.deliver(0, ends[0], 1, b"there");
    pair.run(|pair| pair.engines.iter().all(Engine::is_quiet));
    let [id, peer] = [0, 1].map(|side| pair.engines[side].identifier(ends[side]).expect("open"));
    let number = pair.engines[0].table.get(ends[0].0).expect("open").number.wrapping_sub(1);
    let header = Header { kind: Kind::Reset, to: id, from: peer, number: 0, time: 0 };
    let frame = |token| {
        let mut frame = vec![0; 100];
        let len = SealedReset { header, number, token }.emit(&mut frame);
        frame.truncate(len);
        wire::seal(&mut frame, 0, |check| check);
        frame
    };
    // Without the secret, and by another endpoint of the group.
    let other = ToySealer::new(Security::Sealed, SECRET, 7);
    for token in [[0; TAG], [1; TAG], Sealer::reset_token(&other, peer)] {
        pair.inject(0, &frame(token)).expect("a sound frame");
        assert!(pair.hosts[0].broken.is_empty());
    }
    let restarted = sealer(1, Security::Sealed);
    pair.inject(0, &frame(Sealer::reset_token(&restarted, peer))).expect("a sound frame");
    assert_eq!(pair.hosts[0].broken, [(ends[0], Failure::Disconnected)]);
}

/// A server that has restarted tells its old clients, and a client that has restarted its server.
#[test]
fn a_restarted_peer_is_found_by_its_token() {
    for restarted in [1, 0] {
        let other = 1 - restarted;
        let (mut pair, ends) = sealed_pair(Attribute::ReliableOrdered, 0);
        pair.deliver(0, ends[0], 1, b"there");
        pair.deliver(1, ends[1], 1, b"back");
        pair.run(|pair| pair.engines.iter().all(Engine::is_quiet));
        pair.engines[restarted] = Engine::new(&CONFIG, [99; 8]);
        pair.hosts[restarted] = recording_host(100);
        pair.hosts[restarted].sealer = Some(sealer(restarted, Security::Sealed));
        let started = pair.now;
        pair.engines[other].send(pair.now, ends[other], &[b"lost"], Op(2), false).expect("send");
        pair.run(|pair| !pair.hosts[other].broken.is_empty());
        assert_eq!(pair.hosts[other].broken, [(ends[other], Failure::Disconnected)], "{restarted}");
        assert!(pair.now.since(started) < 1_000_000_000, "at once");
        // Under another secret it is found by probes only.
        let (mut pair, ends) = sealed_pair(Attribute::ReliableOrdered, 0);
        pair.engines[restarted] = Engine::new(&CONFIG, [99; 8]);
        pair.hosts[restarted] = recording_host(100);
        pair.hosts[restarted].sealer = Some(ToySealer::new(Security::Sealed, 1, 1));
        pair.engines[other].send(pair.now, ends[other], &[b"lost"], Op(2), false).expect("send");
        pair.run(|pair| !pair.hosts[other].broken.is_empty());
        assert_eq!(pair.hosts[other].broken, [(ends[other], Failure::TimedOut)], "{restarted}");
    }
}

/// Reports of the network have a peer probed, and end nothing.
#[test]
fn reports_of_the_network_end_nothing() {
    let (mut pair, ends) = sealed_pair(Attribute::ReliableOrdered, 0);
    pair.deliver(0, ends[0], 1, b"there");
    let frames = capture(&mut pair, 0);
    pair.deliver(0, ends[0], 2, b"quoted");
    let quoted = frames.borrow().last().expect("sent").clone();
    let base = pair.engines[0].table.get(ends[0].0).expect("open").base_mtu;
    for round in 0..100 {
        let now = pair.now;
        let host = &mut pair.hosts[0];
        pair.engines[0].handle_unreachable(now, &ADDRESSES[1], &quoted[..wire::HEADER], round % 2 == 0, host);
        pair.engines[0].handle_too_big(&ADDRESSES[1], &quoted[..wire::HEADER], 68);
        let until = pair.now.plus_micros(100_000);
        pair.run_until(until);
    }
    assert!(pair.hosts[0].broken.is_empty());
    assert_eq!(pair.engines[0].table.get(ends[0].0).expect("open").mtu, base, "the base is the least");
    pair.deliver(0, ends[0], 3, b"still open");
}

/// Frames with a wrong tag never count as a peer that is alive.
#[test]
fn forged_frames_do_not_keep_a_connection_alive() {
    let (mut pair, ends) = sealed_pair(Attribute::ReliableOrdered, 0);
    pair.deliver(0, ends[0], 1, b"there");
    let [to, from] = [1, 0].map(|side| pair.engines[side].identifier(ends[side]).expect("open"));
    pair.engines[1].set_timeouts(pair.now, ends[1], 0, 1_000_000);
    pair.filter = std::boxed::Box::new(|side, _| side == 1);
    for number in 0..40 {
        let mut frame = vec![0; wire::DATA];
        Header { kind: Kind::Data, to, from, number: 0, time: 0 }.emit(&mut frame);
        begin_seal(&mut frame, 0, 1 << 33 | number, false);
        frame.extend_from_slice(&[0; TAG]);
        assert_eq!(pair.inject(1, &frame), Err(wire::Malformed::Check));
        let until = pair.now.plus_micros(100_000);
        pair.run_until(until);
    }
    assert_eq!((pair.hosts[1].silent, pair.engines[1].stats().forged), (1, 40));
}

/// The clock jumps: keys change, and nothing else does.
#[test]
fn a_clock_that_jumps_breaks_nothing() {
    let (mut pair, ends) = sealed_pair(Attribute::ReliableOrdered, 0);
    for (op, jump) in [1, 60, 3_600, 86_400 * 400].into_iter().enumerate() {
        let op = u32::try_from(op).expect("few");
        pair.deliver(0, ends[0], 2 * op, b"there");
        pair.deliver(1, ends[1], 2 * op, b"back");
        pair.now = Time(pair.now.0 + jump * 1_000_000_000);
        pair.deliver(0, ends[0], 2 * op + 1, b"after");
    }
    assert!(pair.hosts.iter().all(|host| host.broken.is_empty()));
    assert_eq!(pair.hosts[1].received.len(), 8);
    assert!(pair.hosts[0].sealer.as_ref().is_some_and(|sealer| sealer.advanced >= 2));
}
