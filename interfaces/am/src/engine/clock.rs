//! When to look for peers that have stopped.

use std::time::{Duration, Instant};

/// Ticks of a send timeout.
pub(super) const TICKS: u32 = 8;
/// Polls after which the clock is read.
const LOOKS: u32 = 256;

/// Counts polls. The clock is read once in many of them.
#[derive(Debug)]
pub(crate) struct Clock {
    tick: u32,
    at: Instant,
    pub(super) length: Duration,
    /// Polls that find something until counting has more to do: the clock is read then, or, after
    /// an empty poll, the next is the one.
    pub(super) left: u32,
    /// After an empty poll: polls until the clock is read.
    pub(super) until_read: u32,
    /// Empty polls in a row.
    pub(super) empty: u32,
    /// A poll that found more than this looks for more: 1 where a single message is probably all, 0
    /// where another one has come just before it.
    pub(super) single: usize,
}

impl Clock {
    pub(crate) fn new(timeout: Duration) -> Self {
        let (at, length) = (Instant::now(), timeout / TICKS);
        Self { tick: 0, at, length, left: LOOKS, until_read: 0, empty: 0, single: 0 }
    }

    pub(crate) fn tick(&self) -> u32 {
        self.tick
    }

    /// Whether a tick is over. One counts once, however late: this endpoint did not poll meanwhile.
    pub(super) fn has_ticked(&mut self) -> bool {
        *(if self.empty > 0 { &mut self.until_read } else { &mut self.left }) = LOOKS;
        let now = Instant::now();
        let is_over = now.duration_since(self.at) >= self.length;
        if is_over {
            self.at = now;
            self.tick = self.tick.wrapping_add(1);
        }
        is_over
    }
}
