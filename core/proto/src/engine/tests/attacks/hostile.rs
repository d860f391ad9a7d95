//! A peer with a connection that says anything: nothing panics, hangs, leaks, or ends twice.

use super::*;

/// A generator that is always the same.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Anything that parses: operations that are open, that were, that never are.
fn any_records(dice: &mut Dice, raw: &Raw) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..dice.next(4) {
        let open = raw.engine.rmas.iter().flatten().nth(dice.next(4) as usize).map_or(9, |state| state.wire);
        let op = if dice.next(3) == 0 { dice.next(40) as u32 } else { open };
        let len = dice.next(60) as usize;
        bytes.extend(match dice.next(9) {
            0 | 1 => note(&vec![1; len]),
            2 => {
                let total = 1 + len as u32 + dice.next(100) as u32;
                part(dice.next(4) as u32 | (dice.next(2) as u32) << 31, total, 0, &[2])
            }
            3 => {
                let at = dice.next(40) as u32;
                part(dice.next(4) as u32, at + 9 + dice.next(9) as u32, at, &[3; 9])
            }
            4 => {
                let target = Target { handle: [7 + dice.next(2); 2], offset: dice.next(1 << 17), len: dice.next(5000) };
                record(|frame| wire::emit_read(frame, 0, op, &target), &[])
            }
            5 | 6 => result(op, dice.next(3) as u8),
            7 => record(|frame| wire::emit_read_bytes(frame, 0, op, dice.next(50), len + 1), &vec![4; len + 1]),
            _ => write(op, 7 + dice.next(2), 50 + dice.next(1 << 17), dice.next(49), &[5]),
        });
    }
    bytes
}

fn hostile_frame(dice: &mut Dice, raw: &mut Raw) -> Vec<u8> {
    let bytes = any_records(dice, raw);
    let sack: Vec<u64> = (0..dice.next(4)).map(|_| dice.next(1 << 31) << dice.next(33)).collect();
    raw.credit = dice.next(40) as u16;
    let (ack, seq) = (raw.ack, raw.seq);
    let next = raw.engine.table.get(raw.index.0).map_or(0, |conn| conn.next_seq);
    match dice.next(6) {
        0 => raw.ack = next,
        1 => raw.ack = next.wrapping_sub(dice.next(30) as u32),
        2 => raw.ack = dice.next(u64::MAX >> 31) as u32,
        _ => {}
    }
    let seq = match dice.next(8) {
        0 => None,
        1 | 2 => Some(seq.wrapping_add(dice.next(20) as u32)),
        3 => Some(seq.wrapping_sub(dice.next(20) as u32)),
        4 => Some(dice.next(1 << 32) as u32),
        _ => {
            raw.seq = raw.seq.wrapping_add(1);
            Some(seq)
        }
    };
    let bits = [0, flags::RNR, flags::PROMPT, flags::ASK][dice.next(4) as usize];
    let mut frame = raw.data(seq, bits, &sack, &bytes);
    if dice.next(5) == 0 {
        let at = 44 + dice.next(12) as usize;
        frame[at] = dice.next(256) as u8;
    }
    raw.ack = ack;
    frame
}

/// Operations of the program, and the slots that it gives back.
fn program(dice: &mut Dice, raw: &mut Raw, next: &mut u32) {
    let (now, index) = (raw.now, raw.index);
    let op = Op(*next);
    let note = vec![6; dice.next(4000) as usize];
    let begun = match dice.next(6) {
        0 | 1 => raw.engine.send(now, index, &[&note], op, dice.next(2) == 0).is_ok(),
        2 | 3 => {
            let target = Target { handle: [7, 7], offset: 0, len: 1 + dice.next(9000) };
            let message = (dice.next(2) == 0).then_some(&note[..]);
            let (read, fence) = (dice.next(2) == 0, dice.next(3) == 0);
            raw.engine.rma(now, index, &Rma { op, target, access: access(read), fence, message }).is_ok()
        }
        4 => {
            raw.host.slots += dice.next(3) as u32;
            raw.engine.refill(&mut raw.host);
            false
        }
        _ => {
            raw.host.dead = dice.next(4) == 0;
            false
        }
    };
    *next += u32::from(begun);
}

#[test]
fn a_peer_that_says_anything_breaks_no_promise() {
    for seed in 0..40 {
        for attribute in [Attribute::ReliableOrdered, Attribute::ReliableUnordered, Attribute::Unreliable] {
            let mut dice = Dice(seed);
            let config = Config { frames: 64, holds: 12 + dice.next(20) as u32, ..CONFIG };
            let mut raw = Raw::with(&config, attribute);
            raw.host.slots = 3;
            let mut begun = 0;
            for _ in 0..600 {
                if dice.next(3) == 0 {
                    program(&mut dice, &mut raw, &mut begun);
                }
                let frame = hostile_frame(&mut dice, &mut raw);
                raw.give(&frame);
                let pause = [0, 10, 300, 30_000][dice.next(4) as usize];
                raw.wait(pause);
            }
            let (now, taken) = (raw.now, raw.host.buffers.len());
            assert!(taken <= 1, "one message at a time is put together");
            raw.engine.close(now, raw.index, &mut raw.host);
            assert_eq!(raw.host.ended.len(), begun as usize, "seed {seed}, {attribute:?}");
            raw.wait(40_000_000);
            assert!(is_clean(&raw.engine, &raw.host), "seed {seed}, {attribute:?}");
        }
    }
}
