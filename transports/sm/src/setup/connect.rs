//! Connections: asked for, answered, closed.

use crate::format::address::Address;
use crate::format::layout::{NO_SLOT, NOTHING, body, kind, pair, unpair};
use crate::lane::receive::take_recv;
use crate::lane::send::NO_PAYLOAD;
use crate::lane::state::{EndpointState, PayloadToken};
use crate::lane::table::{PendingConnect, PendingRequest, Redirected};
use crate::lane::{Lane, Phase};
use cci_mem::ring::{BODY, BODY_WORDS, Header, Violation};
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, EventKind, Failure, MAX_REQUEST, REQUEST_HEAD, RequestError};
use cci_transport::{Connection, ConnectionState, Core, Slot};

/// Records that the connection opened now; milliseconds, of which only differences count.
#[expect(clippy::cast_possible_truncation, reason = "the difference is what counts")]
fn mark_opened(cell: &Connection, now: u64) {
    cell.opened_at.store(now as u32, Ordering::Relaxed);
}

impl Lane {
    /// Sends (or queues) the CONNECT frame of an opening connection.
    pub(crate) fn ask(&mut self, state: &mut EndpointState, cell: &'static Connection, pending: PendingConnect) {
        let payload = pending.payload.clone();
        let token = pending.token;
        let number = self.enter(cell, Some(pending));
        self.start_timing(state);
        let header = Header { kind: kind::CONNECT, len: 0, word: number };
        let first = pair(cell.attribute() as u32, state.max_send_size);
        self.post(state, header, body([first, NO_PAYLOAD, token]), Some(&payload));
    }

    /// A client asks. False: no slot is free for the event.
    pub(crate) fn on_connect(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        header: Header,
        body: &[u64; BODY_WORDS],
    ) -> Result<bool, Violation> {
        let (attribute, max_send_size) = unpair(body[0]);
        let (index, len) = unpair(body[1]);
        let attribute =
            Attribute::from_u32(attribute).filter(|attribute| !attribute.is_multicast()).ok_or(Violation)?;
        let has_payload = index != NO_SLOT;
        if has_payload && len as usize > MAX_REQUEST || self.requests.len() > 1 << 16 {
            return Err(Violation);
        }
        if self.phase != Phase::Ready {
            // The client of a lane that closes asks again on another; a token is good for once.
            return Ok(true);
        }
        if self.queue.begins_backlog() {
            return Ok(false);
        }
        if body[2] != 0 {
            if has_payload && let Some(wire) = self.wire.as_mut() {
                wire.inbound_slot(index, len)?;
                wire.grant(index);
            }
            self.on_expected(state, core, body[2], (header.word, attribute, max_send_size));
            return Ok(true);
        }
        let slot = match core.take_recv_for_request(|slot| state.released.add(slot)) {
            // Beyond its own slots a request takes its turn among messages.
            None if self.are_others_first(state, core) => None,
            None => take_recv(core, &mut state.released),
            slot => slot,
        };
        let Some(slot) = slot else { return Ok(false) };
        slot.payload.store(0, Ordering::Relaxed);
        let number = self.number();
        let Some(wire) = self.wire.as_mut() else {
            core.release(slot);
            return Ok(true);
        };
        slot.mark.store(0, Ordering::Relaxed);
        slot.connection.set(None);
        let mut head = [0; REQUEST_HEAD];
        if has_payload {
            let payload = match wire.inbound_slot(index, len) {
                Ok(payload) => payload,
                Err(violation) => {
                    core.release(slot);
                    return Err(violation);
                }
            };
            wire.copy_head(&payload, &mut head);
            if core.is_stray_request(&head) {
                core.release(slot);
                wire.grant(index);
                self.answer_frame(state, Header { kind: kind::REJECT, len: 0, word: header.word }, NOTHING);
                return Ok(true);
            }
            let event = (slot, EventKind::ConnectRequest, u64::from(attribute as u32));
            wire.show(state, number, event, payload);
        } else {
            slot.fill(EventKind::ConnectRequest as u32, 0, [0, u64::from(attribute as u32)]);
            slot.payload.store(PayloadToken::Lane(number, None).token(), Ordering::Relaxed);
        }
        self.held.add();
        self.activity.on_used();
        self.requests.insert(slot, PendingRequest { number: header.word, attribute, max_send_size });
        core.push_request(slot, &head);
        Ok(true)
    }

    /// A client that was sent here by another endpoint of this process: its number, attribute and
    /// largest message.
    fn on_expected(&mut self, state: &mut EndpointState, core: &mut Core, token: u64, client: (u32, Attribute, u32)) {
        let (number, attribute, max_send_size) = client;
        let Some(expected) = state.expected.take(token) else {
            return self.answer_frame(state, Header { kind: kind::REJECT, len: 0, word: number }, NOTHING);
        };
        let pending = PendingRequest { number, attribute, max_send_size };
        self.accept_pending(state, core, &pending, expected.slot, expected.context);
    }

    /// Largest message of a connection: what both sides take, and what the lane holds, whatever the
    /// peer claims.
    fn largest(&self, state: &EndpointState, claimed: u32) -> u32 {
        let holds = self.wire.as_ref().map_or(0, |wire| wire.payload_capacity());
        state.max_send_size.min(claimed).min(holds)
    }

    /// Makes the connection of a request, with the slot of its ACCEPT event.
    pub(crate) fn accept_pending(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        pending: &PendingRequest,
        slot: &'static Slot,
        context: u64,
    ) {
        let max_send_size = self.largest(state, pending.max_send_size);
        let opened = core.open_connection(pending.attribute, context, max_send_size);
        let Some(cell) = opened.ok().filter(|_| !self.table.is_full()) else {
            self.post(state, Header { kind: kind::REJECT, len: 0, word: pending.number }, NOTHING, None);
            return core.finish_opening(slot, EventKind::Accept, context, Err(Failure::NoMemory));
        };
        let number = self.enter(cell, None);
        self.start_timing(state);
        cell.remote.store(pending.number, Ordering::Relaxed);
        mark_opened(cell, state.now);
        cell.set_state(ConnectionState::Open);
        state.deadlines_moved = true;
        let header = Header { kind: kind::ACCEPT, len: 0, word: pending.number };
        self.post(state, header, body([pair(number, max_send_size)]), None);
        core.finish_opening(slot, EventKind::Accept, context, Ok(cell));
    }

    pub(crate) fn on_accept(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        header: Header,
        body: &[u64; BODY_WORDS],
    ) {
        let (remote, max_send_size) = unpair(body[0]);
        let Some((cell, pending)) = self.table.answered(header.word) else {
            // Given up meanwhile: the server is to know.
            state.strays += 1;
            return self.answer_frame(state, Header { kind: kind::DISCONNECT, len: 0, word: remote }, NOTHING);
        };
        cell.remote.store(remote, Ordering::Relaxed);
        cell.max_send_size.store(self.largest(state, max_send_size), Ordering::Relaxed);
        mark_opened(cell, state.now);
        self.watch_keepalive(cell);
        cell.set_state(ConnectionState::Open);
        state.deadlines_moved = true;
        core.finish_opening(pending.slot, EventKind::Connect, pending.context, Ok(cell));
        self.on_answered(core);
    }

    pub(crate) fn on_reject(&mut self, state: &mut EndpointState, core: &mut Core, header: Header) {
        if self.table.pending(header.word).is_some() {
            let reason = format!("the program at {} rejected the request", self.peer.name());
            self.refuse_connect(state.now, core, header.word, (Failure::Refused, reason));
        }
    }

    pub(crate) fn on_disconnect(&mut self, state: &mut EndpointState, core: &mut Core, header: Header) {
        state.deadlines_moved = true;
        self.break_connection(state, core, header.word, Failure::Disconnected);
    }

    pub(crate) fn on_redirect(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        header: Header,
        body: &[u64; BODY_WORDS],
    ) -> Result<(), Violation> {
        let text: Vec<u8> = body[1..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let len = usize::from(header.len).checked_sub(8).filter(|len| *len <= BODY - 8).ok_or(Violation)?;
        let uri = std::str::from_utf8(&text[..len]).map_err(|_| Violation)?;
        let address = Address::from_uri(uri).ok_or(Violation)?;
        let token = Some(body[0]).filter(|token| *token != 0).ok_or(Violation)?;
        let Some(pending) = self.table.pending(header.word) else { return Ok(()) };
        // Once: a client that is sent on and on would never hear an answer.
        if pending.token != 0 {
            let reason = format!("{} sent the request on, for the second time", self.peer.name());
            self.refuse_connect(state.now, core, header.word, (Failure::Refused, reason));
        } else if let Some((cell, Some(mut pending))) = self.leave(header.word, state.now) {
            pending.token = token;
            state.redirected.push(Redirected { cell, pending, address });
        }
        Ok(())
    }

    /// Answers a request by sending its client elsewhere.
    pub(crate) fn redirect(
        &mut self,
        state: &mut EndpointState,
        pending: &PendingRequest,
        uri: &str,
        token: u64,
    ) -> Result<(), RequestError> {
        let mut text = [0; BODY - 8];
        let bytes = uri.as_bytes();
        text.get_mut(..bytes.len()).ok_or(RequestError::OtherDevice)?.copy_from_slice(bytes);
        let len = u8::try_from(8 + bytes.len()).map_err(|_| RequestError::OtherDevice)?;
        let mut words = [0; BODY_WORDS];
        words[0] = token;
        for (word, chunk) in words[1..].iter_mut().zip(text.chunks_exact(8)) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(chunk);
            *word = u64::from_ne_bytes(bytes);
        }
        self.post(state, Header { kind: kind::REDIRECT, len, word: pending.number }, words, None);
        Ok(())
    }

    /// Closes a connection: tells the peer, ends what is open.
    pub(crate) fn disconnect(&mut self, state: &mut EndpointState, core: &mut Core, cell: &'static Connection) {
        let number = cell.local.load(Ordering::Relaxed);
        let known = self.table.cell(number).is_some_and(|other| std::ptr::eq(other, cell));
        if known {
            self.leave(number, state.now);
            self.resume(state, number);
            state.registry.orphan(cell);
            self.imports.forget(cell);
            self.end_landings(state, core, cell);
            self.start_timing(state);
            self.fail_operations(state, core, Some(cell), Failure::Disconnected);
            let remote = cell.remote.load(Ordering::Relaxed);
            self.post(state, Header { kind: kind::DISCONNECT, len: 0, word: remote }, NOTHING, None);
        }
        state.pending_events.forget(cell);
        core.end_connection(cell);
    }
}

#[cfg(test)]
mod tests;
