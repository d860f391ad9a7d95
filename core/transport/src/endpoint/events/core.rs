//! The methods of [`Core`] for events.

use super::POPS_BETWEEN_PROGRESS;
use crate::{Core, Slot};

impl Core {
    /// Queues a filled slot.
    #[inline]
    pub fn push(&mut self, slot: &'static Slot) {
        self.events.queue.push(slot);
    }

    /// Takes the oldest event. The program owns it from now on.
    #[inline]
    pub fn pop(&mut self) -> Option<&'static Slot> {
        let slot = self.hand_out_oldest()?;
        self.events.popped = true;
        Some(slot)
    }

    #[inline(always)]
    fn hand_out_oldest(&mut self) -> Option<&'static Slot> {
        let slot = self.events.queue.pop()?;
        self.slots.hand_out(slot);
        Some(slot)
    }

    /// The oldest event, now the program's, if one waits and [`Core::wants_progress`] would say no.
    /// For a call that [`Transport::settle`](crate::Transport::settle) does not end.
    #[inline(always)]
    pub fn pop_at_once(&mut self) -> Option<&'static Slot> {
        if self.events.queue.is_empty() || self.events.pops_left == 0 {
            return None;
        }
        self.events.pops_left -= 1;
        self.hand_out_oldest()
    }

    /// Whether the call that ends returned an event. Clears the record.
    #[inline]
    pub fn take_popped(&mut self) -> bool {
        std::mem::take(&mut self.events.popped)
    }

    /// Records that a call returns EAGAIN: an edge-triggered program may sleep after it.
    #[inline]
    pub fn on_empty_call(&mut self) {
        self.events.empty = true;
    }

    /// Whether the call that ends returned EAGAIN to a program that has the handle. Clears the
    /// record.
    #[inline]
    pub fn take_empty(&mut self) -> bool {
        std::mem::take(&mut self.events.empty)
    }

    /// [`Core::pop`] of a call that takes several events: each counts towards the next progress.
    #[inline]
    pub fn pop_counted(&mut self) -> Option<&'static Slot> {
        self.events.pops_left = self.events.pops_left.saturating_sub(1);
        self.pop()
    }

    /// Whether an event waits.
    #[inline(always)]
    #[must_use]
    pub fn has_event(&self) -> bool {
        !self.events.queue.is_empty()
    }

    /// The newest event that waits.
    #[inline]
    #[must_use]
    pub fn newest_event(&self) -> Option<&'static Slot> {
        self.events.newest()
    }

    /// Whether `get_event` must make progress first: when no event waits, and on every 16th call
    /// although one waits, so that a program that always finds its own SEND events also receives
    /// from peers.
    #[inline(always)]
    pub fn wants_progress(&mut self) -> bool {
        if self.events.queue.is_empty() {
            return true;
        }
        let is_due = self.events.pops_left == 0;
        self.events.pops_left = if is_due { POPS_BETWEEN_PROGRESS } else { self.events.pops_left - 1 };
        is_due
    }

    /// Drops the events that wait. For an endpoint that closes: no program takes them, and their
    /// slots must not run out while operations end.
    pub fn drop_events(&mut self) {
        while let Some(slot) = self.pop() {
            let _ = slot.give_back();
        }
    }
}
