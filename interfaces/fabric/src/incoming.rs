//! What becomes of events of CCI, and of messages.

use crate::arrivals::Arrival;
use crate::bits::{REMOTE_CQ_DATA, REMOTE_WRITE, RMA};
use crate::code::Code;
use crate::partner::{Control, Key};
use crate::queue::Entry;
use crate::requests::Space;
use crate::send::{ACCESS, FLUSH, TOLD};
use crate::state::State;
use crate::wire::{self, Given, HEADER, Head, IS_INLINE, IS_TAGGED, LONGEST, LONGEST_OTHER};
use cci::{Endpoint, Event, Received};
use cci_matching::Envelope;
use cci_peers::Peer;
use cci_rendezvous::{Body, Header, cost_of_bytes};
use std::time::Instant;

/// The kinds of contexts of operations of CCI are above this.
const INDEX: u64 = u32::MAX as u64;

impl State {
    /// Takes an event of CCI.
    #[inline]
    pub(crate) fn take(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        if let Event::Received(message) = &event
            && let Some(peer) = message.connection().and_then(|connection| self.peers.peer_of(connection))
        {
            return self.take_message(endpoint, peer, message);
        }
        self.take_other(endpoint, event);
    }

    #[inline(never)]
    fn take_other(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        if let Event::Completed(ended) = &event
            && ended.context() >> 63 == 0
        {
            let (index, outcome) = ((ended.context() & INDEX) as u32, ended.outcome());
            match ended.context() & !INDEX {
                TOLD => self.on_told(index, outcome.is_ok()),
                ACCESS => self.on_access(endpoint, index, outcome),
                FLUSH => self.flushes = self.flushes.saturating_sub(1),
                // Others are of messages whose link reports its end.
                _ if index > 0 => {
                    if let Some(ended) = self.reads.completed(index - 1, outcome) {
                        self.end_read(endpoint, ended);
                    }
                }
                _ => {}
            }
            return;
        }
        // The clock is read for what opens and closes links alone.
        match self.peers.handle_event(endpoint, event, Instant::now()) {
            Some(Event::EndpointFailed(_)) => self.fail(Code::Other),
            Some(event) => self.take_stranger(endpoint, event),
            None => {
                if self.peers.has_changes() {
                    self.take_changes(endpoint);
                }
            }
        }
    }

    #[inline]
    fn take_message(&mut self, endpoint: &Endpoint, peer: Peer, message: &Received<'_>) {
        if self.peers.has_changes() {
            self.take_changes(endpoint);
        }
        let number = peer.index() as u32;
        let taken = match message.bytes() {
            Some(bytes) => wire::parse(bytes, bytes.len())
                .and_then(|(header, head)| self.take_head(endpoint, number, (&header, head), message)),
            None => {
                let (view, mut front) = (message.view(), [0; LONGEST_OTHER]);
                let len = view.copy_to(0, &mut front);
                // Of a long message what stands before its bytes is enough.
                let front = if view.len() > LONGEST_OTHER { &front[..LONGEST] } else { &front[..len] };
                wire::parse(front, view.len())
                    .and_then(|(header, head)| self.take_head(endpoint, number, (&header, head), message))
            }
        };
        if taken.is_none() {
            self.break_link(endpoint, number);
        }
    }

    /// `None`: the partner has broken the rules.
    #[inline]
    fn take_head(
        &mut self,
        endpoint: &Endpoint,
        number: u32,
        (header, head): (&Header, Head),
        message: &Received<'_>,
    ) -> Option<()> {
        let partner = self.partner(number)?;
        if !partner.is_known {
            let Head::Ident(window) = head else { return None };
            return self.on_ident(endpoint, number, window).then_some(());
        }
        let link = partner.link;
        if header.credit > 0 && !partner.credit.give(header.credit) {
            return None;
        }
        match head {
            Head::Eager { number: wanted, data, from } => {
                self.take_eager(endpoint, (number, link), header, (wanted, data, from), message)
            }
            Head::Offer { length, number: of, data, pieces } => {
                let space = Space::of(header.has(IS_TAGGED));
                let envelope = Envelope { source: number.into(), bits: header.long };
                match self.match_posted(space, &envelope, length) {
                    Some(matched) => {
                        let meta = (length, header.long, data);
                        self.read_offer(endpoint, matched, (number, link, of), meta, pieces);
                    }
                    None => {
                        let body = Body::Offered(pieces);
                        let arrival = Arrival { partner: number, link, length, cost: 0, number: of, data, body };
                        self.keep(space, envelope, arrival);
                    }
                }
                Some(())
            }
            Head::Done { numbers, count, is_refused } => {
                numbers[..count].iter().all(|of| self.on_done(number, *of, is_refused)).then_some(())
            }
            Head::Credit => Some(()),
            Head::Ask { key } => {
                self.post(endpoint, number, Control::Give(key));
                Some(())
            }
            Head::Given { key, memory } => {
                let key_of = |Given { len, may_read, may_write, handle, .. }| Key { len, may_read, may_write, handle };
                self.on_given(endpoint, number, key, memory.map(key_of))
            }
            Head::Written { len, data } => {
                self.on_written(number, len, data);
                Some(())
            }
            Head::Ident(_) => None,
        }
    }

    #[inline]
    fn take_eager(
        &mut self,
        endpoint: &Endpoint,
        (number, link): (u32, u32),
        header: &Header,
        (wanted, data, from): (Option<u32>, Option<u64>, usize),
        message: &Received<'_>,
    ) -> Option<()> {
        let len = header.word as usize;
        let cost = if header.has(IS_INLINE) { 0 } else { cost_of_bytes(len) };
        if !self.partner(number)?.window.charge(cost) {
            return None;
        }
        let space = Space::of(header.has(IS_TAGGED));
        let envelope = Envelope { source: number.into(), bits: header.long };
        if let Some(matched) = self.match_posted(space, &envelope, len as u64) {
            let meta = (len as u64, header.long, data);
            self.deliver_with(matched, number, meta, |to, at, len| match message.bytes() {
                Some(bytes) => bytes.get(from..from + len as usize).is_some_and(|bytes| to.copy_in(at, bytes)),
                None => to.copy_view(at, &message.view(), from, len as usize),
            });
            self.owe(endpoint, number, cost);
        } else {
            let body = self.buffers.keep(len, |room| {
                match message.bytes() {
                    Some(bytes) => room.copy_from_slice(&bytes[from..from + len]),
                    None => drop(message.view().copy_to(from, room)),
                };
            });
            let Some(body) = body else {
                self.fail(Code::NoMemory);
                return Some(());
            };
            self.partner(number)?.window.hold(cost);
            let arrival = Arrival { partner: number, link, length: len as u64, cost, number: 0, data, body };
            self.keep(space, envelope, arrival);
        }
        // It is in its buffer, or kept: a match is not waited for.
        if let Some(wanted) = wanted {
            self.tell_done((number, link), wanted);
        }
        Some(())
    }

    /// A partner has written with remote data.
    pub(crate) fn on_written(&mut self, number: u32, len: u64, data: u64) {
        let source = self.source_of(number);
        if let Some(counter) = &self.setup.counters.remote_write {
            counter.add(1);
        }
        let flags = RMA | REMOTE_WRITE | REMOTE_CQ_DATA;
        let entry = Entry { flags, len: len as usize, data, source, ..Entry::default() };
        let most = self.setup.unexpected_max;
        let Some(bound) = &mut self.setup.receive else { return };
        // Who reads the other queue alone has a partner fill this one.
        let has_room = (bound.queue.len() * size_of::<Entry>()) as u64 <= most;
        match if has_room { bound.reserve() } else { Err(Code::NoMemory) } {
            Ok(()) => bound.complete(crate::bits::COMPLETION, entry),
            Err(code) => self.fail(code),
        }
    }
}

const _: () = assert!(LONGEST_OTHER > LONGEST && LONGEST > HEADER);
