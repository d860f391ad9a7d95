//! How connections begin and end.

use crate::Template;
use crate::mailbox::{Frame, Mailbox, Request, number_of};
use crate::rma;
use crate::side::{Opening, Side};
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, ConnectError, EventKind, Failure, RequestError, Time};
use cci_transport::{Connect, Connection, ConnectionState, Core, Slot, Unsent, monotonic, send_rest};
use std::sync::Arc;
use std::time::Duration;

/// This side's number of a connection.
pub(crate) fn number_in(cell: &Connection) -> u32 {
    cell.local.load(Ordering::Relaxed)
}

impl Template {
    /// Enters a new connection under a number of its own.
    fn enter(&mut self, core: &mut Core, attribute: Attribute, context: u64) -> Option<(u32, &mut Side)> {
        let number = self.last_number.checked_add(1)?;
        let cell = core.open_connection(attribute, context, self.max_send_size).ok()?;
        self.last_number = number;
        cell.local.store(number, Ordering::Relaxed);
        Some((number, self.sides.entry(number).or_insert(Side::new(cell, monotonic()))))
    }

    /// Opens a connection at this end. Both ends have the same largest message.
    fn open_side(side: &mut Side, peer: Arc<Mailbox>, number: u32, max_send_size: u32) {
        let most = side.cell.max_send_size.load(Ordering::Relaxed).min(max_send_size);
        side.cell.max_send_size.store(most, Ordering::Relaxed);
        side.cell.set_state(ConnectionState::Open);
        side.peer = Some((peer, number));
        // The time in which the connection opened counts for no timeout.
        side.restart_timeouts(monotonic());
    }

    /// Asks the endpoint in the URI. What can be refused at once has no event; everything else ends
    /// with exactly one CONNECT event.
    pub(crate) fn ask(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let wanted = number_of(connect.uri).ok_or(ConnectError::BadUri)?;
        if connect.attribute.is_multicast() {
            return Err(ConnectError::NotImplemented);
        }
        let slot = core.take_send().ok_or(ConnectError::NoBuffers)?;
        let max_send_size = self.max_send_size;
        let from = Arc::clone(&self.mailbox);
        let Some((number, side)) = self.enter(core, connect.attribute, connect.context) else {
            core.release(slot);
            return Err(ConnectError::NoMemory);
        };
        let (attribute, payload) = (connect.attribute, connect.payload.to_vec());
        let server = Mailbox::find(wanted);
        side.opening = Some(Opening {
            slot,
            context: connect.context,
            deadline: connect.timeout.map(|timeout| monotonic() + timeout),
            payload: payload.clone(),
            server: server.clone().unwrap_or_else(|| Arc::clone(&from)),
            is_redirected: false,
        });
        let request = Request { from, number, attribute, max_send_size, payload, token: 0 };
        if !server.is_some_and(|server| server.push(Frame::Request(request))) {
            self.end_opening(core, number, Failure::Refused);
        }
        Ok(())
    }

    /// Ends a connect without a connection.
    pub(crate) fn end_opening(&mut self, core: &mut Core, number: u32, failure: Failure) {
        // An answer may come for a connect that has ended, or twice.
        if self.sides.get(&number).is_none_or(|side| side.opening.is_none()) {
            return;
        }
        let Some(side) = self.sides.remove(&number) else { return };
        if let Some(opening) = side.opening {
            if failure == Failure::TimedOut {
                opening.server.push(Frame::Withdrawn { client: self.mailbox.number(), number });
            }
            core.end_connection(side.cell);
            core.finish_opening(opening.slot, EventKind::Connect, opening.context, Err(failure));
        }
    }

    /// The server has accepted.
    pub(crate) fn on_accepted(
        &mut self,
        core: &mut Core,
        to: u32,
        (from, number): (Arc<Mailbox>, u32),
        max_send_size: u32,
    ) {
        let side = self.sides.get_mut(&to);
        let Some((side, opening)) = side.and_then(|side| side.opening.take().map(|opening| (side, opening))) else {
            // The connect has timed out meanwhile: nobody holds this end.
            from.push(Frame::Close { to: number });
            return;
        };
        Self::open_side(side, from, number, max_send_size);
        core.finish_opening(opening.slot, EventKind::Connect, opening.context, Ok(side.cell));
    }

    /// The server has named another endpoint, which expects the token.
    pub(crate) fn on_redirected(&mut self, core: &mut Core, to: u32, uri: &str, token: u64) {
        let (from, max_send_size) = (Arc::clone(&self.mailbox), self.max_send_size);
        let server = number_of(uri).and_then(Mailbox::find);
        let side = self.sides.get_mut(&to);
        let is_asked = side.is_some_and(|side| {
            let attribute = side.cell.attribute();
            let Some(opening) = side.opening.as_mut().filter(|opening| !opening.is_redirected) else { return false };
            let Some(server) = server else { return false };
            opening.is_redirected = true;
            opening.server = Arc::clone(&server);
            let payload = opening.payload.clone();
            server.push(Frame::Request(Request { from, number: to, attribute, max_send_size, payload, token }))
        });
        if !is_asked {
            self.end_opening(core, to, Failure::Refused);
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
            None => drop(request.from.push(Frame::Rejected { to: request.number })),
        }
    }

    /// Makes the connection of a request, and queues its ACCEPT event in this slot. `None`: the
    /// client is gone.
    fn accept_client(&mut self, core: &mut Core, request: Option<Request>, slot: &'static Slot, context: u64) {
        let Some(request) = request else {
            return core.finish_opening(slot, EventKind::Accept, context, Err(Failure::Disconnected));
        };
        let own = Arc::clone(&self.mailbox);
        let Some((number, side)) = self.enter(core, request.attribute, context) else {
            request.from.push(Frame::Rejected { to: request.number });
            return core.finish_opening(slot, EventKind::Accept, context, Err(Failure::NoMemory));
        };
        Self::open_side(side, Arc::clone(&request.from), request.number, request.max_send_size);
        let cell = side.cell;
        let max_send_size = cell.max_send_size.load(Ordering::Relaxed);
        if request.from.push(Frame::Accepted { to: request.number, from: own, number, max_send_size }) {
            core.finish_opening(slot, EventKind::Accept, context, Ok(cell));
        } else {
            self.sides.remove(&number);
            core.end_connection(cell);
            core.finish_opening(slot, EventKind::Accept, context, Err(Failure::Disconnected));
        }
    }

    /// Accepts the request that this slot shows.
    pub(crate) fn accept_shown(
        &mut self,
        core: &mut Core,
        request: &'static Slot,
        context: u64,
    ) -> Result<(), RequestError> {
        let slot = core.take_send().ok_or(RequestError::NoBuffers)?;
        let request = self.inbox.shown.take(request);
        self.accept_client(core, request, slot, context);
        Ok(())
    }

    /// Ends a connection at this end without a call of the program: the peer is gone, or an
    /// operation was late. The program still disconnects it.
    pub(crate) fn break_side(&mut self, core: &mut Core, number: u32, cause: Failure) {
        let Some(mut side) = self.sides.remove(&number) else { return };
        rma::orphan(&self.mailbox, number);
        if !side.is_closed {
            side.push(|to| Frame::Close { to });
        }
        side.fail(core, cause);
        if core.has_disconnect_events() {
            self.pending_events.queue(core, EventKind::Disconnect, side.cell);
        }
        // A program that watches its peer by a keepalive need not wait for it.
        if side.cell.keepalive.swap(0, Ordering::Relaxed) != 0 {
            self.pending_events.queue(core, EventKind::KeepaliveTimedOut, side.cell);
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

    /// Closes a connection that the program disconnects.
    pub(crate) fn leave(&mut self, core: &mut Core, cell: &'static Connection) {
        if let Some(mut side) = self.sides.remove(&number_in(cell)) {
            side.push(|to| Frame::Close { to });
            rma::orphan(&self.mailbox, number_in(cell));
            // One event for each open operation, while the connection can still be named in it.
            side.fail(core, Failure::Disconnected);
        }
        self.pending_events.forget(cell);
        core.end_connection(cell);
    }

    /// Ends what has not ended in time.
    pub(crate) fn expire(&mut self, core: &mut Core, now: Time) {
        while self.expected.expire(core, now).is_some() {}
        let numbers: Vec<u32> = self.sides.keys().copied().collect();
        for number in numbers {
            let Some(side) = self.sides.get_mut(&number) else { continue };
            if side.opening.as_ref().is_some_and(|opening| opening.deadline.is_some_and(|deadline| deadline <= now)) {
                self.end_opening(core, number, Failure::TimedOut);
            } else if let Some(cause) = side.late(now) {
                self.break_side(core, number, cause);
            } else if side.check_keepalive(now) {
                // Once: the program sets the time again if it goes on watching.
                side.cell.keepalive.store(0, Ordering::Relaxed);
                self.pending_events.queue(core, EventKind::KeepaliveTimedOut, side.cell);
            }
        }
    }

    /// Closes the endpoint. A message that was started is in its peer's mailbox already, so that
    /// only the others are waited for.
    pub(crate) fn close_all(&mut self, core: &mut Core, limit: Duration) {
        send_rest(self, core, limit, |template, core| {
            if !template.sides.values().any(Side::has_unsent) {
                return Unsent::Nothing;
            }
            let (has_found, _) = template.make_progress(core);
            if has_found { Unsent::Moving } else { Unsent::Waiting }
        });
        self.end();
    }
}

/// An endpoint whose opening fails after this transport is open is dropped without a close.
impl Drop for Template {
    fn drop(&mut self) {
        self.end();
    }
}

impl Template {
    /// Takes the endpoint off the list, and says so to its peers. A second call does nothing.
    fn end(&mut self) {
        // Peers that wait for an answer must learn that none comes, and those that have had one
        // that nobody is here.
        for frame in self.mailbox.close() {
            match frame {
                Frame::Request(request) => drop(request.from.push(Frame::Rejected { to: request.number })),
                Frame::Accepted { from, number, .. } => drop(from.push(Frame::Close { to: number })),
                _ => {}
            }
        }
        for request in self.inbox.requests.iter().chain(self.inbox.shown.iter()) {
            request.from.push(Frame::Rejected { to: request.number });
        }
        for (number, side) in &self.sides {
            side.push(|to| Frame::Close { to });
            if let Some(opening) = &side.opening {
                opening.server.push(Frame::Withdrawn { client: self.mailbox.number(), number: *number });
            }
        }
        // Each end has its peer's mailbox: ends that stay would keep both for ever.
        self.sides.clear();
        self.inbox.requests.clear();
        self.inbox.shown.clear();
    }
}
