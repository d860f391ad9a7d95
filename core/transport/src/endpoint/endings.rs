//! The ends of operations, and the events that report them.

use super::{BreakReasons, Core, tag_event};
use crate::{Connection, Posted, Slot};
use cci_mem::slot::State;
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, Failure, Status};

impl BreakReasons {
    /// The place is another connection's from now on.
    pub(super) fn forget(&mut self, place: u32) {
        if !self.0.is_empty() {
            self.0.remove(&place);
        }
    }
}

impl Core {
    /// Ends an operation that was posted: releases its slot, or queues its event, or wakes the
    /// thread that waits.
    #[inline]
    pub fn end_operation(
        &mut self,
        slot: &'static Slot,
        connection: &'static Connection,
        posted: Posted,
        outcome: Result<(), Failure>,
    ) {
        connection.open.store(connection.open.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        match posted {
            Posted::Silent(_) if outcome.is_ok() => self.release(slot),
            Posted::Event(context) | Posted::Silent(context) => self.finish(slot, connection, context, outcome),
            Posted::Waited => self.finish_waited(slot, outcome),
        }
    }

    /// Ends an operation: queues its SEND event.
    #[inline]
    pub fn finish(
        &mut self,
        slot: &'static Slot,
        connection: &'static Connection,
        context: u64,
        outcome: Result<(), Failure>,
    ) {
        let status = outcome.map_or_else(Failure::status, |()| Status::Success);
        slot.fill(EventKind::Send as u32, status as u32, [connection.address(), context]);
        tag_event(slot, connection);
        self.push(slot);
    }

    /// Ends an operation whose thread waits, and wakes that thread if it sleeps.
    pub fn finish_waited(&mut self, slot: &'static Slot, outcome: Result<(), Failure>) {
        let status = outcome.map_or_else(Failure::status, |()| Status::Success);
        slot.fill(EventKind::Send as u32, status as u32, [0, 0]);
        slot.set_state(State::Ended);
        self.sleepers.wake(slot);
    }

    /// Queues a CONNECT or ACCEPT event.
    pub fn finish_opening(
        &mut self,
        slot: &'static Slot,
        kind: EventKind,
        context: u64,
        outcome: Result<&'static Connection, Failure>,
    ) {
        // The slot may still have what explained an earlier event in it.
        self.forget_reason(slot);
        if !self.keep_opening(slot, kind, context, outcome) {
            self.fill_opening(slot, kind, context, outcome);
            self.push(slot);
        }
    }

    /// Fills the slot of a CONNECT or ACCEPT event.
    pub(super) fn fill_opening(
        &mut self,
        slot: &'static Slot,
        kind: EventKind,
        context: u64,
        outcome: Result<&'static Connection, Failure>,
    ) {
        let (status, address) = match outcome {
            Ok(connection) => (Status::Success, connection.address()),
            Err(failure) => (failure.status(), 0),
        };
        self.forget_reason(slot);
        crate::log_event!(debug, event = ?kind, status = ?status, "handshake ended");
        slot.fill(kind as u32, status as u32, [context, address]);
        match outcome {
            Ok(connection) => tag_event(slot, connection),
            Err(_) => slot.connection.set(None),
        }
    }

    /// Stores why the connect failed whose event [`Core::finish_opening`] has queued: a sentence,
    /// beyond the status.
    pub fn explain(&mut self, slot: &'static Slot, reason: String) {
        crate::log_event!(info, reason = %reason, "connect failed");
        self.reasons.0.insert(std::ptr::from_ref(slot).addr(), reason);
    }

    fn forget_reason(&mut self, slot: &'static Slot) {
        self.reasons.0.remove(&std::ptr::from_ref(slot).addr());
    }

    /// The reason that [`Core::explain`] stored for the CONNECT event in this slot.
    #[must_use]
    pub fn reason(&self, slot: &'static Slot) -> Option<&str> {
        self.reasons.0.get(&std::ptr::from_ref(slot).addr()).map(String::as_str)
    }

    /// Stores why a connection breaks: a sentence for its report.
    pub fn explain_break(&mut self, connection: &Connection, reason: String) {
        crate::log_event!(warn, reason = %reason, "connection broke");
        self.break_reasons.0.insert(connection.place(), reason);
    }

    /// Why a connection broke, where [`Core::explain_break`] was told.
    #[must_use]
    pub fn why_broken(&self, connection: &Connection) -> Option<&str> {
        self.break_reasons.0.get(&connection.place()).map(String::as_str)
    }

    /// The events of a connection that has broken: as the program has asked for them. A program
    /// that watches its peer by a keepalive need not wait for it, and gets its event now and not
    /// again.
    pub fn break_events(&self, connection: &Connection) -> impl Iterator<Item = EventKind> + use<> {
        let disconnect = self.has_disconnect_events().then_some(EventKind::Disconnect);
        let is_watched = connection.keepalive.swap(0, Ordering::Relaxed) != 0;
        crate::log_event!(warn, context = connection.context.load(Ordering::Relaxed), "connection broke");
        disconnect.into_iter().chain(is_watched.then_some(EventKind::KeepaliveTimedOut))
    }

    /// Queues an event that is about a connection only; false when no slot is free (to be tried
    /// again).
    #[must_use]
    pub fn notify(&mut self, kind: EventKind, connection: &'static Connection) -> bool {
        let Some(slot) = self.take_send() else { return false };
        slot.fill(kind as u32, 0, [connection.address(), 0]);
        tag_event(slot, connection);
        self.push(slot);
        true
    }
}
