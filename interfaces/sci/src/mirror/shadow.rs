//! What a mirror of another host has of a segment of this one, so that it is sent what the program
//! stores meanwhile (`docs/design/sci-mirror.md`, What the owner stores).

use crate::mirror::changes::{Change, Found, compare};
use crate::mirror::memory::BLOCK;
use crate::mirror::sys::{bytes_mut, words_of};
use crate::mirror::words::{WORD, Words, mask_before, mask_of, merge, sum_of, whole_mask};
use cci::Memory;
use std::collections::BTreeMap;
use std::ops::Range;

/// Words of a block, and of a page that has a sum of its own.
const WORDS: usize = BLOCK / WORD;
const PAGE: usize = 512;
/// Words of which is known what the mirror was sent last, at most, and of how many messages.
const MOST_TOLD: usize = 1024;
const TOLD: u32 = 4;
/// All that is found goes by messages.
const EVERYWHERE: Range<u64> = 0..u64::MAX;

/// The sums of the pages of a block.
pub(super) fn sums_of(words: &[u64]) -> Vec<u64> {
    words.chunks(PAGE).map(sum_of).collect()
}

/// The words of a connection's mirror, once it has taken all that it was sent.
#[derive(Default)]
pub(crate) struct Shadow {
    /// Of blocks that are watched.
    blocks: BTreeMap<u64, Vec<u64>>,
    /// Blocks that are asked for, and wait for room.
    pub(super) due: BTreeMap<u32, Vec<u64>>,
    /// The number of the last patch that was applied.
    pub(crate) applied: u32,
    found: Found,
    /// Which bytes of words the mirror was sent, by the last messages that had the word: a mask in
    /// each byte, the last one the lowest.
    told: BTreeMap<u64, u32>,
}

/// A range of words of a segment, and how many bytes it has there.
fn span(memory: &Memory, places: Range<u64>) -> (u64, usize) {
    let begin = places.start * WORD as u64;
    let end = (places.end * WORD as u64).min(memory.len());
    (begin, end.saturating_sub(begin) as usize)
}

impl Shadow {
    pub(crate) fn is_watching(&self) -> bool {
        !self.blocks.is_empty()
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    fn place(&mut self, place: u64) -> Option<&mut u64> {
        self.blocks.get_mut(&(place / WORDS as u64))?.get_mut(place as usize % WORDS)
    }

    /// What the mirror has. `None`: it is not watched.
    pub(super) fn word(&self, place: u64) -> Option<u64> {
        self.blocks.get(&(place / WORDS as u64))?.get(place as usize % WORDS).copied()
    }

    /// Which bytes of a mirror's store win over those that its owner has changed, and that the
    /// mirror did not have: the bytes beside the store are those that it had.
    pub(super) fn crossed_mask(&self, change: &Change, len: usize) -> u8 {
        let Change { place, mask, value } = *change;
        let Some(known) = self.word(place) else { return mask };
        let inside = mask_before(place as usize * WORD, len);
        let stale = mask_of(value ^ known) & !mask & inside;
        if stale == 0 {
            return mask;
        }
        let told = self.told.get(&place).copied().unwrap_or_default();
        let (mut won, mut crossed) = (mask, 0);
        // As many of the last messages as change what it had.
        for at in 0..TOLD {
            let by_owner = (told >> (u8::BITS * at)) as u8;
            crossed |= by_owner;
            won |= whole_mask(mask, by_owner);
            if stale & !crossed == 0 {
                return won & inside;
            }
        }
        mask
    }

    /// The mirror is sent this.
    fn note_told(&mut self, changes: &[Change]) {
        let last = &changes[changes.len().saturating_sub(MOST_TOLD)..];
        if self.told.len() + last.len() > MOST_TOLD {
            self.told.clear();
        }
        for Change { place, mask, .. } in last {
            let masks = self.told.entry(*place).or_default();
            *masks = *masks << 8 | u32::from(*mask);
        }
    }

    /// The mirror has sent this.
    pub(super) fn note(&mut self, change: Change) {
        if let Some(known) = self.place(change.place) {
            *known = merge(*known, change.value, change.mask);
        }
    }

    /// Words that an RMA of the mirror has written. Each range lies in one block.
    pub(super) fn reload(&mut self, memory: &Memory, places: Range<u64>) {
        let Some(block) = self.blocks.get_mut(&(places.start / WORDS as u64)) else { return };
        let from = places.start as usize % WORDS;
        let Some(words) = block.get_mut(from..from + (places.end - places.start) as usize) else { return };
        let (offset, len) = span(memory, places);
        // Inside: the message was looked at.
        let _ = memory.copy_out(offset, &mut bytes_mut(words)[..len]);
    }

    /// Watches a block: what its mirror has not. If it is not watched yet, these are the pages that
    /// differ from the sums. `None`: there is no such block, or it has other pages.
    pub(super) fn watch(&mut self, memory: &Memory, block: u32, sums: &[u64], has_room: bool) -> Option<Vec<Change>> {
        let first = u64::from(block) * WORDS as u64;
        let (offset, len) = span(memory, first..first + WORDS as u64);
        if len.div_ceil(PAGE * WORD) != sums.len() {
            return None;
        }
        if let Some(words) = self.blocks.get_mut(&block.into()) {
            let changes = differences(memory, &mut self.found, block.into(), words);
            self.note_told(&changes);
            return Some(changes);
        }
        let mut words = vec![0; len.div_ceil(WORD)];
        // Inside, as just seen.
        let _ = memory.copy_out(offset, &mut bytes_mut(&mut words)[..len]);
        let differing = words.chunks(PAGE).zip(sums).enumerate().filter(|(_, (page, sum))| sum_of(page) != **sum);
        let places = differing.flat_map(|(page, (words, _))| page * PAGE..page * PAGE + words.len());
        let change = |at: usize| {
            let place = first + at as u64;
            Change { place, mask: mask_before(place as usize * WORD, memory.len() as usize), value: words[at] }
        };
        let changes = places.map(change).collect();
        if has_room {
            self.blocks.insert(block.into(), words);
        }
        Some(changes)
    }

    /// Keeps a block that is asked for until there is room. False: there is no such block.
    pub(super) fn delay(&mut self, memory: &Memory, block: u32, sums: Vec<u64>) -> bool {
        let first = u64::from(block) * WORDS as u64;
        let is_there = span(memory, first..first + WORDS as u64).1.div_ceil(PAGE * WORD) == sums.len();
        if is_there {
            self.due.insert(block, sums);
        }
        is_there
    }

    pub(super) fn unwatch(&mut self, block: u32) {
        self.blocks.remove(&block.into());
        self.due.remove(&block);
        self.told.retain(|place, _| place / WORDS as u64 != u64::from(block));
    }

    /// What others have changed since the mirror had it, which it has from now on, in rising order.
    pub(super) fn take_changes(&mut self, memory: &Memory) -> Vec<Change> {
        let (found, blocks) = (&mut self.found, self.blocks.iter_mut());
        let changes: Vec<_> = blocks.flat_map(|(block, words)| differences(memory, found, *block, words)).collect();
        self.note_told(&changes);
        changes
    }
}

/// The words of a block that are not these, which they become.
fn differences(memory: &Memory, found: &mut Found, block: u64, words: &mut [u64]) -> Vec<Change> {
    let first = block * WORDS as u64;
    let (offset, len) = span(memory, first..first + words.len() as u64);
    let whole = len / WORD;
    found.clear();
    if let Some(own) = words_of(memory, offset, whole) {
        compare(&Words(own), &mut words[..whole], first, found);
    }
    let mut all = found.plan(std::iter::once(&EVERYWHERE), |place| words[(place - first) as usize]).1;
    let mut tail = [0; WORD];
    if let Some(known) = words.get_mut(whole)
        && memory.copy_out(offset + (whole * WORD) as u64, &mut tail[..len % WORD])
    {
        let value = merge(*known, u64::from_ne_bytes(tail), mask_before(0, len % WORD));
        if value != *known {
            all.push(Change { place: first + whole as u64, mask: mask_of(value ^ *known), value });
            *known = value;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci::SharedMemory;

    fn sums(len: usize) -> Vec<u64> {
        sums_of(&vec![0; len.div_ceil(WORD)])
    }

    #[test]
    fn what_others_have_changed_is_found_once() {
        let memory = SharedMemory::new(BLOCK + 4099).expect("memory");
        let mut shadow = Shadow::default();
        assert_eq!(shadow.watch(&memory.memory(), 1, &sums(4099), true), Some(Vec::new()));
        memory.write(8, &[1; 8]);
        assert!(shadow.take_changes(&memory.memory()).is_empty(), "nobody has stored there");
        memory.write(BLOCK + 9, &[2]);
        memory.write(BLOCK + 4097, &[3, 4]);
        let found = shadow.take_changes(&memory.memory());
        let first = (BLOCK / WORD) as u64;
        let seen: Vec<_> = found.iter().map(|change| (change.place - first, change.mask)).collect();
        assert_eq!(seen, [(1, 0b10), (512, 0b110)]);
        assert_eq!(found[1].value.to_ne_bytes()[..3], [0, 3, 4]);
        assert!(shadow.take_changes(&memory.memory()).is_empty());
        // What the mirror has stored itself is no change.
        memory.write(BLOCK + 16, &[7; 24]);
        shadow.note(Change { place: first + 2, mask: u8::MAX, value: u64::from_ne_bytes([7; 8]) });
        shadow.reload(&memory.memory(), first + 3..first + 5);
        assert!(shadow.take_changes(&memory.memory()).is_empty());
        memory.write(BLOCK, &[9]);
        shadow.unwatch(1);
        assert!(shadow.take_changes(&memory.memory()).is_empty() && !shadow.is_watching());
    }

    /// Of a block only the pages are sent that the mirror has not.
    #[test]
    fn pages_that_differ_are_sent_and_blocks_that_are_none_refused() {
        let memory = SharedMemory::new(10_001).expect("memory");
        memory.write(5000, &[1]);
        let mut shadow = Shadow::default();
        let found = shadow.watch(&memory.memory(), 0, &sums(10_001), true).expect("a block");
        assert_eq!((found.len(), found[0].place, found[0].mask), (512, 512, u8::MAX));
        memory.write(10_000, &[1]);
        // Then what has changed since.
        assert_eq!(shadow.watch(&memory.memory(), 0, &sums(10_001), true).map(|found| found.len()), Some(1));
        shadow.unwatch(0);
        let found = shadow.watch(&memory.memory(), 0, &sums(10_001), true).expect("a block");
        assert_eq!((found.len(), found.last().map(|change| change.mask)), (512 + 227, Some(1)));
        let wrong: [(u32, &[u64]); 4] = [(0, &[]), (0, &[0; 2]), (1, &[0; 3]), (u32::MAX, &[0; 16])];
        assert!(wrong.iter().all(|(block, sums)| shadow.watch(&memory.memory(), *block, sums, true).is_none()));
        assert_eq!(shadow.blocks(), 1);
        assert!(Shadow::default().watch(&memory.memory(), 0, &sums(10_001), false).is_some());
    }
}
