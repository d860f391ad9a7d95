//! Frames whose bytes are copied before their check is known.

use super::*;
use crate::wire::{Crc, Malformed, seal};

/// Bytes of each part: a large frame's.
const PART: usize = 5000;
/// Parts of the operation.
const PARTS: usize = 4;

/// The bytes of a part.
fn bytes(part: usize) -> Vec<u8> {
    vec![10 + u8::try_from(part).expect("few"); PART]
}

fn whole(parts: usize) -> Vec<u8> {
    (0..parts).flat_map(bytes).collect()
}

impl Raw {
    /// A sealed frame of the peer with this part of its write number 1.
    fn part_frame(&mut self, seq: u32, part: usize) -> Vec<u8> {
        let record = write(1, 7, (PARTS * PART) as u64, (part * PART) as u64, &bytes(part));
        self.sealed(seq, 0, &record)
    }

    fn sealed(&mut self, seq: u32, bits: u8, records: &[u8]) -> Vec<u8> {
        let mut frame = self.data(Some(seq), bits, &[], records);
        seal(&mut frame, 0, |crc: Crc| crc);
        frame
    }

    fn take(&mut self, frame: &[u8]) -> Result<(), Malformed> {
        self.engine.handle_frame(self.now, &PEER, frame, false, &mut self.host)
    }
}

/// The frame with its last byte changed on the way.
fn broken(mut frame: Vec<u8>) -> Vec<u8> {
    *frame.last_mut().expect("not empty") ^= 0x40;
    frame
}

#[test]
fn parts_of_a_write_land_from_the_second_on_and_the_write_ends() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let first = raw.seq;
    for (seq, part) in (first..).zip(0..PARTS) {
        let frame = raw.part_frame(seq, part);
        assert_eq!(raw.take(&frame), Ok(()));
        assert_eq!(raw.host.copied as usize, part, "after part {part}");
        assert_eq!(raw.host.memory[..(part + 1) * PART], whole(part + 1));
    }
    assert_eq!(records(&raw.poll()), [Record::Result { op: 1, status: 0 }]);
}

#[test]
fn a_broken_frame_that_lands_is_dropped_and_its_bytes_come_again() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let seq = raw.seq;
    let (first, second) = (raw.part_frame(seq, 0), raw.part_frame(seq + 1, 1));
    assert_eq!(raw.take(&first), Ok(()));
    assert_eq!(raw.take(&broken(second.clone())), Err(Malformed::Check));
    assert_eq!(raw.host.copied, 1);
    assert_eq!(raw.host.memory[..PART], whole(1), "what was accepted stays");
    let mut header = second.clone();
    header[52] ^= 1;
    assert_eq!(raw.take(&header), Err(Malformed::Check), "the check covers the head too");
    assert_eq!(raw.take(&second), Ok(()));
    assert_eq!(raw.host.memory[..2 * PART], whole(2));
}

#[test]
fn no_broken_frame_overwrites_what_was_accepted() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let seq = raw.seq;
    let frames: Vec<_> = (0..PARTS).map(|part| raw.part_frame(seq + u32::try_from(part).expect("few"), part)).collect();
    // The third before the second, which then goes on with what comes after the first: the third's
    // place.
    for part in [0, 2, 1] {
        assert_eq!(raw.take(&frames[part]), Ok(()));
    }
    let before = raw.host.memory.clone();
    assert_eq!(raw.take(&broken(frames[2].clone())), Err(Malformed::Check));
    // Its number says that it is the next one.
    let false_next = raw.part_frame(seq + 3, 2);
    assert_eq!(raw.take(&broken(false_next)), Err(Malformed::Check));
    assert!(raw.host.memory == before, "accepted bytes were overwritten");
    assert_eq!(raw.take(&frames[3]), Ok(()));
    assert_eq!(raw.host.memory[..PARTS * PART], whole(PARTS));
}

#[test]
fn only_what_goes_on_lands() {
    let other = |op, at: usize| write(op, 7, (PARTS * PART) as u64, at as u64, &bytes(1));
    let small = write(1, 7, (PARTS * PART) as u64, PART as u64, b"few");
    let with_message = [note(b"message"), other(1, PART)].concat();
    for (what, ahead, bits, records) in [
        ("another operation", 0, 0, other(2, PART)),
        ("another index", 0, 0, other(1, 2 * PART)),
        ("a frame before its turn", 1, 0, other(1, PART)),
        ("a small frame", 0, 0, small),
        ("a frame with a message", 0, 0, with_message),
    ] {
        let mut raw = Raw::new(Attribute::ReliableOrdered);
        let first = raw.part_frame(raw.seq, 0);
        assert_eq!(raw.take(&first), Ok(()));
        let frame = raw.sealed(raw.seq + 1 + ahead, bits, &records);
        assert_eq!(raw.take(&frame), Ok(()), "{what}");
        assert_eq!(raw.host.copied, 0, "{what}");
    }
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let first = raw.part_frame(raw.seq, 0);
    assert_eq!(raw.take(&first), Ok(()));
    let seq = raw.seq + 1;
    let unchecked = raw.sealed(seq, flags::UNCHECKED, &other(1, PART));
    assert!(raw.take(&unchecked).is_err() || raw.host.memory[PART..].starts_with(&[3]), "not agreed upon");
    assert_eq!(raw.host.copied, 0);
    let refused = raw.sealed(seq, 0, &write(2, 8, (PARTS * PART) as u64, 0, &bytes(0)));
    assert_eq!(raw.take(&refused), Ok(()));
    let goes_on = raw.sealed(seq + 1, 0, &write(2, 8, (PARTS * PART) as u64, PART as u64, &bytes(1)));
    assert_eq!(raw.take(&goes_on), Ok(()));
    assert_eq!(raw.host.copied, 0, "a write that was refused");
    assert!(raw.host.memory[PART..].iter().all(|byte| *byte == 3));
}

#[test]
fn the_bytes_of_a_read_land() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.rma(3, true, (PARTS * PART) as u64, None);
    let asked = raw.poll();
    let op = records(&asked)
        .into_iter()
        .find_map(|record| if let Record::Read { op, .. } = record { Some(op) } else { None });
    let op = op.expect("a READ");
    raw.accept_all();
    for (seq, part) in (raw.seq..).zip(0..PARTS) {
        let at = (part * PART) as u64;
        let brought = record(|frame| wire::emit_read_bytes(frame, 0, op, at, PART), &bytes(part));
        let frame = raw.sealed(seq, 0, &brought);
        assert_eq!(raw.take(&broken(frame.clone())), Err(Malformed::Check));
        assert!(raw.host.ended.is_empty());
        assert_eq!(raw.take(&frame), Ok(()));
    }
    // Each of them twice, but for the first.
    assert_eq!(raw.host.copied as usize, 2 * (PARTS - 1));
    assert_eq!(raw.host.local[..PARTS * PART], whole(PARTS));
    assert_eq!(raw.host.ended[&3], Ok(()));
}
