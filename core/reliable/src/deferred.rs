//! Deferred work: calls of the engine that an event makes necessary. The engine must return from
//! the event first.

use super::Reliable;
use super::cookies::{PendingConnection, cell, is_engines};
use super::host::HostCtx;
use super::shares::NOBODY;
use crate::Link;
use cci_mem::sync::Ordering;
use cci_proto::engine::Index;
use cci_proto::{Address, Attribute, EventKind, Failure, Time};
use cci_transport::{Connection, Core, Slot};

/// A call of the engine that is due.
pub(super) enum DeferredCall {
    /// Accept an expected client.
    AcceptExpected {
        /// Its index in the engine.
        index: Index,
        /// The attribute that it requests.
        attribute: Attribute,
        /// The token that it presented.
        token: u64,
    },
    /// Redirect a connect to another endpoint.
    Redirect {
        /// Its index in the engine.
        index: Index,
        /// Its cookie.
        cookie: u32,
        /// The other endpoint.
        uri: String,
        /// The token to present there.
        token: u64,
    },
    /// Reject a request that the program does not see.
    Reject(Index),
    /// Close a connection of the engine that the endpoint does not need.
    Close(Index),
    /// Explain the event of a connect that has timed out.
    ExplainTimeout {
        /// The slot of the event.
        slot: &'static Slot,
        /// Where the connect has asked.
        to: Address,
        /// An endpoint has answered.
        is_answered: bool,
    },
    /// Explain the event of a connect that was refused, where the system refuses frames.
    ExplainRefusal {
        /// The slot of the event.
        slot: &'static Slot,
        /// Where the connect has asked.
        to: Address,
    },
    /// Explain the event of a connect whose peer does not agree to its security.
    ExplainSecurity {
        /// The slot of the event.
        slot: &'static Slot,
        /// Where the connect has asked.
        to: Address,
    },
    /// Explain why the connection with this cookie broke, where the system refuses frames.
    ExplainBreak(u32),
    /// Pass the timeouts of the connection with this cookie to the engine.
    UpdateTimeouts(u32),
}

impl<L: Link> Reliable<L> {
    /// Runs the deferred calls.
    #[inline]
    pub(super) fn run_deferred(&mut self, core: &mut Core, now: Time) {
        if !self.host.deferred.is_empty() {
            self.run_all_deferred(core, now);
        }
    }

    #[cold]
    fn run_all_deferred(&mut self, core: &mut Core, now: Time) {
        // A call may defer another one.
        while let Some(call) = self.host.deferred.pop() {
            match call {
                DeferredCall::AcceptExpected { index, attribute, token } => {
                    self.accept_expected(core, now, index, attribute, token)
                }
                DeferredCall::Redirect { index, cookie, uri, token } => {
                    self.follow_redirect(core, now, (index, cookie), &uri, token)
                }
                DeferredCall::Reject(index) => {
                    // An error means that the client is gone.
                    let _ = self.engine.reject(now, index, &mut HostCtx { state: &mut self.host, core });
                }
                DeferredCall::Close(index) => self.close_index(core, now, index),
                DeferredCall::ExplainTimeout { slot, to, is_answered } => {
                    self.explain_timeout(core, slot, &to, is_answered)
                }
                DeferredCall::ExplainRefusal { slot, to } => {
                    if let Some(refusal) = self.link.refusal(&to) {
                        core.explain(slot, refusal);
                    }
                }
                DeferredCall::ExplainSecurity { slot, to } => self.explain_security(core, slot, &to),
                DeferredCall::ExplainBreak(cookie) => self.explain_break(core, cookie),
                DeferredCall::UpdateTimeouts(cookie) => {
                    if let Some(cell) = cell(core, cookie) {
                        self.set_timeouts(now, cell);
                    }
                }
            }
        }
    }

    /// Stores which refused call has broken a connection.
    #[cold]
    fn explain_break(&self, core: &mut Core, cookie: u32) {
        let Some(cell) = cell(core, cookie) else { return };
        let to = self.engine.address(index_of(cell));
        if let Some(refusal) = to.and_then(|to| self.link.refusal(&to)) {
            core.explain_break(cell, refusal);
        }
    }

    /// Accepts a client that another endpoint redirected here.
    fn accept_expected(&mut self, core: &mut Core, now: Time, index: Index, attribute: Attribute, token: u64) {
        match self.expected.take(token) {
            Some(client) => self.accept_index(core, now, index, attribute, (Some(client.slot), client.context)),
            None => drop(self.engine.reject(now, index, &mut HostCtx { state: &mut self.host, core })),
        }
    }

    /// Sends the connection request to the endpoint that the first one named.
    fn follow_redirect(&mut self, core: &mut Core, now: Time, (index, cookie): (Index, u32), uri: &str, token: u64) {
        let Some(opening) = self.host.openings.get(cookie) else { return self.close_index(core, now, index) };
        let again = std::mem::replace(&mut opening.redirected, true);
        opening.tried = None;
        let address = if again { None } else { self.link.resolve(uri).ok() };
        let Some(address) = address else {
            self.close_index(core, now, index);
            return self.host.give_up(core, cookie, Failure::Refused);
        };
        if let Some(opening) = self.host.openings.get(cookie) {
            opening.to = address;
        }
        self.engine.follow(now, index, address, token);
        self.engine.set_path(index, self.link.path_mtu(&address));
    }

    /// Makes the connection of a request, with the slot of its ACCEPT event if one is reserved.
    pub(super) fn accept_index(
        &mut self,
        core: &mut Core,
        now: Time,
        index: Index,
        attribute: Attribute,
        (slot, context): (Option<&'static Slot>, u64),
    ) {
        let Ok(cell) = core.open_connection(attribute, context, self.host.max_send_size) else {
            let _ = self.engine.reject(now, index, &mut HostCtx { state: &mut self.host, core });
            return self.host.fail_opening(core, (slot, EventKind::Accept, context), Failure::NoMemory);
        };
        let opening = PendingConnection {
            slot,
            kind: EventKind::Accept,
            context,
            redirected: false,
            to: Address::default(),
            tried: None,
        };
        let cookie = self.enter(cell, index, opening);
        match self.engine.accept(now, index, cookie) {
            Ok(()) => self.set_timeouts(now, cell),
            Err(_) => self.host.give_up(core, cookie, Failure::Disconnected),
        }
    }

    /// Enters a connection in the table.
    pub(super) fn enter(&mut self, cell: &'static Connection, index: Index, opening: PendingConnection) -> u32 {
        cell.lane.store(NOBODY, Ordering::Relaxed);
        cell.local.store(index.0, Ordering::Relaxed);
        self.background.require();
        self.host.openings.begin(cell, opening)
    }

    /// Passes a connection's current timeouts to the engine.
    pub(super) fn set_timeouts(&mut self, now: Time, cell: &'static Connection) {
        let (send, keepalive) = timeouts(cell);
        self.engine.set_timeouts(now, index_of(cell), send, keepalive);
    }

    /// Passes the timeouts of a connection to the engine if the program has changed them. Setting
    /// them again would restart the keepalive time.
    pub(super) fn update_timeouts(&mut self, core: &Core, now: Time, cell: &'static Connection) {
        let changed = self.engine.timeouts(index_of(cell)) != Some(timeouts(cell));
        if changed && is_engines(core, cell) {
            self.set_timeouts(now, cell);
        }
    }

    /// Ends the expectation of clients that did not come in time.
    pub(super) fn expire(&mut self, core: &mut Core, now: Time) {
        while let Some(token) = self.expected.expire(core, now) {
            self.engine.forget(token);
        }
    }
}

fn timeouts(cell: &Connection) -> (u32, u32) {
    (cell.send_timeout.load(Ordering::Relaxed), cell.keepalive.load(Ordering::Relaxed))
}

/// A connection's index in the engine.
#[inline]
pub(super) fn index_of(cell: &Connection) -> Index {
    Index(cell.local.load(Ordering::Relaxed))
}
