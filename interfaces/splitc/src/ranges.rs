//! Which parts of a range of addresses are free: the same answer in every rank that asks the same.

use crate::layout::LINE;
use std::collections::BTreeMap;

/// Parts that are free, and parts that are taken: where they begin, and how long they are.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    free: BTreeMap<u64, u64>,
    taken: BTreeMap<u64, u64>,
    /// Where parts end that have been taken once.
    used: u64,
}

impl Ranges {
    /// Adds a free part, and joins it with its neighbours.
    pub(crate) fn add(&mut self, mut at: u64, mut len: u64) {
        if let Some((&before, &bytes)) = self.free.range(..at).next_back()
            && before + bytes == at
        {
            (at, len) = (before, len + bytes);
        }
        if let Some(bytes) = self.free.remove(&(at + len)) {
            len += bytes;
        }
        self.free.insert(at, len);
    }

    /// Takes the first part that is long enough, in whole lines.
    pub(crate) fn take(&mut self, len: u64) -> Option<u64> {
        let len = len.max(1).checked_next_multiple_of(LINE)?;
        let (&at, &bytes) = self.free.iter().find(|(_, bytes)| **bytes >= len)?;
        self.free.remove(&at);
        if bytes > len {
            self.free.insert(at + len, bytes - len);
        }
        self.taken.insert(at, len);
        Some(at)
    }

    /// Gives a part back. False: it is not taken.
    pub(crate) fn give(&mut self, at: u64) -> bool {
        let Some(len) = self.taken.remove(&at) else { return false };
        self.add(at, len);
        true
    }

    /// Notes that the part which begins here is zero, and returns how many of its bytes may not
    /// have been.
    pub(crate) fn wipe(&mut self, at: u64) -> u64 {
        let len = self.len_of(at).unwrap_or(0);
        let before = self.used.saturating_sub(at).min(len);
        self.used = self.used.max(at + len);
        before
    }

    /// How long the part is that begins here, if it is taken.
    pub(crate) fn len_of(&self, at: u64) -> Option<u64> {
        self.taken.get(&at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random parts never overlap, and the whole range is free again at the end.
    #[test]
    fn parts_are_apart_and_come_back() {
        const WHOLE: u64 = 1 << 16;
        let mut random = fastrand::Rng::with_seed(7);
        let mut ranges = Ranges::default();
        ranges.add(0x1000, WHOLE / 2);
        ranges.add(0x1000 + WHOLE / 2, WHOLE / 2);
        let mut held: Vec<(u64, u64)> = Vec::new();
        for _ in 0..2000 {
            let len = random.u64(0..3000);
            if random.bool()
                && let Some(at) = ranges.take(len)
            {
                let is_apart = |&(other, bytes): &(u64, u64)| at + len <= other || other + bytes <= at;
                assert!(held.iter().all(is_apart) && at.is_multiple_of(LINE) && at >= 0x1000);
                assert!(ranges.len_of(at).is_some_and(|found| found >= len));
                held.push((at, len.max(1)));
            } else if !held.is_empty() {
                let (at, _) = held.swap_remove(random.usize(..held.len()));
                assert!(ranges.give(at) && !ranges.give(at));
            }
        }
        assert_eq!((ranges.wipe(0x1001), ranges.used), (0, 0x1001), "no part begins there");
        assert!(held.into_iter().all(|(at, _)| ranges.give(at)));
        assert_eq!((ranges.take(WHOLE + 1), ranges.take(u64::MAX), ranges.take(WHOLE)), (None, None, Some(0x1000)));
    }
}
