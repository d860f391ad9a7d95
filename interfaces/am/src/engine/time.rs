//! Peers that stop: requests to them come back, and credits that they keep are taken back.

use super::Turn;
use super::clock::TICKS;
use crate::errors::{RequestError, Status};
use crate::mapping::Mapping;
use crate::peers::Way;
use std::time::{Duration, Instant};

/// Empty polls after which ended requests are reported, however few.
const QUIET: u32 = 32;
/// The longest sleep while a message waits for room, whose coming wakes nobody.
pub(super) const ROOM: Duration = Duration::from_millis(5);

impl<S, M: Mapping> Turn<'_, S, M> {
    /// Counts a poll.
    #[inline]
    pub(super) fn count_poll(&mut self, found: usize) {
        if found == 0 {
            return self.count_empty_poll();
        }
        let clock = &mut self.core.clock;
        clock.left -= 1;
        if clock.left == 0 {
            self.count_further();
        }
    }

    /// When nothing comes any more, reports what was kept for a batch.
    fn count_empty_poll(&mut self) {
        let clock = &mut self.core.clock;
        if clock.empty == 0 {
            clock.until_read = std::mem::replace(&mut clock.left, 1);
            clock.single = 1;
        }
        clock.until_read -= 1;
        clock.empty = clock.empty.saturating_add(1);
        let (is_quiet, reads) = (clock.empty == QUIET, clock.until_read == 0);
        if is_quiet {
            self.flush_batches();
        }
        if reads {
            self.look_at_clock();
        }
    }

    /// After a poll that has found something behind an empty one, or the many after which the clock
    /// is read.
    #[inline(never)]
    fn count_further(&mut self) {
        let clock = &mut self.core.clock;
        let left = if clock.empty > 0 { clock.until_read - 1 } else { 0 };
        (clock.left, clock.empty, clock.single) = (left, 0, 0);
        if left == 0 {
            self.look_at_clock();
        }
    }

    #[inline(never)]
    fn look_at_clock(&mut self) {
        if self.core.clock.has_ticked() {
            self.check_targets();
            self.check_sources();
        }
    }

    /// Breaks the way to targets that have shown no sign of life for the timeout, though requests
    /// are open.
    fn check_targets(&mut self) {
        let tick = self.core.clock.tick();
        for index in self.core.targets.indices() {
            let Some(target) = self.core.targets.at_mut(index) else { continue };
            if target.open == 0 || std::mem::take(&mut target.is_alive) {
                target.tick = tick;
            } else if tick.wrapping_sub(target.tick) >= TICKS && matches!(target.way, Way::Open(_)) {
                self.break_target(index);
            }
        }
    }

    /// Drops sources that do not give credits back for the timeout.
    fn check_sources(&mut self) {
        let tick = self.core.clock.tick();
        for index in self.core.sources.indices() {
            let Some(source) = self.core.sources.at_mut(index) else { continue };
            if source.loan.asked > 0 && tick.wrapping_sub(source.asked_at) > TICKS {
                self.drop_source(index);
            }
        }
    }

    /// Ends the way to a target, and gives every open request to it back.
    pub(crate) fn break_target(&mut self, index: u32) {
        let Some(target) = self.core.targets.at_mut(index) else { return };
        if let Way::Open(channel) = std::mem::replace(&mut target.way, Way::Broken) {
            self.mapping.close(channel);
        }
        target.available = 0;
        target.assembly = None;
        self.core.unsent.retain(|unsent| unsent.target != index);
        while let Some(id) = self.core.records.one_of(index) {
            self.return_record(id, Status::Unreachable);
        }
    }

    /// Ends a mapping.
    pub(crate) fn unmap(&mut self, index: u32) {
        self.break_target(index);
        self.core.targets.remove_at(index);
    }

    /// Polls, and sleeps until something has come, at most for `limit`.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> Result<usize, RequestError> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let found = self.poll()?;
            if found > 0 || self.mapping.take_wake() {
                return Ok(found);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(0);
            }
            let found = self.sleep(left.unwrap_or(Duration::MAX))?;
            if found > 0 {
                return Ok(found);
            }
        }
    }

    /// Sleeps until something has come, at most for `limit` or a tick.
    pub(super) fn sleep(&mut self, limit: Duration) -> Result<usize, RequestError> {
        let limit = self.before_sleep(limit);
        let mapping = self.mapping;
        let found = mapping.wait(limit, |incoming| self.take(incoming)).map_err(|_| RequestError::Unusable)?;
        self.after_sleep(found);
        Ok(found)
    }

    /// Reports what was kept for a batch, and returns how long to sleep at most.
    pub(crate) fn before_sleep(&mut self, limit: Duration) -> Duration {
        self.flush_batches();
        let core = &*self.core;
        let is_waiting = !core.outbox.buffers.queue.is_empty() || !core.unsent.is_empty() || !core.due.is_empty();
        limit.min(core.clock.length).min(if is_waiting { ROOM } else { Duration::MAX })
    }

    /// Does what follows a sleep in which so much was found.
    pub(crate) fn after_sleep(&mut self, found: usize) {
        self.after(found);
        self.look_at_clock();
    }
}
