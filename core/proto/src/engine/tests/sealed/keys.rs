//! New keys, under loss too.

use super::*;

/// Frames under a key in these tests.
const FRAMES: u32 = 50;
/// Messages of each side.
const MESSAGES: u32 = 1000;

fn pair(attribute: Attribute, loss: u64) -> (Pair, [Index; 2]) {
    let mut pair = pair_of([Security::Sealed; 2], loss);
    for host in &mut pair.hosts {
        host.sealer.as_mut().expect("a sealer").frames_per_key = FRAMES;
    }
    let ends = pair.connect(attribute);
    (pair, ends)
}

fn advanced(pair: &Pair) -> [u32; 2] {
    [0, 1].map(|side| pair.hosts[side].sealer.as_ref().expect("a sealer").advanced)
}

/// Both sides change their keys all the time; the sealer checks that no number comes twice.
#[test]
fn messages_arrive_over_many_keys_under_loss() {
    for attribute in [Attribute::ReliableOrdered, Attribute::ReliableUnordered] {
        for loss in [0, 20, 4] {
            let (mut pair, ends) = pair(attribute, loss);
            for op in 0..MESSAGES {
                for (side, end) in ends.into_iter().enumerate() {
                    let bytes = message(op, [8, 3000][op as usize % 2]);
                    pair.engines[side].send(pair.now, end, &[&bytes], Op(op), false).expect("send");
                }
                // Far fewer frames are in flight than a key may have beyond its time.
                pair.run(|pair| pair.hosts.iter().all(|host| host.ended.len() + 8 > op as usize));
            }
            pair.run(|pair| pair.hosts.iter().all(|host| host.ended.len() == MESSAGES as usize));
            for side in 0..2 {
                let mut received = pair.hosts[1 - side].received.clone();
                received.sort();
                received.dedup();
                assert_eq!(received.len(), pair.hosts[1 - side].received.len(), "once each");
                assert!(pair.hosts[side].ended.values().all(Result::is_ok), "{attribute:?}, loss {loss}");
                assert_eq!(pair.engines[side].stats().forged, 0, "{attribute:?}, loss {loss}");
            }
            assert!(advanced(&pair).iter().all(|count| *count > 5), "{:?}", advanced(&pair));
        }
    }
}

/// The whole exchange around a new key is lost, whatever is sent for a time; then again in the
/// other direction.
#[test]
fn the_loss_of_the_whole_exchange_around_a_new_key_is_survived() {
    for side in 0..2 {
        let (mut pair, ends) = pair(Attribute::ReliableOrdered, 0);
        let mut op = 0;
        let blocked = std::rc::Rc::new(std::cell::Cell::new(false));
        let blocks = blocked.clone();
        pair.filter = std::boxed::Box::new(move |_, _| !blocks.get());
        for round in 0..4 {
            let before = advanced(&pair)[side];
            while advanced(&pair)[side] == before {
                pair.engines[side].send(pair.now, ends[side], &[&message(op, 8)], Op(op), false).expect("send");
                op += 1;
                // Nothing of the new phase arrives, nor anything in answer to it.
                pair.pump();
                blocked.set(advanced(&pair)[side] > before);
                pair.run(|pair| blocked.get() || pair.hosts[side].ended.len() == op as usize);
            }
            pair.wire.clear();
            let until = pair.now.plus_micros(5_000_000);
            pair.run_until(until);
            assert_eq!(advanced(&pair)[side], before + 1, "no further key before an acknowledgement, round {round}");
            blocked.set(false);
            pair.run(|pair| pair.hosts[side].ended.len() == op as usize);
        }
        assert!(pair.hosts[side].ended.values().all(Result::is_ok));
        assert_eq!(pair.hosts[1 - side].received.len(), op as usize);
        assert_eq!(pair.engines[1 - side].stats().forged, 0);
    }
}

/// On UU nothing is acknowledged unless the sender asks, which it does.
#[test]
fn an_unreliable_stream_in_one_direction_gets_new_keys() {
    let (mut pair, ends) = pair(Attribute::Unreliable, 0);
    for op in 0..1000 {
        pair.deliver(0, ends[0], op, &message(op, 8));
        let until = pair.now.plus_micros(50_000);
        pair.run_until(until);
    }
    assert_eq!(pair.hosts[1].received.len(), 1000);
    assert!(advanced(&pair)[0] > 10, "{:?}", advanced(&pair));
    assert!(pair.hosts.iter().all(|host| host.broken.is_empty()));
}

/// A peer that receives and acknowledges nothing: the connection breaks before a key is used up.
#[test]
fn a_key_is_never_used_up() {
    let (mut pair, ends) = pair(Attribute::Unreliable, 0);
    pair.filter = std::boxed::Box::new(|_, _| false);
    let mut sent = 0;
    while pair.hosts[0].broken.is_empty() {
        assert!(sent < 10 * FRAMES, "{sent} frames under one key");
        if pair.engines[0].send(pair.now, ends[0], &[&message(sent, 8)], Op(sent), false).is_err() {
            break;
        }
        pair.pump();
        sent += 1;
    }
    assert!((FRAMES..=2 * FRAMES).contains(&sent), "{sent}");
    assert_eq!(pair.hosts[0].broken, [(ends[0], Failure::TimedOut)]);
}

/// Frames of the previous phase that come late are opened, those that come again are not.
#[test]
fn frames_of_the_previous_phase_come_late() {
    let (mut pair, ends) = pair(Attribute::ReliableUnordered, 0);
    let late = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let kept = late.clone();
    pair.filter = std::boxed::Box::new(move |side, frame: &[u8]| {
        let is_late = side == 0 && frame.len() > 700 && kept.borrow().is_empty();
        if is_late {
            kept.borrow_mut().push(frame.to_vec());
        }
        !is_late
    });
    pair.engines[0].send(pair.now, ends[0], &[&message(7000, 700)], Op(7000), false).expect("send");
    pair.pump();
    let mut op = 0;
    while advanced(&pair)[0] == 0 {
        pair.engines[0].send(pair.now, ends[0], &[&message(op, 8)], Op(op), false).expect("send");
        op += 1;
        let until = pair.now.plus_micros(1000);
        pair.run_until(until);
    }
    let until = pair.now.plus_micros(100_000);
    pair.run_until(until);
    let frame = late.borrow()[0].clone();
    let has = |pair: &Pair| pair.hosts[1].received.iter().filter(|bytes| bytes.len() == 700).count();
    let _ = pair.inject(1, &frame);
    assert_eq!(has(&pair), 1);
    let _ = pair.inject(1, &frame);
    assert_eq!(has(&pair), 1);
    assert_eq!(pair.engines[1].stats().forged, 0);
}
