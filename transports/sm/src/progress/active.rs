//! Which lanes a call looks at, and which ones the clock does: the work of a call does not grow
//! with the peers that do nothing.
//!
//! A lane is *hot* while it carries messages or has something to send: every call polls it, as far
//! as its turn comes. All others are *cold*: their sleep word says ASLEEP although this side polls,
//! so that their peer sets a hint and sends a wake-up with the next frame. A lane is *timed* while
//! it has something to do with the clock.

use crate::lane::{Lane, Phase};
use crate::slow_path::SlowPath;
use cci_mem::ring::Violation;
use cci_mem::sync::Ordering;
use cci_transport::Core;

/// So few lanes stay hot whatever they carry: they cost a call little. Of more, one does.
const FEW: usize = 4;
/// Hints that one call follows: a peer can set as many as it likes.
const HINTS_PER_CALL: usize = 16;

impl Lane {
    /// Whether the clock may forget this lane until it stirs again.
    pub(crate) fn is_quiet(&self) -> bool {
        self.phase == Phase::Ready
            && self.queue.is_empty()
            && self.announced.blocked().is_none()
            && self.activity.idle_since().is_none()
            && !self.activity.is_watchful()
            && self.table.all_pending().next().is_none()
    }

    /// Whether calls have to poll this lane although no frame comes.
    fn must_stay_hot(&self) -> bool {
        !self.queue.has_no_turn() || self.admission.is_open() || self.phase != Phase::Ready
    }

    /// Whether calls can poll this lane.
    fn is_pollable(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Draining)
    }
}

impl SlowPath {
    /// Enters the lanes that have become busy since the last call into the lists.
    #[cold]
    pub(crate) fn on_newly_timed(&mut self) {
        while let Some(number) = self.state.newly_timed.pop() {
            self.timed.push(number);
        }
        while let Some(number) = self.state.newly_hot.pop() {
            let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { continue };
            if lane.is_pollable() {
                lane.schedule.make_hot();
                self.hot.push(number);
            } else {
                lane.schedule.make_cold();
            }
        }
    }

    /// Polls this cold lane from now on.
    pub(crate) fn make_hot(&mut self, number: u32, is_armed: bool) {
        let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { return };
        if lane.schedule.is_hot() || !lane.is_pollable() {
            return;
        }
        lane.schedule.make_hot();
        self.hot.push(number);
        // An armed endpoint arms the words again at the end of the call.
        if !is_armed {
            lane.disarm();
        }
    }

    /// Looks at the lanes that peers have set hints for. True when a frame was taken.
    #[inline(always)]
    pub(crate) fn follow_hints(&mut self, core: &mut Core) -> bool {
        match self.state.next_hint() {
            None => false,
            Some(first) => self.follow_hints_from(core, first),
        }
    }

    #[cold]
    fn follow_hints_from(&mut self, core: &mut Core, first: u32) -> bool {
        let (mut hint, mut found) = (Some(first), false);
        for _ in 0..HINTS_PER_CALL {
            let Some(number) = hint else { break };
            found |= self.look_at_cold(core, number);
            hint = self.state.next_hint();
        }
        if let Some(number) = hint {
            found |= self.look_at_cold(core, number);
        }
        found
    }

    /// Looks at a lane that is perhaps cold, and if it is not empty, takes a frame and makes it
    /// hot.
    fn look_at_cold(&mut self, core: &mut Core, number: u32) -> bool {
        let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { return false };
        if lane.schedule.is_hot() || lane.phase != Phase::Ready {
            return false;
        }
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        let taken = match lane.receive(&mut self.state, core, 1) {
            Ok(taken) => taken > 0,
            Err(Violation) => {
                self.state.protocol_errors.push(number);
                return false;
            }
        };
        if taken || lane.admission.is_refusing() {
            self.make_hot(number, core.is_armed());
        }
        taken
    }

    /// Looks at one cold lane in turn: a hint and its wake-up that are both lost only delay.
    #[cold]
    pub(crate) fn sweep(&mut self, core: &mut Core) -> bool {
        if self.hot.len() >= self.lanes.len() {
            return false;
        }
        self.swept = if self.swept as usize + 1 < self.lanes.len() { self.swept + 1 } else { 0 };
        self.look_at_cold(core, self.swept)
    }

    /// Lanes that have carried nothing for some ticks go cold: all of them pay for one heavy fence.
    pub(crate) fn cool(&mut self, core: &Core) {
        let lanes = self.lanes.len() - self.vacant.len();
        let mut spare = self.hot.len().saturating_sub(if lanes > FEW { 1 } else { FEW });
        let (mut heavy, mut cooled) = (false, false);
        for at in 0..self.hot.len() {
            let Some(lane) = self.lanes.get_mut(self.hot[at] as usize).and_then(Option::as_deref_mut) else { continue };
            let is_silent = lane.schedule.on_tick(lane.activity.received());
            if spare > 0 && is_silent && !lane.must_stay_hot() {
                spare -= 1;
                cooled |= lane.schedule.make_cold();
                heavy |= lane.arm();
            }
        }
        if !cooled {
            return;
        }
        if heavy {
            self.state.pairing.heavy();
        } else {
            cci_mem::sync::fence(Ordering::SeqCst);
        }
        let lanes = &mut self.lanes;
        self.hot.retain(|number| {
            let Some(lane) = lanes.get_mut(*number as usize).and_then(Option::as_deref_mut) else { return false };
            // The look after lying down: what was published before it sets no hint.
            if !lane.schedule.is_hot() && lane.has_work() {
                lane.schedule.make_hot();
                if !core.is_armed() {
                    lane.disarm();
                }
            }
            lane.schedule.is_hot()
        });
    }
}

#[cfg(test)]
mod tests;
