//! What threads that wait for a host look at.

use std::time::Instant;

/// What those who wait look at.
#[derive(Default)]
pub(crate) struct Waits {
    /// Somebody who waits may have what it waits for; and how often they were woken for that.
    pub(crate) has_changed: bool,
    woken: u64,
    /// Events of the endpoint so far, and queues that were posted.
    pub(crate) moves: u64,
    /// How many of them a wait has seen, and when.
    seen: Option<(u64, Instant)>,
}

impl Waits {
    /// Another number once somebody who waits may have what it waits for.
    pub(crate) fn changes(&self) -> u64 {
        self.woken + u64::from(self.has_changed)
    }

    /// Whether its caller is to wake those who wait.
    pub(crate) fn take_change(&mut self) -> bool {
        self.woken = self.changes();
        std::mem::take(&mut self.has_changed)
    }

    /// When a wait has first seen the last of what moves.
    pub(crate) fn last_move(&mut self, now: Instant) -> Instant {
        let (_, at) =
            *self.seen.insert(self.seen.filter(|(moves, _)| *moves == self.moves).unwrap_or((self.moves, now)));
        at
    }
}
