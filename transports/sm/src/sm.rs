//! The endpoint's side of the transport: its lanes, and what calls keep about them.

use crate::descriptors::Ready;
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use cci_mem::cancellation::Uncancelled;
use cci_mem::sync::Ordering;
use cci_transport::{Connection, Readiness};

/// No lane has this number.
pub(crate) const NO_LANE: u32 = u32::MAX;
/// A program that spins reads the clock once in so many empty calls. Divides every other interval
/// of empty calls.
pub(crate) const SPINS: u32 = 8;

/// An endpoint's shared-memory side.
pub struct Sm {
    pub(crate) state: EndpointState,
    /// By number. A lane keeps its number until the last payload in it has been returned.
    pub(crate) lanes: Vec<Option<Box<Lane>>>,
    /// Numbers that no lane has.
    pub(crate) vacant: Vec<u32>,
    /// Numbers of the lanes that every call polls.
    pub(crate) hot: Vec<u32>,
    /// The lane that every call polls, if it is the only one, usable, and a call has nothing else
    /// to do than to take its messages. [`NO_LANE`] as soon as that may have changed:
    /// [`Sm::leave_fast_path`], and a poll that goes the long way finds out.
    pub(crate) sole: u32,
    /// The lane into which the last message was published at once, if nothing but messages has
    /// passed since. [`NO_LANE`] as for `sole`.
    pub(crate) clear: u32,
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

impl Sm {
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
        self.leave_fast_path();
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

    /// Anything may change: the next call and the next message look at everything. The first
    /// statement of every method of `Transport` that changes something, but `poll`, `progress` and
    /// `post`, which find out by themselves.
    #[inline(always)]
    pub(crate) fn leave_fast_path(&mut self) {
        (self.sole, self.clear) = (NO_LANE, NO_LANE);
    }
}
