use super::*;
use crate::engine::random::Random;
use alloc::collections::BTreeMap;
use proptest::prelude::*;

/// The table beside an oracle: identifiers by index.
struct Pair {
    ids: Ids,
    by_index: Vec<u64>,
    free: Vec<u32>,
    model: BTreeMap<u64, u32>,
}

impl Pair {
    fn new() -> Self {
        Self { ids: Ids::new(), by_index: Vec::new(), free: Vec::new(), model: BTreeMap::new() }
    }

    /// Enters an identifier unless it is there.
    fn insert(&mut self, id: u64) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.by_index.push(0);
            self.by_index.len() as u32 - 1
        });
        if self.model.contains_key(&id) {
            return self.free.push(index);
        }
        let by_index = &self.by_index;
        self.ids.make_room(id, |index| by_index[index as usize]).expect("memory");
        self.ids.insert(id, index);
        self.by_index[index as usize] = id;
        self.model.insert(id, index);
    }

    fn remove(&mut self, id: u64) {
        let by_index = &self.by_index;
        self.ids.remove(id, |index| by_index[index as usize]);
        if let Some(index) = self.model.remove(&id) {
            self.by_index[index as usize] = 0;
            self.free.push(index);
        }
    }

    fn find(&self, id: u64) -> Option<u32> {
        self.ids.find(id, |index| self.by_index[index as usize] == id)
    }

    fn check(&self) {
        for (id, index) in &self.model {
            assert_eq!(self.find(*id), Some(*index), "{id:x}");
        }
        assert_eq!(self.ids.used, self.model.len());
        assert_eq!(self.ids.parts.iter().map(|part| part.used).sum::<usize>(), self.model.len());
        let is_bounded = |part: &Part| part.used * 5 <= part.entries.len() * 4;
        assert!(self.ids.parts.iter().all(is_bounded), "a search would be long, or have no end");
    }

    fn bytes(&self) -> usize {
        let entries: usize = self.ids.parts.iter().map(|part| part.entries.len()).sum();
        entries * size_of::<Entry>() + self.ids.parts.capacity() * size_of::<Part>()
    }
}

/// Few homes, few tags and few parts: entries push each other away and around the end, and many
/// have the same tag.
fn crowded() -> impl Strategy<Value = u64> {
    let homes = prop_oneof![Just(0), Just(1 << 31), Just(u32::MAX >> 1), Just(u32::MAX), 0..8_u32];
    (homes, 0..3_u64, 0..64_u64).prop_map(|(home, tag, low)| u64::from(home) << 32 | (tag * 0x7f) << 24 | low | 1 << 20)
}

proptest! {
    #[test]
    fn it_finds_what_is_there_and_nothing_else(steps in proptest::collection::vec((crowded(), 0..3), 0..600)) {
        let mut pair = Pair::new();
        for (id, choice) in steps {
            prop_assert_eq!(pair.find(id), pair.model.get(&id).copied());
            if choice < 2 { pair.insert(id) } else { pair.remove(id) }
            prop_assert_eq!(pair.find(id), pair.model.get(&id).copied());
        }
        pair.check();
        for id in pair.model.keys().copied().collect::<Vec<_>>() {
            pair.remove(id);
            prop_assert_eq!(pair.find(id), None);
        }
        pair.check();
    }
}

#[test]
fn many_take_six_bytes_each_and_are_given_back() {
    let (mut pair, mut random, mut all) = (Pair::new(), Random::new([1, 2]), Vec::new());
    for count in 1..=100_000_usize {
        let id = random.next();
        pair.insert(id);
        all.push(id);
        if count >= 1000 && count.is_multiple_of(1000) {
            assert!(pair.bytes() <= 13 * count / 2, "{} bytes for {count}", pair.bytes());
        }
    }
    assert!(pair.bytes() <= 600_000, "{} bytes", pair.bytes());
    pair.check();
    assert!((0..100_000).all(|_| pair.find(random.next()).is_none()));
    // In another order than they came.
    for at in (0..all.len()).rev() {
        let id = all.swap_remove(at * 7919 % (at + 1));
        pair.remove(id);
        if at % 9973 == 0 {
            pair.check();
        }
    }
    assert!(pair.ids.parts.len() == 1 && pair.bytes() < 256, "{} bytes are left", pair.bytes());
}

/// A peer's frames wait while identifiers are moved: connections are read from memory for it.
#[test]
fn no_call_moves_many() {
    let (mut pair, mut random) = (Pair::new(), Random::new([3, 4]));
    let mut all = Vec::new();
    let reads = core::cell::Cell::new(0_usize);
    let mut most = 0;
    for _ in 0..100_000 {
        let id = random.next();
        let by_index = &pair.by_index;
        let id_of = |index: u32| {
            reads.set(reads.get() + 1);
            by_index[index as usize]
        };
        reads.set(0);
        pair.ids.make_room(id, id_of).expect("memory");
        most = most.max(reads.get());
        pair.insert(id);
        all.push(id);
    }
    for id in all {
        let by_index = &pair.by_index;
        reads.set(0);
        pair.ids.remove(id, |index| {
            reads.set(reads.get() + 1);
            by_index[index as usize]
        });
        most = most.max(reads.get());
    }
    assert!(most <= 8 * PART, "{most} connections were read in one call");
}
