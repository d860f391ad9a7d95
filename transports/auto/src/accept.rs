//! Requests over all ways: those that the program has, and those that it has accepted
//! (`docs/design/auto.md`, Connecting).

use crate::accepting::{Accepting, address};
use crate::auto::Auto;
use crate::way::NO_WAY;
use cci_proto::{EventKind, Failure, RequestError};
use cci_transport::{Connection, Core, Slot};

impl Auto {
    /// Accepts a request by the way that it has come.
    pub(crate) fn accept_by_way(
        &mut self,
        core: &mut Core,
        request: &'static Slot,
        context: u64,
    ) -> Result<(), RequestError> {
        self.plain = NO_WAY;
        let connect = self.accepts.unanswered.get(&address(request)).copied();
        let number = self.connects.number();
        self.accepts.accepting.insert(number, Accepting { context, connect });
        let accepted = self
            .call_for_request(core, request, |transport, core| transport.accept(core, request, number))
            .unwrap_or(Err(RequestError::NotARequest));
        if accepted.is_ok() {
            self.accepts.unanswered.remove(&address(request));
        } else {
            self.accepts.forget(number);
        }
        accepted
    }

    /// A request is answered otherwise: what has come by another way is not wanted.
    pub(crate) fn end_request(&mut self, core: &mut Core, request: &'static Slot) {
        let connect = self.accepts.unanswered.get(&address(request)).copied();
        if let Some(other) = connect.and_then(|connect| self.accepts.end(connect)) {
            self.turn_away(core, other);
        }
    }

    /// Rejects a request that the program does not see.
    pub(crate) fn turn_away(&mut self, core: &mut Core, request: &'static Slot) {
        let way = core.way_of_slot(request);
        self.within(core, way, |transport, core| {
            // An error means that the client is gone.
            let _ = transport.reject(core, request);
            core.release(request);
        });
    }

    /// A way has ended an accept: the program hears of it, unless the client has asked by another
    /// way too.
    pub(crate) fn on_accept_ended(
        &mut self,
        core: &mut Core,
        slot: &'static Slot,
        number: u64,
        (outcome, behind): (Result<&'static Connection, Failure>, Option<&'static Slot>),
    ) {
        self.end_expectation(core, number);
        let Some(Accepting { context, connect }) = self.accepts.accepting.remove(&number) else {
            core.release(slot);
            if let Ok(connection) = outcome {
                self.within(core, connection.way(), |transport, core| transport.disconnect(core, connection));
            }
            return;
        };
        let other = connect.and_then(|connect| self.accepts.end(connect));
        match (outcome, other) {
            (Err(_), Some(other)) if self.accept_other(core, other, number) => {
                self.accepts.accepting.insert(number, Accepting { context, connect: None });
                core.release(slot);
            }
            (_, other) => {
                if let (Ok(_), Some(other)) = (outcome, other) {
                    self.turn_away(core, other);
                }
                core.finish_of_way(slot, (EventKind::Accept, context), outcome, behind);
            }
        }
    }

    /// Accepts what has come by another way. Its end comes by this number.
    fn accept_other(&mut self, core: &mut Core, other: &'static Slot, number: u64) -> bool {
        let way = core.way_of_slot(other);
        let accepted = self.within(core, way, |transport, core| {
            let is_accepted = transport.accept(core, other, number).is_ok();
            if is_accepted {
                core.release(other);
            }
            is_accepted
        });
        let is_accepted = accepted.unwrap_or(false);
        if !is_accepted {
            self.turn_away(core, other);
        }
        self.warm(way);
        is_accepted
    }
}
