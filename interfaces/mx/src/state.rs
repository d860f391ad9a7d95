//! What the lock of an endpoint protects, and what becomes of events of CCI.

use crate::arrivals::{Arrival, Body, Buffers, Source};
use crate::at_once::AtOnce;
use crate::bulk::Bulks;
use crate::errors::Code;
use crate::links::{Control, Partner};
use crate::options::Options;
use crate::requests::{ContextBits, NONE, OWN, Outcome, Request, Requests, Stage};
use crate::types::{Address, Buffer, Status};
use crate::waiting::Handler;
use crate::wire::{
    self, CONNECT, CONNECTED, CREDIT, DONE, EAGER, HEADER, Head, IDENT, LARGE, LONGEST, LONGEST_OFFER, REFUSED,
};
use cci::{Endpoint, Event, Received};
use cci_matching::{Envelope, Posted, Unexpected};
use cci_peers::{Peer, Peers};
use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

/// What has happened so far.
///
/// # Example
///
/// ```
/// assert_eq!(cci_mx::Counts::default().eager, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Eager messages sent.
    pub eager: u64,
    /// Large messages offered.
    pub large: u64,
    /// Messages that a posted receive took.
    pub expected: u64,
    /// Messages that became unexpected.
    pub unexpected: u64,
    /// Messages that the unexpected handler took.
    pub handled: u64,
    /// Sends that waited for credit.
    pub stalled: u64,
    /// Links that were closed because the partner broke the rules or there was no room.
    pub broken: u64,
}

/// What has become of a message for a partner.
pub(crate) enum Sending {
    Gone,
    /// There is no room now.
    Blocked,
    /// There is no credit.
    Starved,
}

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

pub(crate) struct State<B> {
    pub(crate) requests: Requests<B>,
    /// Receives that wait: the index of their request.
    pub(crate) posted: Posted<u32>,
    pub(crate) unexpected: Unexpected<Arrival>,
    pub(crate) buffers: Buffers,
    pub(crate) bulks: Bulks,
    pub(crate) peers: Peers<()>,
    /// By the numbers of peers.
    pub(crate) partners: Vec<Option<Partner>>,
    pub(crate) last: Option<(u64, u32)>,
    /// Partners for whom there was no room.
    pub(crate) blocked: Vec<u32>,
    /// Sends of this endpoint to itself that nobody has looked at.
    pub(crate) to_self: VecDeque<Request>,
    /// Granules that such sends may still hold.
    pub(crate) own_credit: u32,
    pub(crate) name: u64,
    pub(crate) session: u32,
    pub(crate) key: u32,
    /// Granules that have not been given away; negative when floors have gone beyond.
    pub(crate) windows_left: i64,
    pub(crate) windows: i64,
    pub(crate) timers: BTreeSet<(Instant, Request)>,
    pub(crate) scratch: Vec<u8>,
    pub(crate) counts: Counts,
    pub(crate) has_handler: bool,
    /// The unexpected handler, unless it runs; and how often it was set.
    pub(crate) handler: Option<Handler>,
    pub(crate) handler_number: u64,
    /// Counts how often progress has let go of the lock for the handler.
    pub(crate) releases: u64,
    /// The thread that is in the unexpected handler.
    pub(crate) in_handler: Option<usize>,
    pub(crate) is_closed: bool,
    pub(crate) has_failed: bool,
    /// Counts wake-ups of the program.
    pub(crate) wakes: u64,
}

impl<B: Buffer> State<B> {
    pub(crate) fn new(own: Address, key: u32, options: &Options, peers: Peers<()>) -> Self {
        let windows = i64::from(options.unexpected_max / 64);
        let context_bits =
            options.context_bits.map_or_else(ContextBits::default, |(count, shift)| ContextBits { count, shift });
        Self {
            requests: Requests::new(context_bits),
            posted: Posted::new(),
            unexpected: Unexpected::new(),
            buffers: Buffers::default(),
            bulks: Bulks::default(),
            peers,
            partners: Vec::new(),
            last: None,
            blocked: Vec::new(),
            to_self: VecDeque::new(),
            own_credit: (windows / 2).clamp(0, wire::MOST_WINDOW.into()) as u32,
            name: own.name(),
            session: own.session(),
            key,
            windows_left: windows,
            windows,
            timers: BTreeSet::new(),
            scratch: Vec::new(),
            counts: Counts::default(),
            has_handler: false,
            handler: None,
            handler_number: 0,
            releases: 0,
            in_handler: None,
            is_closed: false,
            has_failed: false,
            wakes: 0,
        }
    }

    /// Whose messages these are.
    pub(crate) fn address(&self, number: u32, session: u32) -> Address {
        if number == OWN {
            return Address::of(self.name, self.session);
        }
        let partner = self.partners.get(number as usize).and_then(Option::as_ref);
        Address::of(partner.map_or(0, |partner| partner.name), session)
    }

    pub(crate) fn status(&self, (outcome, context, bits): (Outcome, u64, u64)) -> Status {
        let Outcome { code, peer, session, length, copied } = outcome;
        Status { code, source: self.address(peer, session), bits, length, copied, context }
    }

    /// Ends a request without bytes, whatever it waits for.
    pub(crate) fn end(&mut self, index: u32, code: Code) {
        let Some(slot) = self.requests.at(index) else { return };
        let (peer, session, length) = match &slot.stage {
            Stage::Queued { segments, peer, session, .. } => (*peer, *session, segments.len() as u32),
            Stage::Sent { peer, session, length } | Stage::Offered { peer, session, length, .. } => {
                (*peer, *session, *length)
            }
            Stage::Connecting { peer, .. } => (*peer, 0, 0),
            _ => (OWN, 0, 0),
        };
        let copied = if code == Code::Success { length } else { 0 };
        self.finish(index, Outcome { code, peer, session, length, copied });
    }

    /// Ends a request, and lets go of what it held.
    #[inline]
    pub(crate) fn finish(&mut self, index: u32, outcome: Outcome) {
        match self.requests.finish(index, outcome) {
            Some(Stage::Offered { bulk, .. } | Stage::Reading { bulk }) => self.bulks.free(bulk),
            Some(Stage::Posted { ticket, .. }) => {
                // Taken out already, unless its time is over.
                self.posted.cancel(ticket);
            }
            _ => {}
        }
    }

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
                let cost = wire::cost_of_bytes(header.word as usize);
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
            let is_in = copied == 0 || source.copy_into(head.from, copied, segments);
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
            let matched =
                self.requests.at(index).map(|slot| std::mem::replace(&mut slot.stage, Stage::Reading { bulk: NONE }));
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
            let owes_much = partner.owe(*cost);
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
                partner.uncharge(*cost);
            }
            self.take_large(endpoint, (*number, link), head, &source)
        };
        self.has_handler = has_handler;
        if taken.is_none() {
            self.break_link(endpoint, *number);
        }
    }

    /// What is due by the clock.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_time(&mut self, endpoint: &Endpoint) {
        // A request that has ended leaves its timer, which must not cost later calls the clock.
        while let Some(timer) = self.timers.first().copied().filter(|(_, request)| !self.requests.is_open(*request)) {
            self.timers.remove(&timer);
        }
        if self.next_time().is_none() {
            return;
        }
        let now = Instant::now();
        self.peers.handle_timeout(endpoint, now);
        if self.peers.has_changes() {
            self.take_changes(endpoint);
        }
        while let Some((at, request)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, request));
            self.expire(request);
        }
    }

    /// Whether there is work that no event of CCI reports.
    #[inline]
    pub(crate) fn has_deferred_work(&self) -> bool {
        let is_idle = self.blocked.is_empty() && self.to_self.is_empty() && !self.peers.has_changes();
        !is_idle || self.peers.has_timeout() || !self.timers.is_empty()
    }

    /// When the next thing is due by the clock.
    #[inline]
    pub(crate) fn next_time(&self) -> Option<Instant> {
        let own = self.timers.first().map(|(at, _)| *at);
        match (self.peers.poll_timeout(), own) {
            (Some(peers), Some(own)) => Some(peers.min(own)),
            (peers, own) => peers.or(own),
        }
    }

    /// Takes a send that has not left from those that wait.
    pub(crate) fn unqueue(&mut self, request: Request, peer: u32) {
        if let Some(partner) = self.partner(peer) {
            partner.sends.retain(|queued| *queued != request);
        }
        self.forget_own(request);
    }

    pub(crate) fn expire(&mut self, request: Request) {
        let Some(slot) = self.requests.get(request) else { return };
        match slot.stage {
            Stage::Queued { peer, .. } => {
                self.unqueue(request, peer);
                self.end(request.index(), Code::Timeout);
            }
            Stage::Sent { peer: OWN, .. } => {
                self.forget_own(request);
                self.end(request.index(), Code::Timeout);
            }
            Stage::Sent { .. } | Stage::Offered { .. } | Stage::Connecting { .. } | Stage::Posted { .. } => {
                self.end(request.index(), Code::Timeout);
            }
            // The memory of a read is the library's until it ends.
            Stage::Reading { .. } | Stage::Done { .. } | Stage::Free { .. } => {}
        }
    }

    /// Removes what a partner has offered by a link that is no more.
    pub(crate) fn drop_offers(&mut self, number: u32, link: u32) {
        let is_gone = |arrival: &Arrival| {
            arrival.peer == number && arrival.link == link && matches!(arrival.body, Body::Offered(_))
        };
        let gone: Vec<_> =
            self.unexpected.iter().filter(|(.., arrival)| is_gone(arrival)).map(|(ticket, ..)| ticket).collect();
        for ticket in gone {
            if let Some((_, arrival)) = self.unexpected.remove(ticket) {
                self.windows_left += i64::from(arrival.cost);
                self.buffers.give_back(arrival.body);
            }
        }
    }

    /// Ends all without statuses.
    pub(crate) fn close(&mut self, endpoint: &Endpoint) {
        self.is_closed = true;
        self.requests.changes += 1;
        self.peers.close(endpoint);
        while self.peers.poll_change().is_some() {}
        let changes = self.requests.changes;
        self.requests = Requests::new(self.requests.context_bits);
        self.requests.changes = changes;
        self.posted = Posted::new();
        self.unexpected = Unexpected::new();
        self.bulks = Bulks::default();
        self.partners.clear();
        self.timers.clear();
        self.to_self.clear();
        self.blocked.clear();
        self.last = None;
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

/// How a receive ends that has got so many bytes.
#[inline]
pub(crate) fn received(length: u32, copied: usize, is_in: bool) -> Outcome {
    let code = match (is_in, copied < length as usize) {
        (false, _) => Code::Aborted,
        (true, true) => Code::Truncated,
        (true, false) => Code::Success,
    };
    Outcome { code, peer: OWN, session: 0, length, copied: if is_in { copied as u32 } else { 0 } }
}
