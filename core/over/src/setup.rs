//! How connections begin and end.

use crate::inbox::Request;
use crate::network::{Class, Goal, Network, Put};
use crate::side::PendingConnect;
use crate::sides::{MOST_CONNECTIONS, number_in};
use crate::transport::NEAR;
use crate::wire::{Opening, Verb, header};
use crate::{Over, PATIENCE};
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, ConnectError, EventKind, Failure, Time};
use cci_transport::{Connect, Connection, Core, Slot, monotonic, random};
use std::time::Duration;

impl<N: Network> Over<N> {
    /// Sends what belongs to no connection of this side. False: there is no room for it.
    pub(crate) fn stray(&mut self, to: N::Place, class: Class, header: u64, payload: &[u8]) -> bool {
        let bytes = if payload.is_empty() { None } else { self.net.write(payload) };
        if bytes.is_none() && !payload.is_empty() {
            return false;
        }
        let is_sent = self.net.put(Goal::Stray, &Put { to, class, header, bytes, ack: false }).has_begun();
        if let (false, Some((buffer, _))) = (is_sent, bytes) {
            self.net.give(buffer);
        }
        is_sent
    }

    /// Answers a client, by its number of the connection and its tag.
    pub(crate) fn answer(&mut self, to: N::Place, (number, tag): (u32, u64), verb: Verb, payload: &[u8]) -> bool {
        self.stray(to, Class::Reliable, header(number, verb, 0, tag), payload)
    }

    pub(crate) fn reject(&mut self, request: &Request<N::Place>) {
        let opening = &request.opening;
        self.answer(request.from, (opening.number, opening.tag), Verb::Reject, &[]);
    }

    /// Enters a new connection, and sees to it that all that its peer may send finds room.
    fn enter(
        &mut self,
        core: &mut Core,
        (attribute, context): (Attribute, u64),
        (peer, tag): (N::Place, u64),
    ) -> Option<(u32, u32, &'static Connection)> {
        let window = self.sides.window(self.now)?;
        let cell = core.open_connection(attribute, context, self.max_send_size).ok()?;
        let Some(side) = self.sides.enter(cell, window, (peer, tag)) else {
            core.end_connection(cell);
            return None;
        };
        let number = side.number;
        cell.local.store(number, Ordering::Relaxed);
        if !self.net.grant(self.sides.granted()) {
            self.sides.remove(number, self.now);
            self.sides.bury(number);
            core.end_connection(cell);
            return None;
        }
        Some((number, window, cell))
    }

    /// Begins a connect. What can be refused at once has no event; everything else ends with
    /// exactly one CONNECT event.
    pub(crate) fn begin_connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let server = N::of_uri(connect.uri).ok_or(ConnectError::BadUri)?;
        let (attribute, context) = (connect.attribute, connect.context);
        if attribute.is_multicast() {
            return Err(ConnectError::NotImplemented);
        }
        let [tag] = random().map_err(|_| ConnectError::NoMemory)?;
        let slot = core.take_send().ok_or(ConnectError::NoBuffers)?;
        self.now = monotonic();
        let Some((number, window, _)) = self.enter(core, (attribute, context), (server, tag)) else {
            core.release(slot);
            return Err(ConnectError::NoMemory);
        };
        let (endpoint, max_send_size) = (self.net.number(), self.max_send_size);
        let opening = Opening { endpoint, number, attribute, max_send_size, window, tag, token: 0 };
        let request = Request { from: self.net.own(), opening, payload: connect.payload.to_vec() };
        let deadline = connect.timeout.map(|timeout| self.now + timeout);
        if let Some(side) = self.sides.get_mut(number) {
            side.pending = Some(PendingConnect { slot, context, deadline, request, retry: None });
        }
        self.remind(deadline);
        self.ask(number);
        Ok(())
    }

    /// Sends the request of a connect.
    pub(crate) fn ask(&mut self, number: u32) {
        let Some(side) = self.sides.get_mut(number) else { return };
        let (to, tag) = (side.peer, side.tag);
        let Some(pending) = &mut side.pending else { return };
        pending.retry = None;
        let mut bytes = Vec::with_capacity(Opening::LEN + pending.request.payload.len());
        pending.request.opening.emit(&mut bytes);
        bytes.extend(&pending.request.payload);
        if !self.net.ask(number, to, header(0, Verb::Request, 0, tag), &bytes) {
            self.ask_again(number, PATIENCE);
        }
    }

    /// Sends the request of a connect again after a while.
    pub(crate) fn ask_again(&mut self, number: u32, after: Duration) {
        let retry = Some(monotonic() + after);
        if let Some(pending) = self.sides.get_mut(number).and_then(|side| side.pending.as_mut()) {
            pending.retry = retry;
        }
        self.remind(retry);
    }

    /// The server has named another endpoint, which expects the token. A second redirect is
    /// refused: two endpoints could send a client to and fro for ever.
    pub(crate) fn on_redirected(&mut self, core: &mut Core, number: u32, bytes: &[u8]) {
        let named = bytes
            .split_first_chunk::<8>()
            .and_then(|(token, uri)| Some((u64::from_le_bytes(*token), N::of_uri(std::str::from_utf8(uri).ok()?)?)));
        let Some(side) = self.sides.get_mut(number) else { return };
        let is_first = side.pending.as_ref().is_some_and(|pending| pending.request.opening.token == 0);
        let (Some((token, peer)), true) = (named, is_first) else {
            return self.end_connect(core, number, Failure::Refused);
        };
        side.peer = peer;
        if let Some(pending) = &mut side.pending {
            pending.request.opening.token = token;
        }
        self.ask(number);
    }

    /// Ends a connect without a connection.
    pub(crate) fn end_connect(&mut self, core: &mut Core, number: u32, failure: Failure) {
        let side = self.sides.get_mut(number).filter(|side| side.pending.is_some());
        // An answer may come for a connect that has ended, or twice.
        let Some(side) = side else { return };
        let (to, tag) = (side.peer, side.tag);
        let Some(pending) = side.pending.take() else { return };
        // No answer follows this one.
        side.is_closed = failure != Failure::TimedOut;
        if failure == Failure::TimedOut {
            self.withdraw(&pending, to, tag);
        }
        if let Some(side) = self.sides.remove(number, monotonic()) {
            core.end_connection(side.cell);
        }
        core.finish_opening(pending.slot, EventKind::Connect, pending.context, Err(failure));
    }

    /// Tells a server that nobody waits for its answer any more.
    pub(crate) fn withdraw(&mut self, pending: &PendingConnect<N::Place>, to: N::Place, tag: u64) {
        let mut bytes = Vec::with_capacity(Opening::LEN);
        pending.request.opening.emit(&mut bytes);
        self.stray(to, Class::Setup, header(0, Verb::Withdraw, 0, tag), &bytes);
    }

    /// The server has accepted.
    pub(crate) fn on_accepted(&mut self, core: &mut Core, (number, origin): (u32, N::Origin), bytes: &[u8]) {
        let now = monotonic();
        let Some((opening, _)) = Opening::parse(bytes) else { return };
        let peer = self.net.at(origin, opening.endpoint);
        let Some(side) = self.sides.get_mut(number) else { return };
        let Some(pending) = side.pending.take() else { return };
        side.peer = peer;
        side.open(opening.number, opening.max_send_size, opening.window, now);
        core.finish_opening(pending.slot, EventKind::Connect, pending.context, Ok(side.cell));
        // What is due next, now that the limit of the connect is not, is found by one look at all
        // connections for those that are accepted meanwhile.
        let again = pending.deadline.map(|_| now + NEAR);
        let due = side.deadline().into_iter().chain(again).min();
        self.remind(due);
    }

    /// A client asks. With a token the program has answered already: by `expect`. More than there
    /// can be connections do not wait: strangers could fill this memory.
    pub(crate) fn on_request(&mut self, core: &mut Core, request: Request<N::Place>) {
        if request.opening.token == 0 && self.inbox.requests.len() < MOST_CONNECTIONS {
            self.inbox.requests.push_back(request);
            return;
        }
        match self.expected.take(request.opening.token) {
            Some(client) => self.accept_client(core, Some(request), client.slot, client.context),
            None => self.reject(&request),
        }
    }

    /// Makes the connection of a request, and queues its ACCEPT event in this slot. `None`: the
    /// client is gone.
    pub(crate) fn accept_client(
        &mut self,
        core: &mut Core,
        request: Option<Request<N::Place>>,
        slot: &'static Slot,
        context: u64,
    ) {
        let Some(request) = request else {
            return core.finish_opening(slot, EventKind::Accept, context, Err(Failure::Disconnected));
        };
        self.now = monotonic();
        let (asked, from) = (request.opening, request.from);
        let Some((number, window, cell)) = self.enter(core, (asked.attribute, context), (from, asked.tag)) else {
            self.reject(&request);
            return core.finish_opening(slot, EventKind::Accept, context, Err(Failure::NoMemory));
        };
        let now = self.now;
        let mut bytes = Vec::with_capacity(Opening::LEN);
        if let Some(side) = self.sides.get_mut(number) {
            side.open(asked.number, asked.max_send_size, asked.window, now);
            let max_send_size = cell.max_send_size.load(Ordering::Relaxed);
            let endpoint = self.net.number();
            Opening { endpoint, number, max_send_size, window, token: 0, ..asked }.emit(&mut bytes);
        }
        if self.answer(from, (asked.number, asked.tag), Verb::Accept, &bytes) {
            core.finish_opening(slot, EventKind::Accept, context, Ok(cell));
            let due = self.sides.get(number).and_then(crate::side::Side::deadline);
            self.remind(due);
        } else {
            self.sides.remove(number, now);
            self.sides.bury(number);
            core.end_connection(cell);
            core.finish_opening(slot, EventKind::Accept, context, Err(Failure::NoMemory));
        }
    }

    /// Takes a connection out, and tells its peer.
    fn take_side(&mut self, core: &mut Core, number: u32, cause: Failure) -> Option<&'static Connection> {
        self.registrations.orphan(&mut self.net, number);
        self.now = monotonic();
        let side = self.sides.get_mut(number)?;
        let is_told = side.control(&mut self.net, Verb::Close, &[]);
        side.fail(core, &mut self.net, cause);
        self.net.leave(number);
        let (peer, tag, remote) = (side.peer, side.tag, side.remote);
        let cell = side.cell;
        self.sides.remove(number, self.now);
        if let (false, Some(remote)) = (is_told, remote) {
            self.answer(peer, (remote, tag), Verb::Close, &[]);
        }
        Some(cell)
    }

    /// Closes a connection for the program.
    pub(crate) fn end_side(&mut self, core: &mut Core, cell: &'static Connection) {
        if self.sides.of(cell).is_some() {
            self.take_side(core, number_in(cell), Failure::Disconnected);
        }
        self.pending_events.forget(cell);
        core.end_connection(cell);
    }

    /// Ends a connection at this end without a call of the program: the peer is gone, or an
    /// operation was late. The program still disconnects it.
    pub(crate) fn break_side(&mut self, core: &mut Core, number: u32, cause: Failure) {
        if self.sides.get(number).is_some_and(|side| side.pending.is_some()) {
            return self.end_connect(core, number, Failure::Refused);
        }
        let Some(cell) = self.take_side(core, number, cause) else { return };
        for event in core.break_events(cell) {
            self.pending_events.queue(core, event, cell);
        }
    }

    /// The peer has closed. Its messages that wait for a slot come before the DISCONNECT event.
    pub(crate) fn on_close(&mut self, core: &mut Core, number: u32) {
        self.end_pause(number);
        let Some(side) = self.sides.get_mut(number) else { return };
        side.is_closed = true;
        side.fail(core, &mut self.net, Failure::Disconnected);
        if side.backlog.is_empty() {
            self.break_side(core, number, Failure::Disconnected);
        }
    }

    /// Ends what has not ended in time, and begins what is due.
    pub(crate) fn expire(&mut self, core: &mut Core, now: Time) {
        while self.expected.expire(core, now).is_some() {}
        let mut next = None;
        for number in self.sides.numbers() {
            let Some(side) = self.sides.get_mut(number) else { continue };
            let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
            let (late, retries) = side
                .pending
                .as_ref()
                .map_or((false, false), |pending| (is_due(pending.deadline), is_due(pending.retry)));
            if late {
                self.end_connect(core, number, Failure::TimedOut);
                continue;
            }
            if retries {
                self.ask(number);
                continue;
            }
            if let Some(cause) = side.late(now) {
                self.break_side(core, number, cause);
                continue;
            }
            let probe = side.probe(&mut self.net, now);
            if side.check_keepalive(&mut self.net, now) {
                // Once: the program sets the time again if it goes on watching.
                side.cell.keepalive.store(0, Ordering::Relaxed);
                self.pending_events.queue(core, EventKind::KeepaliveTimedOut, side.cell);
            }
            next = [next, probe].into_iter().flatten().min();
        }
        let due = self.sides.iter().filter_map(crate::side::Side::deadline).min();
        self.remind(due);
        self.remind(next);
        let due = self.expected.deadline();
        self.remind(due);
    }

    /// Tells peers that the endpoint closes.
    pub(crate) fn say_goodbye(&mut self, core: &mut Core) {
        for request in std::mem::take(&mut self.inbox.requests) {
            self.reject(&request);
        }
        let shown: Vec<_> = self.inbox.shown.iter().cloned().collect();
        shown.iter().for_each(|request| self.reject(request));
        self.inbox.shown.clear();
        for number in self.sides.numbers() {
            let Some(side) = self.sides.get_mut(number) else { continue };
            let (to, tag) = (side.peer, side.tag);
            if let Some(pending) = side.pending.take() {
                self.withdraw(&pending, to, tag);
            }
            self.take_side(core, number, Failure::Disconnected);
        }
    }

    /// Gives everything back to the library. A second call does nothing.
    pub(crate) fn end(&mut self) {
        self.net.end(self.registrations.take_all());
        self.sides.clear();
    }
}

/// An endpoint whose opening fails after this transport is open is dropped without a close.
impl<N: Network> Drop for Over<N> {
    fn drop(&mut self) {
        self.end();
    }
}
