//! Models of the rings: every interleaving of a producer and a consumer, within a bound of
//! preemptions.
#![cfg(loom)]
#![expect(clippy::arc_with_non_send_sync, reason = "loom watches the cells that threads share")]

use cci_mem::ring::{Consumer, Entry, GrantReader, GrantWriter, Header, Producer};
use cci_mem::sync::{AtomicU32, Ordering, spin};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

/// Four entries: the smallest ring whose consumer tells its head every quarter.
const ENTRIES: usize = 4;
/// Two laps before the cursor wraps at 32 bits, so that the models meet that wrap and the lap that
/// is 0.
const START: u32 = 0u32.wrapping_sub(8);

fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// A lane of one direction. `payload` stands for the memory that a frame points to: loom reports
/// any access to a cell that is not ordered with the others, so it proves what the entries, all
/// atomics, cannot.
struct Lane {
    entries: [Entry; ENTRIES],
    head: AtomicU32,
    payload: [UnsafeCell<u32>; ENTRIES],
}

impl Lane {
    fn new(start: u32) -> Arc<Self> {
        Arc::new(Self {
            entries: std::array::from_fn(|_| Entry::default()),
            head: AtomicU32::new(start),
            payload: std::array::from_fn(|_| UnsafeCell::new(0)),
        })
    }

    /// Sends a frame if there is room.
    fn produce(&self, producer: &mut Producer<ENTRIES>, number: u32) -> bool {
        if !producer.has_room(&self.head).expect("an honest consumer") {
            return false;
        }
        let cell = &self.payload[number as usize % self.payload.len()];
        // SAFETY: the cell belongs to the producer while its entry is free; loom checks exactly
        // that.
        cell.with_mut(|at| unsafe { *at = number });
        let header = Header { kind: 1, len: 16, word: number };
        producer.push_words(&self.entries, header, [u64::from(number), !u64::from(number)]);
        true
    }

    /// Takes a frame if there is one, which is to be this one.
    fn consume(&self, consumer: &mut Consumer<ENTRIES>, number: u32, head: &AtomicU32) -> bool {
        let Some(header) = consumer.peek(&self.entries) else { return false };
        assert_eq!(header, Header { kind: 1, len: 16, word: number });
        let body = consumer.shown(&self.entries).body();
        assert_eq!((body[0], body[1]), (u64::from(number), !u64::from(number)), "body of another frame");
        let cell = &self.payload[number as usize % self.payload.len()];
        // SAFETY: the cell belongs to the consumer from the entry's publication to its giving back;
        // loom checks that.
        assert_eq!(cell.with(|at| unsafe { *at }), number, "overwritten before it was read");
        consumer.advance(head);
        true
    }
}

/// All frames cross; each side waits for the other.
fn frames_cross(start: u32, count: u32, preemptions: usize) {
    model(preemptions, move || {
        let lane = Lane::new(start);
        let sender = Arc::clone(&lane);
        let thread = thread::spawn(move || {
            let mut producer = Producer::starting_at(start);
            (0..count).for_each(|number| until(|| sender.produce(&mut producer, number)));
        });
        let mut consumer = Consumer::starting_at(start);
        (0..count).for_each(|number| until(|| lane.consume(&mut consumer, number, &lane.head)));
        assert_eq!(consumer.peek(&lane.entries), None, "a frame that nobody sent");
        thread.join().expect("the producer ends");
    });
}

fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        spin();
    }
}

/// A producer that tries `count` times and a consumer that looks `looks` times. Neither waits: loom
/// lets a thread that waits stand back until the others wait too, so that only this explores looks
/// in the midst of a publication.
fn frames_are_glimpsed(count: u32, looks: u32, preemptions: usize) {
    model(preemptions, move || {
        let lane = Lane::new(0);
        let sender = Arc::clone(&lane);
        let thread = thread::spawn(move || {
            let mut producer = Producer::new();
            (0..count).fold(0, |sent, _| sent + u32::from(sender.produce(&mut producer, sent)))
        });
        let mut consumer = Consumer::new();
        let mut seen = (0..looks).fold(0, |seen, _| seen + u32::from(lane.consume(&mut consumer, seen, &lane.head)));
        let sent = thread.join().expect("the producer ends");
        while lane.consume(&mut consumer, seen, &lane.head) {
            seen += 1;
        }
        assert_eq!(seen, sent);
    });
}

/// Fewer frames than entries: every interleaving of publication and look.
#[test]
fn a_frame_is_whole_or_not_there() {
    frames_are_glimpsed(2, 3, 4);
}

/// More frames than entries: no entry is filled again before the consumer has read it, and no old
/// frame is seen twice.
#[test]
fn an_entry_is_reused_only_when_given_back() {
    frames_are_glimpsed(7, 3, 3);
}

#[test]
fn every_frame_crosses_a_full_ring() {
    frames_cross(0, 6, 2);
}

/// The same across the laps 0xffff, 0 and 1 and across the wrap of the cursor.
#[test]
fn laps_and_cursors_wrap() {
    frames_cross(START, 10, 1);
}

/// The mutant: a head told with relaxed order gives the producer an entry that may still be being
/// read.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_head_without_release_is_caught() {
    model(3, || {
        let lane = Lane::new(0);
        let receiver = Arc::clone(&lane);
        let thread = thread::spawn(move || {
            let mut consumer = Consumer::new();
            let private = AtomicU32::new(0);
            until(|| receiver.consume(&mut consumer, 0, &private));
            receiver.head.store(1, Ordering::Relaxed);
        });
        let mut producer = Producer::new();
        (0..=4).for_each(|number| until(|| lane.produce(&mut producer, number)));
        thread.join().expect("the consumer ends");
    });
}

/// Two payload slots, granted in turn. The granter reads a slot and grants it again; the filler
/// writes only what it was granted.
#[test]
fn a_granted_slot_is_not_being_read() {
    const WORDS: u32 = 1;
    model(3, || {
        let words: Arc<[AtomicU32; 2]> = Arc::new(std::array::from_fn(|_| AtomicU32::new(0)));
        let slots: Arc<[UnsafeCell<u32>; 2]> = Arc::new(std::array::from_fn(|_| UnsafeCell::new(7)));
        let filled: Arc<[AtomicU32; 2]> = Arc::new(std::array::from_fn(|_| AtomicU32::new(0)));

        let (filler_words, filler_slots, filler_filled) = (Arc::clone(&words), Arc::clone(&slots), Arc::clone(&filled));
        let filler = thread::spawn(move || {
            let mut reader = GrantReader::new(WORDS);
            for round in 1..=3 {
                let slot = loop {
                    match reader.take(&*filler_words) {
                        Some(slot) => break usize::from(slot),
                        None => spin(),
                    }
                };
                // SAFETY: granted to this side and not told to be full yet; loom checks that nobody
                // else touches it.
                filler_slots[slot].with_mut(|at| unsafe { *at = round });
                // Release: stands for the entry that names the slot.
                filler_filled[slot].store(round, Ordering::Release);
            }
            assert_eq!(reader.take(&*filler_words), None, "a grant that nobody made");
        });

        let mut writer = GrantWriter::new(WORDS);
        for (slot, index) in slots.iter().zip(0..) {
            // SAFETY: not granted yet; loom checks it.
            assert_eq!(slot.with(|at| unsafe { *at }), 7);
            writer.grant(&*words, index);
        }
        while filled[0].load(Ordering::Acquire) == 0 {
            spin();
        }
        // SAFETY: filled and handed back by the acquire above; not granted again yet.
        assert_eq!(slots[0].with(|at| unsafe { *at }), 1);
        writer.grant(&*words, 0);
        filler.join().expect("the filler ends");
        // SAFETY: the filler has ended.
        assert_eq!(slots[0].with(|at| unsafe { *at }), 3);
    });
}
