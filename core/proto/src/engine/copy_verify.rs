//! Landing: the check of a large RMA frame is computed while its bytes are copied to where they belong, in one pass instead of two.
//!
//! The bytes are in place before the check is known. That is right only where a broken frame can spoil nothing: a frame lands only if
//! it goes on, in its turn, with the operation of a frame than which none newer was accepted, at the byte where that one ended. So no
//! accepted frame brought these bytes, and nothing is overwritten which would not come again. A broken frame may spoil the operation's
//! range up to its end: what that holds before the operation has ended well is not promised to anyone. Every other frame is
//! checked first.

use super::Engine;
use super::conn::{State, bit};
use super::flow::Flow;
use super::host::{Host, Target};
use super::records::RecvCtx;
use super::transmit::LARGE;
use crate::wire::{self, Crc, Data, Header, Kind, Malformed, Record, Records, flags};
use crate::{Address, Time};

/// The bytes of an RMA that no accepted frame has brought, and the next one is likely to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Write { op: u32, target: Target, at: u64 },
    ReadBytes { op: u32, at: u64 },
}

impl Next {
    /// What goes on with the last of these records.
    pub(super) fn after(records: Records<'_>) -> Option<Self> {
        match records.last()? {
            Record::Write { op, target, at, bytes } => Some(Self::Write { op, target, at: at + bytes.len() as u64 }),
            Record::ReadBytes { op, at, bytes } => Some(Self::ReadBytes { op, at: at + bytes.len() as u64 }),
            _ => None,
        }
    }

    /// What this record brings, and its bytes.
    fn of(record: Record<'_>) -> Option<(Self, &[u8])> {
        match record {
            Record::Write { op, target, at, bytes } => Some((Self::Write { op, target, at }, bytes)),
            Record::ReadBytes { op, at, bytes } => Some((Self::ReadBytes { op, at }, bytes)),
            _ => None,
        }
    }
}

impl Flow {
    /// Whether the bytes of this part are in place already; asked when its frame is accepted.
    pub(super) fn has_landed(&mut self, part: Next) -> bool {
        self.landed.take_if(|landed| *landed == part).is_some()
    }
}

impl Engine {
    /// A frame as it came: looks at it as [`wire::verify`] does, and handles it. `congested`: a router marked it.
    ///
    /// # Errors
    ///
    /// Why it was dropped.
    pub fn handle_frame<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        frame: &[u8],
        congested: bool,
        host: &mut H,
    ) -> Result<(), Malformed> {
        if (frame.len() as u64) < LARGE || !self.land(from, frame, host)? {
            wire::verify(frame)?;
        }
        self.handle_verified(now, from, frame, congested, host);
        Ok(())
    }

    /// Has the bytes of a frame land, if it is one of which [`Engine::continuation`] knows. True: it is sound, and nothing keeps it
    /// from being accepted.
    fn land<H: Host>(&mut self, from: &Address, frame: &[u8], host: &mut H) -> Result<bool, Malformed> {
        let Some((place, part, bytes)) = self.continuation(from, frame) else { return Ok(false) };
        let Some(mut ctx) = self.recv_ctx(place) else { return Ok(false) };
        let (head, _) = frame.split_at(frame.len() - bytes.len());
        let Some(crc) = ctx.land(part, bytes, wire::begin_check(head), host) else { return Ok(false) };
        if !wire::ends_check(frame, crc) {
            return Err(Malformed::Check);
        }
        ctx.flow.landed = Some(part);
        Ok(true)
    }

    /// The connection that a frame says it is of, and the part that it says it brings: if it is just what comes next there.
    fn continuation<'a>(&self, from: &Address, frame: &'a [u8]) -> Option<(u32, Next, &'a [u8])> {
        let header = Header::parse(frame).filter(|header| header.kind == Kind::Data)?;
        let place = self.table.find(header.to)?;
        let conn = self.table.get(place).filter(|conn| conn.state == State::Open && !conn.has(bit::RNR))?;
        let flow = self.flows.get(conn.flow)?;
        let next = flow.next.filter(|_| flow.reorder_queue.is_empty() && flow.partial == 0 && flow.has_room_for(1))?;
        if conn.peer != header.from || conn.to != *from || wire::claimed_len(frame) != Some(frame.len()) {
            return None;
        }
        let (data, _, records) = Data::parse(frame)?;
        if data.seq != conn.recv_next || data.flags & (flags::SEQUENCED | flags::UNCHECKED) != flags::SEQUENCED {
            return None;
        }
        let (part, bytes) = records.only().and_then(Next::of).filter(|(part, _)| *part == next)?;
        Some((place, part, bytes))
    }
}

impl RecvCtx<'_> {
    /// Has the host copy the bytes of a part; the check continued over them. None: nothing was copied.
    fn land<H: Host>(&mut self, part: Next, bytes: &[u8], crc: Crc, host: &mut H) -> Option<Crc> {
        match part {
            Next::Write { op, target, at } => {
                let is_refused = self.flow.refused.iter().any(|(refused, _)| *refused == op);
                if is_refused { None } else { host.write_checked(&target, at, bytes, crc) }
            }
            Next::ReadBytes { op, at } => {
                let (op, _) = self.asked_bytes(op, at, bytes.len())?;
                host.place_checked(op, at, bytes, crc)
            }
        }
    }
}
