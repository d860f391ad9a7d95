//! Groups of changed words as they are sent, and their way into the segment
//! (`docs/design/sci-mirror.md`, Messages).

use crate::mirror::changes::Change;
use crate::mirror::words::{WORD, mask_before, merge};
use cci::Memory;

/// Bytes before the words of a group.
const HEAD: usize = 8;
/// Words of a group up to which they are stored one by one, in order.
const FEW: usize = 8;

/// Groups of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    /// Places count from here.
    pub(crate) first: u64,
    pub(crate) bytes: Vec<u8>,
}

fn emit_group(bytes: &mut Vec<u8>, place: u32, changes: &[Change]) {
    let is_masked = changes.iter().any(|change| change.mask != u8::MAX);
    bytes.extend(place.to_le_bytes());
    bytes.extend((changes.len() as u16).to_le_bytes());
    bytes.extend(u16::from(is_masked).to_le_bytes());
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
/// one word; with the place behind the last word of each.
pub(crate) fn emit(changes: &[Change], room: usize) -> Vec<(Groups, u64)> {
    // With a byte for each mask, and their padding.
    let most = |left: usize| left.saturating_sub(HEAD + WORD) / (WORD + 1);
    let mut all: Vec<(Groups, u64)> = Vec::new();
    let mut rest = changes;
    while let Some(begin) = rest.first() {
        let run = group(rest);
        let fits = |(groups, _): &(Groups, u64)| {
            let place = u32::try_from(begin.place - groups.first).ok()?;
            let count = most(room.saturating_sub(groups.bytes.len()));
            (count > 0).then_some((place, count))
        };
        let (place, count) = match all.last().and_then(fits) {
            Some(found) => found,
            None => {
                all.push((Groups { first: begin.place, bytes: Vec::new() }, 0));
                (0, most(room).max(1))
            }
        };
        let count = count.min(run).min(u16::MAX.into());
        if let Some((groups, end)) = all.last_mut() {
            emit_group(&mut groups.bytes, place, &rest[..count]);
            *end = begin.place + count as u64;
        }
        rest = &rest[count..];
    }
    all
}

struct Group<'a> {
    place: u64,
    masks: Option<&'a [u8]>,
    words: &'a [u8],
}

/// The first group, and what stands behind it.
fn split(first: u64, bytes: &[u8]) -> Option<(Group<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let place = first.checked_add(u32::from_le_bytes(head[..4].try_into().ok()?).into())?;
    let count = usize::from(u16::from_le_bytes([head[4], head[5]]));
    let (masks, rest) = match (head[6], head[7]) {
        (0, 0) => (None, rest),
        (1, 0) => {
            let (masks, rest) = rest.split_at_checked(count.next_multiple_of(WORD))?;
            (Some(&masks[..count]), rest)
        }
        _ => return None,
    };
    let (words, rest) = rest.split_at_checked(count * WORD)?;
    Some((Group { place, masks, words }, rest))
}

impl Group<'_> {
    /// Whether its bytes lie inside of a segment.
    fn fits(&self, len: usize) -> bool {
        let count = self.words.len() / WORD;
        let Some(begin) = usize::try_from(self.place).ok().and_then(|place| place.checked_mul(WORD)) else {
            return false;
        };
        let Some(end) = begin.checked_add(self.words.len()) else { return false };
        // Only the last word can reach over the end.
        count > 0 && (end <= len || self.mask(count - 1) & !mask_before(end - WORD, len) == 0 && end - WORD < len)
    }

    fn mask(&self, at: usize) -> u8 {
        self.masks.map_or(u8::MAX, |masks| masks[at])
    }

    fn apply(&self, memory: &Memory) {
        let begin = self.place as usize * WORD;
        if self.masks.is_none() && self.words.len() > FEW * WORD {
            // Inside: all groups were looked at.
            let _ = memory.copy_in(begin as u64, self.words);
            return;
        }
        for (at, word) in self.words.chunks_exact(WORD).enumerate() {
            let (offset, mask) = (begin + at * WORD, self.mask(at));
            let bytes: [u8; WORD] = word.try_into().unwrap_or_default();
            let value = u64::from_ne_bytes(bytes);
            if memory.update(offset as u64, WORD, |old| Some(merge(old, value, mask))).is_none() {
                apply_tail(memory, offset, (bytes, mask));
            }
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

/// Stores the words of groups, whose places count from `first`. False: they are malformed, or lie
/// outside, and nothing is stored.
pub(crate) fn apply(memory: &Memory, first: u64, groups: &[u8]) -> bool {
    let all = || {
        let mut rest = groups;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let parsed = split(first, rest);
            rest = parsed.as_ref().map_or(&[][..], |(_, rest)| rest);
            Some(parsed.map(|(group, _)| group))
        })
    };
    if !all().all(|group| group.is_some_and(|group| group.fits(memory.len() as usize))) {
        return false;
    }
    all().flatten().for_each(|group| group.apply(memory));
    true
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
            emit(&changes, 1000).iter().map(|(groups, end)| (groups.first, *end)).collect::<Vec<_>>(),
            [(0, 1), (1 << 40, (1 << 40) + 1)]
        );
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
