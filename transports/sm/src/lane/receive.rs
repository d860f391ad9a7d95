//! Receiving: from the ring into events.

use crate::format::layout::{NOTHING, kind, unpair};
use crate::lane::state::{EndpointState, Released};
use crate::lane::{Lane, Phase};
use cci_mem::ring::{BODY, Header, Violation};
use cci_mem::sync::Ordering;
use cci_proto::EventKind;
use cci_transport::{Core, Slot, tag_event};

/// Frames taken from one lane in one call, while they come in a stream.
pub(crate) const BURST: u32 = 8;

/// A slot for what lies in the ring; frees what the program has returned.
#[inline(always)]
pub(crate) fn take_recv(core: &mut Core, released: &mut Released) -> Option<&'static Slot> {
    let slot = core.take_recv(|slot| released.add(slot))?;
    slot.payload.store(0, Ordering::Relaxed);
    Some(slot)
}

impl Lane {
    /// How many frames to take in one call. The line after a lone frame is still its producer's: a
    /// look at it would hold up whatever follows, an answer above all, until that line has come.
    #[inline]
    pub(crate) fn budget(&self) -> u32 {
        if self.wire.as_ref().is_some_and(|wire| wire.consumer.is_streaming()) { BURST } else { 1 }
    }

    /// Takes up to `budget` frames. Says how many.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        budget: u32,
    ) -> Result<u32, Violation> {
        let (mut taken, mut refused) = (0, false);
        while taken < budget {
            let Some(wire) = self.wire.as_mut() else { break };
            let Some(header) = wire.consumer.peek(wire.inbound.ring) else {
                wire.consumer.on_gap();
                break;
            };
            wire.consumer.prefetch(wire.inbound.ring);
            let kept = (!state.contention.is_on() || !self.makes_way(state, core, header, taken))
                && match header.kind {
                    kind::MESSAGE => self.take_message(state, core, header)?,
                    kind::MESSAGE_SLOT => self.take_message_slot(state, core, header)?,
                    _ => self.take_control(state, core, header)?,
                };
            if !kept {
                if self.is_paused(header) {
                    self.stop(state, core);
                    refused = true;
                    break;
                }
                if self.queue.is_backlogged() {
                    // It waits for room for answers, not for a slot that others could have.
                    self.admit(state, core);
                    break;
                }
                if self.refuse(state, core) {
                    continue;
                }
                refused = true;
                break;
            }
            taken += 1;
            let Some(wire) = self.wire.as_mut() else { break };
            wire.consumer.advance(wire.inbound.head);
        }
        if taken > 0 {
            self.activity.on_received(taken);
            self.sleeping.on_received();
            self.wake_producer();
            if self.admission.is_held_back() && !refused {
                self.admit(state, core);
            }
        }
        Ok(taken)
    }

    /// Whether this lane has its quarter of the receive slots.
    fn has_its_share(&self, core: &Core) -> bool {
        let (limit, _) = core.recv_count();
        self.held.inbound() as usize * 4 >= limit
    }

    /// Whether a frame stays in the ring: its connection is paused, or the slots that are free are
    /// for lanes that want them and come before this one. `taken`: frames of its turn so far.
    #[cold]
    fn makes_way(&mut self, state: &mut EndpointState, core: &Core, header: Header, taken: u32) -> bool {
        let kind = header.kind;
        if self.is_paused(header) {
            return true;
        }
        // A request has slots of its own, and decides by itself beyond them.
        if !matches!(kind, kind::MESSAGE | kind::MESSAGE_SLOT | kind::LANDED) {
            return false;
        }
        if taken > 0 {
            self.stop_wanting(state);
        }
        self.are_others_first(state, core)
    }

    /// Whether the slots that are free are for other lanes.
    pub(crate) fn are_others_first(&self, state: &EndpointState, core: &Core) -> bool {
        let first = state.contention.first().is_none_or(|number| number == self.number);
        !first && core.recv_free() <= state.contention.wanting()
    }

    /// It has got a slot, or needs none any more.
    fn stop_wanting(&mut self, state: &mut EndpointState) {
        if self.admission.end_wanting() {
            state.contention.remove(self.number);
            // Those that made way did so for this one; nobody else would tell them.
            state.lanes_changed |= state.refusing > 0;
        }
    }

    /// No slot is free for what lies in the ring, or others go first: says so to the sender, and
    /// has the program's next return tell us. True: to be tried once more.
    #[cold]
    fn refuse(&mut self, state: &mut EndpointState, core: &mut Core) -> bool {
        self.admission.set_held_back(true);
        if !self.has_its_share(core) && self.admission.begin_wanting() {
            state.contention.push(self.number);
        }
        if !self.admission.begin_refusing() {
            return false;
        }
        state.refusing += 1;
        core.counters().on_refused();
        if let Some(wire) = &self.wire {
            wire.inbound.rnr.store(1, Ordering::Relaxed);
        }
        core.set_starving(true);
        core.publish_gauges();
        // Against the light fence in giving an event back: either it tells us, or the next look
        // finds its slot.
        state.pairing.heavy_here();
        true
    }

    /// A slot was found for what was refused, or it needs none any more.
    #[cold]
    pub(crate) fn admit(&mut self, state: &mut EndpointState, core: &mut Core) {
        self.admission.set_held_back(false);
        self.retry(state, core);
        self.stop_wanting(state);
    }

    /// There may be a slot for what was refused: it is to be looked at again.
    pub(crate) fn retry(&mut self, state: &mut EndpointState, core: &mut Core) {
        if !self.admission.end_refusing() {
            return;
        }
        state.refusing -= 1;
        core.set_starving(state.refusing > 0);
        if let Some(wire) = &self.wire {
            wire.inbound.rnr.store(0, Ordering::Relaxed);
        }
    }

    /// A message in the entry. False: no slot is free.
    #[inline]
    pub(crate) fn take_message(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        header: Header,
    ) -> Result<bool, Violation> {
        if usize::from(header.len) > BODY {
            return Err(Violation);
        }
        let Some(cell) = self.table.open_cell(header.word) else {
            state.strays += 1;
            return Ok(true);
        };
        let Some(wire) = self.wire.as_ref() else { return Ok(true) };
        let Some(slot) = take_recv(core, &mut state.released) else { return Ok(false) };
        let entry = wire.consumer.shown(wire.inbound.ring);
        slot.fill_inline(EventKind::Recv as u32, usize::from(header.len), cell.address(), |at| entry.word(at));
        slot.payload.store(self.token, Ordering::Relaxed);
        self.held.add();
        tag_event(slot, cell);
        cell.counters.on_received();
        core.counters().on_received(usize::from(header.len));
        core.push(slot);
        Ok(true)
    }

    /// A message in a payload slot. False: no slot of the endpoint is free.
    #[inline]
    pub(crate) fn take_message_slot(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        header: Header,
    ) -> Result<bool, Violation> {
        let number = self.number;
        let cell = self.table.open_cell(header.word);
        let Some(wire) = self.wire.as_mut() else { return Ok(true) };
        let (index, len) = unpair(wire.consumer.shown(wire.inbound.ring).word(0));
        let Some(cell) = cell else {
            state.strays += 1;
            wire.inbound_slot(index, len)?;
            wire.grant(index);
            return Ok(true);
        };
        if len > cell.max_send_size.load(Ordering::Relaxed) {
            return Err(Violation);
        }
        let Some(slot) = take_recv(core, &mut state.released) else { return Ok(false) };
        let payload = match wire.inbound_slot(index, len) {
            Ok(payload) => payload,
            Err(violation) => {
                core.release(slot);
                return Err(violation);
            }
        };
        tag_event(slot, cell);
        cell.counters.on_received();
        core.counters().on_received(len as usize);
        wire.show(state, number, (slot, EventKind::Recv, cell.address()), payload);
        self.held.add();
        core.push(slot);
        Ok(true)
    }

    /// Everything that is not a message. False: no slot is free for the event.
    #[cold]
    fn take_control(&mut self, state: &mut EndpointState, core: &mut Core, header: Header) -> Result<bool, Violation> {
        let Some(wire) = self.wire.as_ref() else { return Ok(true) };
        let body = wire.consumer.shown(wire.inbound.ring).body();
        match header.kind {
            kind::CONNECT => return self.on_connect(state, core, header, &body),
            kind::ACCEPT => self.on_accept(state, core, header, &body),
            kind::REJECT => self.on_reject(state, core, header),
            kind::DISCONNECT => self.on_disconnect(state, core, header),
            kind::PING => self.answer_frame(state, Header { kind: kind::PONG, ..header }, NOTHING),
            kind::PONG => {}
            kind::REDIRECT => self.on_redirect(state, core, header, &body)?,
            kind::WRITE => self.on_write(state, header, &body)?,
            kind::READ => self.on_read(state, header, &body),
            kind::DATA => self.on_data(state, header, &body)?,
            kind::RESULT => self.on_result(state, core, header, &body),
            kind::FETCH_ADD | kind::COMPARE_SWAP => self.on_atomic(state, header, &body),
            kind::VALUE => self.on_value(state, header, &body),
            kind::LARGE => self.on_large(state, core, header, &body),
            kind::LANDING => self.on_landing(state, core, header, &body),
            kind::LANDED => return self.on_landed(state, core, header, &body),
            kind::IMPORT => self.on_import(state, header, &body),
            kind::WITHDRAWN => self.on_withdrawn(state, core, &body),
            _ => return Err(Violation),
        }
        Ok(true)
    }

    /// Whether a call would get on with what the peer has published: with its frames, or with the
    /// end of a lane whose peer is gone.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        let published = || self.wire.as_ref().is_some_and(|wire| wire.has_frame());
        !(self.admission.is_refusing() || self.admission.is_stopped())
            && (self.phase == Phase::Draining
                || self.phase == Phase::Ready && !self.queue.is_backlogged() && published())
    }
}
