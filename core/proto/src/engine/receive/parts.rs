//! Reassembly of messages from parts.

use super::context::{FrameOutcome, RecvCtx};
use crate::engine::connection::conn::bit;
use crate::engine::flow::assembly::{AFTER, Assembly, is_older};
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
            self.flow.assembly = Some(Assembly::new(buffer, message, total));
        }
        let Some(assembly) = &mut self.flow.assembly else { return FrameOutcome::Done };
        if assembly.message != message || assembly.pieces.total != total || assembly.filled != at {
            return FrameOutcome::Done;
        }
        host.fill(assembly.buffer, at, bytes);
        assembly.filled += u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if assembly.filled == total {
            self.deliver(host);
        }
        FrameOutcome::Done
    }

    /// Handles a part of an unreliable message, in any order. A message with a hole is never
    /// delivered.
    pub(super) fn loose_part<H: Host>(&mut self, message: u32, total: u32, at: u32, bytes: &[u8], host: &mut H) {
        let message = message & !AFTER;
        if total > self.max_send_size {
            return;
        }
        if self.flow.assembly.is_none_or(|assembly| assembly.message != message) {
            if self.flow.assembly.is_some_and(|assembly| is_older(message, assembly.message)) {
                return;
            }
            self.abandon(host);
            let Some(buffer) = host.begin(self.conn.host_cookie, total) else { return };
            self.flow.assembly = Some(Assembly::new(buffer, message, total));
            self.flow.seen.clear();
        }
        let Some(assembly) = &mut self.flow.assembly else { return };
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if assembly.pieces.total != total || !assembly.pieces.note(&mut self.flow.seen, at, len) {
            return;
        }
        host.fill(assembly.buffer, at, bytes);
        if assembly.pieces.is_whole() {
            self.deliver(host);
        }
    }

    /// Delivers the complete message.
    fn deliver<H: Host>(&mut self, host: &mut H) {
        if let Some(assembly) = self.flow.assembly.take() {
            host.deliver(self.conn.host_cookie, assembly.buffer);
        }
    }

    /// Abandons the message that is being reassembled.
    fn abandon<H: Host>(&mut self, host: &mut H) {
        if let Some(assembly) = self.flow.assembly.take() {
            host.abandon(assembly.buffer);
        }
    }
}
