//! Patches that an owner was sent, and those that it has confirmed.

use std::collections::VecDeque;
use std::ops::Range;

/// Patches that were not confirmed and are told apart.
const MOST_PLACES: usize = 64;

/// The patches of a mirror.
#[derive(Default)]
pub(crate) struct Patches {
    /// Those that were sent, the last one of them to be confirmed, and the last one that was.
    pub(super) sent: u64,
    pub(super) asked: u64,
    pub(super) confirmed: u64,
    /// The words of each patch that was not confirmed.
    pub(super) places: VecDeque<(u64, Range<u64>)>,
}

impl Patches {
    /// A patch is sent.
    pub(super) fn note(&mut self, range: Range<u64>, is_asking: bool) {
        self.sent += 1;
        if is_asking {
            self.asked = self.sent;
        }
        if self.places.len() >= MOST_PLACES {
            let all =
                |from: Range<u64>, (_, other): &(u64, Range<u64>)| from.start.min(other.start)..from.end.max(other.end);
            let hull = self.places.iter().fold(range, all);
            self.places.clear();
            return self.places.push_back((self.sent, hull));
        }
        self.places.push_back((self.sent, range));
    }
}
