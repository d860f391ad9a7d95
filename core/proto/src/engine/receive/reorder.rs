//! Frames in order and out of order: what is applied at once, and what is held.

use super::context::{FrameOutcome, RecvCtx, RmaEnds};
use crate::engine::connection::conn::NONE;
use crate::engine::flow::reorder_queue::ReorderEntry;
use crate::engine::host::Host;
use crate::engine::state::Engine;
use crate::wire::{Record, Records};

/// Hold buffers reserved for the next in-order frame.
const IN_ORDER_RESERVE: usize = 8;

impl Engine {
    /// Applies the records of the next in-order frame.
    pub(crate) fn apply_next<H: Host>(&mut self, index: u32, records: Records<'_>, host: &mut H) -> FrameOutcome {
        let mut ended = RmaEnds::default();
        let Some(mut ctx) = self.recv_ctx(index) else { return FrameOutcome::Dropped };
        if let Some(ReorderEntry::Held { .. }) = ctx.flow.reorder_queue.front() {
            // A duplicate of the frame that is held and waits for a slot. A slot may be free by
            // now.
            self.stats.duplicates += 1;
            self.drain(index, host);
            return FrameOutcome::Dropped;
        }
        let outcome = ctx.apply(records, host, &mut |end| ended.push(end));
        self.end_parts(index, ended, host);
        outcome
    }

    /// Advances past the in-order frame, and applies the held frames behind it up to the first gap.
    pub(crate) fn advance<H: Host>(&mut self, index: u32, host: &mut H) {
        if let Some(mut ctx) = self.recv_ctx(index) {
            ctx.finish_frame();
        }
        self.drain(index, host);
    }

    /// Applies the frames at the front of the reorder queue, up to the first gap.
    pub(crate) fn drain<H: Host>(&mut self, index: u32, host: &mut H) {
        loop {
            let mut ended = RmaEnds::default();
            let Some(conn) = self.table.get_mut(index) else { return };
            let Some(flow) = self.flows.get_mut(conn.flow) else { return };
            let max_send_size = self.config.max_send_size;
            let front = flow.reorder_queue.front();
            let mut ctx = RecvCtx { conn, flow, index, rmas: &mut self.rmas, max_send_size, is_held: true };
            match front {
                None | Some(ReorderEntry::Missing) => return,
                Some(ReorderEntry::Done) => {}
                Some(ReorderEntry::WriteEnd { op }) => ctx.end_write(op, host),
                Some(ReorderEntry::Held { buffer, len }) => {
                    let bytes = &self.holds.bytes(buffer)[..usize::from(len)];
                    let outcome = ctx.apply_held(bytes, host, &mut |end| ended.push(end));
                    if outcome != FrameOutcome::NoSlot {
                        self.holds.give(buffer);
                    }
                    self.end_parts(index, ended, host);
                    match outcome {
                        FrameOutcome::Done | FrameOutcome::Dropped => {}
                        FrameOutcome::NoSlot => return self.await_slot(index, None, host),
                    }
                }
            }
            let Some(mut ctx) = self.recv_ctx(index) else { return };
            ctx.finish_frame();
        }
    }

    /// Handles a frame that came `gap` frames before its turn.
    pub(super) fn handle_out_of_order<H: Host>(&mut self, index: u32, gap: usize, records: Records<'_>, host: &mut H) {
        let credit = host.credit();
        let can_hold = self.holds.left() > 0 && records.bytes().len() <= self.holds.stride();
        let mut ended = RmaEnds::default();
        let Some(mut ctx) = self.recv_ctx(index) else { return };
        if ctx.flow.reorder_queue.has(gap) {
            self.stats.duplicates += 1;
            return;
        }
        let messages = records.filter(|record| matches!(record, Record::Message { .. })).count();
        // A message may still find no slot. The rest is then held, since nothing may be applied
        // twice.
        let has_slots = messages == 0 || messages <= credit as usize && can_hold;
        let (mut passed, mut left) = (ReorderEntry::Done, Some(records));
        if has_slots && records.clone().all(|record| ctx.may_apply_out_of_order(&record)) {
            (passed, left) = ctx.apply_out_of_order(records, host, &mut |end| ended.push(end));
        }
        let entry = match left {
            None => Some(passed),
            Some(left) => {
                self.hold(left, if left.bytes().len() < records.bytes().len() { 0 } else { IN_ORDER_RESERVE })
            }
        };
        match entry {
            None => self.stats.unheld += 1,
            Some(entry) => {
                if let Some(ctx) = self.recv_ctx(index) {
                    ctx.flow.reorder_queue.put(gap, entry);
                }
            }
        }
        self.end_parts(index, ended, host);
    }

    /// Copies the records of a frame to a hold buffer. Returns `None` if there is none to spare.
    pub(crate) fn hold(&mut self, records: Records<'_>, reserve: usize) -> Option<ReorderEntry> {
        let bytes = records.bytes();
        if self.holds.left() <= reserve || bytes.len() > self.holds.stride() {
            return None;
        }
        let buffer = self.holds.take(NONE)?;
        self.holds.bytes_mut(buffer)[..bytes.len()].copy_from_slice(bytes);
        Some(ReorderEntry::Held { buffer, len: u16::try_from(bytes.len()).unwrap_or(u16::MAX) })
    }

    /// Handles the parts of operations that have ended.
    fn end_parts<H: Host>(&mut self, index: u32, ended: RmaEnds, host: &mut H) {
        for (op, outcome) in ended.into_iter() {
            self.end_rma_part(index, op, outcome, host);
        }
    }
}
