//! What the lock of an endpoint protects.

use crate::NOT_AVAILABLE;
use crate::arrivals::Arrival;
use crate::bits::{MSG, RECV, TAGGED};
use crate::code::Code;
use crate::counter::Counter;
use crate::domain::Domain;
use crate::partner::Partner;
use crate::queue::{Bound, Entry, Failed};
use crate::record::Record;
use crate::requests::{Requests, Slot, Space, Stage};
use crate::vector::AddressVector;
use crate::who::Askers;
use cci::{Endpoint, Failure, Memory, Registration};
use cci_ground::{BATCH, ROUNDS};
use cci_matching::{Posted, Unexpected};
use cci_peers::Peers;
use cci_rendezvous::{Buffers, Link, Offers, Reads, Windows};
use std::collections::HashMap;
use std::sync::Weak;
use std::time::{Duration, Instant};

/// This endpoint itself, where partners have their numbers.
pub(crate) const OWN: u32 = u32::MAX;
/// In the flags of an operation, beside libfabric's: it makes no entry when it ends well.
pub(crate) const NO_ENTRY: u64 = 1 << 63;
/// What waits for room in CCI is tried again after this time.
const RETRY: Duration = Duration::from_millis(1);

/// Messages and receives of one kind.
#[derive(Default)]
pub(crate) struct Matching {
    /// Receives that wait: the numbers of their requests.
    pub(crate) posted: Posted<u32>,
    /// Of them those that take several messages.
    pub(crate) multis: usize,
    pub(crate) unexpected: Unexpected<Arrival>,
}

/// Counters of an endpoint, by what they count.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) send: Option<Counter>,
    pub(crate) receive: Option<Counter>,
    pub(crate) read: Option<Counter>,
    pub(crate) write: Option<Counter>,
    pub(crate) remote_write: Option<Counter>,
}

/// What an endpoint was bound to, and how it was opened.
pub(crate) struct Setup {
    pub(crate) domain: Domain,
    pub(crate) vector: AddressVector,
    pub(crate) transmit: Option<Bound>,
    pub(crate) receive: Option<Bound>,
    pub(crate) counters: Counters,
    pub(crate) options: crate::operations::EndpointOptions,
    pub(crate) least_multi: usize,
    pub(crate) unexpected_max: u64,
}

pub(crate) struct State {
    pub(crate) setup: Setup,
    pub(crate) own: Record,
    pub(crate) me: Weak<dyn crate::domain::Keeper>,
    pub(crate) requests: Requests,
    /// By [`Space::index`].
    pub(crate) spaces: [Matching; 2],
    pub(crate) buffers: Buffers,
    pub(crate) offers: Offers<u32>,
    pub(crate) reads: Reads<u32>,
    pub(crate) peers: Peers<()>,
    /// By the numbers of peers.
    pub(crate) partners: Vec<Option<Partner>>,
    /// The partner of each number of the address vector, as of `epoch`.
    pub(crate) by_address: Vec<Option<u32>>,
    pub(crate) epoch: u64,
    /// Partners for whom there was no room, and those who are to be told that messages are there.
    pub(crate) blocked: Vec<u32>,
    pub(crate) owing: Vec<u32>,
    pub(crate) windows: Windows,
    /// Bytes that unexpected messages hold beside what windows count.
    pub(crate) kept: u64,
    /// Registrations of CCI of the domain's memory, by key.
    pub(crate) registered: HashMap<u64, (u32, Registration<Memory>)>,
    pub(crate) scratch: Vec<u8>,
    /// Those who wanted to know who is here.
    pub(crate) askers: Askers,
    /// Counts calls of the program.
    pub(crate) calls: u64,
    /// Counts accesses.
    pub(crate) accesses: u32,
    /// Last messages of a close that have not arrived.
    pub(crate) flushes: usize,
    /// Why no operation can begin any more.
    pub(crate) failed: Option<Code>,
    pub(crate) is_closed: bool,
}

impl State {
    /// How long a thread may sleep without an event.
    pub(crate) fn left(&self) -> Option<Duration> {
        let timer = self.peers.poll_timeout().map(|at| at.saturating_duration_since(Instant::now()));
        let retry = (!self.blocked.is_empty()).then_some(RETRY);
        let now = (self.peers.has_changes() || !self.owing.is_empty()).then_some(Duration::ZERO);
        timer.into_iter().chain(retry).chain(now).min()
    }

    /// Takes what has come until nothing comes, and goes on with what waited for room.
    pub(crate) fn progress(&mut self, endpoint: &Endpoint) {
        if self.is_closed {
            return;
        }
        for _ in 0..ROUNDS {
            match endpoint.poll(BATCH, |event| self.take(endpoint, event)) {
                Ok(BATCH) => {}
                Ok(_) => break,
                Err(cci::PollError::NoBuffers) => break,
                Err(_) => {
                    self.fail(Code::NotSupported);
                    break;
                }
            }
        }
        if self.has_deferred_work() {
            self.catch_up(endpoint);
        }
    }

    /// Whether there is work that no event of CCI reports.
    #[inline]
    pub(crate) fn has_deferred_work(&self) -> bool {
        let is_idle = self.blocked.is_empty() && self.owing.is_empty() && !self.peers.has_changes();
        !is_idle || self.peers.has_timeout()
    }

    /// Has those look again who sleep on a queue or a counter.
    #[cold]
    pub(crate) fn nudge(&self) {
        for bound in self.setup.transmit.iter().chain(&self.setup.receive) {
            bound.queue.nudge();
        }
        let Counters { send, receive, read, write, remote_write } = &self.setup.counters;
        for counter in [send, receive, read, write, remote_write].into_iter().flatten() {
            counter.nudge();
        }
    }

    #[inline(never)]
    fn catch_up(&mut self, endpoint: &Endpoint) {
        if self.peers.has_timeout() {
            self.peers.handle_timeout(endpoint, Instant::now());
        }
        if self.peers.has_changes() {
            self.take_changes(endpoint);
        }
        for number in std::mem::take(&mut self.blocked) {
            if let Some(partner) = self.partner(number) {
                partner.outbox.unblock();
            }
            self.pump(endpoint, number);
        }
        while let Some(number) = self.owing.pop() {
            self.pump(endpoint, number);
        }
    }

    #[inline]
    pub(crate) fn space(&mut self, space: Space) -> &mut Matching {
        &mut self.spaces[space.index()]
    }

    /// The number by which the program knows a partner.
    #[inline]
    pub(crate) fn source_of(&mut self, number: u32) -> u64 {
        if !self.setup.options.source {
            return NOT_AVAILABLE;
        }
        if number == OWN {
            return self.setup.vector.find(&self.own).unwrap_or(NOT_AVAILABLE);
        }
        let epoch = self.setup.vector.epoch();
        let Some(Some(partner)) = self.partners.get_mut(number as usize) else { return NOT_AVAILABLE };
        if partner.address.0 != epoch {
            partner.address = (epoch, self.setup.vector.find(&partner.record).unwrap_or(NOT_AVAILABLE));
        }
        partner.address.1
    }

    /// An operation has ended well that was no receive.
    pub(crate) fn complete(&mut self, index: u32, what: u64) {
        let Some(slot) = self.requests.remove(index) else { return };
        self.complete_slot(&slot, what);
    }

    #[inline]
    pub(crate) fn complete_slot(&mut self, slot: &Slot, what: u64) {
        self.count(what, true);
        let Some(bound) = &mut self.setup.transmit else { return };
        if slot.flags & NO_ENTRY != 0 {
            return bound.pass();
        }
        let entry = Entry { context: slot.context, flags: what, source: NOT_AVAILABLE, ..Entry::default() };
        bound.complete(slot.flags, entry);
    }

    /// A receive has ended well.
    #[inline]
    pub(crate) fn complete_receive(&mut self, flags: u64, entry: Entry) {
        self.count(RECV, true);
        if let Some(bound) = &mut self.setup.receive {
            bound.complete(flags, entry);
        }
    }

    /// An operation has failed.
    pub(crate) fn fail_slot(&mut self, slot: &Slot, what: u64, code: Code) {
        let context = if slot.flags & NO_ENTRY != 0 { self.setup.options.context } else { slot.context };
        let entry = Entry { context, flags: what, tag: slot.tag, source: NOT_AVAILABLE, ..Entry::default() };
        self.report(Failed { entry, dropped: 0, code, detail: code as i32 });
    }

    /// Reports a failure to the queue of its kind.
    pub(crate) fn report(&mut self, failed: Failed) {
        self.count(failed.entry.flags, false);
        let is_receive = failed.entry.flags & RECV != 0;
        let bound = if is_receive { &mut self.setup.receive } else { &mut self.setup.transmit };
        if let Some(bound) = bound {
            bound.fail(failed);
        }
    }

    #[inline]
    fn count(&self, what: u64, is_well: bool) {
        use crate::bits::{READ, SEND, WRITE};
        let Counters { send, receive, read, write, .. } = &self.setup.counters;
        let counter = match what {
            _ if what & RECV != 0 => receive,
            _ if what & SEND != 0 => send,
            _ if what & READ != 0 => read,
            _ if what & WRITE != 0 => write,
            _ => return,
        };
        match counter {
            Some(counter) if is_well => counter.add(1),
            Some(counter) => counter.add_failed(1),
            None => {}
        }
    }

    /// Nothing begins any more, and all that is open ends with this code.
    #[cold]
    pub(crate) fn fail(&mut self, code: Code) {
        if self.failed.replace(code).is_some() {
            return;
        }
        // Nothing of it leaves any more.
        for partner in self.partners.iter_mut().flatten() {
            partner.outbox.clear();
            partner.done.clear();
        }
        let of = |(peer, partner): (u32, &Option<Partner>)| Some(Link { peer, life: partner.as_ref()?.link });
        let links: Vec<Link> = (0..).zip(&self.partners).filter_map(of).collect();
        for link in links {
            for ended in self.reads.end_link(link, Failure::Disconnected) {
                let request = ended.request;
                self.reads.let_go(ended);
                self.finish_read(request, Err(code));
            }
        }
        let open: Vec<u32> = self.requests.all().map(|(index, _)| index).collect();
        for index in open {
            self.end(index, code);
        }
    }

    /// Ends an operation without success, whatever it waits for.
    pub(crate) fn end(&mut self, index: u32, code: Code) {
        use crate::bits::{READ, RMA, SEND, WRITE};
        let Some(slot) = self.requests.get(index) else { return };
        // The memory is the library's until what CCI has begun has ended, which tells its own end.
        match &mut slot.stage {
            Stage::Reading { .. } => return,
            Stage::Remote(access) if access.open > 0 => {
                access.failed.get_or_insert(code);
                return;
            }
            Stage::Multi(multi) => {
                let is_open = multi.open > 0;
                if is_open {
                    multi.ended.get_or_insert(code);
                }
                self.unpost(index);
                if is_open {
                    return;
                }
            }
            _ => {}
        }
        let Some(slot) = self.requests.remove(index) else { return };
        let kind = |space: Space| if space == Space::Tagged { TAGGED } else { MSG };
        let what = match &slot.stage {
            Stage::Posted { space, ticket, .. } => {
                ticket.map(|ticket| self.space(*space).posted.cancel(ticket));
                RECV | kind(*space)
            }
            Stage::Multi(multi) => RECV | kind(multi.space) | crate::bits::MULTI_RECV,
            Stage::Claimed { space, .. } => RECV | kind(*space),
            Stage::Remote(access) => RMA | if access.is_write { WRITE } else { READ },
            Stage::Offered { offer, .. } => {
                self.offers.withdraw(*offer);
                SEND | kind(Space::of(slot.flags & TAGGED != 0))
            }
            Stage::Queued { to, .. } => {
                // Its number is another operation's soon.
                if let Some(Some(partner)) = self.partners.get_mut(*to as usize) {
                    partner.outbox.remove_send(index);
                }
                SEND | kind(Space::of(slot.flags & TAGGED != 0))
            }
            _ => SEND | kind(Space::of(slot.flags & TAGGED != 0)),
        };
        self.fail_slot(&slot, what, code);
    }
}
