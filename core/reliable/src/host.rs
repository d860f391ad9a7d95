//! The host of the engine: slots, registered memory, events.

use super::cookies::{PendingConnections, cell, place};
use super::deferred::DeferredCall;
use super::inbox::{Inbox, is_paused};
use super::keys::Keys;
use super::operation_table::{Local, Operations};
use super::outbox::COPIED;
use super::registrations::{FrameMemory, Registrations};
use cci_mem::memory::Memory;
use cci_mem::slot::Access;
use cci_mem::sync::Ordering;
use cci_proto::engine::{Event, Host, Index, MessageBuffer, Op, Sealer, Source, Target};
use cci_proto::wire::Crc;
use cci_proto::{Address, Atomic, EventKind, Failure, Registration, Rights};
use cci_transport::{Asked, Connection, ConnectionState, Core, Landing, PendingEvents, Slot};
use std::collections::VecDeque;

/// The state behind the engine's host: an endpoint's tables, beside engine, link and core.
pub(super) struct HostState {
    pub(super) openings: PendingConnections,
    pub(super) inbox: Inbox,
    pub(super) operations: Operations,
    pub(super) registry: Registrations,
    /// Calls of the engine that wait until it has returned.
    pub(super) deferred: Vec<DeferredCall>,
    /// Events that wait for a free slot.
    pub(super) pending_events: PendingEvents,
    /// Failures of accepts whose clients never confirmed, with their contexts; they wait for a
    /// spare slot.
    pub(super) unconfirmed: VecDeque<(u64, Failure)>,
    /// Largest message of this endpoint, bytes.
    pub(super) max_send_size: u32,
    /// The keys of sealed connections; `None`: all are plain.
    pub(super) keys: Option<Box<Keys>>,
}

impl HostState {
    /// Queues the events that waited for a slot, as far as slots are free.
    pub(super) fn flush_events(&mut self, core: &mut Core) {
        self.pending_events.flush(core);
        if self.unconfirmed.is_empty() {
            return;
        }
        // Events that strangers cause take one slot a call while few are free.
        let mut last = core.take_send();
        while let Some((context, failure)) = self.unconfirmed.front().copied()
            && let Some(slot) = last.take().or_else(|| core.take_spare_send())
        {
            self.unconfirmed.pop_front();
            core.finish_opening(slot, EventKind::Accept, context, Err(failure));
        }
        if let Some(slot) = last {
            core.release(slot);
        }
    }

    /// Whether an event waits for a slot.
    #[inline]
    pub(super) fn has_pending_events(&self) -> bool {
        !self.pending_events.is_empty() || !self.unconfirmed.is_empty()
    }

    /// Queues the event of a connect or accept that failed, now or as soon as a slot is spare.
    pub(super) fn fail_opening(
        &mut self,
        core: &mut Core,
        (slot, kind, context): (Option<&'static Slot>, EventKind, u64),
        failure: Failure,
    ) {
        match slot {
            Some(slot) => core.finish_opening(slot, kind, context, Err(failure)),
            None => {
                self.unconfirmed.push_back((context, failure));
                self.flush_events(core);
            }
        }
    }

    /// Removes a connection that was never open, and queues the event of its failure.
    pub(super) fn give_up(&mut self, core: &mut Core, cookie: u32, failure: Failure) {
        let Some(cell) = cell(core, cookie) else { return };
        self.inbox.detach(cell);
        if let Some(opening) = self.openings.end(cookie) {
            self.fail_opening(core, (opening.slot, opening.kind, opening.context), failure);
            if let (Some(slot), Some(tried)) = (opening.slot, opening.tried) {
                core.explain(slot, tried);
            }
        }
        core.end_connection(cell);
    }

    /// Handles the end of a connect, or of an accept, without a connection.
    fn on_refused(&mut self, core: &mut Core, cookie: u32, failure: Failure, (is_answered, is_security): (bool, bool)) {
        let opening = self.openings.get(cookie).map(|opening| (opening.kind, opening.slot, opening.to));
        self.give_up(core, cookie, failure);
        let Some((EventKind::Connect, Some(slot), to)) = opening else { return };
        match failure {
            Failure::TimedOut | Failure::Refused if is_security => {
                self.deferred.push(DeferredCall::ExplainSecurity { slot, to });
            }
            Failure::TimedOut => self.deferred.push(DeferredCall::ExplainTimeout { slot, to, is_answered }),
            Failure::Refused => self.deferred.push(DeferredCall::ExplainRefusal { slot, to }),
            _ => {}
        }
    }

    /// Handles the open connection. False: no slot is free for the event.
    fn on_open(&mut self, core: &mut Core, cookie: u32, max_send_size: u32, peer: &Address) -> bool {
        let (Some(cell), Some(opening)) = (cell(core, cookie), self.openings.get(cookie)) else { return true };
        let Some(slot) = opening.slot.or_else(|| core.take_send()) else { return false };
        let Some(opening) = self.openings.end(cookie) else { return true };
        cell.max_send_size.store(max_send_size.min(self.max_send_size), Ordering::Relaxed);
        cell.set_state(ConnectionState::Open);
        self.inbox.attach(cell, peer);
        core.finish_opening(slot, opening.kind, opening.context, Ok(cell));
        true
    }

    /// Handles the loss of the peer, or a failure of the connection.
    fn on_broken(&mut self, core: &mut Core, index: Index, cookie: u32, failure: Failure) {
        if self.openings.get(cookie).is_some() {
            self.deferred.push(DeferredCall::Close(index));
            return self.give_up(core, cookie, failure);
        }
        let Some(cell) = cell(core, cookie) else {
            if self.inbox.pending_requests.forget(|request| request.index == index) {
                self.deferred.push(DeferredCall::Close(index));
            }
            return;
        };
        cell.set_state(ConnectionState::Broken);
        self.orphan(core, cell);
        self.deferred.push(DeferredCall::ExplainBreak(cookie));
        for event in core.break_events(cell) {
            self.pending_events.queue(core, event, cell);
        }
    }

    /// Ends what the registrations for this connection serve, which is open no more, and its large
    /// messages that are on their way.
    pub(super) fn orphan(&mut self, core: &mut Core, cell: &'static Connection) {
        self.registry.orphan(cell);
        while let Some(landing) = core.landings().forget(cell) {
            self.end_landing(core, landing, Err(()));
        }
    }

    /// Ends the registration of a large message, and delivers it if it is written.
    fn end_landing(&mut self, core: &mut Core, landing: Landing, outcome: Result<(), ()>) {
        // It was registered when the landing began.
        let _ = self.registry.deregister(&landing.handle);
        match (landing.slot, outcome) {
            (Some(slot), Ok(())) => {
                self.inbox.has_delivered = true;
                core.deliver_landing(landing, slot, Access::Private);
            }
            (slot, _) => {
                slot.into_iter().for_each(|slot| self.inbox.give_back(core, slot));
                core.landings().give_up(landing);
            }
        }
    }

    /// Handles a peer that was silent for the keepalive time: one event, until the program sets the
    /// time again.
    fn on_silent(&mut self, core: &mut Core, cookie: u32) {
        let Some(cell) = cell(core, cookie) else { return };
        if cell.keepalive.swap(0, Ordering::Relaxed) != 0 {
            self.pending_events.queue(core, EventKind::KeepaliveTimedOut, cell);
            self.deferred.push(DeferredCall::UpdateTimeouts(cookie));
        }
    }
}

/// The engine's host during one call of the engine.
pub(super) struct HostCtx<'a> {
    pub(super) state: &'a mut HostState,
    pub(super) core: &'a mut Core,
}

impl HostCtx<'_> {
    /// Ends the registration of a large message.
    #[cold]
    fn end_own(&mut self, local: Option<Local>) {
        if let Some(local) = local {
            self.state.registry.end(local.number);
        }
    }

    /// The local registration of an RMA, and the offset of the operation in it.
    fn named(&mut self, source: &Source) -> Option<(Registration, u64)> {
        match source {
            Source::Local(op) => self.state.operations.rma(*op).map(|(_, local)| (local.number, local.offset)),
            Source::Served(target) => {
                let (number, _) = self.state.registry.resolve_again(target, Rights::READ).ok()?;
                Some((number, target.offset))
            }
        }
    }
}

impl Host for HostCtx<'_> {
    type Piece = FrameMemory;

    #[inline]
    fn sealer(&mut self) -> Option<&mut dyn Sealer> {
        self.state.keys.as_deref_mut().map(|keys| keys as &mut dyn Sealer)
    }

    fn credit(&self) -> u32 {
        self.state.inbox.room(self.core)
    }

    fn strangers(&self) -> u32 {
        let (limit, _) = self.core.recv_count();
        let quarter = u32::try_from(limit / 4).unwrap_or(u32::MAX).max(1);
        // A client whose failure event is still pending counts as a stranger.
        quarter.saturating_sub(u32::try_from(self.state.unconfirmed.len()).unwrap_or(u32::MAX))
    }

    fn begin(&mut self, cookie: u32, len: u32) -> Option<MessageBuffer> {
        let cell = cell(self.core, cookie)?;
        self.state.inbox.begin(self.core, cell, len)
    }

    fn fill(&mut self, buffer: MessageBuffer, at: u32, bytes: &[u8]) {
        self.state.inbox.fill(buffer, at, bytes);
    }

    fn deliver(&mut self, cookie: u32, buffer: MessageBuffer) {
        match cell(self.core, cookie) {
            Some(cell) => self.state.inbox.deliver(self.core, cell, buffer),
            None => self.state.inbox.abandon(self.core, buffer),
        }
    }

    fn is_paused(&self, cookie: u32) -> bool {
        cell(self.core, cookie).is_some_and(is_paused)
    }

    fn abandon(&mut self, buffer: MessageBuffer) {
        self.state.inbox.abandon(self.core, buffer);
    }

    #[inline]
    fn message(&mut self, cookie: u32, bytes: &[u8]) -> bool {
        let Some(cell) = cell(self.core, cookie) else { return false };
        let kept = self.state.inbox.message(self.core, cell, bytes);
        if !kept && !cell.attribute().is_reliable() {
            cell.counters.on_dropped();
            self.core.counters().on_dropped();
        }
        kept
    }

    fn write(&mut self, cookie: u32, target: &Target, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        let (_, memory) = self.state.registry.resolve(place(cookie), target, Rights::WRITE)?;
        let from = inside(target, at, bytes.len() as u64)?;
        if memory.copy_in(from, bytes) { Ok(()) } else { Err(Failure::RemoteHandle) }
    }

    fn write_checked(&mut self, cookie: u32, target: &Target, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        let (_, memory) = self.state.registry.resolve(place(cookie), target, Rights::WRITE).ok()?;
        let from = inside(target, at, bytes.len() as u64).ok()?;
        memory.copy_in_checked(from, bytes, crc.register()).map(Crc::resumed)
    }

    fn source(&mut self, source: &Source, at: u64, len: u32) -> Result<FrameMemory, Failure> {
        let (number, memory, from) = match source {
            Source::Local(op) => {
                let (_, local) = self.state.operations.rma(*op).ok_or(Failure::RemoteHandle)?;
                let memory = self.state.registry.living(local.number).ok_or(Failure::RemoteHandle)?;
                (local.number, memory, within(local.offset, local.len, at, len.into())?)
            }
            Source::Served(target) => {
                let (number, memory) = self.state.registry.resolve_again(target, Rights::READ)?;
                (number, memory, inside(target, at, len.into())?)
            }
        };
        let len = usize::try_from(len).map_err(|_| Failure::RemoteHandle)?;
        let span = memory.span(from, len).ok_or(Failure::RemoteHandle)?;
        self.state.registry.check(number, span)
    }

    fn resent(&mut self, source: &Source, len: u32) {
        // A shorter frame is always copied.
        if len as usize > COPIED
            && let Some((number, ..)) = self.named(source)
        {
            self.state.registry.copy_first(number);
        }
    }

    fn phase(&mut self, source: &Source) -> u8 {
        let Some((number, offset)) = self.named(source) else { return 0 };
        let start = self.state.registry.living(number).map_or(0, Memory::start);
        u8::try_from((start as u64).wrapping_add(offset) % 64).unwrap_or(0)
    }

    fn may_read(&mut self, cookie: u32, target: &Target) -> Result<(), Failure> {
        self.state.registry.resolve(place(cookie), target, Rights::READ).map(|_| ())
    }

    fn atomic(&mut self, cookie: u32, target: &Target, atomic: Atomic) -> Result<u64, Failure> {
        let (_, memory) = self.state.registry.resolve(place(cookie), target, Rights::READ_WRITE)?;
        let len = usize::try_from(target.len).map_err(|_| Failure::RemoteHandle)?;
        let old = memory.update(target.offset, len, |old| atomic.apply(old, target.len));
        old.ok_or(Failure::RemoteHandle)
    }

    fn large(&mut self, cookie: u32, operation: u32, len: u64) -> Result<(), Failure> {
        let connection = cell(self.core, cookie).ok_or(Failure::Disconnected)?;
        self.core.landings().ask(Asked { connection, operation, len })
    }

    fn written_whole(&mut self, cookie: u32, operation: u32, outcome: Result<(), ()>) {
        if self.core.landings().is_open()
            && let Some(cell) = cell(self.core, cookie)
            && let Some(landing) = self.core.landings().take(cell, operation)
        {
            self.state.end_landing(self.core, landing, outcome);
        }
    }

    fn place(&mut self, op: Op, at: u64, bytes: &[u8]) {
        let Some((operation, local)) = self.state.operations.rma(op) else { return };
        let placed = self.state.registry.living(local.number).is_some_and(|memory| {
            within(local.offset, local.len, at, bytes.len() as u64).is_ok_and(|from| memory.copy_in(from, bytes))
        });
        operation.spoilt |= !placed;
    }

    fn place_checked(&mut self, op: Op, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        let (_, local) = self.state.operations.rma(op)?;
        let memory = self.state.registry.living(local.number)?;
        let from = within(local.offset, local.len, at, bytes.len() as u64).ok()?;
        memory.copy_in_checked(from, bytes, crc.register()).map(Crc::resumed)
    }

    #[inline]
    fn ended(&mut self, op: Op, outcome: Result<(), Failure>) {
        if let Some(operation) = self.state.operations.end(op) {
            if operation.is_own {
                self.end_own(operation.local);
            }
            operation.finish(self.core, outcome);
        }
    }

    fn event(&mut self, index: Index, cookie: u32, event: Event<'_>) -> bool {
        let Self { state, core } = self;
        match event {
            Event::Request { payload, .. } if core.is_stray_request(payload) => {
                state.deferred.push(DeferredCall::Reject(index));
            }
            Event::Request { attribute, payload } => return state.inbox.show_request(core, index, attribute, payload),
            Event::Expected { attribute, token } => {
                state.deferred.push(DeferredCall::AcceptExpected { index, attribute, token })
            }
            Event::Open { max_send_size, peer } => return state.on_open(core, cookie, max_send_size, &peer),
            Event::Refused { failure, is_answered, is_security } => {
                state.on_refused(core, cookie, failure, (is_answered, is_security));
            }
            Event::Redirected { uri, token } => {
                let uri = String::from_utf8_lossy(uri).into_owned();
                state.deferred.push(DeferredCall::Redirect { index, cookie, uri, token });
            }
            Event::Broken(failure) => state.on_broken(core, index, cookie, failure),
            Event::Silent => state.on_silent(core, cookie),
        }
        true
    }
}

/// The offset in the registration of bytes of a peer's operation.
fn inside(target: &Target, at: u64, len: u64) -> Result<u64, Failure> {
    within(target.offset, target.len, at, len)
}

/// The offset of `len` bytes at `at` in an operation that begins at `offset` and has `total` bytes.
fn within(offset: u64, total: u64, at: u64, len: u64) -> Result<u64, Failure> {
    let fits = at.checked_add(len).is_some_and(|end| end <= total);
    offset.checked_add(at).filter(|_| fits).ok_or(Failure::RemoteHandle)
}
