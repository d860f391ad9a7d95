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
use crate::Address;
use crate::engine::connection::conn::{State, bit};
use crate::engine::flow::continuation::Continuation;
use crate::engine::host::Host;
use crate::engine::state::Engine;
use crate::wire::{self, Crc, Data, Header, Kind, Malformed, flags};

impl Engine {
    /// Copies and verifies the bytes of a frame in one pass, if [`Engine::match_continuation`]
    /// accepts it. Returns true if the frame is sound and will be accepted, false if nothing was
    /// done.
    pub(super) fn copy_and_verify<H: Host>(
        &mut self,
        from: &Address,
        frame: &[u8],
        host: &mut H,
    ) -> Result<bool, Malformed> {
        let Some((index, part, bytes)) = self.match_continuation(from, frame) else { return Ok(false) };
        let Some(mut ctx) = self.recv_ctx(index) else { return Ok(false) };
        let (head, _) = frame.split_at(frame.len() - bytes.len());
        let Some(crc) = ctx.copy_checked(part, bytes, wire::begin_check(head), host) else { return Ok(false) };
        if !wire::ends_check(frame, crc) {
            return Err(Malformed::Check);
        }
        ctx.flow.copied = Some(part);
        Ok(true)
    }

    /// Returns the connection of a frame, the part that it carries and its bytes, if that part is
    /// the expected continuation. Nothing in the frame is verified yet.
    fn match_continuation<'a>(&self, from: &Address, frame: &'a [u8]) -> Option<(u32, Continuation, &'a [u8])> {
        let header = Header::parse(frame).filter(|header| header.kind == Kind::Data)?;
        let index = self.table.find(header.to)?;
        let conn = self.table.get(index).filter(|conn| conn.state == State::Open && !conn.has(bit::RNR))?;
        let flow = self.flows.get(conn.flow)?;
        let next =
            flow.continuation.filter(|_| flow.reorder_queue.is_empty() && flow.partial == 0 && flow.has_room_for(1))?;
        if conn.peer != header.from || conn.to != *from || wire::claimed_len(frame) != Some(frame.len()) {
            return None;
        }
        let (data, _, records) = Data::parse(frame)?;
        if data.seq != conn.recv_next || data.flags & (flags::SEQUENCED | flags::UNCHECKED) != flags::SEQUENCED {
            return None;
        }
        let (part, bytes) = records.only().and_then(Continuation::of).filter(|(part, _)| *part == next)?;
        Some((index, part, bytes))
    }
}

impl RecvCtx<'_> {
    /// Has the host copy the bytes of a part. Returns the CRC continued over them, or `None` if
    /// nothing was copied.
    fn copy_checked<H: Host>(&mut self, part: Continuation, bytes: &[u8], crc: Crc, host: &mut H) -> Option<Crc> {
        match part {
            Continuation::Write { op, target, at } => {
                let is_refused = self.flow.refused.iter().any(|(refused, _)| *refused == op);
                if is_refused { None } else { host.write_checked(&target, at, bytes, crc) }
            }
            Continuation::ReadBytes { op, at } => {
                let (op, _) = self.asked_bytes(op, at, bytes.len())?;
                host.place_checked(op, at, bytes, crc)
            }
        }
    }
}
