//! Connections by their identifiers: 64 random bits each, found by open addressing. The bits need
//! no hash function: this side draws them under a secret key, so that nobody chooses where they
//! fall.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Parts of the table, each of which grows by itself: so no call copies more than a small part of
/// many identifiers.
const SHARDS: usize = 64;
/// The top bits of an identifier, which choose its part.
const SHARD_SHIFT: u32 = 64 - SHARDS.trailing_zeros();
/// The smallest part that is not empty, entries.
const LEAST: usize = 8;

/// An identifier and an index; 0 = free. Twelve bytes, in halves because of the alignment.
#[derive(Clone, Copy, Default)]
struct Entry {
    high: u32,
    low: u32,
    index: u32,
}

impl Entry {
    #[expect(clippy::cast_possible_truncation, reason = "halves of a word")]
    fn new(id: u64, index: u32) -> Self {
        Self { high: (id >> 32) as u32, low: id as u32, index }
    }

    #[inline]
    fn id(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// A part: entries whose number is a power of two, or none; a quarter of them is free.
#[derive(Default)]
struct Shard {
    entries: Box<[Entry]>,
    used: usize,
}

impl Shard {
    /// Where an identifier stands, or the free entry that says that it does not.
    #[inline]
    fn find(&self, id: u64) -> Option<(usize, Entry)> {
        let mask = self.entries.len().wrapping_sub(1);
        let mut at = home(id, mask);
        loop {
            let entry = *self.entries.get(at)?;
            if entry.id() == id || entry.id() == 0 {
                return Some((at, entry));
            }
            at = at.wrapping_add(1) & mask;
        }
    }

    /// Moves all into another number of entries. None: no memory.
    #[cold]
    fn resize(&mut self, len: usize) -> Option<()> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(len).ok()?;
        entries.resize(len, Entry::default());
        let old = core::mem::replace(&mut self.entries, entries.into_boxed_slice());
        for entry in old.iter().filter(|entry| entry.id() != 0) {
            if let Some((at, _)) = self.find(entry.id()) {
                self.entries[at] = *entry;
            }
        }
        Some(())
    }

    fn insert(&mut self, id: u64, index: u32) -> Option<()> {
        if (self.used + 1) * 4 > self.entries.len() * 3 {
            self.resize((2 * self.entries.len()).max(LEAST))?;
        }
        let (at, _) = self.find(id)?;
        self.entries[at] = Entry::new(id, index);
        self.used += 1;
        Some(())
    }

    /// Takes one out, and moves those behind it that it had pushed away (Knuth, volume 3, 6.4,
    /// algorithm R).
    fn remove(&mut self, id: u64) {
        let Some((mut hole, entry)) = self.find(id) else { return };
        if entry.id() == 0 {
            return;
        }
        let mask = self.entries.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry.id() == 0 {
                break;
            }
            if at.wrapping_sub(home(entry.id(), mask)) & mask >= at.wrapping_sub(hole) & mask {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = Entry::default();
        self.used -= 1;
        if self.used * 8 < self.entries.len() && self.entries.len() > LEAST {
            // Without memory for a smaller one the large one stays.
            let _ = self.resize(self.entries.len() / 2);
        }
    }
}

/// Where an identifier would stand by itself.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "any low bits do")]
fn home(id: u64, mask: usize) -> usize {
    id as usize & mask
}

/// The identifiers of an endpoint's connections.
pub(super) struct Ids(Box<[Shard]>);

impl Ids {
    pub(super) fn new() -> Self {
        Self((0..SHARDS).map(|_| Shard::default()).collect())
    }

    /// Returns the index of the connection with this identifier. The connection may be gone
    /// already.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Option<u32> {
        let (_, entry) = self.0.get((id >> SHARD_SHIFT) as usize)?.find(id)?;
        (entry.id() != 0).then_some(entry.index)
    }

    /// Enters an identifier, which is not 0 and not there yet. None: no memory.
    pub(super) fn insert(&mut self, id: u64, index: u32) -> Option<()> {
        self.0.get_mut((id >> SHARD_SHIFT) as usize)?.insert(id, index)
    }

    pub(super) fn remove(&mut self, id: u64) {
        if let Some(shard) = self.0.get_mut((id >> SHARD_SHIFT) as usize) {
            shard.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::random::Random;
    use alloc::collections::BTreeMap;

    #[test]
    fn it_finds_what_is_there_and_nothing_else() {
        let (mut ids, mut model) = (Ids::new(), BTreeMap::new());
        let mut random = Random::new([1, 2]);
        for round in 0..200_000_u32 {
            let draw = random.next();
            // Few homes, so that entries push each other away and around the end.
            let id = 1 + draw % 3000 + (draw & 7) * 0x2000_0000_0000_0000;
            if round % 5 < 3 - u32::from(round > 100_000) * 2 {
                if model.insert(id, round).is_none() {
                    ids.insert(id, round).expect("memory");
                } else {
                    ids.remove(id);
                    ids.insert(id, round).expect("memory");
                }
            } else {
                assert_eq!(ids.find(id), model.get(&id).copied());
                ids.remove(id);
                model.remove(&id);
            }
        }
        assert_eq!(ids.find(0), None);
        for (id, index) in &model {
            assert_eq!(ids.find(*id), Some(*index));
        }
        let all: Vec<u64> = model.keys().copied().collect();
        all.iter().for_each(|id| ids.remove(*id));
        assert!(ids.0.iter().all(|shard| shard.used == 0 && shard.entries.len() <= LEAST), "memory is given back");
    }
}
