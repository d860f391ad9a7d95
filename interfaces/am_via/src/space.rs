//! Space in the peer's memory that the sender manages, without the failures that such space admits:
//! a ring of bytes whose sender never divides a message, and whose receiver gives it back in the
//! order in which it was taken.
//!
//! ```text
//!  0            tail                  head           size
//!  +------------+=====================+--------------+
//!  |   free     |  taken, in order    |   free       |    a message that does not fit before the
//!  +------------+=====================+--------------+    end begins at 0; what it leaves out
//!                                                         belongs to it until it is given back
//! ```

use std::collections::VecDeque;

/// Places of messages are multiples of this, bytes.
pub(crate) const GRAIN: u32 = 8;

fn grains(len: u32) -> u32 {
    len.next_multiple_of(GRAIN)
}

/// The sender's side.
#[derive(Debug)]
pub(crate) struct Space {
    size: u32,
    head: u32,
    taken: u32,
    /// What each message on its way has taken, with what it has left out, and where the head was;
    /// nothing for messages that need no space. As many as have credits.
    open: VecDeque<(u32, u32)>,
}

impl Space {
    /// A ring of `size` bytes, a multiple of [`GRAIN`].
    pub(crate) fn new(size: u32) -> Self {
        Self { size: size / GRAIN * GRAIN, head: 0, taken: 0, open: VecDeque::new() }
    }

    /// Takes space for a message, and returns where it begins; none now.
    pub(crate) fn take(&mut self, len: u32) -> Option<u32> {
        let len = grains(len);
        let (offset, advance) = if self.head + len <= self.size {
            (self.head, len)
        } else if self.taken == 0 {
            // Nothing is there that what is left out would stand behind.
            (0, len)
        } else {
            (0, self.size - self.head + len)
        };
        if self.taken + advance > self.size {
            return None;
        }
        self.open.push_back((advance, self.head));
        self.taken += advance;
        self.head = (offset + len) % self.size;
        Some(offset)
    }

    /// A message goes that needs no space.
    pub(crate) fn pass(&mut self) {
        self.open.push_back((0, self.head));
    }

    /// Undoes the last [`Space::take`], whose message was not sent.
    pub(crate) fn untake(&mut self) {
        if let Some((advance, head)) = self.open.pop_back() {
            self.taken -= advance;
            self.head = head;
        }
    }

    /// The receiver gives back what its oldest messages have taken. False: more than there are.
    pub(crate) fn free(&mut self, messages: usize) -> bool {
        for _ in 0..messages {
            let Some((advance, _)) = self.open.pop_front() else { return false };
            self.taken -= advance;
        }
        true
    }
}

/// The receiver's side: where the next message begins. A peer that says otherwise is wrong.
#[derive(Debug)]
pub(crate) struct Expected {
    size: u32,
    at: u32,
}

impl Expected {
    pub(crate) fn new(size: u32) -> Self {
        Self { size: size / GRAIN * GRAIN, at: 0 }
    }

    /// A message of `len` bytes has come to `offset`: whether that is its place.
    pub(crate) fn advance(&mut self, offset: u32, len: u32) -> bool {
        let Some(len) = len.checked_next_multiple_of(GRAIN).filter(|len| *len <= self.size) else { return false };
        let begins_anew = self.at + len > self.size;
        if offset != if begins_anew { 0 } else { self.at } {
            return false;
        }
        self.at = (offset + len) % self.size;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Expected, Space};
    use std::collections::VecDeque;

    /// Against an oracle that keeps who owns each byte: no two messages overlap, all space comes
    /// back, and both sides agree on each place.
    #[test]
    fn no_message_overlaps_another_and_no_space_is_lost() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let size = 8 * random.u32(1..64);
            let (mut space, mut expected) = (Space::new(size), Expected::new(size));
            let mut owner = vec![None; size as usize];
            let mut open = VecDeque::new();
            for number in 0..500 {
                let len = random.u32(1..=size);
                if random.u32(0..3) > 0 {
                    if random.u32(0..8) == 0 && space.take(len).is_some() {
                        // Refused by the layer below: as if it had not been.
                        space.untake();
                    }
                    let offset = space.take(len);
                    assert!(offset.is_some() || !open.is_empty(), "an empty ring takes what is not longer");
                    if let Some(offset) = offset {
                        assert!(expected.advance(offset, len), "both sides agree on {offset}");
                        for byte in &mut owner[offset as usize..(offset + len) as usize] {
                            assert_eq!(byte.replace(number), None, "seed {seed}");
                        }
                        open.push_back((offset, len));
                    }
                } else if let Some((offset, len)) = open.pop_front() {
                    owner[offset as usize..(offset + len) as usize].fill(None);
                    assert!(space.free(1));
                }
            }
            assert!(space.free(open.len()) && !space.free(1));
            assert!(space.taken == 0, "seed {seed}: {} bytes lost", space.taken);
            // Whatever came before, the whole ring can be taken, if not at one place.
            let mut filled = 0;
            while space.take(8).is_some() {
                filled += 8;
            }
            assert_eq!(filled, size);
        }
    }

    #[test]
    fn what_was_not_sent_leaves_no_trace() {
        let mut space = Space::new(64);
        assert_eq!(space.take(40), Some(0));
        assert!(space.free(1));
        assert_eq!(space.take(40), Some(0), "begins anew");
        space.untake();
        assert_eq!((space.taken, space.head), (0, 40));
        assert_eq!(space.take(24), Some(40));
        assert_eq!(space.take(40), Some(0));
        assert_eq!(space.take(1), None);
    }

    #[test]
    fn a_peer_that_writes_elsewhere_is_found_out() {
        let mut expected = Expected::new(64);
        assert!(!expected.advance(8, 8) && expected.advance(0, 33));
        assert!(!expected.advance(0, 24), "it fits before the end");
        assert!(!expected.advance(40, 25) && expected.advance(40, 24), "beyond the end");
        assert!(!expected.advance(0, u32::MAX) && !expected.advance(0, 65));
    }
}
