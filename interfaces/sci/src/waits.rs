//! What threads that wait for a host look at.

use std::time::Instant;

/// Who waits, and for what.
#[derive(Default)]
pub(crate) struct Waits {
    /// Somebody who waits may have what it waits for; and how many threads wait.
    pub(crate) has_changed: bool,
    pub(crate) waiters: u32,
    /// Events of the endpoint so far, and queues that were posted.
    pub(crate) moves: u64,
    /// How many of them a wait has seen, and when.
    seen: Option<(u64, Instant)>,
}

impl Waits {
    /// When a wait has first seen the last of what moves.
    pub(crate) fn last_move(&mut self, now: Instant) -> Instant {
        let (_, at) =
            *self.seen.insert(self.seen.filter(|(moves, _)| *moves == self.moves).unwrap_or((self.moves, now)));
        at
    }
}
