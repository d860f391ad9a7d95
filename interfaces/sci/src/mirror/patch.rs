//! Groups of changed words as they are sent, and their way into the segment
//! (`docs/design/sci-mirror.md`, Messages).

use crate::mirror::changes::Change;
use crate::mirror::shadow::Shadow;
use crate::mirror::words::{WORD, mask_before, mask_of, merge, whole_mask};
use cci::Memory;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes before the words of a group.
const HEAD: usize = 8;
/// Words of a group up to which they are stored one by one, in order.
const FEW: usize = 8;
/// What a group has in place of words: masks before them, or that an RMA has written them.
const MASKED: u16 = 1;
const BY_RMA: u16 = 2;

/// Groups of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    /// Places count from here.
    pub(crate) first: u64,
    pub(crate) bytes: Vec<u8>,
}

fn emit_head(bytes: &mut Vec<u8>, place: u32, count: u16, kind: u16) {
    bytes.extend(place.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
}

fn emit_group(bytes: &mut Vec<u8>, place: u32, changes: &[Change]) {
    let is_masked = changes.iter().any(|change| change.mask != u8::MAX);
    emit_head(bytes, place, changes.len() as u16, if is_masked { MASKED } else { 0 });
    if is_masked {
        bytes.extend(changes.iter().map(|change| change.mask));
        bytes.resize(bytes.len().next_multiple_of(WORD), 0);
    }
    bytes.extend(changes.iter().flat_map(|change| change.value.to_ne_bytes()));
}

/// How many changes make the first group: words in a row. Many whole ones have a group of their
/// own, which needs no masks and is copied.
fn group(changes: &[Change]) -> usize {
    let (mut streak, mut place) = (0, changes[0].place);
    for (at, change) in changes.iter().enumerate() {
        if change.place != place || change.mask != u8::MAX && streak == at && at > FEW {
            return at;
        }
        (streak, place) = (if change.mask == u8::MAX { streak + 1 } else { 0 }, place + 1);
        if streak > FEW && streak <= at {
            return at + 1 - streak;
        }
    }
    changes.len()
}

/// Writes changes in rising order into messages of at most `room` bytes each, which is enough for
/// one word; with the places from the first word to the last one of each.
pub(crate) fn emit(changes: &[Change], room: usize) -> Vec<(Groups, Range<u64>)> {
    emit_behind(&[], changes, room)
}

/// As [`emit`], behind the runs of words that RMAs have written. Each run lies in one block.
pub(super) fn emit_behind(runs: &[Range<u64>], changes: &[Change], room: usize) -> Vec<(Groups, Range<u64>)> {
    // With a byte for each mask, and their padding.
    let most = |left: usize| left.saturating_sub(HEAD + WORD) / (WORD + 1);
    let begins = runs.iter().map(|run| run.start).chain(changes.first().map(|change| change.place));
    let first = begins.min().unwrap_or(0);
    let mut all: Vec<(Groups, Range<u64>)> = Vec::new();
    for run in runs {
        let has_room = all.last().is_some_and(|(groups, _)| groups.bytes.len() + HEAD <= room);
        if !has_room {
            all.push((Groups { first, bytes: Vec::new() }, 0..0));
        }
        let place = u32::try_from(run.start - first).ok().zip(all.last_mut());
        if let Some((place, (groups, _))) = place {
            emit_head(&mut groups.bytes, place, (run.end - run.start) as u16, BY_RMA);
        }
    }
    let mut rest = changes;
    while let Some(begin) = rest.first() {
        let run = group(rest);
        let fits = |(groups, _): &(Groups, Range<u64>)| {
            let place = u32::try_from(begin.place - groups.first).ok()?;
            let count = most(room.saturating_sub(groups.bytes.len()));
            (count > 0).then_some((place, count))
        };
        let (place, count) = match all.last().and_then(fits) {
            Some(found) => found,
            None => {
                all.push((Groups { first: begin.place, bytes: Vec::new() }, 0..0));
                (0, most(room).max(1))
            }
        };
        let count = count.min(run).min(u16::MAX.into());
        if let Some((groups, places)) = all.last_mut() {
            emit_group(&mut groups.bytes, place, &rest[..count]);
            let from = if places.is_empty() { begin.place } else { places.start };
            *places = from..begin.place + count as u64;
        }
        rest = &rest[count..];
    }
    all
}

struct Group<'a> {
    place: u64,
    count: usize,
    masks: Option<&'a [u8]>,
    /// None of what an RMA has written.
    words: &'a [u8],
}

/// The first group, and what stands behind it.
fn split(first: u64, bytes: &[u8]) -> Option<(Group<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let place = first.checked_add(u32::from_le_bytes(head[..4].try_into().ok()?).into())?;
    let count = usize::from(u16::from_le_bytes([head[4], head[5]]));
    let (masks, rest) = match u16::from_le_bytes([head[6], head[7]]) {
        0 => (None, rest),
        MASKED => {
            let (masks, rest) = rest.split_at_checked(count.next_multiple_of(WORD))?;
            (Some(&masks[..count]), rest)
        }
        BY_RMA => return Some((Group { place, count, masks: None, words: &[] }, rest)),
        _ => return None,
    };
    let (words, rest) = rest.split_at_checked(count * WORD)?;
    Some((Group { place, count, masks, words }, rest))
}

/// The groups of a message one by one; `None` behind what is malformed.
fn split_all(first: u64, groups: &[u8]) -> impl Iterator<Item = Option<Group<'_>>> {
    let mut rest = groups;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let parsed = split(first, rest);
        rest = parsed.as_ref().map_or(&[][..], |(_, rest)| rest);
        Some(parsed.map(|(group, _)| group))
    })
}

impl Group<'_> {
    /// Whether its bytes lie inside of a segment.
    fn fits(&self, len: usize) -> bool {
        let count = self.count;
        let Some(begin) = usize::try_from(self.place).ok().and_then(|place| place.checked_mul(WORD)) else {
            return false;
        };
        let Some(end) = begin.checked_add(count * WORD) else { return false };
        // Only the last word can reach over the end.
        count > 0 && (end <= len || self.mask(count - 1) & !mask_before(end - WORD, len) == 0 && end - WORD < len)
    }

    fn is_by_rma(&self) -> bool {
        self.words.is_empty()
    }

    fn changes(&self) -> impl Iterator<Item = Change> {
        let words = self.words.as_chunks().0.iter().enumerate();
        words.map(|(at, word)| Change {
            place: self.place + at as u64,
            mask: self.mask(at),
            value: u64::from_ne_bytes(*word),
        })
    }

    fn mask(&self, at: usize) -> u8 {
        self.masks.map_or(u8::MAX, |masks| masks[at])
    }

    fn apply(&self, memory: &Memory, shadow: &mut Shadow) {
        let begin = self.place * WORD as u64;
        if self.is_by_rma() {
            return shadow.reload(memory, self.place..self.place + self.count as u64);
        }
        if self.masks.is_none() && self.words.len() > FEW * WORD {
            // Inside: all groups were looked at.
            let _ = memory.copy_in(begin, self.words);
            return self.changes().for_each(|change| shadow.note(change));
        }
        for change in self.changes() {
            let Change { place, mask, value } = change;
            let known = shadow.word(place);
            let crossed = shadow.crossed_mask(&change, memory.len() as usize);
            let update = |old: u64| {
                let by_owner = known.map_or(0, |known| mask_of(old ^ known));
                Some(merge(old, value, crossed | whole_mask(mask, by_owner)))
            };
            if memory.update(place * WORD as u64, WORD, update).is_none() {
                apply_tail(memory, place as usize * WORD, (value.to_ne_bytes(), crossed));
            }
            shadow.note(Change { mask: crossed, ..change });
        }
    }
}

/// The last word of a segment that ends within it: its first half whole, if there is one.
fn apply_tail(memory: &Memory, offset: usize, (bytes, mask): ([u8; WORD], u8)) {
    const HALF: usize = WORD / 2;
    let half = |old: u64| {
        let mut new = (old as u32).to_ne_bytes();
        (0..HALF).filter(|at| mask >> at & 1 == 1).for_each(|at| new[at] = bytes[at]);
        Some(u32::from_ne_bytes(new).into())
    };
    let is_half = memory.update(offset as u64, HALF, half).is_some();
    for at in (if is_half { HALF } else { 0 })..memory.len() as usize - offset {
        if mask >> at & 1 == 1 {
            let _ = memory.copy_in((offset + at) as u64, &bytes[at..=at]);
        }
    }
}

/// Stores the words of groups, whose places count from `first`, and has a shadow know it. False:
/// they are malformed, or lie outside, and nothing is stored.
pub(crate) fn apply_watched(memory: &Memory, shadow: &mut Shadow, first: u64, groups: &[u8]) -> bool {
    if !split_all(first, groups).all(|group| group.is_some_and(|group| group.fits(memory.len() as usize))) {
        return false;
    }
    split_all(first, groups).flatten().for_each(|group| group.apply(memory, shadow));
    true
}

/// As [`apply_watched`], of memory that nobody watches.
pub(crate) fn apply(memory: &Memory, first: u64, groups: &[u8]) -> bool {
    apply_watched(memory, &mut Shadow::default(), first, groups)
}

/// The words of groups for a segment of so many bytes. `None`: they are malformed, lie outside, or
/// have no words.
pub(super) fn changes_of(groups: &Groups, len: usize) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    for group in split_all(groups.first, &groups.bytes) {
        let group = group.filter(|group| group.fits(len) && !group.is_by_rma())?;
        changes.extend(group.changes());
    }
    Some(changes)
}

/// Adds which bytes of a range of words groups have.
pub(super) fn add_masks(groups: &Groups, range: &Range<u64>, masks: &mut BTreeMap<u64, u8>) {
    for group in split_all(groups.first, &groups.bytes).flatten() {
        let (begin, end) = (group.place.max(range.start), (group.place + group.count as u64).min(range.end));
        for place in begin..end {
            *masks.entry(place).or_default() |= group.mask((place - group.place) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci::SharedMemory;

    fn memory(len: usize, byte: u8) -> SharedMemory {
        let memory = SharedMemory::new(len).expect("memory");
        memory.write(0, &vec![byte; len]);
        memory
    }

    /// What the changes make of bytes, one by one.
    fn model(bytes: &mut [u8], changes: &[Change]) {
        for change in changes {
            for (at, byte) in change.value.to_ne_bytes().into_iter().enumerate() {
                if change.mask >> at & 1 == 1 {
                    bytes[change.place as usize * WORD + at] = byte;
                }
            }
        }
    }

    #[test]
    fn random_changes_arrive_as_those_of_a_model() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let len = 1 + random.usize(..2000);
            let (words, is_dense) = (len.div_ceil(WORD) as u64, random.bool());
            let mut changes = Vec::new();
            for place in 0..words {
                let mask = if random.u8(..4) == 0 { random.u8(..) } else { u8::MAX };
                let mask = mask & mask_before(place as usize * WORD, len);
                if mask != 0 && (is_dense || random.bool()) {
                    changes.push(Change { place, mask, value: random.u64(..) });
                }
            }
            let room = 64 + random.usize(..4000);
            let all = emit(&changes, room);
            let segment = memory(len, 3);
            for (groups, _) in &all {
                assert!(groups.bytes.len() <= room, "seed {seed}: {} of {room}", groups.bytes.len());
                assert!(apply(&segment.memory(), groups.first, &groups.bytes), "seed {seed}");
            }
            let mut expected = vec![3; len];
            model(&mut expected, &changes);
            assert_eq!(segment.to_vec(0, len), expected, "seed {seed}");
        }
    }

    #[test]
    fn changes_far_apart_have_messages_of_their_own() {
        let changes = [0, 1 << 40].map(|place| Change { place, mask: 1, value: 0 });
        assert_eq!(
            emit(&changes, 1000).iter().map(|(groups, places)| (groups.first, places.end)).collect::<Vec<_>>(),
            [(0, 1), (1 << 40, (1 << 40) + 1)]
        );
    }

    /// They come before the words of the last line: what the owner stores behind those is its own.
    #[test]
    fn runs_that_rmas_have_written_are_named_before_the_words() {
        let segment = memory(4096, 3);
        let mut shadow = Shadow::default();
        let known = crate::mirror::shadow::sums_of(&[0; 512]);
        assert!(shadow.watch(&segment.memory(), 0, &known, true).is_some());
        segment.write(0, &[5; 2048]);
        let last = Change { place: 300, mask: u8::MAX, value: 7 };
        for room in [24, 1000] {
            let all = emit_behind(&[0..100, 100..256], &[last], room);
            assert_eq!(all.len(), if room == 24 { 2 } else { 1 });
            assert!(changes_of(&all[0].0, 4096).is_none(), "an owner sends none");
            assert_eq!(all.last().map(|(_, places)| places.clone()), Some(300..301));
            for (groups, _) in &all {
                assert!(apply_watched(&segment.memory(), &mut shadow, groups.first, &groups.bytes));
                assert!(!apply(&memory(1000, 0).memory(), groups.first, &groups.bytes), "outside");
            }
            assert!(shadow.take_changes(&segment.memory()).is_empty(), "the mirror has stored all of it");
        }
        let mut masks = BTreeMap::new();
        add_masks(&emit_behind(&[0..50, 50..100], &[last], 1000)[0].0, &(99..400), &mut masks);
        assert_eq!(masks.into_iter().collect::<Vec<_>>(), [(99, u8::MAX), (300, u8::MAX)]);
    }

    /// The owner has changed the word since: of a store that changes one of those bytes all arrive.
    #[test]
    fn a_store_that_the_owner_has_come_between_arrives_whole() {
        let segment = memory(4096, 0);
        let mut shadow = Shadow::default();
        let known = crate::mirror::shadow::sums_of(&[0; 512]);
        assert_eq!(shadow.watch(&segment.memory(), 0, &known, true), Some(Vec::new()));
        let store = |shadow: &mut Shadow, value: u64, mask: u8| {
            let groups = emit(&[Change { place: 1, mask, value: value.to_le() }], 1000).remove(0).0;
            assert!(apply_watched(&segment.memory(), shadow, groups.first, &groups.bytes));
        };
        store(&mut shadow, 0x154, 0b11);
        segment.write(8, &[0; 4]);
        store(&mut shadow, 0x1aa, 0b1);
        assert_eq!(segment.to_vec(8, 8), 0x1aa_u64.to_le_bytes());
        // Other bytes of the word are another program's.
        segment.write(13, &[9]);
        store(&mut shadow, 0x1bb, 0b1);
        assert_eq!(segment.to_vec(8, 8), [0xbb, 1, 0, 0, 0, 9, 0, 0]);
    }

    /// The mirror is sent what the owner has changed, and has stored before it has that.
    #[test]
    fn a_store_that_crosses_what_the_owner_sends_arrives_whole() {
        let segment = memory(4096, 0);
        let mut shadow = Shadow::default();
        let known = crate::mirror::shadow::sums_of(&[0; 512]);
        assert_eq!(shadow.watch(&segment.memory(), 0, &known, true), Some(Vec::new()));
        // Words of the mirror: all of it, and which bytes it has changed.
        let store = |shadow: &mut Shadow, word: [u8; WORD], mask: u8| {
            let change = Change { place: 1, mask, value: u64::from_ne_bytes(word) };
            let groups = emit(&[change], 1000).remove(0).0;
            assert!(apply_watched(&segment.memory(), shadow, groups.first, &groups.bytes));
            let sent = shadow.take_changes(&segment.memory());
            assert!(sent.is_empty(), "the mirror has kept its word: {sent:?}");
            segment.to_vec(8, WORD)
        };
        let change = |shadow: &mut Shadow, at: usize, bytes: &[u8]| {
            segment.write(8 + at, bytes);
            assert_eq!(shadow.take_changes(&segment.memory()).len(), 1);
        };
        assert_eq!(store(&mut shadow, [0x54, 1, 0, 0, 0, 0, 0, 0], 0b11), [0x54, 1, 0, 0, 0, 0, 0, 0]);
        change(&mut shadow, 0, &[0, 0]);
        assert_eq!(store(&mut shadow, [0xaa, 1, 0, 0, 0, 0, 0, 0], 0b1), [0xaa, 1, 0, 0, 0, 0, 0, 0]);
        // Bytes that the mirror has not changed stay the owner's, though it has changed others of
        // the mirror's before.
        change(&mut shadow, 0, &[7]);
        change(&mut shadow, 1, &[9]);
        assert_eq!(store(&mut shadow, [0xbb, 1, 0, 0, 0, 0, 0, 0], 0b1), [0xbb, 9, 0, 0, 0, 0, 0, 0]);
        // It has none of the last two.
        change(&mut shadow, 0, &[5]);
        change(&mut shadow, 4, &[6]);
        assert_eq!(store(&mut shadow, [0xcc, 9, 0, 0, 0, 0, 0, 0], 0b1), [0xcc, 9, 0, 0, 6, 0, 0, 0]);
    }

    #[test]
    fn groups_that_are_malformed_or_lie_outside_store_nothing() {
        let segment = memory(100, 0);
        let changes = [(0, 0xff), (11, 1), (12, 0x0f)].map(|(place, mask)| Change { place, mask, value: u64::MAX });
        let (groups, _) = emit(&changes, 1000).remove(0);
        for cut in 1..groups.bytes.len() {
            let bytes = groups.bytes[..cut].to_vec();
            // What is cut between groups is whole.
            let is_whole = cut == 16;
            assert_eq!(apply(&segment.memory(), 0, &bytes), is_whole, "cut to {cut}");
            segment.write(0, &[0; 100]);
        }
        for first in [1, u64::MAX, u64::MAX / 8, 1 << 61] {
            assert!(!apply(&segment.memory(), first, &groups.bytes), "from {first}");
        }
        for (at, value) in [(6, 2), (7, 1), (16, 12), (16, 13)] {
            let mut bytes = groups.bytes.clone();
            bytes[at] = value;
            assert!(!apply(&segment.memory(), 0, &bytes), "byte {at} is {value}");
        }
        let over = Change { place: 12, mask: 0x10, value: 1 };
        let none = Groups { first: 0, bytes: [0; 8].to_vec() };
        let over = emit(&[over], 1000).remove(0).0;
        assert!([over, none].iter().all(|groups| !apply(&segment.memory(), groups.first, &groups.bytes)));
        assert_eq!(segment.to_vec(0, 100), [0; 100]);
        assert!(apply(&segment.memory(), groups.first, &groups.bytes));
    }
}
