//! The hot lane: the one that delivered last. Each call reads it directly (`docs/design/tcp.md`,
//! Waiting and timeouts).

use super::{LOOKS, Tcp};
use cci_transport::Core;

/// Calls of a program that spins which find something on the hot lane, before its stream leaves the
/// set of descriptors, also after it was watched for room.
const STREAK: u32 = 256;

impl Tcp {
    /// Reads the hot lane.
    pub(super) fn read_hot(&mut self, core: &mut Core) -> bool {
        let Some((lane, shared)) = self.hot.lane.and_then(|hot| self.lane(hot)) else { return false };
        let found = lane.receive(shared, core) > 0;
        if found && !core.is_armed() {
            self.hot.streak = self.hot.streak.wrapping_add(1);
            if self.hot.streak.is_multiple_of(STREAK) {
                self.unwatch_hot();
            }
        }
        found
    }

    /// A lane that is not the hot one has delivered.
    pub(super) fn on_delivered(&mut self, number: u32) {
        if self.hot.lane.is_some() {
            self.look_at_all = LOOKS;
        }
        // A lane that is not watched stays hot, or nobody would read it.
        if self.watch_hot() {
            self.hot.lane = Some(number);
        }
    }

    /// A further stream of a lane has delivered: it is watched, and more is likely to come on it.
    pub(super) fn on_further_delivered(&mut self) {
        self.look_at_all = LOOKS;
    }

    /// Takes the stream of the hot lane out of the set of descriptors: each segment that arrives
    /// would cost a call of the set. Calls read the lane by themselves, and the handle of a program
    /// that spins is readable anyway.
    #[cold]
    fn unwatch_hot(&mut self) {
        if let Some((lane, shared)) = self.hot.lane.and_then(|hot| self.lane(hot)) {
            lane.unwatch(shared);
        }
    }

    /// Has the set of descriptors report all lanes. False: the system refuses.
    pub(super) fn watch_hot(&mut self) -> bool {
        self.hot.streak = 0;
        match self.hot.lane.and_then(|hot| self.lane(hot)) {
            Some((lane, shared)) if lane.is_unwatched() => lane.watch(shared),
            _ => true,
        }
    }
}
