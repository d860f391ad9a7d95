//! The ends of operations and connections. Each ends once.

use crate::engine::connection::conn::{NONE, State, bit};
use crate::engine::flow::Flow;
use crate::engine::flow::batch::Ops;
use crate::engine::flow::rma_state::OP_MASK;
use crate::engine::host::{Event, Host, Index, Op};
use crate::engine::state::{Engine, mark_conn_ready};
use crate::{Failure, Time};
use alloc::boxed::Box;

impl Engine {
    /// Ends the operations of a list: sends, and the messages of RMAs.
    pub(crate) fn end_list<H: Host>(&mut self, index: u32, ops: Ops, outcome: Result<(), Failure>, host: &mut H) {
        let mut next = ops.head;
        while next != NONE {
            let op = Op(next);
            let is_last = next == ops.tail;
            next = self.links.get(op.0 as usize).copied().unwrap_or(NONE);
            if self.rmas.get(op.0 as usize).is_some_and(Option::is_some) {
                self.end_rma_part(index, op, outcome, host);
            } else {
                self.tell(index, op, outcome, host);
            }
            if is_last {
                break;
            }
        }
    }

    /// Notes that one of the events that an RMA waits for has happened.
    pub(crate) fn end_rma_part<H: Host>(&mut self, index: u32, op: Op, outcome: Result<(), Failure>, host: &mut H) {
        let Some(entry) = self.rmas.get_mut(op.0 as usize) else { return };
        let Some(state) = entry.as_mut() else { return };
        if let Err(failure) = outcome {
            state.failed.get_or_insert(failure);
        }
        state.left = state.left.saturating_sub(1);
        if state.left > 0 {
            return;
        }
        let outcome = state.failed.map_or(Ok(()), Err);
        let is_large = state.is_large();
        *entry = None;
        if let Some(flow) = self.flow_mut(index) {
            flow.open_rmas.end(op, is_large);
        }
        if outcome.is_err() {
            self.drop_deferred(index, op);
        }
        self.mark_ready(index);
        self.tell(index, op, outcome, host);
    }

    /// Reports an operation's end to the host, in order on RO.
    fn tell<H: Host>(&mut self, index: u32, op: Op, outcome: Result<(), Failure>, host: &mut H) {
        if !self.ordered_ends.note(op, outcome) {
            return host.ended(op, outcome);
        }
        let Some(conn) = self.table.get(index) else { return };
        let Some(flow) = self.flows.get_mut(conn.flow) else { return };
        while let Some((next, outcome)) = flow.end_order.pop_ended(&mut self.ordered_ends) {
            host.ended(next, outcome);
        }
    }

    /// Frees the deferred message of a read that failed.
    fn drop_deferred(&mut self, index: u32, op: Op) {
        let Some(conn) = self.table.get(index) else { return };
        let Some(flow) = self.flows.get_mut(conn.flow) else { return };
        flow.queue.drop_deferred(op, &mut self.frames);
    }

    /// Aborts a write, by its number on the wire, whose memory is no longer registered. Its unsent
    /// bytes and its message are dropped. If its last frame was not sent, an aborted frame takes
    /// its place.
    pub(crate) fn abort_write<H: Host>(&mut self, index: u32, wire: u32, failure: Failure, host: &mut H) {
        let op = Op(wire & OP_MASK);
        let Some(state) = self.rmas.get_mut(op.0 as usize).and_then(Option::as_mut) else { return };
        if state.wire != wire || state.conn != index || state.answered {
            return;
        }
        state.answered = true;
        let Some(flow) = self.table.get(index).and_then(|conn| self.flows.get_mut(conn.flow)) else { return };
        if flow.queue.abort(op, wire, &mut self.frames) {
            state.left = 1;
        }
        self.end_rma_part(index, op, Err(failure), host);
    }

    /// Fails everything that is open on a connection, and gives its flow back.
    pub(super) fn fail_operations<H: Host>(&mut self, index: u32, failure: Failure, host: &mut H) {
        let Some(conn) = self.table.get_mut(index) else { return };
        let number = core::mem::replace(&mut conn.flow, NONE);
        let Some(flow) = self.flows.get_mut(number) else { return };
        if let Some(buffer) = flow.message_parts.take() {
            host.abandon(buffer);
            self.freed = true;
        }
        let mut old = core::mem::replace(flow, Flow::new(NONE));
        for buffer in old.reorder_queue.drain() {
            self.holds.give(buffer);
        }
        for batch in old.queue.drain_deferred() {
            self.frames.give(batch.buffer);
        }
        for batch in old.send_window.drain().chain(old.queue.drain()) {
            self.frames.give(batch.buffer);
            self.fail_list(batch.ops, failure, host);
        }
        for at in 0..self.rmas.len() {
            if self.rmas[at].is_some_and(|state| state.conn == index) {
                self.rmas[at] = None;
                self.fail_one(Op(u32::try_from(at).unwrap_or(NONE)), failure, host);
            }
        }
        for (op, outcome) in old.end_order.drain(&mut self.ordered_ends) {
            host.ended(op, outcome);
        }
        if let Some(flow) = self.flows.get_mut(number) {
            *flow = old;
        }
        self.flows.give(number);
    }

    /// Fails the sends of a list. RMAs end by their own state.
    fn fail_list<H: Host>(&mut self, ops: Ops, failure: Failure, host: &mut H) {
        let mut next = ops.head;
        while next != NONE {
            let op = next;
            if self.rmas.get(op as usize).is_none_or(Option::is_none) {
                self.fail_one(Op(op), failure, host);
            }
            next = if op == ops.tail { NONE } else { self.links.get(op as usize).copied().unwrap_or(NONE) };
        }
    }

    /// Fails an operation of a closed or broken connection. An operation whose end is ordered is
    /// reported in order.
    fn fail_one<H: Host>(&mut self, op: Op, failure: Failure, host: &mut H) {
        if !self.ordered_ends.note(op, Err(failure)) {
            host.ended(op, Err(failure));
        }
    }

    /// Breaks a connection: its operations end, and the host gets an event and closes it.
    pub(crate) fn break_connection<H: Host>(&mut self, now: Time, index: u32, failure: Failure, host: &mut H) {
        self.mark_answered(now, index, None);
        let gave_up = matches!(failure, Failure::TimedOut | Failure::NotReady);
        let body = if gave_up { self.farewell(index) } else { Box::default() };
        self.fail_operations(index, failure, host);
        self.exchanges.remove(&index);
        self.unreachable.remove(&index);
        let Some(conn) = self.table.get_mut(index) else { return };
        let was_accepting = conn.state == State::Accepting;
        let host_cookie = conn.host_cookie;
        conn.state = State::Broken;
        conn.clear(bit::PING | bit::ACK_NOW | bit::ACK_DELAYED | bit::RNR);
        if gave_up && !was_accepting {
            conn.set(bit::GAVE_UP);
            self.farewells.insert(index, body);
        }
        if was_accepting {
            self.remove(now, index, host);
            host.event(Index(index), host_cookie, Event::Refused { failure, is_answered: true, is_security: false });
        } else {
            host.event(Index(index), host_cookie, Event::Broken(failure));
        }
    }

    /// Refuses a connection that was never open: the host gets an event, and the index is free.
    pub(crate) fn refuse<H: Host>(&mut self, now: Time, index: u32, failure: Failure, host: &mut H) {
        let Some(host_cookie) = self.table.get(index).map(|conn| conn.host_cookie) else { return };
        let exchange = self.exchanges.get(&index);
        let is_answered = exchange.is_some_and(|exchange| exchange.cookie != 0);
        let is_security = exchange.is_some_and(|exchange| exchange.is_security);
        self.remove(now, index, host);
        host.event(Index(index), host_cookie, Event::Refused { failure, is_answered, is_security });
    }

    /// Forgets a connection that has no flow.
    pub(crate) fn remove<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        self.mark_answered(now, index, None);
        if let Some(sealer) = host.sealer() {
            if self.table.get(index).is_some_and(|conn| conn.has(bit::SEALED)) {
                self.sealed.forget(index);
            }
            sealer.forget(Index(index));
        }
        self.exchanges.remove(&index);
        self.unreachable.remove(&index);
        self.farewells.remove(&index);
        self.small_peers.forget(index);
        self.moved.forget(index);
        self.table.remove(index);
    }

    /// Closes a connection in any state. Its open operations end with [`Failure::Disconnected`],
    /// without a further event. The host forgets the index. The engine keeps it until the peer has
    /// answered or does not answer.
    pub fn close<H: Host>(&mut self, now: Time, index: Index, host: &mut H) {
        let index = index.0;
        let Some(state) = self.table.get(index).map(|conn| conn.state) else { return };
        match state {
            State::Closing => {}
            State::Broken if self.table.get(index).is_some_and(|conn| conn.has(bit::GAVE_UP)) => {
                let body = self.farewells.remove(&index).unwrap_or_default();
                self.begin_closing(now, index, body);
            }
            State::Asking | State::Broken => {
                self.fail_operations(index, Failure::Disconnected, host);
                self.remove(now, index, host);
            }
            State::Requested => {
                let _ = self.reject(now, Index(index), host);
            }
            State::Accepting | State::Open => {
                let body = self.farewell(index);
                self.fail_operations(index, Failure::Disconnected, host);
                self.mark_answered(now, index, None);
                self.begin_closing(now, index, body);
            }
        }
    }

    /// Makes the CLOSE of each connection due again whose peer may still wait for an
    /// acknowledgement: a frame of it came less than two probe timeouts ago. For a host that is
    /// about to end and can wait for no answer.
    ///
    /// A peer that has lost the acknowledgement and the CLOSE would report a failure for what was
    /// delivered.
    pub fn repeat_closes(&mut self, now: Time) {
        for (index, exchange) in &mut self.exchanges {
            let Some(conn) = self.table.get_mut(*index) else { continue };
            if conn.state == State::Closing && u64::from(conn.silence(now)) < conn.probe_timeout(1) {
                exchange.due = true;
                mark_conn_ready(conn, *index, &mut self.ready);
            }
        }
    }
}
