//! What the lock of an endpoint protects, and what becomes of events of CCI.

use crate::arrivals::Arrival;
use crate::errors::Code;
use crate::handler::Handler;
use crate::options::Options;
use crate::partner::Partner;
use crate::requests::{ContextBits, OWN, Outcome, Reading, Request, Requests, Stage};
use crate::types::{Address, Buffer, Status};
use crate::wire;
use cci::Endpoint;
use cci_matching::{Posted, Unexpected};
use cci_peers::Peers;
use cci_rendezvous::{Body, Buffers, GRANULE, Offers, Reads, Windows};
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

pub(crate) struct State<B> {
    pub(crate) requests: Requests<B>,
    /// Receives that wait: the index of their request.
    pub(crate) posted: Posted<u32>,
    pub(crate) unexpected: Unexpected<Arrival>,
    pub(crate) buffers: Buffers,
    /// What waits for it: the index of a request.
    pub(crate) offers: Offers<u32>,
    pub(crate) reads: Reads<Reading>,
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
    /// What partners may still send.
    pub(crate) windows: Windows,
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
        let windows = Windows::new(options.unexpected_max / GRANULE as u32);
        let context_bits =
            options.context_bits.map_or_else(ContextBits::default, |(count, shift)| ContextBits { count, shift });
        Self {
            requests: Requests::new(context_bits),
            posted: Posted::new(),
            unexpected: Unexpected::new(),
            buffers: Buffers::default(),
            offers: Offers::default(),
            reads: Reads::default(),
            peers,
            partners: Vec::new(),
            last: None,
            blocked: Vec::new(),
            to_self: VecDeque::new(),
            own_credit: windows.half().min(wire::MOST_WINDOW),
            name: own.name(),
            session: own.session(),
            key,
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
            Some(Stage::Offered { offer, .. }) => {
                self.offers.withdraw(offer);
            }
            Some(Stage::Posted { ticket, .. }) => {
                // Taken out already, unless its time is over.
                self.posted.cancel(ticket);
            }
            _ => {}
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
            partner.outbox.remove_send(request);
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
            Stage::Reading | Stage::Done { .. } | Stage::Free { .. } => {}
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
                self.windows.release(arrival.cost);
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
        (self.offers, self.reads) = (Offers::default(), Reads::default());
        self.partners.clear();
        self.timers.clear();
        self.to_self.clear();
        self.blocked.clear();
        self.last = None;
    }
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
