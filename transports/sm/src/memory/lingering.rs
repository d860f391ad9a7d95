//! Segments of library memory without registrations, which peers keep mapped for a while: who
//! registers memory for one transfer registers it again for the next one, and sending, mapping and
//! touching a segment anew costs more than a copy of 1 MiB.

use std::collections::VecDeque;

/// How long a segment lingers, milliseconds.
const TIME: u64 = 1_000;
/// Bytes of all that linger, at most: peers map no more than their machine has. Memory that the
/// program frees meanwhile is given back to the system at once.
const MOST_BYTES: u64 = 1 << 30;
/// Segments that linger, at most.
const MOST: usize = 64;

struct Entry {
    number: u64,
    len: u64,
    until: u64,
}

/// Segments in the order in which they lost their last registration.
#[derive(Default)]
pub(crate) struct Lingering {
    entries: VecDeque<Entry>,
    bytes: u64,
}

impl Lingering {
    /// A segment has lost its last registration at this time, milliseconds.
    pub(crate) fn insert(&mut self, number: u64, len: u64, now: u64) {
        self.entries.push_back(Entry { number, len, until: now.saturating_add(TIME) });
        self.bytes = self.bytes.saturating_add(len);
    }

    /// A segment has a registration again. False: it did not linger.
    pub(crate) fn remove(&mut self, number: u64) -> bool {
        let Some(at) = self.entries.iter().position(|entry| entry.number == number) else { return false };
        self.bytes -= self.entries.remove(at).map_or(0, |entry| entry.len);
        true
    }

    /// Whether peers keep this segment.
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.entries.iter().any(|entry| entry.number == number)
    }

    /// Takes out the oldest one, if its time is over or there are too many: peers are to give it
    /// back.
    pub(crate) fn expire(&mut self, now: u64) -> Option<u64> {
        let is_full = self.entries.len() > MOST || self.bytes > MOST_BYTES;
        self.entries.front().filter(|oldest| is_full || oldest.until <= now)?;
        let oldest = self.entries.pop_front()?;
        self.bytes -= oldest.len;
        Some(oldest.number)
    }

    /// When the next one is over, milliseconds.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.entries.front().map(|oldest| oldest.until)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lingering, MOST, MOST_BYTES, TIME};

    #[test]
    fn a_segment_lingers_for_its_time_unless_it_is_used_again() {
        let mut lingering = Lingering::default();
        lingering.insert(1, 4096, 100);
        lingering.insert(2, 4096, 200);
        assert!(lingering.contains(1) && lingering.deadline() == Some(100 + TIME));
        assert_eq!(lingering.expire(99 + TIME), None);
        assert!(lingering.remove(1) && !lingering.remove(1) && !lingering.contains(1));
        assert_eq!((lingering.expire(100 + TIME), lingering.expire(200 + TIME)), (None, Some(2)));
        assert_eq!((lingering.deadline(), lingering.bytes), (None, 0));
    }

    #[test]
    fn few_linger_and_not_much() {
        let mut lingering = Lingering::default();
        (0..=MOST as u64).for_each(|number| lingering.insert(number, 1, 0));
        assert_eq!((lingering.expire(0), lingering.expire(0)), (Some(0), None), "the oldest one goes");
        lingering.insert(100, MOST_BYTES, 0);
        let gone = std::iter::from_fn(|| lingering.expire(0)).count();
        assert_eq!((gone, lingering.contains(100)), (MOST, true), "until the rest fits");
        lingering.insert(101, MOST_BYTES + 1, 0);
        assert_eq!((lingering.expire(0), lingering.expire(0)), (Some(100), Some(101)), "one that never fits");
    }
}
