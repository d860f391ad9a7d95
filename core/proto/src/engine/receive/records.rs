//! Applies the records of a frame, in order or out of order.

use super::context::{FrameOutcome, RecvCtx, RmaEnd};
use crate::Attribute;
use crate::engine::connection::conn::bit;
use crate::engine::flow::reorder_queue::ReorderEntry;
use crate::engine::host::Host;
use crate::wire::{Record, Records};

impl RecvCtx<'_> {
    /// Applies all records of the next in-order frame. RMA that was applied out of order is not
    /// among them. Records that were applied before a message found no slot are not applied again
    /// where the peer retransmits the frame.
    pub(super) fn apply<H: Host>(
        &mut self,
        records: Records<'_>,
        host: &mut H,
        ended: &mut impl FnMut(RmaEnd),
    ) -> FrameOutcome {
        let mut rest = records;
        for _ in 0..self.flow.next_frame.records() {
            rest.next();
        }
        self.apply_rest(rest, records.bytes().len(), host, ended)
    }

    /// As [`RecvCtx::apply`], of the next in-order frame that was held, by the bytes of its
    /// records: goes on where a message found no slot.
    pub(super) fn apply_held<H: Host>(
        &mut self,
        bytes: &[u8],
        host: &mut H,
        ended: &mut impl FnMut(RmaEnd),
    ) -> FrameOutcome {
        let rest = bytes.get(self.flow.next_frame.bytes()..).unwrap_or(&[]);
        self.apply_rest(Records::kept(rest), bytes.len(), host, ended)
    }

    /// Applies the rest of a frame's records, which have `len` bytes altogether.
    #[inline]
    fn apply_rest<H: Host>(
        &mut self,
        mut rest: Records<'_>,
        len: usize,
        host: &mut H,
        ended: &mut impl FnMut(RmaEnd),
    ) -> FrameOutcome {
        let next_frame = &self.flow.next_frame;
        let (mut applied, mut messages) = (next_frame.records(), next_frame.messages());
        loop {
            let left = rest.bytes().len();
            let Some(record) = rest.next() else {
                self.flow.next_frame.finish();
                return FrameOutcome::Done;
            };
            let outcome = self.record(&record, host, ended);
            if outcome != FrameOutcome::Done {
                let bytes = u16::try_from(len - left).unwrap_or(u16::MAX);
                self.flow.next_frame.suspend(applied, messages, bytes);
                return outcome;
            }
            applied += 1;
            messages += u16::from(matches!(record, Record::Message { .. }));
        }
    }

    /// Advances past the frame at `recv_next`.
    pub(super) fn finish_frame(&mut self) {
        self.conn.recv_next = self.conn.recv_next.wrapping_add(1);
        self.conn.clear(bit::RNR);
        self.flow.reorder_queue.pop();
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
                    self.end_write(op, host);
                }
                FrameOutcome::Done
            }
            Record::Read { op, target } => self.serve(op, target, host),
            Record::ReadBytes { op, at, bytes } => {
                self.read_bytes(op, at, bytes, host, ended);
                FrameOutcome::Done
            }
            Record::Atomic { op, target, atomic } => {
                self.atomic(op, &target, atomic, host);
                FrameOutcome::Done
            }
            Record::Large { op, len } => {
                self.large(op, len, host);
                FrameOutcome::Done
            }
            Record::Result { .. } | Record::Value { .. } | Record::Landing { .. } => {
                self.rma_answer(record, host, ended);
                FrameOutcome::Done
            }
            Record::Probe { .. } | Record::ProbeReply { .. } | Record::Slice { .. } => FrameOutcome::Done,
        }
    }

    /// Returns whether a record may be applied out of order.
    pub(super) fn may_apply_out_of_order(&self, record: &Record<'_>) -> bool {
        match record {
            Record::Message { after, .. } => !after && self.conn.attribute() == Attribute::ReliableUnordered,
            Record::Part { .. } => false,
            _ => true,
        }
    }
}
