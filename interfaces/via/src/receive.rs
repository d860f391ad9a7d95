//! What comes from peers.

use crate::attributes::Reliability;
use crate::errors::{Error, FaultCode, Status};
use crate::pending::Steps;
use crate::state::{Incoming, Invitation, PeerMemory, State, ViState, are_usable, check};
use crate::task::Token;
use crate::wire::{self, HEADER, Header};
use cci::{Endpoint, Event, Received, RmaHandle};

/// Handles that a peer may ask for before it has the answer.
const MOST_QUESTIONS: usize = 16;
/// Copied at a time from where the peer could still write, bytes.
const PIECE: usize = 2_048;

impl<T: Token> State<T> {
    /// Takes an event of CCI.
    #[inline]
    pub(crate) fn take(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        match event {
            Event::Received(message) => {
                let Some(connection) = message.connection() else { return };
                let Some(context) = connection.context() else { return };
                let number = context as u32;
                let Some(vi) = self.vis.get_mut(number) else { return };
                if vi.connection == Some(connection) {
                    if !self.receive_at_once(endpoint, number, &message) {
                        self.arrived(endpoint, number, &message);
                    }
                } else if vi.connection.is_none() {
                    self.opened(endpoint, context, Some(connection));
                    if self.vis.get(number).is_some_and(|vi| vi.connection == Some(connection)) {
                        self.arrived(endpoint, number, &message);
                    }
                }
            }
            Event::Completed(operation) => self.completed(endpoint, &operation),
            other => self.take_control(endpoint, other),
        }
    }

    #[inline(never)]
    fn take_control(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        match event {
            Event::Request(request) => {
                let ticket = wire::ticket_of(&request.payload());
                let expected = ticket.and_then(|ticket| self.tickets.remove(&ticket));
                let Some((number, vi)) = expected.and_then(|vi| Some((vi, self.vis.get_mut(vi)?))) else {
                    // A client that is gone needs no answer.
                    let _ = request.reject();
                    return;
                };
                let context = vi.next_attempt(number);
                if request.accept(context).is_err() {
                    self.not_opened(context);
                }
            }
            Event::Connected(at) => self.opened(endpoint, at.context(), at.connection()),
            Event::Accepted(at) => self.opened(endpoint, at.context(), at.connection()),
            Event::ConnectFailed(at) => self.not_opened(at.context()),
            Event::AcceptFailed(at) => self.not_opened(at.context()),
            Event::Disconnected(at) => {
                let Some(connection) = at.connection() else { return };
                let Some(number) = connection.context().map(|context| context as u32) else { return };
                if self.vis.get(number).is_some_and(|vi| vi.connection == Some(connection)) {
                    self.lost(endpoint, number);
                } else {
                    // Nobody's any more.
                    let _ = endpoint.disconnect(connection);
                }
            }
            Event::EndpointFailed(_) => self.has_failed = true,
            _ => {}
        }
    }

    /// A connect has not led to a connection.
    pub(crate) fn not_opened(&mut self, context: u64) {
        let number = context as u32;
        let Some(vi) = self.vis.get_mut(number).filter(|vi| vi.is_current(context)) else { return };
        // One that asks, or listens, goes on.
        let goes_on = vi.invitation != Invitation::None || vi.end_signal.is_some();
        if vi.state == ViState::ConnectPending && goes_on {
            (vi.invitation, vi.ticket) = (Invitation::Failed, None);
            self.changes += 1;
        } else {
            let connect = vi.connect;
            self.abandon(number, connect, Error::NotReachable);
        }
    }

    /// A connection is open; one that nobody waits for any more is closed.
    fn opened(&mut self, endpoint: &Endpoint, context: u64, connection: Option<cci::Connection>) {
        let Some(connection) = connection else { return self.not_opened(context) };
        match self.vis.get_mut(context as u32) {
            Some(vi) if vi.connection == Some(connection) => {}
            Some(vi) if vi.state == ViState::ConnectPending && vi.connection.is_none() && vi.is_current(context) => {
                vi.connection = Some(connection);
                vi.state = ViState::Connected;
                (vi.ticket, vi.end_signal) = (None, None);
                vi.steps = Steps::None;
                vi.invitation = Invitation::None;
                self.changes += 1;
            }
            _ => {
                let _ = endpoint.disconnect(connection);
            }
        }
    }

    #[inline(never)]
    fn arrived(&mut self, endpoint: &Endpoint, number: u32, message: &Received<'_>) {
        let Some(vi) = self.vis.get_mut(number).filter(|vi| vi.state == ViState::Connected) else { return };
        let Some(header) = message.view().array::<HEADER>(0).map(|bytes| Header::parse(&bytes)) else {
            return self.violated(endpoint, number);
        };
        match header.kind {
            wire::SEND if vi.incoming.is_none() => self.begin(endpoint, number, &header, message),
            wire::PART if vi.incoming.is_some() => self.place(endpoint, number, message),
            wire::NOTE if vi.incoming.is_none() => self.noted(endpoint, number, &header),
            wire::RECEIVED => self.acknowledged(endpoint, number, header.value),
            wire::RESOLVE if vi.answers_owed.len() < MOST_QUESTIONS => {
                vi.answers_owed.push_back(header.value as u32);
                self.pump(endpoint, number);
            }
            wire::RESOLVED if vi.asked == Some(header.value as u32) => {
                vi.asked = None;
                let (base, length) = (message.view().array(HEADER), message.view().array(HEADER + 8));
                let rma = message.view().array::<32>(HEADER + 16).and_then(|bytes| RmaHandle::from_bytes(&bytes));
                vi.peer_memory.push(PeerMemory {
                    handle: header.value as u32,
                    base: base.map_or(0, u64::from_le_bytes),
                    length: length.map_or(0, u64::from_le_bytes),
                    flags: header.flags,
                    rma,
                });
                self.pump(endpoint, number);
            }
            wire::BROKEN => self.broken(endpoint, number, Status(header.value as u32)),
            _ => self.violated(endpoint, number),
        }
    }

    /// The peer's VI is broken, and has not received what is open here.
    fn broken(&mut self, endpoint: &Endpoint, number: u32, told: Status) {
        let Some(vi) = self.vis.get_mut(number) else { return };
        if vi.attributes.reliability == Reliability::Reception
            && told.has(Status::REMOTE_DESCRIPTOR)
            && let Some(seq) = vi.unacknowledged.front().copied()
            && let Some((_, entry)) = vi.send.by_number(seq)
        {
            entry.fail(Status::REMOTE_DESCRIPTOR);
        }
        if told.has(Status::RDMA_PROTECTION) {
            let is_read = told.has(Status::OP_READ);
            let code = if is_read { FaultCode::ReadProtection } else { FaultCode::WriteProtection };
            self.report(code, Some(number), None);
        }
        self.lost(endpoint, number);
    }

    /// The receive for a message, or why there is none that fits.
    fn fit(&mut self, number: u32, length: u32, needs_room: bool) -> Result<usize, Status> {
        let Some(vi) = self.vis.get_mut(number) else { return Err(Status::FLUSHED) };
        let at = vi.receive.published;
        let Some(entry) = vi.receive.entries.get(at) else { return Err(Status(0)) };
        if entry.task.fault.is_error() {
            return Err(entry.task.fault);
        }
        if needs_room && u64::from(length) > entry.task.total() {
            return Err(Status::LENGTH);
        }
        if needs_room && !are_usable(&self.areas, vi.attributes.tag, &entry.task) {
            return Err(Status::PROTECTION);
        }
        Ok(at)
    }

    /// A message that cannot be received: dropped where that is allowed, the end of the connection
    /// otherwise. Status 0: there is no receive.
    fn refuse(&mut self, endpoint: &Endpoint, number: u32, status: Status) {
        self.dropped += 1;
        let Some(vi) = self.vis.get_mut(number) else { return };
        let is_unreliable = vi.attributes.reliability == Reliability::Unreliable;
        if status.is_error() {
            let at = vi.receive.published;
            if let Some(entry) = vi.receive.entries.get_mut(at) {
                entry.finish(status | Status::OP_RECEIVE, 0, None);
            }
        } else if !is_unreliable {
            self.report(FaultCode::ReceiveQueueEmpty, Some(number), None);
        }
        if !is_unreliable {
            // What the refused message has begun is no partial one.
            if let Some(vi) = self.vis.get_mut(number) {
                vi.incoming = None;
            }
            self.break_vi(endpoint, number, Status::REMOTE_DESCRIPTOR);
        }
        self.publish(endpoint, number);
    }

    fn begin(&mut self, endpoint: &Endpoint, number: u32, header: &Header, message: &Received<'_>) {
        let longest = self.vis.get(number).map_or(0, |vi| vi.attributes.max_transfer);
        if u64::from(header.length) > longest {
            return self.violated(endpoint, number);
        }
        let refused = self.fit(number, header.length, true).err();
        let Some(vi) = self.vis.get_mut(number) else { return };
        let immediate = header.immediate();
        let is_dropped = refused.is_some();
        vi.incoming = Some(Incoming { length: header.length, received: 0, immediate, is_dropped });
        if let Some(status) = refused {
            self.refuse(endpoint, number, status);
        }
        self.place(endpoint, number, message);
    }

    /// Puts the bytes of a message into the memory of the first receive.
    fn place(&mut self, endpoint: &Endpoint, number: u32, message: &Received<'_>) {
        let Self { vis, areas, .. } = self;
        let Some(vi) = vis.get_mut(number) else { return };
        let Some(incoming) = vi.incoming.as_mut() else { return };
        let count = (message.len() - HEADER) as u64;
        let end = u64::from(incoming.received) + count;
        // Each part makes progress, and none goes beyond the end.
        if end > u64::from(incoming.length) || (count == 0 && incoming.length > 0) {
            return self.violated(endpoint, number);
        }
        let begin = incoming.received;
        incoming.received = end as u32;
        let is_whole = incoming.received == incoming.length;
        let (length, immediate, is_dropped) = (incoming.length, incoming.immediate, incoming.is_dropped);
        if is_whole {
            vi.incoming = None;
        }
        if is_dropped {
            return;
        }
        let at = vi.receive.published;
        let Some(entry) = vi.receive.entries.get_mut(at) else { return };
        let (mut skip, mut taken) = (begin, HEADER);
        for segment in entry.task.segments() {
            if skip >= segment.length {
                skip -= segment.length;
                continue;
            }
            let count = ((segment.length - skip) as usize).min(message.len() - taken);
            if count == 0 {
                break;
            }
            let placed = check(areas, vi.attributes.tag, segment).is_some_and(|(area, offset)| {
                copy(message, taken, count, |done, bytes| {
                    area.memory.copy_in(offset + u64::from(skip) + done as u64, bytes)
                })
            });
            if !placed {
                if let Some(incoming) = vi.incoming.as_mut() {
                    incoming.is_dropped = true;
                }
                return self.refuse(endpoint, number, Status::PROTECTION);
            }
            (skip, taken) = (0, taken + count);
        }
        if is_whole {
            entry.finish(Status::OP_RECEIVE, length, immediate);
            self.received(endpoint, number);
        }
    }

    /// Immediate data of an RDMA write.
    fn noted(&mut self, endpoint: &Endpoint, number: u32, header: &Header) {
        match self.fit(number, header.length, false) {
            Err(status) => self.refuse(endpoint, number, status),
            Ok(at) => {
                let Some(vi) = self.vis.get_mut(number) else { return };
                let Some(entry) = vi.receive.entries.get_mut(at) else { return };
                entry.finish(Status::OP_REMOTE_WRITE, header.length, header.immediate());
                self.received(endpoint, number);
            }
        }
    }

    fn received(&mut self, endpoint: &Endpoint, number: u32) {
        self.publish_queue(endpoint, number, true);
        if self.vis.get(number).is_some_and(|vi| vi.attributes.reliability == Reliability::Reception) {
            self.owe_acknowledgement(endpoint, number);
        }
    }

    #[inline(never)]
    pub(crate) fn owe_acknowledgement(&mut self, endpoint: &Endpoint, number: u32) {
        let Some(vi) = self.vis.get_mut(number).filter(|vi| vi.state == ViState::Connected) else { return };
        vi.acks_owed += 1;
        self.pump(endpoint, number);
    }
}

/// Copies a range of a message, piece by piece where its memory is not private.
fn copy(message: &Received<'_>, from: usize, count: usize, mut put: impl FnMut(usize, &[u8]) -> bool) -> bool {
    if let Some(bytes) = message.bytes() {
        return put(0, &bytes[from..from + count]);
    }
    let mut piece = [0; PIECE];
    let mut done = 0;
    while done < count {
        let next = PIECE.min(count - done);
        let copied = message.view().copy_to(from + done, &mut piece[..next]);
        if copied < next || !put(done, &piece[..next]) {
            return false;
        }
        done += next;
    }
    true
}
