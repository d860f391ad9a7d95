//! Reassembly of messages from parts.

use super::context::{FrameOutcome, RecvCtx};
use crate::engine::connection::conn::bit;
use crate::engine::flow::message_parts::{AFTER, Placement};
use crate::engine::host::Host;

impl RecvCtx<'_> {
    /// Handles a part of a message whose parts come in order, each once.
    pub(crate) fn part<H: Host>(
        &mut self,
        message: u32,
        total: u32,
        at: u32,
        bytes: &[u8],
        host: &mut H,
    ) -> FrameOutcome {
        if total > self.max_send_size || message & AFTER != 0 && self.conn.has(bit::AFTER_REFUSED) {
            return FrameOutcome::Done;
        }
        if at == 0 {
            self.abandon(host);
            let Some(buffer) = host.begin(self.conn.host_cookie, total) else { return FrameOutcome::NoSlot };
            self.flow.message_parts.begin(buffer, message, total);
        }
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let placement = self.flow.message_parts.add_next(message, total, at, len);
        self.place_part(placement, at, bytes, host);
        FrameOutcome::Done
    }

    /// Handles a part of an unreliable message, in any order. A message with a hole is never
    /// delivered.
    pub(super) fn loose_part<H: Host>(&mut self, message: u32, total: u32, at: u32, bytes: &[u8], host: &mut H) {
        let message = message & !AFTER;
        if total > self.max_send_size {
            return;
        }
        if !self.flow.message_parts.has(message) {
            if self.flow.message_parts.is_newer_than(message) {
                return;
            }
            self.abandon(host);
            let Some(buffer) = host.begin(self.conn.host_cookie, total) else { return };
            self.flow.message_parts.begin(buffer, message, total);
        }
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let placement = self.flow.message_parts.add(total, at, len);
        self.place_part(placement, at, bytes, host);
    }

    /// Copies a part to its buffer, if it has one, and delivers the message if it is whole.
    fn place_part<H: Host>(&mut self, placement: Option<Placement>, at: u32, bytes: &[u8], host: &mut H) {
        let Some(Placement { buffer, is_whole }) = placement else { return };
        host.fill(buffer, at, bytes);
        if is_whole {
            self.flow.message_parts.take();
            host.deliver(self.conn.host_cookie, buffer);
        }
    }

    /// Abandons the message that is being reassembled.
    fn abandon<H: Host>(&mut self, host: &mut H) {
        if let Some(buffer) = self.flow.message_parts.take() {
            host.abandon(buffer);
        }
    }
}
