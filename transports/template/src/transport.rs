//! The trait, and progress. Each method of the trait is a few lines here; longer work is in the
//! other files.

use crate::Template;
use crate::mailbox::{Frame, number_in};
use crate::rma::Transfer;
use crate::side::Side;
use cci_mem::memory::Memory;
use cci_mem::sync::Ordering;
use cci_proto::{ConnectError, Failure, RegisterError, RequestError, Rights, RmaError, RmaHandle, SendError, Time};
use cci_transport::{
    Connect, Connection, ConnectionReport, Core, Message, Peer, Posted, Readiness, Rma, Slot, Transport, Unsent, lock,
    monotonic, send_rest,
};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

impl Template {
    /// Handles what has arrived and what is late. It never waits. Returns whether something has
    /// arrived, and the time.
    pub(crate) fn make_progress(&mut self, core: &mut Core) -> (bool, Time) {
        let now = monotonic();
        self.mailbox.polled.store(now.0, Ordering::Relaxed);
        let frames = self.mailbox.take();
        let has_found = !frames.is_empty();
        for frame in frames {
            self.on_frame(core, frame);
        }
        self.deliver(core);
        for side in self.sides.values_mut() {
            side.start(core, &self.mailbox);
        }
        self.expire(core, now);
        self.pending_events.flush(core);
        (has_found, now)
    }

    /// A frame for a connection that has ended is dropped: its peer's frame was on the way.
    fn on_frame(&mut self, core: &mut Core, frame: Frame) {
        match frame {
            Frame::Request(request) => self.on_request(core, request),
            Frame::Withdrawn { client, number } => self.inbox.withdraw(client, number),
            Frame::Accepted { to, from, number, most } => self.on_accepted(core, to, from, number, most),
            Frame::Rejected { to } => self.end_connect(core, to, Failure::Refused),
            Frame::Redirected { to, uri, token } => self.on_redirected(core, to, &uri, token),
            Frame::Message { to, bytes } => self.on_message(core, to, bytes),
            Frame::Delivered { to } => drop(self.sides.get_mut(&to).map(|side| side.on_delivered(core))),
            Frame::NotReady { to } => drop(self.sides.get_mut(&to).map(|side| side.on_not_ready(core))),
            Frame::Close { to } => self.on_close(core, to),
        }
    }

    /// A message waits for its turn, or is dropped if it may be and no slot is free.
    fn on_message(&mut self, core: &mut Core, to: u32, bytes: Vec<u8>) {
        let Some(side) = self.sides.get_mut(&to) else { return };
        if side.cell.attribute().is_reliable() {
            if side.backlog.is_empty() {
                self.inbox.turns.push_back(to);
            }
            side.backlog.push_back(bytes);
        } else if !self.inbox.turns.is_empty() || !self.inbox.show_message(core, side.cell, &bytes) {
            side.cell.counters.on_dropped();
            core.counters().on_dropped();
        }
    }

    /// Moves requests and messages into receive slots. The acknowledgement comes only now: a
    /// sender's SEND event promises that the message reaches the program.
    fn deliver(&mut self, core: &mut Core) {
        self.inbox.show_requests(core);
        while let Some(number) = self.inbox.turns.pop_front() {
            let Some(side) = self.sides.get_mut(&number) else { continue };
            let Some(bytes) = side.backlog.front() else { continue };
            if !self.inbox.show_message(core, side.cell, bytes) {
                self.inbox.turns.push_front(number);
                break;
            }
            side.backlog.pop_front();
            side.has_refused = false;
            side.push(|to| Frame::Delivered { to });
            if !side.backlog.is_empty() {
                self.inbox.turns.push_back(number);
            } else if side.is_closed {
                self.break_side(core, number, Failure::Disconnected);
            }
        }
        // Backpressure: senders learn why they wait, once.
        for number in &self.inbox.turns {
            if let Some(side) = self.sides.get_mut(number)
                && !std::mem::replace(&mut side.has_refused, true)
            {
                core.counters().on_refused();
                side.push(|to| Frame::NotReady { to });
            }
        }
    }

    /// When the program must call again though nothing arrives.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let now = monotonic();
        let sides = self.sides.values().filter_map(|side| side.deadline(now)).min();
        [sides, self.expected.deadline(), self.pending_events.deadline(now)].into_iter().flatten().min()
    }

    /// Whether a call would start an operation.
    pub(crate) fn is_runnable(&self) -> bool {
        self.sides.values().any(Side::is_runnable)
    }
}

impl Transport for Template {
    fn uri(&self) -> &str {
        &self.mailbox.uri
    }

    fn handle(&self) -> BorrowedFd<'_> {
        self.mailbox.handle.handle()
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
        // By this process's own list, and not by the client's word.
        peer.address = self.inbox.shown.get(request)?.from.uri.clone();
        Some(peer)
    }

    fn reject(&mut self, _: &mut Core, request: &'static Slot) -> Result<(), RequestError> {
        // A client that is gone needs no answer.
        if let Some(request) = self.inbox.shown.take(request) {
            request.reject();
        }
        Ok(())
    }

    fn expect(&mut self, core: &mut Core, token: u64, context: u64, limit: Duration) -> Result<(), RequestError> {
        self.expected.expect(core, token, context, monotonic() + limit)
    }

    fn forget_expected(&mut self, core: &mut Core, token: u64) -> bool {
        self.expected.forget(core, token)
    }

    fn redirect(&mut self, _: &mut Core, request: &'static Slot, uri: &str, token: u64) -> Result<(), RequestError> {
        if let Some(request) = self.inbox.shown.take(request) {
            request.from.push(Frame::Redirected { to: request.number, uri: uri.into(), token });
        }
        Ok(())
    }

    fn disconnect(&mut self, core: &mut Core, connection: &'static Connection) {
        if let Some(mut side) = self.sides.remove(&number_in(connection)) {
            side.push(|to| Frame::Close { to });
            lock(&self.mailbox.registrations).orphan(number_in(connection).into());
            // One event for each open operation, while the connection can still be named in it.
            side.fail(core, Failure::Disconnected);
        }
        self.pending_events.forget(connection);
        core.end_connection(connection);
    }

    fn send(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let side = self.sides.get_mut(&number_in(connection)).ok_or(SendError::Disconnected)?;
        let slot = core.take_send().ok_or(SendError::NoBuffers)?;
        // The program has its bytes back when this call returns.
        let mut bytes = vec![0; message.len()];
        message.copy_to(&mut bytes);
        side.post(slot, posted, (None, Some(bytes)));
        side.start(core, &self.mailbox);
        Ok((posted == Posted::Waited).then_some(slot))
    }

    fn rma(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        let side = self.sides.get_mut(&number_in(connection)).ok_or(RmaError::Disconnected)?;
        let transfer = Transfer::new(&self.mailbox, connection, rma)?;
        let slot = core.take_rma().ok_or(RmaError::NoBuffers)?;
        side.post(slot, posted, (Some(transfer), rma.message.map(|message| message.to_vec())));
        side.start(core, &self.mailbox);
        Ok((posted == Posted::Waited).then_some(slot))
    }

    fn register(
        &mut self,
        _: &mut Core,
        memory: Memory,
        rights: Rights,
        only: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        let only = only.map(|connection| number_in(connection).into());
        lock(&self.mailbox.registrations).register(memory, rights, only, ()).map(|(_, handle)| handle)
    }

    fn deregister(&mut self, _: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        lock(&self.mailbox.registrations).deregister(handle).map(drop)
    }

    /// `Readiness` arms the handle for a program that seems to sleep, and disarms it for one that
    /// spins, which saves the system calls of `settle`.
    fn progress(&mut self, core: &mut Core) {
        let (has_found, now) = self.make_progress(core);
        Readiness::on_progress(self, core, has_found, now);
    }

    fn arm(&mut self, core: &mut Core) -> bool {
        Readiness::arm_now(self, core)
    }

    fn settle(&mut self, core: &mut Core) {
        Readiness::settle_call(self, core);
        core.publish_gauges();
    }

    fn leave_edge(&mut self, core: &mut Core) {
        Readiness::leave_edge(self, core);
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.mailbox.handle.waker()
    }

    fn refill(&mut self, core: &mut Core) {
        self.inbox.slots.sweep(core);
        // Set again if slots run out again.
        core.set_starving(false);
        self.deliver(core);
    }

    fn options_changed(&mut self, _: &mut Core, connection: &'static Connection) {
        if let Some(side) = self.sides.get_mut(&number_in(connection)) {
            side.restart_timeouts();
        }
    }

    fn report(&self, _: &Core, connection: &'static Connection) -> ConnectionReport {
        ConnectionReport {
            path: "the peer's queue in the memory of this process".into(),
            rma_path: "copied by the initiator".into(),
            why: "both endpoints are in this process".into(),
            ..ConnectionReport::of("template", connection)
        }
    }

    fn close(&mut self, core: &mut Core, limit: Duration) {
        // A message that was started is in its peer's mailbox already: only the others are waited
        // for.
        send_rest(self, core, limit, Self::handle, |template, core| {
            if !template.sides.values().any(Side::has_unsent) {
                return Unsent::Nothing;
            }
            let (has_found, _) = template.make_progress(core);
            if has_found { Unsent::Moving } else { Unsent::Waiting }
        });
        self.end();
    }
}
