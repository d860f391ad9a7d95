//! RMA through payload slots, with the target's help: the way that needs no right over the other
//! process.
//!
//! At most one relayed operation of a lane and direction is open at a time, since operations of a
//! lane are in order.

use crate::format::layout::{body as words, kind, pair, unpair};
use crate::lane::Lane;
use crate::lane::operation::{Pending, Reading, Serve, Stage, Step};
use crate::lane::queue::Op;
use crate::lane::state::EndpointState;
use crate::memory::registry;
use crate::rma::store_word;
use crate::sys::{self, Local, Way};
use cci_mem::ring::{BODY_WORDS, Header, Violation};
use cci_mem::sync::Ordering;
use cci_proto::{Access, Atomic, Failure, Registration, Rights, RmaHandle, Status};
use cci_transport::Core;

/// Pieces that one call publishes: the lane's other frames get their turn.
const BURST: u32 = 16;

impl Lane {
    /// Moves a relayed operation on. None: still open.
    pub(crate) fn relay(
        &mut self,
        state: &mut EndpointState,
        pending: &mut Pending,
    ) -> Result<Option<Result<(), Failure>>, Violation> {
        if let Some(result) = self.relay.result() {
            return Ok(Some(result));
        }
        if let Err(failure) = pending.local_at(state, 0, 0) {
            return Ok(Some(Err(failure)));
        }
        match (pending.stage, pending.access) {
            (Stage::Relay(from), Access::Write) => self.relay_write(state, pending, from)?,
            (Stage::Relay(_), Access::Read) => self.relay_request(pending, kind::READ, [0; 2])?,
            (Stage::Relay(_), Access::Atomic(Atomic::FetchAdd(addend))) => {
                self.relay_request(pending, kind::FETCH_ADD, [addend, 0])?;
            }
            (Stage::Relay(_), Access::Atomic(Atomic::CompareSwap { expected, desired })) => {
                self.relay_request(pending, kind::COMPARE_SWAP, [desired, expected])?;
            }
            _ => {}
        }
        Ok(None)
    }

    fn relay_write(&mut self, state: &mut EndpointState, pending: &mut Pending, from: u64) -> Result<(), Violation> {
        let mut at = from;
        let Some(wire) = self.wire.as_mut() else { return Ok(()) };
        for _ in 0..BURST {
            if at == pending.len || !wire.producer.has_room(wire.outbound.head)? {
                break;
            }
            let Some(slot) = wire.take_granted()? else { break };
            let bytes = (pending.len - at).min(u64::from(wire.payload_capacity()));
            let (count, size) = small(bytes);
            let Ok(local) = pending.local_at(state, at, size) else { break };
            sys::direct_copy(Way::Write, local, wire.outbound_bytes(slot, size));
            let [first, second] = pending.remote.name();
            let connection = pending.cell.remote.load(Ordering::Relaxed).into();
            let words = words([first, second, pending.remote_offset, pending.len, at, pair(slot, count), connection]);
            wire.producer.push_words(
                wire.outbound.ring,
                Header { kind: kind::WRITE, len: 0, word: pending.operation },
                words,
            );
            at += bytes;
        }
        pending.stage = if at == pending.len { Stage::Await } else { Stage::Relay(at) };
        Ok(())
    }

    /// Asks for what the target is to send: bytes, or the old value of a word.
    fn relay_request(&mut self, pending: &mut Pending, kind: u8, operands: [u64; 2]) -> Result<(), Violation> {
        let Some(wire) = self.wire.as_mut() else { return Ok(()) };
        let [first, second] = pending.remote.name();
        let connection = pending.cell.remote.load(Ordering::Relaxed).into();
        let [operand, expected] = operands;
        let words = words([first, second, pending.remote_offset, pending.len, operand, expected, connection]);
        let header = Header { kind, len: 0, word: pending.operation };
        if wire.publish_frame(header, words, None)? {
            self.relay.begin_reading(Reading {
                operation: pending.operation,
                number: pending.local,
                at: pending.local_offset,
                left: pending.len,
            });
            pending.stage = Stage::Await;
        }
        Ok(())
    }

    /// Finds own registered bytes for a peer's operation: their registration, and the offset of the
    /// first in it.
    fn resolve(&self, state: &EndpointState, body: &[u64; BODY_WORDS], right: Rights) -> Option<(Registration, u64)> {
        let handle = RmaHandle::from_words([body[0], body[1], 0, 0]);
        let connection = u32::try_from(body[6]).ok()?;
        let (number, memory, rights) = state.registry.find(&handle, registry::name(self.number(), connection))?;
        (rights.has(right) && memory.contains(body[2], body[3])).then_some((number, body[2]))
    }

    pub(crate) fn answer(&mut self, state: &mut EndpointState, operation: u32, outcome: Result<(), Failure>) {
        let status = outcome.map_or_else(Failure::status, |()| Status::Success);
        let header = Header { kind: kind::RESULT, len: 0, word: operation };
        self.answer_frame(state, header, words([u64::from(status as u32)]));
    }

    /// The peer writes a piece.
    pub(crate) fn on_write(
        &mut self,
        state: &mut EndpointState,
        header: Header,
        body: &[u64; BODY_WORDS],
    ) -> Result<(), Violation> {
        let resolved = self.resolve(state, body, Rights::WRITE);
        let (slot, bytes) = unpair(body[5]);
        let end = body[4].checked_add(u64::from(bytes)).filter(|end| *end <= body[3] && bytes > 0).ok_or(Violation)?;
        let Some(wire) = self.wire.as_mut() else { return Ok(()) };
        let payload = wire.inbound_slot(slot, bytes)?;
        if let Some((number, start)) = resolved
            && let Some(memory) = state.registry.living(number)
            // `resolve` has checked the whole operation, and `end` this piece.
            && let Some(local) = Local::of(memory, start + body[4], bytes as usize)
        {
            sys::direct_copy(Way::Read, local, wire.inbound_bytes(&payload));
        }
        wire.grant(slot);
        if resolved.is_none() {
            if self.relay.refuse(header.word) {
                self.answer(state, header.word, Err(Failure::RemoteHandle));
            }
        } else if end == body[3] && !self.relay.is_refused(header.word) {
            self.answer(state, header.word, Ok(()));
        }
        Ok(())
    }

    /// The peer wants to read.
    pub(crate) fn on_read(&mut self, state: &mut EndpointState, header: Header, body: &[u64; BODY_WORDS]) {
        match self.resolve(state, body, Rights::READ) {
            Some((number, start)) if body[3] > 0 => {
                let serve = Serve { operation: header.word, number, start, done: 0, len: body[3] };
                self.queue.push_control(Op::Serve(Box::new(serve)));
                self.busy(state);
                self.check_answers(state);
            }
            _ => self.answer(state, header.word, Err(Failure::RemoteHandle)),
        }
    }

    /// As `advance`, for a read of the peer.
    pub(crate) fn advance_serve(&mut self, state: &mut EndpointState, serve: &mut Serve) -> Result<Step, Violation> {
        let before = serve.done;
        let Some(wire) = self.wire.as_mut() else { return Ok(Step::Done) };
        for _ in 0..BURST {
            if !wire.producer.has_room(wire.outbound.head)? {
                break;
            }
            let header = Header { kind: kind::DATA, len: 0, word: serve.operation };
            let bytes = (serve.len - serve.done).min(u64::from(wire.payload_capacity()));
            let (count, size) = small(bytes);
            let memory = state.registry.living(serve.number);
            let Some(local) = memory.and_then(|memory| Local::of(memory, serve.start + serve.done, size)) else {
                let result = Header { kind: kind::RESULT, ..header };
                wire.producer.push_words(wire.outbound.ring, result, [Status::RmaHandle as u64]);
                return Ok(Step::Done);
            };
            let Some(slot) = wire.take_granted()? else { break };
            sys::direct_copy(Way::Write, local, wire.outbound_bytes(slot, size));
            wire.producer.push_words(wire.outbound.ring, header, [pair(slot, count)]);
            serve.done += bytes;
            if serve.done == serve.len {
                return Ok(Step::Done);
            }
        }
        Ok(Step::Open(serve.done != before))
    }

    /// A piece of what this side reads.
    pub(crate) fn on_data(
        &mut self,
        state: &mut EndpointState,
        header: Header,
        body: &[u64; BODY_WORDS],
    ) -> Result<(), Violation> {
        let (slot, bytes) = unpair(body[0]);
        let Some(wire) = self.wire.as_mut() else { return Ok(()) };
        let payload = wire.inbound_slot(slot, bytes)?;
        let reading = self.relay.reading(header.word);
        // The registration may have ended with its connection meanwhile.
        let memory = reading.as_ref().and_then(|reading| state.registry.living(reading.number));
        if let (Some(reading), Some(memory)) = (reading, memory) {
            reading.left = reading.left.checked_sub(u64::from(bytes)).ok_or(Violation)?;
            let local = Local::of(memory, reading.at, bytes as usize).ok_or(Violation)?;
            sys::direct_copy(Way::Read, local, wire.inbound_bytes(&payload));
            reading.at += u64::from(bytes);
            if reading.left == 0 {
                self.relay.finish(Ok(()));
            }
        } else {
            state.strays += 1;
        }
        wire.grant(slot);
        Ok(())
    }

    /// The peer wants a word to be changed.
    pub(crate) fn on_atomic(&mut self, state: &mut EndpointState, header: Header, body: &[u64; BODY_WORDS]) {
        let (operand, expected) = (body[4], body[5]);
        let atomic = if header.kind == kind::FETCH_ADD {
            Atomic::FetchAdd(operand)
        } else {
            Atomic::CompareSwap { expected, desired: operand }
        };
        match self.resolve(state, body, Rights::READ_WRITE).and_then(|at| change(state, at, body[3], atomic)) {
            Some(old) => {
                let header = Header { kind: kind::VALUE, len: 0, word: header.word };
                self.answer_frame(state, header, words([old]));
            }
            None => self.answer(state, header.word, Err(Failure::RemoteHandle)),
        }
    }

    /// The peer has changed a word, and tells what it was.
    pub(crate) fn on_value(&mut self, state: &mut EndpointState, header: Header, body: &[u64; BODY_WORDS]) {
        match self.relay.take_word(header.word) {
            Some(Reading { number, at, left, .. }) => {
                self.relay.finish(store_word(state, (number, at), left, body[0]));
            }
            None => state.strays += 1,
        }
    }

    /// The peer tells how an operation ended.
    pub(crate) fn on_result(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        header: Header,
        body: &[u64; BODY_WORDS],
    ) {
        let status = u32::try_from(body[0]).ok().and_then(Status::from_u32).unwrap_or(Status::Error);
        let outcome = if status == Status::Success { Ok(()) } else { Err(Failure::RemoteHandle) };
        if !self.relay.on_result(header.word, outcome) {
            self.on_refusal(state, core, header.word, status);
        }
    }
}

/// Changes an own word of `len` bytes at this place of a registration; says what it was.
fn change(state: &EndpointState, (number, at): (Registration, u64), len: u64, atomic: Atomic) -> Option<u64> {
    let memory = state.registry.living(number)?;
    memory.update(at, usize::try_from(len).ok()?, |old| atomic.apply(old, len))
}

/// A count of bytes of one piece, in the widths that frames and copies need.
fn small(bytes: u64) -> (u32, usize) {
    let count = u32::try_from(bytes).unwrap_or(u32::MAX);
    (count, count as usize)
}
