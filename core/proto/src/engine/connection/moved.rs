//! Peers whose frames come from another address than that of their connection. Their frames have
//! the identifiers of the connection, and are dropped: an address is proved by the handshake only.

use crate::Address;
use alloc::collections::BTreeMap;

/// Connections for which such frames are counted at a time. A further one takes the place of the
/// one that is counted for longest: peers that keep such connections hide no other one.
const MOST: usize = 1024;

/// The frames of the peer of one connection that came from another address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Where the last of them came from.
    pub from: Address,
    /// How many there were.
    pub frames: u64,
}

/// Such frames, by connection.
#[derive(Default)]
pub(crate) struct MovedPeers {
    /// With the number of the entry.
    counts: BTreeMap<u32, (u64, Moved)>,
    /// Connections by the numbers of their entries, which rise: the oldest first.
    order: BTreeMap<u64, u32>,
    next: u64,
}

impl MovedPeers {
    /// Counts a frame.
    pub(crate) fn note(&mut self, index: u32, from: &Address) {
        if let Some((_, moved)) = self.counts.get_mut(&index) {
            moved.from = *from;
            moved.frames += 1;
            return;
        }
        if self.counts.len() >= MOST
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.counts.remove(&oldest);
        }
        self.order.insert(self.next, index);
        self.counts.insert(index, (self.next, Moved { from: *from, frames: 1 }));
        self.next += 1;
    }

    /// What was counted for a connection.
    pub(crate) fn of(&self, index: u32) -> Option<Moved> {
        self.counts.get(&index).map(|(_, moved)| *moved)
    }

    /// Forgets a connection that is removed.
    pub(crate) fn forget(&mut self, index: u32) {
        if let Some((number, _)) = self.counts.remove(&index) {
            self.order.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELSEWHERE: Address = Address([7; 24]);

    fn noted(moved: &MovedPeers) -> usize {
        assert_eq!(moved.counts.len(), moved.order.len());
        moved.counts.len()
    }

    #[test]
    fn connections_that_stay_moved_hide_no_other_one() {
        let (mut moved, most) = (MovedPeers::default(), u32::try_from(MOST).expect("few"));
        for round in 0..3 {
            for index in 0..most {
                moved.note(index, &ELSEWHERE);
                assert_eq!(moved.of(index).map(|moved| moved.frames), Some(round + 1));
            }
        }
        moved.note(most, &ELSEWHERE);
        assert_eq!((noted(&moved), moved.of(0)), (MOST, None), "the oldest has made room");
        assert_eq!(moved.of(most), Some(Moved { from: ELSEWHERE, frames: 1 }));
        moved.note(0, &ELSEWHERE);
        assert_eq!((moved.of(0).map(|moved| moved.frames), moved.of(1)), (Some(1), None));
        // A place that is free is taken before somebody makes room.
        moved.forget(2);
        moved.note(1, &ELSEWHERE);
        assert!([0, 1, 3, most].iter().all(|index| moved.of(*index).is_some()) && noted(&moved) == MOST);
        (0..=most).for_each(|index| moved.forget(index));
        assert_eq!(noted(&moved), 0);
    }
}
