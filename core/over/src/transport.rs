//! The trait, and progress. Each method of the trait is a few lines here; longer work is in the
//! other files.

use crate::Over;
use crate::network::Network;
use crate::registrations::bits_of;
use crate::side::{PATIENCE, Side, Transfer};
use crate::sides::number_in;
use crate::wire::Verb;
use cci_mem::memory::Memory;
use cci_proto::{
    Access, ConnectError, Failure, PauseError, RegisterError, RequestError, Rights, RmaError, RmaHandle, SendError,
    Time,
};
use cci_transport::{
    Arming, Connect, Connection, ConnectionReport, Core, Message, Peer, Posted, Readiness, Rma, Slot, Transport,
    Unsent, coarse, monotonic, send_rest,
};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Events handled by one call.
const BATCH: usize = 64;
/// Sends after which a call of a program that only sends looks for what has come.
pub(crate) const UNHEARD: u32 = 64;
/// Longer than a tick of the system.
pub(crate) const NEAR: Duration = Duration::from_millis(20);
/// How long a deregistration waits for peers.
const DEREGISTRATION: Duration = Duration::from_millis(100);

impl<N: Network> Over<N> {
    /// Handles what has come, and what is late. It never waits. Returns whether something has come.
    pub(crate) fn make_progress(&mut self, core: &mut Core) -> bool {
        self.make_progress_until(core, |_, _| false)
    }

    /// As [`Over::make_progress`], but leaves what comes after `is_enough` to later calls.
    fn make_progress_until(&mut self, core: &mut Core, is_enough: impl Fn(&Self, &Core) -> bool) -> bool {
        self.unheard = 0;
        self.look_at_clock(core);
        let mut found = 0;
        while found < BATCH && self.take_event(core) {
            found += 1;
            if is_enough(self, core) {
                break;
            }
        }
        if !self.inbox.turns.is_empty() || !self.inbox.requests.is_empty() {
            self.deliver(core);
        }
        if self.is_runnable() {
            self.catch_up(core);
        }
        self.net.sweep();
        if self.alarm.is_some_and(|alarm| alarm <= self.now) {
            self.alarm = None;
            self.expire(core, self.now);
        }
        self.pending_events.flush(core);
        found > 0
    }

    /// Reads the clock, once for all that a call handles; while the program polls and nothing is
    /// due soon, once in a tick of the system. Where nothing is due at all, and nobody may sleep on
    /// the handle, it is not read: then no time depends on [`Over::now`].
    #[inline]
    fn look_at_clock(&mut self, core: &Core) {
        if self.alarm.is_none() && !core.is_armed() && !core.is_handle_in_use() {
            return;
        }
        let tick = coarse();
        let is_near = self.alarm.is_some_and(|alarm| alarm <= tick + NEAR);
        if tick != self.tick || is_near || core.is_armed() {
            (self.now, self.tick) = (monotonic(), tick);
        }
    }

    /// What waited for room in the library.
    fn catch_up(&mut self, core: &mut Core) {
        if self.net.is_short() {
            self.net.mend();
        }
        for _ in 0..self.owed.len() {
            let Some((number, verb)) = self.owed.pop_front() else { break };
            if let Some(side) = self.sides.get_mut(number)
                && !side.control(&mut self.net, verb, &[])
            {
                self.owed.push_back((number, verb));
                break;
            }
        }
        self.go_on(core);
    }

    /// Moves requests and messages into receive slots.
    pub(crate) fn deliver(&mut self, core: &mut Core) {
        self.inbox.show_requests(core);
        while let Some(number) = self.inbox.turns.pop_front() {
            let Some(side) = self.sides.get_mut(number) else { continue };
            // It gets its turn with its resumption.
            let Some(bytes) = side.backlog.front().filter(|_| !side.is_paused) else { continue };
            if !self.inbox.show_message(core, side.cell, bytes) {
                self.inbox.turns.push_front(number);
                break;
            }
            side.backlog.pop_front();
            side.has_refused = false;
            let (is_last, is_closed) = (side.backlog.is_empty(), side.is_closed);
            side.holds_messages = !is_last;
            if !is_last {
                self.inbox.turns.push_back(number);
            }
            if is_last && is_closed {
                self.break_side(core, number, Failure::Disconnected);
            } else {
                self.take_one(number);
            }
        }
        // Backpressure: senders learn why they wait, once.
        for number in &self.inbox.turns {
            if let Some(side) = self.sides.get_mut(*number)
                && !side.has_refused
                && side.control(&mut self.net, Verb::NotReady, &[])
            {
                side.has_refused = true;
                core.counters().on_refused();
            }
        }
    }

    /// Sees to it that a call comes at this time, if at any.
    pub(crate) fn remind(&mut self, at: Option<Time>) {
        self.alarm = [self.alarm, at].into_iter().flatten().min();
    }

    /// When the program must call again though nothing arrives.
    pub(crate) fn deadline(&self, now: Time) -> Option<Time> {
        [self.alarm, self.pending_events.deadline(now), self.net.deadline(now)].into_iter().flatten().min()
    }

    /// Whether a call would move what waited for room in the library.
    pub(crate) fn is_runnable(&self) -> bool {
        self.net.is_short() || !self.owed.is_empty() || !self.stalled.is_empty() && self.net.has_room()
    }

    /// Starts the operations of a connection, after one was posted.
    fn begin(&mut self, core: &mut Core, connection: &'static Connection, due: Option<Time>) {
        if due.is_some() {
            self.remind(due);
        }
        let now = self.now;
        let Some(side) = self.sides.of(connection) else { return };
        let number = side.number;
        let wants = side.start(core, &mut self.net, now);
        self.follow(number, wants);
    }
}

impl<N: Network> Transport for Over<N> {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn handle(&self) -> BorrowedFd<'_> {
        self.handle.handle()
    }

    fn connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        self.begin_connect(core, connect)
    }

    fn accept(&mut self, core: &mut Core, request: &'static Slot, context: u64) -> Result<(), RequestError> {
        let slot = core.take_send().ok_or(RequestError::NoBuffers)?;
        let request = self.inbox.shown.take(request);
        self.accept_client(core, request, slot, context);
        Ok(())
    }

    fn peer(&self, request: &'static Slot) -> Option<Peer> {
        let mut peer = Peer::default();
        // The process by the API's word; its endpoint by its own.
        peer.address = N::uri(self.inbox.shown.get(request)?.from);
        Some(peer)
    }

    fn reject(&mut self, _: &mut Core, request: &'static Slot) -> Result<(), RequestError> {
        // A client that is gone needs no answer.
        if let Some(request) = self.inbox.shown.take(request) {
            Self::reject(self, &request);
        }
        Ok(())
    }

    fn expect(&mut self, core: &mut Core, token: u64, context: u64, limit: Duration) -> Result<(), RequestError> {
        let deadline = monotonic() + limit;
        self.remind(Some(deadline));
        self.expected.expect(core, token, context, deadline)
    }

    fn forget_expected(&mut self, core: &mut Core, token: u64) -> bool {
        self.expected.forget(core, token)
    }

    fn redirect(&mut self, _: &mut Core, request: &'static Slot, uri: &str, token: u64) -> Result<(), RequestError> {
        if let Some(request) = self.inbox.shown.take(request) {
            let mut payload = token.to_le_bytes().to_vec();
            payload.extend(uri.as_bytes());
            let opening = &request.opening;
            self.answer(request.from, (opening.number, opening.tag), Verb::Redirect, &payload);
        }
        Ok(())
    }

    fn disconnect(&mut self, core: &mut Core, connection: &'static Connection) {
        self.end_side(core, connection);
    }

    fn pause(&mut self, _: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.pause_side(connection)
    }

    fn resume(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.resume_side(core, connection)
    }

    fn send(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.unheard += 1;
        let is_due = self.unheard > UNHEARD;
        let side = match self.sides.of(connection) {
            Some(side) if !side.is_closed && !side.is_low() && !is_due => side,
            _ => {
                // A program that only sends makes no other calls.
                self.make_progress(core);
                self.sides.of(connection).filter(|side| !side.is_closed).ok_or(SendError::Disconnected)?
            }
        };
        let slot = core.take_send().ok_or(SendError::NoBuffers)?;
        // The program has its bytes back when this call returns.
        let Some(bytes) = self.net.write_message(&message) else {
            core.release(slot);
            return Err(SendError::NoBuffers);
        };
        let waited = (posted == Posted::Waited).then_some(slot);
        if let Some(due) = side.send_at_once(core, &mut self.net, (slot, posted), bytes, monotonic) {
            if due.is_some() {
                self.remind(due);
            }
            return Ok(waited);
        }
        let due = side.post(slot, posted, (None, Some(bytes)), monotonic);
        self.begin(core, connection, due);
        Ok(waited)
    }

    fn rma(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        let side = self.sides.of(connection).filter(|side| !side.is_closed).ok_or(RmaError::Disconnected)?;
        let local = self.registrations.memory(rma.local, side.number);
        let memory = local.and_then(|memory| memory.part(rma.local_offset, rma.len)).ok_or(RmaError::LocalHandle)?;
        let (bits, access) = (bits_of(rma.remote, side.tag), rma.access);
        let (remote_offset, is_fence) = (rma.remote_offset, rma.fence);
        let slot = core.take_rma().ok_or(RmaError::NoBuffers)?;
        let message = rma.message.map(Message::One);
        let written = message.map(|message| self.net.write_message(&message));
        if written == Some(None) {
            core.release(slot);
            return Err(RmaError::NoBuffers);
        }
        let transfer = Transfer { memory, bits, remote_offset, access, is_fence };
        self.now = monotonic();
        let now = self.now;
        let due = side.post(slot, posted, (Some(transfer), written.flatten()), || now);
        // Before it begins, so that the clock is not read again.
        let probe = matches!(access, Access::Write).then(|| now + PATIENCE);
        self.begin(core, connection, [due, probe].into_iter().flatten().min());
        Ok((posted == Posted::Waited).then_some(slot))
    }

    fn register(
        &mut self,
        _: &mut Core,
        memory: Memory,
        rights: Rights,
        only: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        let side = only.map(|connection| self.sides.of(connection).ok_or(RegisterError::Disconnected)).transpose()?;
        let only = side.map(|side| (side.number, side.tag));
        self.registrations.register(&mut self.net, memory, rights, only)
    }

    fn deregister(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        let end = monotonic() + DEREGISTRATION;
        loop {
            match self.retire(core, handle) {
                Err(RegisterError::Busy) if monotonic() < end => self.net.progress(),
                ended => return ended,
            }
        }
    }

    fn retire(&mut self, _: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.registrations.retire(&mut self.net, handle)
    }

    fn progress(&mut self, core: &mut Core) {
        // A program that polls has its event before the library is asked for another one.
        let is_enough = |over: &Self, core: &Core| core.has_event() && !core.is_armed() && !over.net.has_more();
        let has_found = self.make_progress_until(core, is_enough);
        Readiness::on_progress(self, core, has_found, self.now);
    }

    fn arm(&mut self, core: &mut Core) -> bool {
        Readiness::arm_now(self, core)
    }

    fn disarm(&mut self, core: &mut Core) {
        Readiness::disarm_now(self, core);
    }

    fn settle(&mut self, core: &mut Core) {
        Readiness::settle_call(self, core);
        core.publish_gauges();
    }

    fn leave_edge(&mut self, core: &mut Core) {
        Readiness::leave_edge(self, core);
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.handle.waker()
    }

    fn refill(&mut self, core: &mut Core) {
        self.inbox.slots.sweep(core);
        // Set again if slots run out again.
        core.set_starving(false);
        self.deliver(core);
    }

    fn options_changed(&mut self, _: &mut Core, connection: &'static Connection) {
        let now = monotonic();
        if let Some(side) = self.sides.of(connection) {
            side.restart_timeouts(now);
            let due = side.deadline();
            self.remind(due);
            // The timer of an armed handle is set by the next call that settles it.
            self.write_waker();
        }
    }

    fn report(&self, _: &Core, connection: &'static Connection) -> ConnectionReport {
        let side = self.sides.get(number_in(connection));
        let peer = side.map_or_else(|| "a peer that is gone".into(), |side| N::uri(side.peer));
        ConnectionReport {
            path: format!("{} to {peer}", N::WORDS.messages),
            rma_path: N::WORDS.rma.into(),
            why: "the configuration names this transport".into(),
            strays: self.strays,
            ..ConnectionReport::of(N::WORDS.name, connection)
        }
    }

    fn close(&mut self, core: &mut Core, limit: Duration) {
        // A message that the library has not sent would end with it.
        send_rest(self, core, limit, Self::handle, |over: &mut Self, core| {
            let has_found = over.make_progress(core);
            if over.net.unsent() == 0 && !over.sides.iter().any(Side::has_unsent) {
                return Unsent::Nothing;
            }
            if has_found { Unsent::Moving } else { Unsent::Waiting }
        });
        self.say_goodbye(core);
        send_rest(self, core, limit, Self::handle, |over: &mut Self, core| {
            let has_found = over.make_progress(core);
            match (over.net.unsent(), has_found) {
                (0, _) => Unsent::Nothing,
                (_, true) => Unsent::Moving,
                (_, false) => Unsent::Waiting,
            }
        });
        core.drop_events();
        self.end();
    }
}
