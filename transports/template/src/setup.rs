//! How connections begin and end.

use crate::Template;
use crate::mailbox::{Frame, Mailbox, Request, number_of};
use crate::side::{PendingConnect, Side};
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, ConnectError, EventKind, Failure, Time};
use cci_transport::{Connect, ConnectionState, Core, Slot, lock, monotonic};
use std::sync::Arc;

impl Template {
    /// Enters a new connection under a number of its own.
    fn enter(&mut self, core: &mut Core, attribute: Attribute, context: u64) -> Option<(u32, &mut Side)> {
        let number = self.last_number.checked_add(1)?;
        let cell = core.open_connection(attribute, context, self.max_send_size).ok()?;
        self.last_number = number;
        cell.local.store(number, Ordering::Relaxed);
        Some((number, self.sides.entry(number).or_insert(Side::new(cell))))
    }

    /// Opens a connection at this end. Both ends have the same largest message.
    fn open_side(side: &mut Side, peer: Arc<Mailbox>, number: u32, max_send_size: u32) {
        let most = side.cell.max_send_size.load(Ordering::Relaxed).min(max_send_size);
        side.cell.max_send_size.store(most, Ordering::Relaxed);
        side.cell.set_state(ConnectionState::Open);
        side.peer = Some((peer, number));
        // The time in which the connection opened counts for no timeout.
        side.restart_timeouts();
    }

    /// Begins a connect. What can be refused at once has no event; everything else ends with
    /// exactly one CONNECT event.
    pub(crate) fn begin_connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let server = number_of(connect.uri).ok_or(ConnectError::BadUri)?;
        let (attribute, context) = (connect.attribute, connect.context);
        if attribute.is_multicast() {
            return Err(ConnectError::NotImplemented);
        }
        let slot = core.take_send().ok_or(ConnectError::NoBuffers)?;
        let (from, max_send_size) = (Arc::clone(&self.mailbox), self.max_send_size);
        let Some((number, side)) = self.enter(core, attribute, context) else {
            core.release(slot);
            return Err(ConnectError::NoMemory);
        };
        let request = Request { from, number, attribute, max_send_size, payload: connect.payload.to_vec(), token: 0 };
        let deadline = connect.timeout.map(|timeout| monotonic() + timeout);
        side.pending = Some(PendingConnect { slot, context, deadline, request, server: None });
        self.ask(core, number, Some(server), 0);
        Ok(())
    }

    /// Asks the endpoint with the number `server`. The connect ends if there is none.
    fn ask(&mut self, core: &mut Core, number: u32, server: Option<u64>, token: u64) {
        let pending = self.sides.get_mut(&number).and_then(|side| side.pending.as_mut());
        if let Some((pending, server)) = pending.zip(server.and_then(Mailbox::find)) {
            pending.request.token = token;
            pending.server = Some(Arc::clone(&server));
            if server.push(Frame::Request(pending.request.clone())) {
                return;
            }
        }
        self.end_connect(core, number, Failure::Refused);
    }

    /// The server has named another endpoint, which expects the token. A second redirect is
    /// refused: two endpoints could send a client to and fro for ever.
    pub(crate) fn on_redirected(&mut self, core: &mut Core, to: u32, uri: &str, token: u64) {
        let pending = self.sides.get(&to).and_then(|side| side.pending.as_ref());
        let is_first = pending.is_some_and(|pending| pending.request.token == 0);
        self.ask(core, to, number_of(uri).filter(|_| is_first), token);
    }

    /// Ends a connect without a connection.
    pub(crate) fn end_connect(&mut self, core: &mut Core, number: u32, failure: Failure) {
        let pending = self.sides.get_mut(&number).and_then(|side| side.pending.take());
        // An answer may come for a connect that has ended, or twice.
        let Some(pending) = pending else { return };
        if failure == Failure::TimedOut {
            pending.withdraw();
        }
        if let Some(side) = self.sides.remove(&number) {
            core.end_connection(side.cell);
        }
        core.finish_opening(pending.slot, EventKind::Connect, pending.context, Err(failure));
    }

    /// The server has accepted.
    pub(crate) fn on_accepted(&mut self, core: &mut Core, to: u32, from: Arc<Mailbox>, number: u32, most: u32) {
        let side = self.sides.get_mut(&to);
        if let Some((side, pending)) = side.and_then(|side| side.pending.take().map(|pending| (side, pending))) {
            Self::open_side(side, from, number, most);
            core.finish_opening(pending.slot, EventKind::Connect, pending.context, Ok(side.cell));
        } else {
            // The connect has timed out meanwhile: nobody holds this end.
            from.push(Frame::Close { to: number });
        }
    }

    /// A client asks. With a token the program has answered already: by `expect`.
    pub(crate) fn on_request(&mut self, core: &mut Core, request: Request) {
        if request.token == 0 {
            self.inbox.requests.push_back(request);
            return;
        }
        match self.expected.take(request.token) {
            Some(client) => self.accept_client(core, Some(request), client.slot, client.context),
            None => request.reject(),
        }
    }

    /// Makes the connection of a request, and queues its ACCEPT event in this slot. `None`: the
    /// client is gone.
    pub(crate) fn accept_client(
        &mut self,
        core: &mut Core,
        request: Option<Request>,
        slot: &'static Slot,
        context: u64,
    ) {
        let Some(request) = request else {
            return core.finish_opening(slot, EventKind::Accept, context, Err(Failure::Disconnected));
        };
        let own = Arc::clone(&self.mailbox);
        let Some((number, side)) = self.enter(core, request.attribute, context) else {
            request.reject();
            return core.finish_opening(slot, EventKind::Accept, context, Err(Failure::NoMemory));
        };
        Self::open_side(side, Arc::clone(&request.from), request.number, request.max_send_size);
        let cell = side.cell;
        let most = cell.max_send_size.load(Ordering::Relaxed);
        if request.from.push(Frame::Accepted { to: request.number, from: own, number, most }) {
            core.finish_opening(slot, EventKind::Accept, context, Ok(cell));
        } else {
            self.sides.remove(&number);
            core.end_connection(cell);
            core.finish_opening(slot, EventKind::Accept, context, Err(Failure::Disconnected));
        }
    }

    /// Ends a connection at this end without a call of the program: the peer is gone, or an
    /// operation was late. The program still disconnects it.
    pub(crate) fn break_side(&mut self, core: &mut Core, number: u32, cause: Failure) {
        let Some(mut side) = self.sides.remove(&number) else { return };
        lock(&self.mailbox.registrations).orphan(number.into());
        if !side.is_closed {
            side.push(|to| Frame::Close { to });
        }
        side.fail(core, cause);
        for event in core.break_events(side.cell) {
            self.pending_events.queue(core, event, side.cell);
        }
    }

    /// The peer has closed. Its messages that wait for a slot come before the DISCONNECT event.
    pub(crate) fn on_close(&mut self, core: &mut Core, number: u32) {
        let Some(side) = self.sides.get_mut(&number) else { return };
        side.is_closed = true;
        side.fail(core, Failure::Disconnected);
        if side.backlog.is_empty() {
            self.break_side(core, number, Failure::Disconnected);
        }
    }

    /// Ends what has not ended in time.
    pub(crate) fn expire(&mut self, core: &mut Core, now: Time) {
        while self.expected.expire(core, now).is_some() {}
        let numbers: Vec<u32> = self.sides.keys().copied().collect();
        for number in numbers {
            let Some(side) = self.sides.get_mut(&number) else { continue };
            if side.pending.as_ref().is_some_and(|pending| pending.deadline.is_some_and(|deadline| deadline <= now)) {
                self.end_connect(core, number, Failure::TimedOut);
            } else if let Some(cause) = side.late(now) {
                self.break_side(core, number, cause);
            } else if side.check_keepalive(now) {
                // Once: the program sets the time again if it goes on watching.
                side.cell.keepalive.store(0, Ordering::Relaxed);
                self.pending_events.queue(core, EventKind::KeepaliveTimedOut, side.cell);
            }
        }
    }

    /// Takes the endpoint off the list, and says so to its peers. A second call does nothing.
    pub(crate) fn end(&mut self) {
        // Peers that wait for an answer must learn that none comes, and those that have had one
        // that nobody is here.
        for frame in self.mailbox.close() {
            match frame {
                Frame::Request(request) => request.reject(),
                Frame::Accepted { from, number, .. } => drop(from.push(Frame::Close { to: number })),
                _ => {}
            }
        }
        for request in self.inbox.requests.iter().chain(self.inbox.shown.iter()) {
            request.reject();
        }
        for side in self.sides.values() {
            side.push(|to| Frame::Close { to });
            side.pending.iter().for_each(PendingConnect::withdraw);
        }
        // Each end has its peer's mailbox: ends that stay would keep both for ever.
        self.sides.clear();
        self.inbox.requests.clear();
        self.inbox.shown.clear();
    }
}

/// An endpoint whose opening fails after this transport is open is dropped without a close.
impl Drop for Template {
    fn drop(&mut self) {
        self.end();
    }
}
