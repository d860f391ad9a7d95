//! Connections by their identifiers: 64 random bits each, found by open addressing. The bits need
//! no hash function: this side draws them under a secret key, so that nobody chooses where they
//! fall.
//!
//! An entry takes four bytes: the index of the connection and eight bits of its identifier. Of 256
//! other connections that a search passes, about one has the same eight bits, and is compared in
//! whole. The connection itself has the identifier, so that entries can be moved.
//!
//! ```text
//!  identifier   63 ............ 32 31 ... 24 23 ............ 0
//!                entry of its part   tag       number of its part
//! ```
//!
//! The table has parts, each of which grows by a quarter when it is four fifths full. Once they
//! have more than [`PART`] entries on average, one of them is split (linear hashing: Litwin, 1980).
//! So the table is about 72 % full whatever the number of connections, and no call moves more than
//! about [`PART`] entries twice over.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bits of an entry that are the index.
const INDEX_BITS: u32 = 24;
/// Indices are below this.
pub(crate) const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;
/// Identifiers of a part, on average, at most.
const PART: usize = 512;
/// The smallest part that is not empty, entries.
const LEAST: usize = 8;

/// The top bits of an identifier's lower half, and the index of its connection.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry(u32);

impl Entry {
    /// No index is as large.
    const FREE: Self = Self(u32::MAX);

    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    fn new(id: u64, index: u32) -> Self {
        Self(id as u32 & !MAX_INDEX | index)
    }

    #[inline]
    fn index(self) -> u32 {
        self.0 & MAX_INDEX
    }

    /// Whether it may be of this identifier. A free entry may be, too.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    fn may_be(self, id: u64) -> bool {
        (self.0 ^ id as u32) >> INDEX_BITS == 0
    }
}

/// A part: entries, or none; a fifth of them is free.
#[derive(Default)]
struct Part {
    entries: Box<[Entry]>,
    used: usize,
}

impl Part {
    /// An empty part with room for so many identifiers and a few more. `None`: no memory.
    fn with_room(identifiers: usize) -> Option<Self> {
        let len = (identifiers + identifiers / 2).max(LEAST);
        let mut entries = Vec::new();
        entries.try_reserve_exact(len).ok()?;
        entries.resize(len, Entry::FREE);
        Some(Self { entries: entries.into_boxed_slice(), used: 0 })
    }

    fn has_room(&self) -> bool {
        (self.used + 1) * 5 <= self.entries.len() * 4
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 < self.entries.len() { at + 1 } else { 0 }
    }

    /// Where the connection of this identifier stands, which `is` knows by its index.
    #[inline]
    fn find(&self, id: u64, is: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mut at = home(id, self.entries.len());
        loop {
            let entry = *self.entries.get(at)?;
            if entry == Entry::FREE {
                return None;
            }
            if entry.may_be(id) && is(entry.index()) {
                return Some((at, entry.index()));
            }
            at = self.after(at);
        }
    }

    /// Enters one that is not there; there is room.
    fn insert(&mut self, id: u64, index: u32) {
        let mut at = home(id, self.entries.len());
        while self.entries.get(at).is_some_and(|entry| *entry != Entry::FREE) {
            at = self.after(at);
        }
        if let Some(free) = self.entries.get_mut(at) {
            *free = Entry::new(id, index);
            self.used += 1;
        }
    }

    /// Takes the entry at `hole` out, and moves those behind it that it had pushed away (Knuth,
    /// volume 3, 6.4, algorithm R).
    fn remove(&mut self, mut hole: usize, id_of: impl Fn(u32) -> u64) {
        let len = self.entries.len();
        let distance = |from: usize, to: usize| if to >= from { to - from } else { to + len - from };
        let mut at = hole;
        loop {
            at = self.after(at);
            let entry = self.entries[at];
            if entry == Entry::FREE {
                break;
            }
            if distance(home(id_of(entry.index()), len), at) >= distance(hole, at) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = Entry::FREE;
        self.used -= 1;
    }

    fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().filter(|entry| **entry != Entry::FREE).map(|entry| entry.index())
    }

    /// Moves all into as many entries as so many identifiers take. `None`: no memory.
    #[cold]
    fn resize(&mut self, identifiers: usize, id_of: impl Fn(u32) -> u64) -> Option<()> {
        let mut other = Self::with_room(identifiers)?;
        self.indices().for_each(|index| other.insert(id_of(index), index));
        *self = other;
        Some(())
    }
}

/// Where an identifier would stand by itself, of so many entries: its upper half, as a fraction.
#[inline]
fn home(id: u64, len: usize) -> usize {
    (((id >> 32) * len as u64) >> 32) as usize
}

/// The part of an identifier, of so many. `mask`: the next power of two, less one.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "any low bits do")]
fn part_of(id: u64, parts: usize, mask: usize) -> usize {
    let part = id as usize & mask;
    // Until that part is split off, its identifiers are in the one that it comes from.
    if part < parts { part } else { part & mask >> 1 }
}

/// The identifiers of an endpoint's connections.
///
/// Connections have their identifiers themselves: `id_of` returns that of an index, for each
/// connection in the table.
pub(crate) struct Ids {
    parts: Vec<Part>,
    /// The number of parts, rounded up to a power of two, less one.
    mask: usize,
    used: usize,
}

impl Ids {
    pub(crate) fn new() -> Self {
        Self { parts: Vec::new(), mask: 0, used: 0 }
    }

    #[inline]
    fn part_of(&self, id: u64) -> usize {
        part_of(id, self.parts.len(), self.mask)
    }

    /// Returns the index of the connection with this identifier, which `is` knows by its index.
    #[inline]
    pub(crate) fn find(&self, id: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let part = self.parts.get(self.part_of(id))?;
        part.find(id, is).map(|(_, index)| index)
    }

    /// Makes room for an identifier. `None`: no memory.
    pub(crate) fn make_room(&mut self, id: u64, id_of: impl Fn(u32) -> u64) -> Option<()> {
        if self.used >= self.parts.len() * PART {
            // Without memory for a further part the others grow.
            let _ = self.split(&id_of);
        }
        let at = self.part_of(id);
        let part = self.parts.get_mut(at)?;
        if part.has_room() { Some(()) } else { part.resize(part.used + part.used / 16 + 1, id_of) }
    }

    /// Enters an identifier that is not there yet and for which there is room.
    pub(crate) fn insert(&mut self, id: u64, index: u32) {
        let at = self.part_of(id);
        if let Some(part) = self.parts.get_mut(at).filter(|part| part.has_room()) {
            part.insert(id, index);
            self.used += 1;
        }
    }

    pub(crate) fn remove(&mut self, id: u64, id_of: impl Fn(u32) -> u64) {
        let at = self.part_of(id);
        let Some(part) = self.parts.get_mut(at) else { return };
        let Some((at, _)) = part.find(id, |index| id_of(index) == id) else { return };
        part.remove(at, &id_of);
        self.used -= 1;
        // Without memory for a smaller part the large one stays.
        if part.used * 4 < part.entries.len() && part.entries.len() > LEAST {
            let _ = part.resize(part.used, &id_of);
        }
        if self.used * 4 < self.parts.len() * PART && self.parts.len() > 1 {
            let _ = self.join(&id_of);
        }
    }

    /// Appends a part, which takes half of the identifiers of another one. `None`: no memory.
    #[cold]
    fn split(&mut self, id_of: impl Fn(u32) -> u64) -> Option<()> {
        self.parts.try_reserve(1).ok()?;
        let new = self.parts.len();
        if new == 0 {
            self.parts.push(Part::default());
            return Some(());
        }
        let mask = (new + 1).next_power_of_two() - 1;
        let from = part_of(new as u64, new, mask);
        let moves = |index: &u32| part_of(id_of(*index), new + 1, mask) == new;
        let count = self.parts[from].indices().filter(moves).count();
        let mut parts = [Part::with_room(self.parts[from].used - count)?, Part::with_room(count)?];
        for index in self.parts[from].indices() {
            parts[usize::from(moves(&index))].insert(id_of(index), index);
        }
        let [stay, go] = parts;
        self.parts[from] = stay;
        self.parts.push(go);
        self.mask = mask;
        Some(())
    }

    /// Undoes the last split. `None`: no memory.
    #[cold]
    fn join(&mut self, id_of: impl Fn(u32) -> u64) -> Option<()> {
        let last = self.parts.len() - 1;
        let into = part_of(last as u64, last, self.mask);
        let mut both = Part::with_room(self.parts[into].used + self.parts[last].used)?;
        for index in self.parts[into].indices().chain(self.parts[last].indices()) {
            both.insert(id_of(index), index);
        }
        self.parts[into] = both;
        self.parts.pop();
        self.mask = last.next_power_of_two() - 1;
        if self.parts.len() * 4 < self.parts.capacity() {
            self.parts.shrink_to(self.parts.len() * 2);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
