//! Requests that have not ended: those that the program has, and those that it has accepted
//! (`docs/design/auto.md`, Connecting).

use crate::auto::{Auto, NO_WAY};
use cci_proto::{EventKind, Failure, RequestError};
use cci_transport::{Connection, Core, Slot};
use std::collections::BTreeMap;

/// A request of a client that has ways.
struct Asked {
    /// What the program has.
    slot: &'static Slot,
    /// The same connect by another way, should the first one die before the client has its answer.
    other: Option<&'static Slot>,
}

/// An accept of the program, or a client that it expects.
struct Accepting {
    /// The program's context.
    context: u64,
    /// The identity of the connect, if the client has ways.
    connect: Option<[u64; 2]>,
}

/// The requests and accepts of an endpoint.
#[derive(Default)]
pub(crate) struct Accepts {
    /// By the identity of the connect.
    asked: BTreeMap<[u64; 2], Asked>,
    /// The connects of requests that are not answered, by the address of the slot.
    unanswered: BTreeMap<usize, [u64; 2]>,
    /// By the context that the way has in place of the program's.
    accepting: BTreeMap<u64, Accepting>,
}

fn address(slot: &'static Slot) -> usize {
    std::ptr::from_ref(slot).addr()
}

impl Accepts {
    /// The program gets a request for the first time.
    pub(crate) fn on_shown(&mut self, connect: [u64; 2], slot: &'static Slot) {
        self.asked.insert(connect, Asked { slot, other: None });
        self.unanswered.insert(address(slot), connect);
    }

    /// The connect has come by another way. False: it has ended, or has a second way already.
    pub(crate) fn keep_other(&mut self, connect: [u64; 2], slot: &'static Slot) -> bool {
        let asked = self.asked.get_mut(&connect).filter(|asked| asked.other.is_none());
        asked.map(|asked| asked.other = Some(slot)).is_some()
    }

    /// What a way is told in place of the context of an accept.
    pub(crate) fn expect(&mut self, number: u64, context: u64) {
        self.accepting.insert(number, Accepting { context, connect: None });
    }

    /// The accept of this number does not come.
    pub(crate) fn forget(&mut self, number: u64) {
        self.accepting.remove(&number);
    }

    /// Whether no accept is open, and no client is expected.
    pub(crate) fn is_idle(&self) -> bool {
        self.accepting.is_empty()
    }

    /// The connect of a request has ended; what waits in its place, if anything does.
    fn end(&mut self, connect: [u64; 2]) -> Option<&'static Slot> {
        let asked = self.asked.remove(&connect)?;
        let place = address(asked.slot);
        // The slot may have another request by now.
        if self.unanswered.get(&place) == Some(&connect) {
            self.unanswered.remove(&place);
        }
        asked.other
    }
}

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
