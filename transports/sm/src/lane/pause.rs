//! Pausing connections. A message of a paused connection stays where it is in the ring, and holds
//! up what lies behind it: the producer waits as for a receiver without slots.

use crate::clock::precise_now;
use crate::format::layout::kind;
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use cci_mem::ring::Header;
use cci_mem::sync::Ordering;
use cci_transport::Core;

impl Lane {
    /// Whether this is a message of a paused connection. The pause ends with the peer: what the
    /// peer had published is delivered before the end of its connections.
    pub(super) fn is_paused(&self, header: Header) -> bool {
        matches!(header.kind, kind::MESSAGE | kind::MESSAGE_SLOT)
            && self.phase != Phase::Draining
            && self.admission.is_paused(header.word)
    }

    /// A message of a paused connection is next: no slot helps, and the sender has it said.
    #[cold]
    pub(super) fn stop(&mut self, state: &mut EndpointState, core: &mut Core) {
        self.admit(state, core);
        if self.admission.begin_stop() {
            core.counters().on_refused();
            self.tell_refusal(true);
        }
    }

    /// Takes no message of this connection.
    pub(crate) fn pause(&mut self, state: &mut EndpointState, number: u32) {
        self.admission.pause(number, &mut state.contention);
    }

    /// Ends the pause of a connection, if there is one. The next call takes what waits.
    pub(crate) fn resume(&mut self, state: &mut EndpointState, number: u32) {
        if self.admission.resume(number, &mut state.contention) {
            self.end_stop(state);
        }
    }

    /// What held up the lane holds it up no more, or is to be looked at again.
    pub(crate) fn end_stop(&mut self, state: &mut EndpointState) {
        if !self.admission.end_stop() {
            return;
        }
        self.tell_refusal(false);
        // The peer was not heard because nobody listened.
        self.activity.on_usable(precise_now());
        self.busy(state);
    }

    fn tell_refusal(&self, is_refused: bool) {
        if let Some(wire) = &self.wire {
            wire.inbound.rnr.store(u32::from(is_refused), Ordering::Relaxed);
        }
    }
}
