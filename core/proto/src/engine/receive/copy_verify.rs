//! Copy and verify: the CRC of a large RMA frame is computed while its bytes are copied to their
//! destination, in one pass over memory instead of two.
//!
//! The bytes are in place before the CRC is known, so a broken frame must not overwrite accepted
//! bytes. The single pass is used only for the next in-order frame, and only if it continues,
//! without a gap, the RMA of the newest accepted frame. No accepted frame has brought these bytes,
//! and a retransmission writes them again. A broken frame may leave wrong bytes between that point
//! and the end of the operation's range. The content of that range is undefined until the operation
//! has ended well. Every other frame is verified first.

use super::context::RecvCtx;
use crate::engine::connection::conn::{State, bit};
use crate::engine::flow::continuation::Continuation;
use crate::engine::host::Host;
use crate::engine::state::Engine;
use crate::wire::{self, Crc, Malformed, Records, flags};

impl Engine {
    /// Copies and verifies the bytes of a parsed frame in one pass, if it carries the expected
    /// continuation. `numbers`: its sequence number and its flags. Returns true if the frame is
    /// sound and will be accepted, false if nothing was done.
    pub(super) fn copy_and_verify<H: Host>(
        &mut self,
        index: u32,
        numbers: (u32, u8),
        records: Records<'_>,
        frame: &[u8],
        host: &mut H,
    ) -> Result<bool, Malformed> {
        let Some((part, bytes)) = self.match_continuation(index, numbers, records) else { return Ok(false) };
        let Some(mut ctx) = self.recv_ctx(index) else { return Ok(false) };
        let (head, _) = frame.split_at(frame.len() - bytes.len());
        let Some(crc) = ctx.copy_checked(part, bytes, wire::begin_check(head), host) else { return Ok(false) };
        if !wire::ends_check(frame, crc) {
            return Err(Malformed::Check);
        }
        ctx.flow.copy_verify.on_copied(part);
        Ok(true)
    }

    /// Returns the part that a frame carries and its bytes, if that part is the expected
    /// continuation.
    fn match_continuation<'a>(
        &self,
        index: u32,
        (seq, bits): (u32, u8),
        records: Records<'a>,
    ) -> Option<(Continuation, &'a [u8])> {
        let conn = self.table.get(index).filter(|conn| conn.state == State::Open && !conn.has(bit::RNR))?;
        if seq != conn.recv_next || bits & (flags::SEQUENCED | flags::UNCHECKED) != flags::SEQUENCED {
            return None;
        }
        let flow = self.flows.get(conn.flow)?;
        let may_accept = flow.requests.has_room_for(1) && !flow.refused_writes.is_full();
        let next = flow.copy_verify.next().filter(|_| flow.is_in_order() && may_accept)?;
        records.only().and_then(Continuation::of).filter(|(part, _)| *part == next)
    }
}

impl RecvCtx<'_> {
    /// Has the host copy the bytes of a part. Returns the CRC continued over them, or `None` if
    /// nothing was copied.
    fn copy_checked<H: Host>(&mut self, part: Continuation, bytes: &[u8], crc: Crc, host: &mut H) -> Option<Crc> {
        match part {
            Continuation::Write { op, target, at } => {
                if self.flow.refused_writes.contains(op) {
                    return None;
                }
                host.write_checked(self.conn.host_cookie, &target, at, bytes, crc)
            }
            Continuation::ReadBytes { op, at } => {
                let (op, _) = self.awaited_bytes(op, at, bytes.len())?;
                host.place_checked(op, at, bytes, crc)
            }
        }
    }
}
