//! What becomes of events of CCI, and of messages.

use crate::arrivals::Arrival;
use crate::at_once::AtOnce;
use crate::errors::Code;
use crate::partner::Control;
use crate::requests::{Outcome, Request, Stage};
use crate::state::{State, received};
use crate::types::Buffer;
use crate::wire::{
    self, CONNECT, CONNECTED, CREDIT, DONE, EAGER, HEADER, Head, IDENT, LARGE, LONGEST, LONGEST_OFFER, REFUSED,
};
use cci::{Endpoint, Event, Received};
use cci_matching::Envelope;
use cci_peers::Peer;
use cci_rendezvous::{Body, Source, cost_of_bytes};
use std::time::Instant;
/// A message that has come. It stays where it was parsed until the unexpected handler has seen it:
/// a copy of what was just written in parts would wait for those stores.
pub(crate) struct Pending<'e> {
    pub(crate) message: Received<'e>,
    pub(crate) number: u32,
    pub(crate) head: Head,
    /// What its sender was charged.
    pub(crate) cost: u32,
}

impl Pending<'_> {
    #[inline]
    pub(crate) fn source(&self) -> Source<'_> {
        match self.message.bytes() {
            Some(bytes) => Source::Bytes(bytes),
            None => Source::View(self.message.view()),
        }
    }
}

/// What has become of a message.
enum Taken {
    Done,
    /// It is for the unexpected handler.
    Unmatched {
        cost: u32,
    },
}

impl<B: Buffer> State<B> {
    /// Takes an event of CCI. True: what is left in `place` is for the unexpected handler.
    #[inline]
    pub(crate) fn take<'e>(&mut self, endpoint: &Endpoint, event: Event<'e>, place: &mut Option<Pending<'e>>) -> bool {
        let Event::Received(message) = event else {
            self.take_other(endpoint, event);
            return false;
        };
        match self.take_at_once(endpoint, &message) {
            AtOnce::Taken => false,
            AtOnce::Unmatched(header, number, cost) if self.has_handler => {
                let head = Head { header, number: None, from: HEADER };
                *place = Some(Pending { message, number, head, cost });
                true
            }
            AtOnce::Unmatched(header, number, cost) => {
                self.keep_at_once(endpoint, &message, (header, number, cost));
                false
            }
            AtOnce::Other => self.take_any(endpoint, message, place),
        }
    }

    /// Any message.
    #[inline(never)]
    fn take_any<'e>(&mut self, endpoint: &Endpoint, message: Received<'e>, place: &mut Option<Pending<'e>>) -> bool {
        let known = message.connection().and_then(|connection| self.peers.peer_of(connection));
        if let Some(peer) = known {
            return self.take_message(endpoint, peer, message, place);
        }
        self.take_other(endpoint, Event::Received(message));
        false
    }

    #[inline(never)]
    fn take_other(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        if let Event::Completed(ended) = &event
            && ended.context() >> 63 == 0
        {
            // Others are of messages whose link reports its end.
            if ended.context() > 0 {
                self.on_read(endpoint, ended.context(), ended.outcome());
            }
            return;
        }
        // The clock is read for what opens and closes links alone.
        match self.peers.handle_event(endpoint, event, Instant::now()) {
            Some(Event::EndpointFailed(_)) => {
                self.has_failed = true;
                self.requests.changes += 1;
            }
            // A request is dropped here, and so rejected: it is a stranger's.
            _ => {
                if self.peers.has_changes() {
                    self.take_changes(endpoint);
                }
            }
        }
    }

    #[inline]
    fn take_message<'e>(
        &mut self,
        endpoint: &Endpoint,
        peer: Peer,
        message: Received<'e>,
        place: &mut Option<Pending<'e>>,
    ) -> bool {
        if self.peers.has_changes() {
            self.take_changes(endpoint);
        }
        let number = peer.index() as u32;
        let head = match message.bytes() {
            Some(bytes) => wire::parse(bytes, bytes.len()),
            None => {
                let (view, mut front) = (message.view(), [0; LONGEST]);
                view.prefetch();
                let len = view.copy_to(0, &mut front);
                wire::parse(&front[..len], view.len())
            }
        };
        let Some(head) = head else {
            self.break_link(endpoint, number);
            return false;
        };
        let pending = place.insert(Pending { message, number, head, cost: 0 });
        match self.take_head(endpoint, number, &pending.head, &pending.source()) {
            Some(Taken::Done) => false,
            Some(Taken::Unmatched { cost }) => {
                pending.cost = cost;
                true
            }
            None => {
                self.break_link(endpoint, number);
                false
            }
        }
    }

    /// `None`: the partner has broken the rules.
    #[inline]
    fn take_head(&mut self, endpoint: &Endpoint, number: u32, head: &Head, source: &Source<'_>) -> Option<Taken> {
        let header = &head.header;
        let partner = self.partner(number)?;
        if !partner.is_known {
            let is_right = header.kind == IDENT && self.on_ident(endpoint, number, header);
            return is_right.then_some(Taken::Done);
        }
        let link = partner.link;
        if !self.on_credit(endpoint, number, header.credit) {
            return None;
        }
        match header.kind {
            EAGER => {
                let cost = cost_of_bytes(header.word as usize);
                if !self.charge(number, cost) {
                    return None;
                }
                self.take_eager(endpoint, (number, link, cost), head, source)
            }
            LARGE => self.take_large(endpoint, (number, link), head, source),
            DONE => {
                self.on_done(number, header.long, header.flags);
                Some(Taken::Done)
            }
            CREDIT => Some(Taken::Done),
            CONNECT => {
                let flags = if header.word == self.key { 0 } else { REFUSED };
                self.post(endpoint, number, Control::Answer(CONNECTED, flags, header.long));
                Some(Taken::Done)
            }
            CONNECTED => {
                self.on_connected(number, header.long, header.flags);
                Some(Taken::Done)
            }
            _ => None,
        }
    }

    #[inline]
    fn take_eager(
        &mut self,
        endpoint: &Endpoint,
        (number, link, cost): (u32, u32, u32),
        head: &Head,
        source: &Source<'_>,
    ) -> Option<Taken> {
        let envelope = Envelope { source: u64::from(number), bits: head.header.long };
        if let Some(index) = self.posted.take(&envelope) {
            self.deliver(endpoint, index, number, head, source);
            self.release(endpoint, number, cost);
            return Some(Taken::Done);
        }
        if self.has_handler {
            return Some(Taken::Unmatched { cost });
        }
        self.keep(endpoint, (number, link, cost), head, source);
        Some(Taken::Done)
    }

    /// Puts an eager message into the receive that it has matched.
    #[inline]
    pub(crate) fn deliver(&mut self, endpoint: &Endpoint, index: u32, number: u32, head: &Head, source: &Source<'_>) {
        self.counts.expected += 1;
        let session = self.partner(number).map_or(0, |partner| partner.session);
        let length = head.header.word;
        self.requests.deliver(index, head.header.long, |segments| {
            let copied = segments.len().min(length as usize);
            let is_in = copied == 0 || segments.copy_message(source, head.from, copied);
            Outcome { peer: number, session, ..received(length, copied, is_in) }
        });
        if let Some(sender) = head.number {
            self.post(endpoint, number, Control::Answer(DONE, 0, sender));
        }
    }

    /// Keeps an eager message that nothing has matched.
    #[inline(never)]
    pub(crate) fn keep(
        &mut self,
        endpoint: &Endpoint,
        (number, link, cost): (u32, u32, u32),
        head: &Head,
        source: &Source<'_>,
    ) {
        self.counts.unexpected += 1;
        let (bits, length) = (head.header.long, head.header.word);
        let fill = |bytes: &mut [u8]| {
            source.copy_to(head.from, bytes);
        };
        let body = self.buffers.keep(length as usize, fill);
        self.insert_arrival(endpoint, bits, (number, link, cost), (length, head.number), body);
    }

    /// Enters an unexpected message. Without memory the link ends: a message must not be lost
    /// alone.
    pub(crate) fn insert_arrival(
        &mut self,
        endpoint: &Endpoint,
        bits: u64,
        (peer, link, cost): (u32, u32, u32),
        (length, number): (u32, Option<u64>),
        body: Option<Body>,
    ) {
        let session = self.partner(peer).map_or(0, |partner| partner.session);
        let arrival = body.map(|body| Arrival { peer, session, link, length, cost, number, body });
        let envelope = Envelope { source: u64::from(peer), bits };
        let inserted = arrival.map(|arrival| self.unexpected.insert(envelope, arrival).is_ok());
        if inserted == Some(true) {
            self.hold(peer, cost);
            self.requests.changes += 1;
        } else {
            self.break_link(endpoint, peer);
        }
    }

    fn take_large(
        &mut self,
        endpoint: &Endpoint,
        (number, link): (u32, u32),
        head: &Head,
        source: &Source<'_>,
    ) -> Option<Taken> {
        let mut bytes = [0; LONGEST_OFFER];
        let len = source.copy_to(head.from, &mut bytes);
        let mut offer = self.buffers.offer();
        let is_right = head.from + len == source.len() && wire::parse_parts(&bytes[..len], &head.header, &mut offer);
        let cost = wire::cost_of_parts(offer.len());
        if !is_right || !self.charge(number, cost) {
            self.buffers.give_back(Body::Offered(offer));
            return None;
        }
        let envelope = Envelope { source: u64::from(number), bits: head.header.long };
        if let Some(index) = self.posted.take(&envelope) {
            self.counts.expected += 1;
            let of = (head.header.long, head.header.word, head.number);
            let matched = self.requests.at(index).map(|slot| std::mem::replace(&mut slot.stage, Stage::Reading));
            if let Some(Stage::Posted { segments, .. }) = matched {
                self.read(endpoint, index, segments, (number, link), of, offer);
            }
            self.release(endpoint, number, cost);
            return Some(Taken::Done);
        }
        if self.has_handler {
            self.buffers.give_back(Body::Offered(offer));
            return Some(Taken::Unmatched { cost });
        }
        self.counts.unexpected += 1;
        let of = (head.header.word, head.number);
        self.insert_arrival(endpoint, head.header.long, (number, link, cost), of, Some(Body::Offered(offer)));
        Some(Taken::Done)
    }

    /// The sender's request has been received whole, or has failed.
    fn on_done(&mut self, number: u32, request: u64, flags: u8) {
        let Some(slot) = self.requests.get(Request::from_bits(request)) else { return };
        let is_its = match slot.stage {
            Stage::Sent { peer, .. } | Stage::Offered { peer, .. } => peer == number,
            _ => false,
        };
        if is_its {
            let code = if flags == REFUSED { Code::Aborted } else { Code::Success };
            self.end(Request::from_bits(request).index(), code);
        }
    }

    fn on_connected(&mut self, number: u32, request: u64, flags: u8) {
        let Some(slot) = self.requests.get(Request::from_bits(request)) else { return };
        if !matches!(slot.stage, Stage::Connecting { peer, .. } if peer == number) {
            return;
        }
        let code = if flags == REFUSED { Code::BadKey } else { Code::Success };
        let session = self.partner(number).map_or(0, |partner| partner.session);
        let outcome = Outcome { code, peer: number, session, length: 0, copied: 0 };
        self.finish(Request::from_bits(request).index(), outcome);
    }

    /// What the unexpected handler has left: the receives that it has posted come first.
    pub(crate) fn after_handler(&mut self, endpoint: &Endpoint, pending: &Pending<'_>, link: u32, is_finished: bool) {
        let Pending { number, head, cost, .. } = pending;
        self.in_handler = None;
        self.requests.changes += 1;
        let partner = self.partners.get_mut(*number as usize).and_then(Option::as_mut);
        // Another one has the number, or the link has ended.
        let partner = partner.filter(|of| of.link == link && of.connection.is_some());
        let Some(partner) = partner.filter(|_| !self.is_closed) else { return };
        if is_finished {
            self.counts.handled += 1;
            let owes_much = partner.window.owe(*cost);
            if let Some(sender) = head.number {
                self.post(endpoint, *number, Control::Answer(DONE, 0, sender));
            }
            if owes_much {
                self.pump(endpoint, *number);
            }
            return;
        }
        let source = pending.source();
        let has_handler = std::mem::replace(&mut self.has_handler, false);
        let taken = if head.header.kind == EAGER {
            self.take_eager(endpoint, (*number, link, *cost), head, &source)
        } else {
            // Charged again below.
            if let Some(partner) = self.partner(*number) {
                partner.window.uncharge(*cost);
            }
            self.take_large(endpoint, (*number, link), head, &source)
        };
        self.has_handler = has_handler;
        if taken.is_none() {
            self.break_link(endpoint, *number);
        }
    }
}
