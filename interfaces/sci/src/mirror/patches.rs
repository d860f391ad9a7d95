//! Patches that an owner was sent, and those that it has confirmed.

use crate::mirror::patch::{Groups, add_masks};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Patches that are not confirmed from which on a pass waits.
const MOST: usize = 64;
/// The next one asks for it that is so many behind the last one that did.
const MANY: u64 = 32;

/// A patch that was not confirmed.
struct Unconfirmed {
    number: u64,
    /// The words that it changes; it also has what RMAs before it have written.
    places: Range<u64>,
    groups: Groups,
}

/// The patches of a mirror.
#[derive(Default)]
pub(crate) struct Patches {
    /// Those that were sent, the last one of them to be confirmed, and the last one that was.
    pub(super) sent: u64,
    pub(super) asked: u64,
    pub(super) confirmed: u64,
    unconfirmed: VecDeque<Unconfirmed>,
}

impl Patches {
    /// A patch is sent.
    pub(super) fn note(&mut self, places: Range<u64>, groups: Groups, is_asking: bool) {
        self.sent += 1;
        if is_asking {
            self.asked = self.sent;
        }
        self.unconfirmed.push_back(Unconfirmed { number: self.sent, places, groups });
    }

    /// Whether the next one is to be confirmed.
    pub(super) fn are_unasked(&self) -> bool {
        self.sent + 1 - self.asked >= MANY
    }

    /// Whether the owner is to confirm some before more are sent.
    pub(super) fn are_many(&self) -> bool {
        self.unconfirmed.len() >= MOST
    }

    /// The words of each that was not confirmed.
    pub(super) fn places(&self) -> impl Iterator<Item = &Range<u64>> + Clone {
        self.unconfirmed.iter().map(|patch| &patch.places)
    }

    /// Adds which bytes of a range of words are on their way.
    pub(super) fn add_masks(&self, range: &Range<u64>, masks: &mut BTreeMap<u64, u8>) {
        self.unconfirmed.iter().for_each(|patch| add_masks(&patch.groups, range, masks));
    }

    /// The owner has applied all up to a number.
    pub(super) fn confirm(&mut self, number: u32) {
        let before = u64::from((self.sent as u32).wrapping_sub(number));
        self.confirmed = self.confirmed.max(self.sent.saturating_sub(before));
        while self.unconfirmed.front().is_some_and(|patch| patch.number <= self.confirmed) {
            self.unconfirmed.pop_front();
        }
    }
}
