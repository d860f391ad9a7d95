//! The usual call of a program that polls: one lane, no handle, nothing else to be done. What is found here needs no loop over lanes
//! and no clock; everything else goes the long way, before anything has been changed.

use crate::common::Common;
use crate::lane::{Lane, Phase};
use crate::layout::kind;
use crate::{CLOCK_EVERY, Sm};
use cci_mem::ring::Header;
use cci_transport::Core;

/// A program that spins reads the clock once in so many empty calls. Divides every other interval of empty calls.
pub(crate) const SPINS: u32 = 8;

impl Sm {
    /// Makes progress where that takes no more than messages, or nothing, of the one lane that is polled.
    #[inline(always)]
    pub(crate) fn progress_quickly(&mut self, core: &mut Core) {
        let [number] = self.hot[..] else { return self.progress_at_length(core) };
        if core.handle_in_use || self.common.released.is_due() || self.common.has_chores() || self.common.has_hint() {
            return self.progress_at_length(core);
        }
        let Some(Some(lane)) = self.lanes.get_mut(number as usize) else { return self.progress_at_length(core) };
        let Some(wire) = lane.wire.as_mut() else { return self.progress_at_length(core) };
        if lane.phase != Phase::Ready || lane.answers.len() | lane.queue.len() != 0 {
            return self.progress_at_length(core);
        }
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        if let Some(header) = wire.consumer.peek(wire.inbound.ring) {
            return self.progress_by_messages(core, number, header);
        }
        let next = self.calls.wrapping_add(1);
        if !self.spins || next.is_multiple_of(SPINS) || !self.restless.is_empty() || core.has_lent_recv() {
            return self.progress_at_length(core);
        }
        wire.consumer.on_gap();
        (self.calls, self.found_before) = (next, false);
    }

    /// As [`Sm::progress_quickly`], with a frame in the lane. Apart from it, which needs no stack without this.
    #[inline(never)]
    fn progress_by_messages(&mut self, core: &mut Core, number: u32, first: Header) {
        if let Some(Some(lane)) = self.lanes.get_mut(number as usize)
            && self.busy < CLOCK_EVERY - 1
            && !lane.held_back
            && self.common.wanting.is_empty()
            && lane.take_messages(&mut self.common, core, first) > 0
        {
            self.patience.on_found();
            self.found_before = true;
            self.busy += 1;
            return;
        }
        self.progress_at_length(core);
    }
}

impl Lane {
    /// Takes the message in the ring's next frame, which has this header, and in a stream those after it. Says how many: anything
    /// else is left where it is.
    #[inline(always)]
    fn take_messages(&mut self, common: &mut Common, core: &mut Core, first: Header) -> u32 {
        let budget = self.budget();
        let (mut taken, mut next) = (0, Some(first));
        while let Some(header) = next
            && header.kind == kind::MESSAGE
            && self.take_message(common, core, header) == Ok(true)
        {
            taken += 1;
            let Some(wire) = self.wire.as_mut() else { break };
            wire.consumer.advance(wire.inbound.head);
            if taken == budget {
                break;
            }
            wire.consumer.prefetch(wire.inbound.ring);
            next = wire.consumer.peek(wire.inbound.ring);
            if next.is_none() {
                wire.consumer.on_gap();
            }
        }
        if taken > 0 {
            self.received += u64::from(taken);
            self.woken = true;
            self.wake_producer();
        }
        taken
    }
}
