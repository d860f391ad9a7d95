//! The endpoint's side of the transport: its lanes, and what calls keep about them. Whoever gets at
//! it may change anything.

use crate::descriptors::Ready;
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use cci_mem::cancellation::Uncancelled;
use cci_mem::sync::Ordering;
use cci_transport::{Connection, Readiness};
use std::os::fd::BorrowedFd;

/// A program that spins reads the clock once in so many empty calls. Divides every other interval
/// of empty calls.
pub(crate) const SPINS: u32 = 8;

/// An endpoint's shared-memory side, but for what the fast path remembers of it.
pub(crate) struct SlowPath {
    pub(crate) state: EndpointState,
    /// By number. A lane keeps its number until the last payload in it has been returned.
    pub(crate) lanes: Vec<Option<Box<Lane>>>,
    /// Numbers that no lane has.
    pub(crate) vacant: Vec<u32>,
    /// Numbers of the lanes that every call polls.
    pub(crate) hot: Vec<u32>,
    /// Numbers of the lanes that the clock looks at.
    pub(crate) timed: Vec<u32>,
    /// The cold lane that was looked at last.
    pub(crate) swept: u32,
    /// Lanes that calls have looked at.
    #[cfg(test)]
    pub(crate) looks: std::cell::Cell<u64>,
    /// Where the next call begins to look.
    pub(crate) turn: usize,
    /// Some lane is in its handshake.
    pub(crate) in_handshake: bool,
    pub(crate) readiness: Readiness,
    /// Empty calls.
    pub(crate) calls: u32,
    /// The last [`SPINS`] empty calls took less than a tick of the coarse clock, so that the next
    /// ones do without it.
    pub(crate) spins: bool,
    /// What the clock said when these began.
    pub(crate) last_tick: u64,
    /// Calls that found something since the clock was looked at.
    pub(crate) busy: u32,
    /// The last call found something.
    pub(crate) found_before: bool,
    pub(crate) tick: u64,
    pub(crate) ready: Vec<Ready>,
    /// The call has looked at the descriptors.
    pub(crate) looked: bool,
    /// The last look left descriptors that were ready.
    pub(crate) unfinished: bool,
}

impl SlowPath {
    /// The OS handle.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.state.control.handle()
    }

    pub(crate) fn lane(&self, number: u32) -> Option<&Lane> {
        self.lanes.get(number as usize)?.as_deref()
    }

    pub(crate) fn lane_mut(&mut self, number: u32) -> Option<&mut Lane> {
        self.lanes.get_mut(number as usize)?.as_deref_mut()
    }

    /// The lane of a connection, while that is on it. Later the number may be another peer's.
    pub(crate) fn lane_of(&self, connection: &'static Connection) -> Option<&Lane> {
        let lane = self.lane(connection.lane.load(Ordering::Relaxed))?;
        let cell = lane.table.cell(connection.local.load(Ordering::Relaxed))?;
        std::ptr::eq(cell, connection).then_some(lane)
    }

    /// The lane of a connection, and what it needs to change. Without one the peer is gone.
    #[inline(always)]
    pub(crate) fn lane_for(&mut self, connection: &'static Connection) -> Option<(&mut Lane, &mut EndpointState)> {
        let number = connection.lane.load(Ordering::Relaxed) as usize;
        let lane = self.lanes.get_mut(number).and_then(Option::as_deref_mut)?;
        Some((lane, &mut self.state))
    }

    /// The lane that calls have to poll, if that is all they have to do.
    pub(crate) fn sole_lane(&self) -> Option<u32> {
        let [number] = self.hot[..] else { return None };
        let has_deferred = self.state.has_deferred() || self.state.released.is_due() || !self.state.hints.is_empty();
        let is_sole = !has_deferred
            && self.timed.is_empty()
            && !self.state.contention.is_on()
            && !self.state.landings_wait
            && self.lane(number).is_some_and(|lane| lane.is_clear() && !lane.admission.is_held_back());
        is_sole.then_some(number)
    }

    pub(crate) fn hot_lanes(&self) -> impl Iterator<Item = &Lane> + '_ {
        self.hot.iter().filter_map(|number| self.lane(*number))
    }

    /// A lane with a number of its own.
    pub(crate) fn add_lane(&mut self, phase: Phase) -> u32 {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.lanes.push(None);
            u32::try_from(self.lanes.len() - 1).unwrap_or(u32::MAX)
        });
        let mut lane = Box::new(Lane::new(number, phase, self.state.now));
        lane.start_timing(&mut self.state);
        self.lanes[number as usize] = Some(lane);
        self.state.lanes_changed = true;
        number
    }

    /// A lane is over: its number is free.
    pub(crate) fn remove_lane(&mut self, number: u32) {
        let _uncancelled = Uncancelled::new();
        if self.lanes.get_mut(number as usize).and_then(Option::take).is_none() {
            return;
        }
        // What still names it would be taken to name the next lane of this number.
        let EndpointState { newly_hot, newly_timed, protocol_errors, contention, .. } = &mut self.state;
        for list in [&mut self.hot, &mut self.timed, newly_hot, newly_timed, protocol_errors] {
            list.retain(|other| *other != number);
        }
        contention.remove(number);
        self.vacant.push(number);
    }
}
