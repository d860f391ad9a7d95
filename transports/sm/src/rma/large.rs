//! Messages that are longer than the connection's maximum: the peer gives memory, into which this
//! side copies.
//!
//! While the peer has no memory to give, nothing on the lane waits for it but what comes later on
//! the same ordered connection. A lane asks for at most [`MAX_LARGE`](cci_proto::engine::MAX_LARGE)
//! messages at a time; the others wait aside as well.

use crate::format::layout::{body as words, kind};
use crate::lane::operation::{Large, NEVER, Pending, Stage, Step};
use crate::lane::receive::take_recv;
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use crate::slow_path::SlowPath;
use cci_mem::memory::Memory;
use cci_mem::ring::{BODY_WORDS, Header, Violation};
use cci_mem::slot::Access as Writable;
use cci_mem::sync::Ordering;
use cci_proto::{Access, Failure, Registration, Rights, RmaHandle, SendError, Status};
use cci_transport::{Asked, Connection, Core, Landing, Placed, Posted, Slot};

impl Lane {
    /// Sends a message that is longer than the maximum of an open connection.
    pub(crate) fn send_large(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        cell: &'static Connection,
        memory: Memory,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        if self.phase != Phase::Ready {
            return Err(SendError::Disconnected);
        }
        let slot = core.take_rma().ok_or(SendError::NoBuffers)?;
        let (len, number) = (memory.len(), self.relay.number());
        cell.on_begun();
        cell.counters.on_sent();
        core.counters().on_sent(usize::try_from(len).unwrap_or(usize::MAX));
        let timed = cell.send_timeout.load(Ordering::Relaxed) > 0;
        let pending = Pending {
            cell,
            slot,
            posted,
            access: Access::Large,
            // Its memory is its own.
            local: Registration { index: 0, generation: 0 },
            local_offset: 0,
            remote: RmaHandle::from_words([0; 4]),
            remote_offset: 0,
            len,
            message: None,
            large: Some(Large { memory, number, is_placed: false }),
            stage: Stage::Ask,
            operation: number,
            since: if timed { crate::clock::precise_next() } else { NEVER },
        };
        self.begin(state, core, pending);
        Ok((posted == Posted::Waited).then_some(slot))
    }

    /// Asks the peer for memory.
    pub(super) fn ask_for_landing(&mut self, pending: &mut Pending) -> Result<Step, Violation> {
        if self.queue.has_parked_enough() {
            return Ok(Step::Parked);
        }
        let Some(wire) = self.wire.as_mut() else { return Ok(Step::Open(false)) };
        let connection = pending.cell.remote.load(Ordering::Relaxed).into();
        let header = Header { kind: kind::LARGE, len: 0, word: pending.operation };
        let asked = wire.publish_frame(header, words([pending.len, connection]), None)?;
        if !asked {
            return Ok(Step::Open(false));
        }
        pending.stage = Stage::AwaitMemory;
        Ok(Step::Parked)
    }

    /// The peer has given memory.
    pub(crate) fn on_landing(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        header: Header,
        body: &[u64; BODY_WORDS],
    ) {
        let Some(mut pending) = self.queue.unpark(header.word) else {
            state.strays += 1;
            return;
        };
        self.on_unparked(core);
        pending.remote = RmaHandle::from_words([body[0], body[1], pending.len, 0]);
        (pending.access, pending.stage) = (Access::Write, Stage::Copy(0));
        if let Some(large) = &mut pending.large {
            large.is_placed = true;
        }
        self.queue.resume(pending);
        self.busy(state);
    }

    /// The peer gives no memory.
    pub(super) fn on_refusal(&mut self, state: &mut EndpointState, core: &mut Core, operation: u32, status: Status) {
        let Some(mut pending) = self.queue.unpark(operation) else { return };
        self.on_unparked(core);
        let failure = if status == Status::MsgSize { Failure::TooLong } else { Failure::RemoteHandle };
        self.end(state, core, &mut pending, Err(failure));
        self.busy(state);
    }

    /// A large message ends: tells the peer, and lets go what waits for it. Says what its program
    /// is told.
    pub(super) fn end_large(
        &mut self,
        state: &mut EndpointState,
        pending: &Pending,
        outcome: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(large) = &pending.large else { return outcome };
        if large.is_placed {
            let status = outcome.map_or_else(Failure::status, |()| Status::Success);
            let connection = pending.cell.remote.load(Ordering::Relaxed).into();
            let header = Header { kind: kind::LANDED, len: 0, word: large.number };
            self.post(state, header, words([u64::from(status as u32), connection]), None);
        }
        if pending.holds() {
            self.queue.release(pending.cell);
        }
        // The peer takes its memory back only with the connection, of whose end this side has not
        // heard yet.
        if outcome == Err(Failure::RemoteHandle) { Err(Failure::Disconnected) } else { outcome }
    }

    /// The connection of the peer that a frame names.
    fn named(&self, word: u64) -> Option<&'static Connection> {
        self.table.open_cell(u32::try_from(word).ok()?)
    }

    /// The peer wants memory for a large message.
    pub(crate) fn on_large(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        header: Header,
        body: &[u64; BODY_WORDS],
    ) {
        let Some(connection) = self.named(body[1]) else {
            state.strays += 1;
            return;
        };
        let asked = Asked { connection, operation: header.word, len: body[0] };
        match core.landings().ask(asked) {
            Ok(()) => state.landings_wait = true,
            Err(failure) => self.answer(state, header.word, Err(failure)),
        }
    }

    /// The peer has written a large message, or gives it up. False: no slot is free.
    pub(crate) fn on_landed(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        header: Header,
        body: &[u64; BODY_WORDS],
    ) -> Result<bool, Violation> {
        let Some(cell) = self.named(body[1]).filter(|cell| core.landings().has(cell, header.word)) else {
            state.strays += 1;
            return Ok(true);
        };
        // Only now: a peer that never writes takes none.
        let slot = if body[0] == u64::from(Status::Success as u32) {
            let Some(slot) = take_recv(core, &mut state.released) else { return Ok(false) };
            Some(slot)
        } else {
            None
        };
        let Some(landing) = core.landings().take(cell, header.word) else { return Ok(true) };
        let has_ended = self.end_registration(state, core, &landing.handle);
        match slot {
            Some(slot) if has_ended => {
                slot.payload.store(self.token, Ordering::Relaxed);
                self.held.add();
                // The peer has its address, and the kernel lets it write there.
                core.deliver_landing(landing, slot, Writable::Shared);
                state.landings_wait |= core.landings().is_waiting();
            }
            slot => {
                slot.into_iter().for_each(|slot| core.release(slot));
                self.give_up_landing(state, core, landing);
            }
        }
        // It must not say that it is done and still announce that it writes.
        if has_ended { Ok(true) } else { Err(Violation) }
    }

    /// Ends a landing's registration. False: the peer still copies, and the memory stays until that
    /// is over.
    fn end_registration(&mut self, state: &mut EndpointState, core: &mut Core, handle: &RmaHandle) -> bool {
        let Some(number) = state.registry.find_to_kill(handle) else { return true };
        state.registry.kill(number);
        if self.is_copying(Some(number.word())) {
            core.add_dropped(handle);
            return false;
        }
        self.relay.forget(number);
        if state.registry.forget(number, crate::clock::precise_now) {
            state.deadlines_moved = true;
        }
        core.release_memory(handle);
        true
    }

    fn give_up_landing(&mut self, state: &mut EndpointState, core: &mut Core, landing: Landing) {
        core.landings().give_up(landing);
        state.landings_wait |= core.landings().is_waiting();
    }

    /// A connection has ended, and with it the large messages that were on their way.
    pub(crate) fn end_landings(&mut self, state: &mut EndpointState, core: &mut Core, cell: &'static Connection) {
        while let Some(landing) = core.landings().forget(cell) {
            self.end_registration(state, core, &landing.handle);
            self.give_up_landing(state, core, landing);
        }
    }
}

impl SlowPath {
    /// Gives peers memory for large messages, as far as there is room.
    #[cold]
    pub(crate) fn land(&mut self, core: &mut Core) {
        core.place_landings(|core, asked, memory| self.place(core, asked, memory));
        self.state.landings_wait = core.landings().is_waiting();
    }

    fn place(&mut self, core: &mut Core, asked: &Asked, memory: Option<Memory>) -> Placed {
        let Some(memory) = memory else {
            if let Some((lane, state)) = self.lane_for(asked.connection) {
                lane.answer(state, asked.operation, Err(Failure::TooLong));
            }
            return Placed::Refused;
        };
        let Ok(handle) = self.register(memory.clone(), Rights::WRITE, Some(asked.connection)) else {
            return Placed::Later;
        };
        // The endpoint may close while the peer copies.
        core.own_memory(&handle, memory);
        if let Some((lane, state)) = self.lane_for(asked.connection) {
            let header = Header { kind: kind::LANDING, len: 0, word: asked.operation };
            lane.answer_frame(state, header, words(handle.name()));
        }
        Placed::Open(None, handle)
    }
}
