//! The usual call of a program that polls: one lane, no handle, nothing else to be done. What is
//! found here needs no loop over lanes and at most one look at the clock; everything else goes the
//! long way, before anything has been changed.

use crate::clock::coarse_now;
use crate::format::layout::kind;
use crate::lane::receive::BURST;
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use crate::progress::poll::{CLOCK_EVERY, SWEEP_EVERY};
use crate::shortcut::{NO_LANE, Sm};
use crate::slow_path::SPINS;
use cci_mem::ring::{BODY, Peeked, Violation};
use cci_mem::sync::Ordering;
use cci_proto::EventKind;
use cci_transport::{Core, Slot, tag_event};

/// What a call finds in the one lane that there is to poll.
enum Found {
    /// Nothing, and nothing else is to be done.
    Nothing,
    /// A message.
    Message(Peeked),
    /// Another frame.
    Frame(Peeked),
    /// Whatever it is, the call has to go the long way.
    Unknown,
    /// Nothing, and this call is the last of [`SPINS`].
    Tick,
}

impl Sm {
    /// As `Transport::poll`, where it takes no more than messages, or nothing, of the one lane that
    /// is polled.
    #[inline(always)]
    pub(crate) fn poll_quickly(&mut self, core: &mut Core) -> Option<&'static Slot> {
        match self.find(core) {
            Found::Nothing => None,
            Found::Message(found) => self.poll_message(core, found),
            Found::Frame(found) => self.poll_frame(core, found),
            Found::Unknown => self.poll_at_length(core),
            Found::Tick => self.poll_on_tick(core),
        }
    }

    /// As `Transport::progress`, likewise: an event waits or somebody may wait on the handle, so
    /// that a message goes by the queue.
    #[inline(always)]
    pub(crate) fn progress_quickly(&mut self, core: &mut Core) {
        match self.find(core) {
            Found::Nothing => {}
            Found::Tick if self.is_tick_idle() => {}
            _ => self.progress_at_length(core),
        }
    }

    /// Looks into the one lane that is polled.
    #[inline(always)]
    fn find(&mut self, core: &Core) -> Found {
        let Some(Some(lane)) = self.slow.lanes.get_mut(self.sole as usize) else { return Found::Unknown };
        let (token, Some(wire)) = (lane.token, lane.wire.as_mut()) else { return Found::Unknown };
        if self.slow.state.has_new_hint() {
            return Found::Unknown;
        }
        #[cfg(test)]
        self.slow.looks.set(self.slow.looks.get() + 1);
        let found = wire.consumer.look(wire.inbound.ring);
        if found.is(kind::MESSAGE) {
            return Found::Message(found);
        }
        if found.header().is_some() {
            return Found::Frame(found);
        }
        if !self.slow.spins || core.has_borrowed_recv() && !is_only_lent(core, token) {
            return Found::Unknown;
        }
        wire.consumer.on_gap();
        let next = self.slow.calls.wrapping_add(1);
        if next.is_multiple_of(SPINS) {
            return Found::Tick;
        }
        self.slow.calls = next;
        Found::Nothing
    }

    /// As [`Sm::poll_quickly`], with this message in the lane. Apart from it, which needs no stack
    /// without this.
    #[inline(never)]
    fn poll_message(&mut self, core: &mut Core, found: Peeked) -> Option<&'static Slot> {
        let Some(Some(lane)) = self.slow.lanes.get_mut(self.sole as usize) else { return self.poll_at_length(core) };
        if self.slow.busy >= CLOCK_EVERY - 1 {
            return self.poll_at_length(core);
        }
        let Some(slot) = lane.take_again(core, found) else { return self.poll_messages(core) };
        self.slow.busy += 1;
        self.slow.readiness.on_found_unarmed();
        if lane.wire.as_ref().is_some_and(|wire| wire.consumer.is_streaming()) {
            self.receive_more(core, BURST - 1);
        }
        Some(slot)
    }

    /// Likewise, where the message takes a slot.
    #[inline(never)]
    fn poll_messages(&mut self, core: &mut Core) -> Option<&'static Slot> {
        let budget = self.slow.lane(self.sole).map_or(0, Lane::budget);
        if !self.receive_more(core, budget) {
            return self.poll_at_length(core);
        }
        self.slow.busy += 1;
        self.slow.readiness.on_found_unarmed();
        core.pop()
    }

    /// Likewise, with another frame in the lane: a message in a payload slot needs no long way
    /// either.
    #[inline(never)]
    fn poll_frame(&mut self, core: &mut Core, found: Peeked) -> Option<&'static Slot> {
        if !found.is(kind::MESSAGE_SLOT) || self.slow.busy >= CLOCK_EVERY - 1 {
            return self.poll_at_length(core);
        }
        let Some(Some(lane)) = self.slow.lanes.get_mut(self.sole as usize) else { return self.poll_at_length(core) };
        // The frame of a peer that broke the protocol stays where it is.
        if !lane.take_from_slot(&mut self.slow.state, core, found).is_ok_and(|taken| taken) {
            return self.poll_at_length(core);
        }
        self.slow.busy += 1;
        self.slow.readiness.on_found_unarmed();
        let is_streaming = lane.wire.as_ref().is_some_and(|wire| wire.consumer.is_streaming());
        if self.slow.state.released.is_due() {
            self.slow().release();
            self.find_sole();
        }
        if is_streaming && self.sole != NO_LANE {
            self.receive_more(core, BURST - 1);
        }
        core.pop()
    }

    /// Takes further frames of the one lane. False: there are none, or the long way has to be gone
    /// with them.
    #[inline(never)]
    fn receive_more(&mut self, core: &mut Core, budget: u32) -> bool {
        let number = self.sole;
        let slow = self.slow();
        let Some(Some(lane)) = slow.lanes.get_mut(number as usize) else { return false };
        // The frame of a peer that broke the protocol stays where it is.
        let has_taken = lane.receive(&mut slow.state, core, budget).is_ok_and(|taken| taken > 0);
        self.find_sole();
        has_taken
    }

    /// As [`Sm::poll_quickly`], in the last of [`SPINS`] empty calls.
    #[inline(never)]
    fn poll_on_tick(&mut self, core: &mut Core) -> Option<&'static Slot> {
        if self.is_tick_idle() { None } else { self.poll_at_length(core) }
    }

    /// Ends [`SPINS`] empty calls. True: the clock stands as before them, and nothing else is due,
    /// so that the next ones do without it.
    #[inline(never)]
    fn is_tick_idle(&mut self) -> bool {
        let (now, next) = (coarse_now(), self.slow.calls.wrapping_add(1));
        let is_idle = now == self.slow.last_tick && now == self.slow.tick && !next.is_multiple_of(SWEEP_EVERY);
        if is_idle {
            self.slow.calls = next;
        }
        is_idle
    }

    #[inline(never)]
    fn poll_at_length(&mut self, core: &mut Core) -> Option<&'static Slot> {
        self.progress_at_length(core);
        core.pop()
    }
}

/// Whether the only receive slot that is taken has a small message of the lane with this token:
/// nobody waits for what it holds.
#[inline(always)]
fn is_only_lent(core: &Core, token: u64) -> bool {
    core.sole_recv().is_some_and(|slot| slot.payload.load(Ordering::Relaxed) == token)
}

impl Lane {
    /// Whether the lane is usable and nothing waits in it.
    #[inline(always)]
    pub(crate) fn is_clear(&self) -> bool {
        self.phase == Phase::Ready && self.queue.has_no_turn() && !self.queue.holds_any()
    }

    /// Takes the message in a payload slot that the ring's next frame names. False: no slot of the
    /// endpoint is free.
    #[inline(always)]
    fn take_from_slot(&mut self, state: &mut EndpointState, core: &mut Core, found: Peeked) -> Result<bool, Violation> {
        let Some(header) = found.header() else { return Ok(false) };
        if !self.take_message_slot(state, core, header)? {
            return Ok(false);
        }
        self.activity.on_received(1);
        self.sleeping.on_received();
        if let Some(wire) = self.wire.as_mut() {
            wire.consumer.advance(wire.inbound.head);
        }
        self.wake_producer();
        Ok(true)
    }

    /// Takes the message in the ring's next frame into the only receive slot that is taken, if the
    /// program has returned it. It had a small message of this lane before, so that nothing but the
    /// message changes; it is the program's again.
    #[inline(always)]
    fn take_again(&mut self, core: &mut Core, found: Peeked) -> Option<&'static Slot> {
        let wire = self.wire.as_mut()?;
        let header = found.header()?;
        let cell = self.table.open_cell(header.word)?;
        let slot = core.sole_returned_recv()?;
        if usize::from(header.len) > BODY || slot.payload.load(Ordering::Relaxed) != self.token {
            return None;
        }
        let entry = wire.consumer.shown(wire.inbound.ring);
        slot.fill_inline(EventKind::Recv as u32, usize::from(header.len), cell.address(), |at| entry.word(at));
        tag_event(slot, cell);
        slot.hand_out_again();
        cell.counters.on_received();
        core.counters().on_received_inline();
        self.activity.on_received(1);
        // Room that the producer does not see is none that it could wait for.
        if wire.consumer.advance(wire.inbound.head) {
            self.wake_producer();
        }
        Some(slot)
    }
}
