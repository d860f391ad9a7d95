//! Copy and verify: the CRC of a large RMA frame is computed while its bytes are copied to their
//! destination, in one pass over memory instead of two.
//!
//! The bytes are in place before the CRC is known, so a broken frame must not overwrite accepted
//! bytes. The single pass is used only for the next in-order frame, and only if it continues,
//! without a gap, the RMA of the newest accepted frame. No accepted frame has brought these bytes,
//! and a retransmission writes them again. A broken frame may leave wrong bytes between that point
//! and the end of the operation's range. The content of that range is undefined until the operation
//! has ended well. Every other frame is verified first.

use super::Engine;
use super::conn::{State, bit};
use super::flow::Flow;
use super::host::{Host, Target};
use super::records::RecvCtx;
use super::transmit::LARGE;
use crate::wire::{self, Crc, Data, Header, Kind, Malformed, Record, Records, flags};
use crate::{Address, Time};

/// The next bytes of an RMA after those that the newest accepted frame brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuation {
    Write { op: u32, target: Target, at: u64 },
    ReadBytes { op: u32, at: u64 },
}

impl Continuation {
    /// Returns the continuation of the last of these records.
    pub(super) fn after(records: Records<'_>) -> Option<Self> {
        match records.last()? {
            Record::Write { op, target, at, bytes } => Some(Self::Write { op, target, at: at + bytes.len() as u64 }),
            Record::ReadBytes { op, at, bytes } => Some(Self::ReadBytes { op, at: at + bytes.len() as u64 }),
            _ => None,
        }
    }

    /// Returns the part that this record carries, and its bytes.
    fn of(record: Record<'_>) -> Option<(Self, &[u8])> {
        match record {
            Record::Write { op, target, at, bytes } => Some((Self::Write { op, target, at }, bytes)),
            Record::ReadBytes { op, at, bytes } => Some((Self::ReadBytes { op, at }, bytes)),
            _ => None,
        }
    }
}

impl Flow {
    /// Returns whether the bytes of this part are in place already, and forgets it. Called when its
    /// frame is accepted.
    pub(super) fn is_copied(&mut self, part: Continuation) -> bool {
        self.copied.take_if(|copied| *copied == part).is_some()
    }
}

impl Engine {
    /// Verifies a received frame as [`wire::verify`] does, and handles it. `congested`: a router
    /// marked it.
    ///
    /// # Errors
    ///
    /// The reason why the frame was dropped.
    pub fn handle_frame<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        frame: &[u8],
        congested: bool,
        host: &mut H,
    ) -> Result<(), Malformed> {
        if (frame.len() as u64) < LARGE || !self.copy_and_verify(from, frame, host)? {
            wire::verify(frame)?;
        }
        self.handle_verified(now, from, frame, congested, host);
        Ok(())
    }

    /// Copies and verifies the bytes of a frame in one pass, if [`Engine::match_continuation`]
    /// accepts it. Returns true if the frame is sound and will be accepted, false if nothing was
    /// done.
    fn copy_and_verify<H: Host>(&mut self, from: &Address, frame: &[u8], host: &mut H) -> Result<bool, Malformed> {
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
