//! Applies the records of a frame, in order or out of order.

use super::conn::{Conn, bit};
use super::copy_verify::Continuation;
use super::flow::{Flow, MAX_REQUESTS, Queued, ReorderEntry, Serve, WINDOW};
use super::host::{Host, Op, Target};
use super::send::{OP_MASK, RmaState};
use super::transmit::status;
use crate::Failure;
use crate::wire::{Record, Records};
use alloc::vec::Vec;

/// The outcome of applying a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameOutcome {
    /// All its records were applied.
    Done,
    /// A message found no slot. The records before it were applied.
    NoSlot,
    /// There is no room for its requests.
    NoRoom,
}

/// The end of a part of an operation: the operation and its outcome.
pub(super) type RmaEnd = (Op, Result<(), Failure>);

/// The receive context: what the records of a frame are applied to.
pub(super) struct RecvCtx<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) flow: &'a mut Flow,
    pub(super) index: u32,
    pub(super) rmas: &'a mut Vec<Option<RmaState>>,
    pub(super) max_send_size: u32,
    /// Whether the frame was held and acknowledged, so that the peer does not retransmit it.
    pub(super) is_held: bool,
}

impl RecvCtx<'_> {
    /// Applies all records of the next in-order frame. RMA that was applied out of order is not
    /// among them.
    pub(super) fn apply<H: Host>(
        &mut self,
        records: Records<'_>,
        host: &mut H,
        ended: &mut impl FnMut(RmaEnd),
    ) -> FrameOutcome {
        let mut messages = 0;
        for record in records {
            if let Record::Message { .. } = record {
                messages += 1;
                if messages <= self.flow.partial {
                    continue;
                }
            }
            let outcome = self.record(&record, host, ended);
            if outcome != FrameOutcome::Done {
                return outcome;
            }
            if let Record::Message { .. } = record {
                self.flow.partial = messages;
            }
        }
        self.flow.partial = 0;
        FrameOutcome::Done
    }

    /// Advances past the frame at `recv_next`.
    pub(super) fn finish_frame(&mut self) {
        self.conn.recv_next = self.conn.recv_next.wrapping_add(1);
        self.conn.clear(bit::RNR);
        self.flow.reorder_queue.pop_front();
    }

    /// Applies the records of an out-of-order frame. Returns its entry in the reorder queue, and
    /// the records that found no slot, if any.
    pub(super) fn apply_out_of_order<'a, H: Host>(
        &mut self,
        records: Records<'a>,
        host: &mut H,
        ended: &mut impl FnMut(RmaEnd),
    ) -> (ReorderEntry, Option<Records<'a>>) {
        let (mut passed, mut rest) = (ReorderEntry::Done, records);
        loop {
            let here = rest;
            let Some(record) = rest.next() else { return (passed, None) };
            match record {
                Record::Write { op, target, at, bytes } => {
                    if self.write(op, &target, at, bytes, host) {
                        passed = ReorderEntry::WriteEnd { op };
                    }
                }
                _ => {
                    if self.record(&record, host, ended) != FrameOutcome::Done {
                        return (passed, Some(here));
                    }
                }
            }
        }
    }

    fn record<H: Host>(&mut self, record: &Record<'_>, host: &mut H, ended: &mut impl FnMut(RmaEnd)) -> FrameOutcome {
        match *record {
            Record::Message { after, bytes } => {
                if after && self.conn.has(bit::AFTER_REFUSED) || bytes.len() > self.max_send_size as usize {
                    return FrameOutcome::Done;
                }
                if host.message(self.conn.host_cookie, bytes) { FrameOutcome::Done } else { FrameOutcome::NoSlot }
            }
            Record::Part { message, total, at, bytes } => self.part(message, total, at, bytes, host),
            Record::Write { op, target, at, bytes } => {
                if self.write(op, &target, at, bytes, host) {
                    self.end_write(op);
                }
                FrameOutcome::Done
            }
            Record::Read { op, target } => self.serve(op, target, host),
            Record::ReadBytes { op, at, bytes } => {
                self.read_bytes(op, at, bytes, host, ended);
                FrameOutcome::Done
            }
            Record::Result { op, status } => {
                self.result(op, status, ended);
                FrameOutcome::Done
            }
            Record::Probe { .. } | Record::ProbeReply { .. } | Record::Slice { .. } => FrameOutcome::Done,
        }
    }

    /// Writes bytes for a peer. Returns whether they are the last of the operation.
    pub(super) fn write<H: Host>(&mut self, op: u32, target: &Target, at: u64, bytes: &[u8], host: &mut H) -> bool {
        let known = self.flow.refused.iter().any(|(refused, _)| *refused == op);
        if self.flow.is_copied(Continuation::Write { op, target: *target, at }) {
            host.written(target, at, bytes);
        } else if !known
            && let Err(failure) = host.write(target, at, bytes)
            // A peer that leaves more refused writes unfinished gets no results of them.
            && self.flow.refused.len() < WINDOW
        {
            self.flow.refused.push((op, status(failure)));
        }
        at + bytes.len() as u64 == target.len
    }

    /// Queues the result of a write whose last frame was applied in order.
    pub(super) fn end_write(&mut self, op: u32) {
        let refused = self.flow.refused.iter().position(|(refused, _)| *refused == op);
        let status = refused.map_or(0, |at| self.flow.refused.swap_remove(at).1);
        self.conn.clear(bit::AFTER_REFUSED);
        if status != 0 {
            self.conn.set(bit::AFTER_REFUSED);
        }
        self.flow.results.push_back((op, status));
    }

    /// Accepts a read request of the peer, or queues the result that refuses it.
    pub(super) fn serve<H: Host>(&mut self, op: u32, target: Target, host: &mut H) -> FrameOutcome {
        if self.flow.serves.len() >= MAX_REQUESTS {
            if !self.is_held {
                return FrameOutcome::NoRoom;
            }
            self.flow.results.push_back((op, 1));
            return FrameOutcome::Done;
        }
        match host.may_read(&target) {
            Ok(()) if target.len > 0 => self.flow.serves.push_back(Serve { op, target, at: 0 }),
            Ok(()) => self.flow.results.push_back((op, 1)),
            Err(failure) => self.flow.results.push_back((op, status(failure))),
        }
        FrameOutcome::Done
    }

    /// Returns the state of the RMA of this connection that the peer names.
    fn rma(&mut self, op: u32) -> Option<(Op, &mut RmaState)> {
        let host_op = Op(op & OP_MASK);
        let state = self.rmas.get_mut(host_op.0 as usize)?.as_mut()?;
        // An operation that was not sent completely cannot have an answer.
        let is_asked = state.wire == op && state.conn == self.index && state.at == state.target.len;
        is_asked.then_some((host_op, state))
    }

    /// Returns this side's read to which these bytes belong, if it still awaits bytes.
    pub(super) fn asked_bytes(&mut self, op: u32, at: u64, len: usize) -> Option<(Op, &mut RmaState)> {
        let (op, state) = self.rma(op).filter(|(_, state)| state.read && !state.answered)?;
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
        let is_copied = self.flow.is_copied(Continuation::ReadBytes { op, at });
        let Some((op, state)) = self.asked_bytes(op, at, bytes.len()) else { return };
        if is_copied {
            host.placed(op, at, bytes);
        } else {
            host.place(op, at, bytes);
        }
        state.received += bytes.len() as u64;
        if state.received < state.target.len {
            self.flow.moved = true;
            return;
        }
        state.answered = true;
        if state.has_message {
            self.release_deferred(op);
        }
        ended((op, Ok(())));
    }

    /// Queues the message of a read whose data has arrived, before everything else.
    fn release_deferred(&mut self, op: Op) {
        // The parts of a message are adjacent, and reads mostly end in the order in which they
        // began.
        let first = self.flow.deferred.iter().position(|(of, _)| *of == op).unwrap_or(0);
        let count = self.flow.deferred.iter().skip(first).take_while(|(of, _)| *of == op).count();
        for at in (first..first + count).rev() {
            if let Some((_, batch)) = self.flow.deferred.remove(at) {
                self.flow.queue.push_front(Queued::Batch(batch));
            }
        }
        // Later operations wait for its message too only if it is a fence.
        let fence = self.rmas.get(op.0 as usize).and_then(Option::as_ref).is_some_and(|state| state.fence);
        if self.flow.barrier == Some(op) && !fence {
            self.flow.barrier = None;
        }
    }

    /// Handles the result of an RMA of this side.
    pub(super) fn result(&mut self, op: u32, status: u8, ended: &mut impl FnMut(RmaEnd)) {
        let Some((op, state)) = self.rma(op) else { return };
        // A successful read ends with its last bytes.
        if state.answered || state.read && status == 0 {
            return;
        }
        state.answered = true;
        let outcome = match status {
            0 => Ok(()),
            2 => Err(Failure::Copy),
            _ => Err(Failure::RemoteHandle),
        };
        if state.read && state.left > 1 {
            // Its message is not sent.
            state.left = 1;
        }
        ended((op, outcome));
    }

    /// Returns whether a record may be applied out of order.
    pub(super) fn may_apply_out_of_order(&self, record: &Record<'_>) -> bool {
        match record {
            Record::Message { after, .. } => !after && self.conn.attribute() == crate::Attribute::ReliableUnordered,
            Record::Part { .. } => false,
            _ => true,
        }
    }
}
