//! Probes of single cache lines: the round trip, and a ring of one-line entries.

use super::shared::{HEAD, LINES, PLACE_STRIDE, PLACES, RING, RING_ENTRIES, Shared};
use super::side::Side;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of an entry: one flag and 56 bytes.
const ENTRY_WORDS: usize = 8;

/// Where the exchanges of lines are; the same on both sides.
#[derive(Default)]
pub(super) struct Turn {
    /// It moves on within a block, see [`STAY`].
    pub(super) place: usize,
    /// The number that went there and back last.
    pub(super) sequence: u64,
}

/// Exchanges at one place before the next. What a line costs depends on where it lies (by 40 %
/// where the processors' caches are in slices), so that a block goes to many places, and its time
/// is no matter of luck. The first exchange at a place, which finds its lines nowhere near, must
/// not count for much.
pub(super) const STAY: u64 = 64;

/// A number goes to the other side in a line and comes back in another. Without a pause between
/// looks: bare.
pub(super) fn ping(shared: &Shared, side: Side, turn: &mut Turn, count: u64) {
    let mut left = count;
    while left > 0 {
        let [client, server] = lines(shared, turn.place);
        let here = left.min(STAY);
        for _ in 0..here {
            turn.sequence += 1;
            match side {
                Side::Client => {
                    client.store(turn.sequence, Ordering::Relaxed);
                    wait(server, turn.sequence);
                }
                Side::Server => {
                    wait(client, turn.sequence);
                    server.store(turn.sequence, Ordering::Relaxed);
                }
            }
        }
        left -= here;
        turn.place += 1;
    }
}

/// The words of the client and of the server at one of the places.
pub(super) fn lines(shared: &Shared, place: usize) -> [&AtomicU64; 2] {
    let at = LINES + place % PLACES * PLACE_STRIDE;
    [at, at + 128].map(|offset| shared.word(offset))
}

/// Waits for a number. Acquire: what the other side wrote before is visible.
#[inline(always)]
pub(super) fn wait(word: &AtomicU64, value: u64) {
    while word.load(Ordering::Acquire) != value {}
}

/// Messages through a single-producer ring of one-line entries; `LOCKED` adds one locked
/// instruction a message where it is sent. Ends when the consumer has taken the last.
pub(super) fn ring<const LOCKED: bool>(shared: &Shared, side: Side, sequence: &mut u64, size: usize, count: u64) {
    let words = size.div_ceil(8).clamp(1, ENTRY_WORDS - 1);
    match side {
        Side::Client => produce::<LOCKED>(shared, sequence, words, count),
        Side::Server => consume(shared, sequence, words, count),
    }
}

fn produce<const LOCKED: bool>(shared: &Shared, sequence: &mut u64, words: usize, count: u64) {
    let (entries, head) = (entries(shared), shared.word(HEAD));
    let lock = AtomicU64::new(0);
    let mut taken = head.load(Ordering::Acquire);
    for _ in 0..count {
        while *sequence - taken >= RING_ENTRIES {
            taken = head.load(Ordering::Acquire);
        }
        if LOCKED {
            lock.swap(1, Ordering::Acquire);
        }
        let entry = entry(entries, *sequence);
        for word in &entry[1..=words] {
            word.store(*sequence, Ordering::Relaxed);
        }
        *sequence += 1;
        // Release: publishes the entry's body.
        entry[0].store(*sequence, Ordering::Release);
        if LOCKED {
            lock.store(0, Ordering::Release);
        }
    }
    wait(head, *sequence);
}

fn consume(shared: &Shared, sequence: &mut u64, words: usize, count: u64) {
    let (entries, head) = (entries(shared), shared.word(HEAD));
    let mut sum = 0_u64;
    for _ in 0..count {
        let entry = entry(entries, *sequence);
        *sequence += 1;
        wait(&entry[0], *sequence);
        for word in &entry[1..=words] {
            sum = sum.wrapping_add(word.load(Ordering::Relaxed));
        }
        // Told every quarter of a ring, so that the producer's look at it costs little.
        if (*sequence).is_multiple_of(RING_ENTRIES / 4) {
            head.store(*sequence, Ordering::Release);
        }
    }
    std::hint::black_box(sum);
    head.store(*sequence, Ordering::Release);
}

fn entries(shared: &Shared) -> &[AtomicU64] {
    shared.words(RING, RING_ENTRIES as usize * ENTRY_WORDS)
}

#[inline(always)]
fn entry(entries: &[AtomicU64], sequence: u64) -> &[AtomicU64; ENTRY_WORDS] {
    let at = (sequence % RING_ENTRIES) as usize * ENTRY_WORDS;
    entries[at..at + ENTRY_WORDS].first_chunk().unwrap_or_else(|| unreachable!("a slice of that length"))
}
