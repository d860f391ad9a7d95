//! Sending: publishing in the ring, and the queue of what has to wait.

use crate::format::layout::{NO_SLOT, kind, pair};
use crate::lane::operation::{NEVER, Step};
use crate::lane::queue::{Op, QueuedMessage, QueuedPayload};
use crate::lane::state::EndpointState;
use crate::lane::wire::Wire;
use crate::lane::{Lane, Phase};
use cci_mem::ring::{BODY, BODY_WORDS, Header, Violation};
use cci_mem::sleep;
use cci_mem::source::Source;
use cci_mem::sync::Ordering;
use cci_proto::SendError;
use cci_transport::{Connection, Core, Message, Posted, Slot};

impl Wire {
    /// Publishes a message, and counts it; false when there is no room.
    #[inline]
    pub(crate) fn publish(&mut self, core: &Core, word: u32, message: Message<'_>) -> Result<bool, Violation> {
        if !self.producer.has_room(self.outbound.head)? {
            return Ok(false);
        }
        if message.len() > BODY {
            return self.publish_slot(core, word, message);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most BODY")]
        let header = Header { kind: kind::MESSAGE, len: message.len() as u8, word };
        match message {
            Message::One(bytes) => self.producer.push(self.outbound.ring, header, bytes),
            Message::Many(..) => self.push_gathered(header, message),
        }
        core.counters().on_sent(message.len());
        Ok(true)
    }

    /// Publishes a message that rides in its entry, and counts it. There is ample room. True: the
    /// peer must be woken.
    #[inline(always)]
    pub(crate) fn push_message(&mut self, core: &Core, cell: &Connection, message: Source<'_>) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "at most BODY")]
        let len = message.len() as u8;
        let header = Header { kind: kind::MESSAGE, len, word: cell.remote.load(Ordering::Relaxed) };
        self.producer.push_amply(self.outbound.ring, header, message);
        core.counters().on_sent_inline();
        cell.counters.on_sent();
        sleep::must_wake(self.outbound.sleep, self.pairing)
    }

    /// Publishes a message in a payload slot that is at hand, and counts it. There is ample room.
    /// True: the peer must be woken.
    #[inline(always)]
    pub(crate) fn push_in_slot(
        &mut self,
        core: &Core,
        cell: &Connection,
        message: Message<'_>,
    ) -> Result<bool, Violation> {
        let Some(slot) = self.take_at_hand()? else { return Ok(false) };
        let len = self.fill_slot(slot, message);
        let header = Header { kind: kind::MESSAGE_SLOT, len: 0, word: cell.remote.load(Ordering::Relaxed) };
        self.producer.push_words(self.outbound.ring, header, [pair(slot, len)]);
        core.counters().on_sent(message.len());
        cell.counters.on_sent();
        let must_wake = sleep::must_wake(self.outbound.sleep, self.pairing);
        // The peer has the message by now: the line of the grants, which comes from there, holds up
        // nothing here, as it would before the next message.
        self.look_for_grants()?;
        Ok(must_wake)
    }

    /// Beside the way of most messages, which has more registers without it.
    #[inline(never)]
    fn push_gathered(&mut self, header: Header, message: Message<'_>) {
        let mut bytes = [0; BODY];
        message.copy_to(&mut bytes);
        self.producer.push(self.outbound.ring, header, Source::from(&bytes[..message.len()]));
    }

    #[inline(never)]
    fn publish_slot(&mut self, core: &Core, word: u32, message: Message<'_>) -> Result<bool, Violation> {
        let Some(slot) = self.take_granted()? else { return Ok(false) };
        let len = self.fill_slot(slot, message);
        let header = Header { kind: kind::MESSAGE_SLOT, len: 0, word };
        self.producer.push_words(self.outbound.ring, header, [pair(slot, len)]);
        core.counters().on_sent(message.len());
        Ok(true)
    }

    /// Publishes a control frame; false when there is no room.
    pub(crate) fn publish_frame(
        &mut self,
        header: Header,
        words: [u64; BODY_WORDS],
        payload: Option<&[u8]>,
    ) -> Result<bool, Violation> {
        if !self.producer.has_room(self.outbound.head)? {
            return Ok(false);
        }
        let mut words = words;
        if let Some(payload) = payload.filter(|payload| !payload.is_empty()) {
            let Some(slot) = self.take_granted()? else { return Ok(false) };
            let len = self.fill_slot(slot, payload.into());
            words[1] = pair(slot, len);
        }
        self.producer.push_words(self.outbound.ring, header, words);
        Ok(true)
    }
}

/// The second word of a control frame without payload.
pub(crate) const NO_PAYLOAD: u64 = pair(NO_SLOT, 0);

impl Lane {
    /// The wire, if its ring has ample room.
    #[inline(always)]
    pub(crate) fn ample_wire(&mut self) -> Option<&mut Wire> {
        self.wire.as_mut().filter(|wire| wire.producer.has_ample_room())
    }

    /// Last, and not inlined: what posts needs no registers of its own.
    #[cold]
    pub(crate) fn wake_after_post(&self) -> Result<(), SendError> {
        self.wake();
        Ok(())
    }

    /// Sends a message of an open connection.
    #[inline]
    pub(crate) fn send(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        cell: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        if !self.is_free_for(state, core, cell) {
            return self.send_later(state, core, cell, message, posted, None);
        }
        let Some(wire) = self.wire.as_mut() else { return Err(SendError::Disconnected) };
        let slot = match posted {
            Posted::Event(_) => Some(core.take_send().ok_or(SendError::NoBuffers)?),
            Posted::Silent(_) | Posted::Waited => None,
        };
        match wire.publish(core, cell.remote.load(Ordering::Relaxed), message) {
            Ok(true) => {}
            Ok(false) => return self.send_first(state, core, cell, message, posted, slot),
            Err(Violation) => return Err(self.violated(state, core, slot)),
        }
        cell.counters.on_sent();
        self.wake_consumer();
        if let (Some(slot), Posted::Event(context)) = (slot, posted) {
            core.finish(slot, cell, context, Ok(()));
        }
        Ok(None)
    }

    /// Whether a message may be published at once.
    #[inline(always)]
    pub(crate) fn is_free(&mut self, state: &mut EndpointState, core: &mut Core) -> bool {
        self.phase == Phase::Ready
            && !self.queue.has_controls()
            && (self.queue.operations().is_empty() || self.is_free_after_others(state, core))
    }

    /// As [`Lane::is_free`], of this connection.
    #[inline]
    pub(crate) fn is_free_for(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        cell: &'static Connection,
    ) -> bool {
        self.is_free(state, core) && !self.queue.is_held(cell)
    }

    /// Messages that wait go first, as far as there is room: a program that only sends would
    /// otherwise fill the queue while the ring runs empty.
    #[inline(never)]
    fn is_free_after_others(&mut self, state: &mut EndpointState, core: &mut Core) -> bool {
        if self.queue.front_message().is_some()
            && let Some(wire) = self.wire.as_mut()
            && wire.producer.has_room(wire.outbound.head) == Ok(true)
        {
            self.flush(state, core);
        }
        self.phase == Phase::Ready && self.queue.operations().is_empty()
    }

    /// The peer broke the protocol: nothing goes to it any more.
    #[cold]
    fn violated(&mut self, state: &mut EndpointState, core: &mut Core, slot: Option<&'static Slot>) -> SendError {
        state.protocol_errors.push(self.number);
        if let Some(slot) = slot {
            core.release(slot);
        }
        SendError::Disconnected
    }

    /// As [`Lane::send_later`], for the first that waits.
    #[cold]
    fn send_first(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        cell: &'static Connection,
        message: Message<'_>,
        posted: Posted,
        slot: Option<&'static Slot>,
    ) -> Result<Option<&'static Slot>, SendError> {
        let sent = self.send_later(state, core, cell, message, posted, slot)?;
        self.on_stall(core);
        Ok(sent)
    }

    /// Queues a message that finds no room; one on an unreliable connection is dropped instead.
    #[cold]
    fn send_later(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        cell: &'static Connection,
        message: Message<'_>,
        posted: Posted,
        slot: Option<&'static Slot>,
    ) -> Result<Option<&'static Slot>, SendError> {
        if self.phase != Phase::Ready {
            return Err(SendError::Disconnected);
        }
        let slot = slot.or_else(|| core.take_send()).ok_or(SendError::NoBuffers)?;
        cell.on_begun();
        if !cell.attribute().is_reliable() {
            cell.counters.on_dropped();
            core.counters().on_dropped();
            core.end_operation(slot, cell, posted, Ok(()));
            // A waiting thread finds the slot ended.
            return Ok((posted == Posted::Waited).then_some(slot));
        }
        cell.counters.on_rnr();
        let data = if message.len() <= BODY {
            let mut bytes = [0; BODY];
            message.copy_to(&mut bytes);
            QueuedPayload::Inline(bytes)
        } else {
            let mut buffer = state.buffer();
            message.copy_to(&mut buffer);
            QueuedPayload::Buffer(buffer)
        };
        // The clock is read only where it will be asked for; `options_changed` makes up for it. The
        // coarse one would let the timeout come early.
        let timed = cell.send_timeout.load(Ordering::Relaxed) > 0;
        let since = if timed { crate::clock::precise_next() } else { NEVER };
        let waiting = QueuedMessage { cell, slot, posted, data, len: message.len(), since };
        self.queue.push(Op::Message(waiting));
        self.busy(state);
        state.deadlines_moved |= timed;
        Ok((posted == Posted::Waited).then_some(slot))
    }

    /// Queues a control frame, or publishes it at once.
    pub(crate) fn post(
        &mut self,
        state: &mut EndpointState,
        header: Header,
        words: [u64; BODY_WORDS],
        payload: Option<&[u8]>,
    ) {
        self.post_as(state, header, words, payload, false);
    }

    fn post_as(
        &mut self,
        state: &mut EndpointState,
        header: Header,
        words: [u64; BODY_WORDS],
        payload: Option<&[u8]>,
        reply: bool,
    ) {
        if !self.queue.has_controls()
            && let Some(wire) = self.ready_wire()
        {
            match wire.publish_frame(header, words, payload) {
                Ok(true) => return self.wake_consumer(),
                Ok(false) => {}
                Err(Violation) => return state.protocol_errors.push(self.number),
            }
        }
        self.queue.push_control(Op::Frame { header, words, payload: payload.map(Into::into), reply });
        self.busy(state);
    }

    /// Answers a frame of the peer.
    pub(crate) fn answer_frame(&mut self, state: &mut EndpointState, header: Header, words: [u64; BODY_WORDS]) {
        self.post_as(state, header, words, None, true);
        self.check_answers(state);
    }

    /// A peer that asks and asks and takes no answer is not one of ours. What this side asks for
    /// does not count: a peer that is stopped for a while cannot take it.
    pub(crate) fn check_answers(&mut self, state: &mut EndpointState) {
        if self.queue.has_too_many_replies() {
            state.protocol_errors.push(self.number);
        }
    }

    /// The CONNECT frames of connects that were given up leave with these.
    pub(crate) fn forget_given_up(&mut self) {
        let table = &self.table;
        self.queue.retain_controls(|op| match op {
            Op::Frame { header, .. } if header.kind == kind::CONNECT => table.pending(header.word).is_some(),
            _ => true,
        });
    }

    /// Publishes what waits, as far as there is room. True when something moved.
    pub(crate) fn flush(&mut self, state: &mut EndpointState, core: &mut Core) -> bool {
        let mut moved = false;
        while self.phase == Phase::Ready {
            if !self.queue.has_controls() && self.queue.front_message().is_some() {
                match self.flush_message(state, core) {
                    Ok(true) => {
                        moved = true;
                        continue;
                    }
                    Ok(false) => {}
                    Err(Violation) => state.protocol_errors.push(self.number),
                }
                break;
            }
            let Some((mut op, turn)) = self.queue.take() else { break };
            let step = self.advance(state, core, &mut op);
            if let Ok(Step::Done) = step {
                moved = true;
                self.queue.end(&op, turn);
                continue;
            }
            if let Ok(Step::Parked) = step {
                moved = true;
                self.queue.park(op);
                continue;
            }
            // Whatever happened, the operation is still open: the teardown of the lane ends it.
            self.queue.put_back(op, turn);
            match step {
                Ok(Step::Open(progressed)) => moved |= progressed,
                _ => state.protocol_errors.push(self.number),
            }
            break;
        }
        self.queue.check_backlog();
        if moved {
            self.wake_consumer();
            if self.stall.is_seen() {
                self.on_moved(core);
            }
        }
        moved
    }

    /// Publishes the message at the front of the queue, if there is room.
    #[inline]
    fn flush_message(&mut self, state: &mut EndpointState, core: &mut Core) -> Result<bool, Violation> {
        let (Some(waiting), Some(wire)) = (self.queue.front_message(), self.wire.as_mut()) else {
            return Ok(false);
        };
        let bytes = match &waiting.data {
            QueuedPayload::Inline(bytes) => &bytes[..waiting.len],
            QueuedPayload::Buffer(bytes) => &bytes[..waiting.len],
        };
        if !wire.publish(core, waiting.cell.remote.load(Ordering::Relaxed), Message::from(bytes))? {
            return Ok(false);
        }
        waiting.cell.counters.on_sent();
        core.end_operation(waiting.slot, waiting.cell, waiting.posted, Ok(()));
        if let Some(waiting) = self.queue.pop_message() {
            state.reuse(waiting.data);
        }
        Ok(true)
    }

    /// Advances one operation, and ends it if it can.
    fn advance(&mut self, state: &mut EndpointState, core: &mut Core, op: &mut Op) -> Result<Step, Violation> {
        let Some(wire) = self.wire.as_mut() else { return Ok(Step::Open(false)) };
        match op {
            // `flush` does these where they stand.
            Op::Message(_) => Ok(Step::Open(false)),
            Op::Frame { header, words, payload, .. } => {
                let published = wire.publish_frame(*header, *words, payload.as_deref())?;
                Ok(if published { Step::Done } else { Step::Open(false) })
            }
            Op::Rma(pending) => self.step(state, core, pending),
            Op::Serve(serve) => self.advance_serve(state, serve),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::End;
    use std::collections::BTreeSet;

    #[test]
    fn messages_there_and_back_use_one_payload_slot_of_each_direction() {
        let (mut client, mut server) = (End::new(), End::new());
        let there = client.connect(&mut server);
        let mut seen = [BTreeSet::new(), BTreeSet::new()];
        let accepted = (0..1_000_000).find_map(|_| server.call()).expect("it is accepted");
        let mut cell = accepted.connection.get().expect("a connection");
        assert!(accepted.give_back());
        for _ in 0..100 {
            for (at, addresses) in seen.iter_mut().enumerate() {
                let (from, to) = if at == 0 { (&mut client, &mut server) } else { (&mut server, &mut client) };
                from.send_bytes(if at == 0 { there } else { cell }, &[7; 4096]);
                let message = to.message();
                addresses.insert(message.words()[0]);
                cell = message.connection.get().expect("a connection");
                assert!(message.give_back());
                // Nothing more: it grants the slot again.
                while to.call().is_some() {}
            }
        }
        // The first one was granted with others.
        assert!(seen.iter().all(|addresses| addresses.len() <= 2), "{seen:?}");
    }
}
