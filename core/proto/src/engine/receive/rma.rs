//! RMA records: the peer's operations, and the answers to this side's.

use super::context::{FrameOutcome, RecvCtx, RmaEnd};
use crate::engine::connection::conn::bit;
use crate::engine::flow::batch::Batch;
use crate::engine::flow::continuation::Continuation;
use crate::engine::flow::rma_state::{OP_MASK, RmaAnswer, RmaState, status};
use crate::engine::host::{Host, Op, Target};
use crate::wire::Record;
use crate::{Access, Atomic, Failure};

/// What is not even looked at.
const REFUSED: RmaAnswer = RmaAnswer::Status(1);

impl RecvCtx<'_> {
    /// Writes bytes for a peer. Returns whether they are the last of the operation.
    pub(crate) fn write<H: Host>(&mut self, op: u32, target: &Target, at: u64, bytes: &[u8], host: &mut H) -> bool {
        let known = self.flow.refused_writes.contains(op);
        if self.flow.copy_verify.take_copied(Continuation::Write { op, target: *target, at }) {
            host.written(target, at, bytes);
        } else if !known && let Err(failure) = host.write(self.conn.host_cookie, target, at, bytes) {
            // Always noted, or the write would succeed at its end. `may_accept_requests` bounds the
            // notes.
            self.flow.refused_writes.push(op, status(failure));
        }
        at + bytes.len() as u64 == target.len
    }

    /// Queues the result of a write whose last frame was applied in order.
    pub(super) fn end_write<H: Host>(&mut self, op: u32, host: &mut H) {
        let status = self.flow.refused_writes.take(op);
        self.conn.clear(bit::AFTER_REFUSED);
        if status != 0 {
            self.conn.set(bit::AFTER_REFUSED);
        }
        host.written_whole(self.conn.host_cookie, op, if status == 0 { Ok(()) } else { Err(()) });
        self.flow.requests.push_result(op, RmaAnswer::Status(status));
    }

    /// Accepts a read request of the peer, or queues the result that refuses it. The requests of
    /// held frames were counted when the frames came, and are too many together. Requests beyond a
    /// window of results get no answer, since no sender may have that many open.
    pub(crate) fn serve<H: Host>(&mut self, op: u32, target: Target, host: &mut H) -> FrameOutcome {
        if self.is_held && self.flow.requests.is_flooded() {
            return FrameOutcome::Done;
        }
        if !self.flow.requests.has_room_for_read() {
            if !self.is_held {
                return FrameOutcome::Dropped;
            }
            self.flow.requests.push_result(op, REFUSED);
            return FrameOutcome::Done;
        }
        match host.may_read(self.conn.host_cookie, &target) {
            Ok(()) if target.len > 0 => self.flow.requests.push_read(op, target),
            Ok(()) => self.flow.requests.push_result(op, REFUSED),
            Err(failure) => self.flow.requests.push_result(op, RmaAnswer::refusal(failure)),
        }
        FrameOutcome::Done
    }

    /// Changes a word for a peer, and queues the answer.
    pub(super) fn atomic<H: Host>(&mut self, op: u32, target: &Target, atomic: Atomic, host: &mut H) {
        let changed = host.atomic(self.conn.host_cookie, target, atomic);
        self.flow.requests.push_result(op, changed.map_or_else(RmaAnswer::refusal, RmaAnswer::Value));
    }

    /// Asks the host for memory for a large message of the peer, and queues the result that refuses
    /// it.
    pub(super) fn large<H: Host>(&mut self, op: u32, len: u64, host: &mut H) {
        if let Err(failure) = host.large(self.conn.host_cookie, op, len) {
            self.flow.requests.push_result(op, RmaAnswer::refusal(failure));
        }
    }

    /// Queues the write of a large message of this side to the memory that the peer has given.
    fn landing(&mut self, op: u32, handle: [u64; 2]) {
        let is_open = |state: &RmaState| state.access == Access::Large && !state.answered;
        let Some((op, state)) = self.rma(op).filter(|(_, state)| is_open(state)) else { return };
        state.target.handle = handle;
        (state.access, state.at, state.is_granted) = (Access::Write, 0, true);
        self.flow.open_rmas.on_moved();
        let is_of_rma = |batch: &Batch| self.rmas.get(batch.of as usize).is_some_and(Option::is_some);
        let is_barrier = self.flow.open_rmas.barrier() == Some(op);
        self.flow.queue.push_granted(op, is_barrier, is_of_rma);
    }

    /// Returns the state of the RMA of this connection that the peer names.
    fn rma(&mut self, op: u32) -> Option<(Op, &mut RmaState)> {
        let host_op = Op(op & OP_MASK);
        let state = self.rmas.get_mut(host_op.0 as usize)?.as_mut()?;
        // An operation that was not sent completely cannot have an answer.
        let is_named = state.wire == op && state.conn == self.index && state.at == state.target.len;
        is_named.then_some((host_op, state))
    }

    /// Returns this side's read to which these bytes belong, if it still awaits bytes.
    pub(super) fn awaited_bytes(&mut self, op: u32, at: u64, len: usize) -> Option<(Op, &mut RmaState)> {
        let (op, state) = self.rma(op).filter(|(_, state)| state.access == Access::Read && !state.answered)?;
        let end = at.checked_add(len as u64)?;
        (end <= state.target.len).then_some((op, state))
    }

    /// Places bytes that a read of this side brought.
    pub(super) fn read_bytes<H: Host>(
        &mut self,
        op: u32,
        at: u64,
        bytes: &[u8],
        host: &mut H,
        ended: &mut impl FnMut(RmaEnd),
    ) {
        let is_copied = self.flow.copy_verify.take_copied(Continuation::ReadBytes { op, at });
        let Some((op, state)) = self.awaited_bytes(op, at, bytes.len()) else { return };
        if is_copied {
            host.placed(op, at, bytes);
        } else {
            host.place(op, at, bytes);
        }
        state.received += bytes.len() as u64;
        if state.received < state.target.len {
            self.flow.open_rmas.on_moved();
            return;
        }
        self.end_fetch(op, ended);
    }

    /// Places the old value of a word that an operation of this side has changed.
    fn value<H: Host>(&mut self, op: u32, value: u64, host: &mut H, ended: &mut impl FnMut(RmaEnd)) {
        let is_open = |state: &RmaState| matches!(state.access, Access::Atomic(_)) && !state.answered;
        let Some((op, state)) = self.rma(op).filter(|(_, state)| is_open(state)) else { return };
        let len = state.target.len;
        let bytes = Atomic::bytes(value, len);
        host.place(op, 0, if len == 4 { &bytes[..4] } else { &bytes });
        self.end_fetch(op, ended);
    }

    /// Ends an operation of this side whose bytes have all come, but for its message.
    fn end_fetch(&mut self, op: Op, ended: &mut impl FnMut(RmaEnd)) {
        let Some(state) = self.rmas.get_mut(op.0 as usize).and_then(Option::as_mut) else { return };
        state.answered = true;
        // Its message has its time from now on.
        self.flow.open_rmas.on_moved();
        if state.has_message {
            self.release_deferred(op);
        }
        ended((op, Ok(())));
    }

    /// Handles the answer to an RMA of this side, if the record is one.
    pub(crate) fn rma_answer<H: Host>(&mut self, record: &Record<'_>, host: &mut H, ended: &mut impl FnMut(RmaEnd)) {
        match *record {
            Record::Result { op, status } => self.result(op, status, ended),
            Record::Value { op, value } => self.value(op, value, host, ended),
            Record::Landing { op, handle } => self.landing(op, handle),
            _ => {}
        }
    }

    /// Queues the message of a read whose data has arrived, before everything else.
    fn release_deferred(&mut self, op: Op) {
        self.flow.queue.release(op);
        // Later operations wait for its message too only if it is a fence.
        let fence = self.rmas.get(op.0 as usize).and_then(Option::as_ref).is_some_and(|state| state.fence);
        if !fence {
            self.flow.open_rmas.lift_barrier(op);
        }
    }

    /// Handles the result of an RMA of this side.
    fn result(&mut self, op: u32, status: u8, ended: &mut impl FnMut(RmaEnd)) {
        let Some((op, state)) = self.rma(op) else { return };
        // What brings bytes ends well with the last of them, and a large message as a write.
        let is_request = state.access.is_request();
        if state.answered || is_request && status == 0 {
            return;
        }
        state.answered = true;
        let outcome = match status {
            0 => Ok(()),
            2 => Err(Failure::Copy),
            3 => Err(Failure::TooLong),
            _ => Err(Failure::RemoteHandle),
        };
        if is_request && state.left > 1 {
            // Its message is not sent.
            state.left = 1;
        }
        ended((op, outcome));
    }
}
