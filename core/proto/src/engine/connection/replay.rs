//! Which transmission numbers of sealed frames have come: a window of the newest 1,024.
//!
//! A connection without a gap needs its newest number only. So windows are taken at the first gap,
//! and taken away from connections that do not use them.

use super::conn::NONE;
use alloc::vec::Vec;

/// Numbers in a window.
pub(crate) const NUMBERS: u64 = 1024;
const WORDS: usize = (NUMBERS / 64) as usize;
/// Most windows of an endpoint: 600 kB.
const MOST: usize = 4096;
/// Seconds after which another connection may have the window of one that did not use it.
const IDLE: u32 = 2;

/// A window: a bit for each number, by its remainder. Numbers above the newest have no meaning.
struct Window {
    owner: u32,
    /// When it was last used, seconds.
    used: u32,
    seen: [u64; WORDS],
}

/// The windows of an endpoint.
#[derive(Default)]
pub(crate) struct Windows {
    all: Vec<Window>,
    free: Vec<u16>,
    /// The one that is looked at next for whether it is idle.
    hand: usize,
}

impl Windows {
    /// Takes a window in which every number has come, at this second. Returns it and the connection
    /// that has lost it, if any. `None`: all are in use, or there is no memory.
    pub(super) fn take(&mut self, owner: u32, second: u32) -> Option<(u16, Option<u32>)> {
        let (at, loser) = if let Some(at) = self.free.pop() {
            (at, None)
        } else if let Some(at) = self.idle(second) {
            (at, Some(self.all[usize::from(at)].owner))
        } else {
            let is_full = self.all.len() >= MOST;
            if is_full || self.all.try_reserve(1).is_err() || self.free.try_reserve(self.all.len() + 1).is_err() {
                return None;
            }
            self.all.push(Window { owner, used: second, seen: [0; WORDS] });
            (u16::try_from(self.all.len() - 1).ok()?, None)
        };
        self.all[usize::from(at)] = Window { owner, used: second, seen: [u64::MAX; WORDS] };
        Some((at, loser))
    }

    /// The window that the hand points to, if it is idle.
    fn idle(&mut self, second: u32) -> Option<u16> {
        self.hand = (self.hand + 1) % self.all.len().max(1);
        let window = self.all.get(self.hand).filter(|window| window.owner != NONE)?;
        (second.wrapping_sub(window.used) >= IDLE).then_some(u16::try_from(self.hand).ok()?)
    }

    /// Gives a window back.
    pub(super) fn give(&mut self, at: u16) {
        if let Some(window) = self.all.get_mut(usize::from(at)) {
            window.owner = NONE;
            self.free.push(at);
        }
    }

    /// Returns whether a number of the window has come.
    pub(super) fn has(&self, at: u16, number: u64) -> bool {
        let (word, bit) = place(number);
        self.all.get(usize::from(at)).is_none_or(|window| window.seen[word] >> bit & 1 == 1)
    }

    /// Notes a number, and that those between `newest` and it have not come, at this second.
    pub(super) fn note(&mut self, at: u16, newest: u64, number: u64, second: u32) {
        let Some(window) = self.all.get_mut(usize::from(at)) else { return };
        window.used = second;
        if number.saturating_sub(newest) > NUMBERS {
            window.seen = [0; WORDS];
        } else {
            for missing in newest + 1..number {
                let (word, bit) = place(missing);
                window.seen[word] &= !(1 << bit);
            }
        }
        let (word, bit) = place(number);
        window.seen[word] |= 1 << bit;
    }

    /// Windows that there are, for tests of their bound.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

/// Word and bit of a number.
#[expect(clippy::cast_possible_truncation, reason = "a remainder of 1,024")]
fn place(number: u64) -> (usize, u32) {
    let at = (number % NUMBERS) as usize;
    (at / 64, (at % 64) as u32)
}
