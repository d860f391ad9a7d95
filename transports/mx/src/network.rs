//! MX as the shared part of the transport needs it.

use crate::inbound::{Batch, Record};
use crate::process::Lease;
use crate::requests::{Aim, Begun, Bound, Flight, Requests};
use crate::sys::{End, Finished, RequestEnd, Waits};
use crate::wire::{Address, Own, Place, bits, header};
use cci_mem::memory::Memory;
use cci_over::{
    Arrival, Buffer, Ended, Event, Fate, Goal, Header, Network, Part, Put, Registrations, Reply, Sent, Watcher, Way,
    Words,
};
use cci_proto::Rights;
use cci_transport::Message;
use std::collections::VecDeque;
use std::sync::Arc;

/// An endpoint's part of MX: an endpoint of its own.
pub(crate) struct Mx {
    /// `None`: it is closed.
    pub(crate) lease: Option<Lease>,
    pub(crate) end: End,
    pub(crate) own: Place,
    pub(crate) requests: Requests,
    pub(crate) watcher: Watcher<Waits>,
    /// The program sleeps on the OS handle.
    pub(crate) is_armed: bool,
    /// Messages that the handler has taken.
    pub(crate) incoming: Batch,
    /// Requests that have ended, and what has ended without one.
    pub(crate) finished: VecDeque<Finished>,
    pub(crate) ended: VecDeque<Ended>,
    /// Answers to peers that found no buffer.
    pub(crate) owed: VecDeque<(Way<Place>, Own)>,
    /// Of the match bits of data.
    pub(crate) seed: u64,
}

type Happened = Event<Place, Address>;

impl Mx {
    /// Has the library make progress, and takes a request that has ended.
    #[inline]
    fn take_ended(&self) -> Option<Finished> {
        if self.requests.flights.is_empty() {
            // None can.
            self.end.progress();
            return None;
        }
        self.end.test_any()
    }

    #[inline]
    fn next_message(&mut self) -> Option<Happened> {
        let Record { source: origin, bits, from, len, is_bare } = self.incoming.pop()?;
        if is_bare {
            return Some(Event::Stray);
        }
        let (header, class) = header(bits);
        Some(Event::Arrival(Arrival { origin, header, class, from, len, has_failed: false }))
    }

    /// A request has ended. Inline, so that the event of a message that has come, which the same
    /// call returns, stays in registers.
    #[inline(always)]
    fn on_finished(&mut self, finished: &Finished) -> Happened {
        let Some(flight) = self.requests.finish(finished) else { return Event::Nothing };
        let fate = match finished.end {
            RequestEnd::Done if u64::from(finished.copied) == flight.len => Fate::Done,
            // Of a message: only transfers have a length.
            RequestEnd::Done if !matches!(flight.aim, Aim::Of(Goal::Read { .. })) => Fate::Done,
            RequestEnd::Done | RequestEnd::Partial => Fate::Refused,
            RequestEnd::Late | RequestEnd::Gone => Fate::Gone,
        };
        match flight.aim {
            Aim::Of(goal) => Event::Ended(Ended { goal, fate }),
            Aim::Find { side, place } => {
                let found = self.end.place(finished.source);
                let reply = match finished.end {
                    // Another endpoint has the id by now.
                    RequestEnd::Done if place.session.is_some() && place.session != found.session => Reply::Nobody,
                    RequestEnd::Done => Reply::Found(found),
                    RequestEnd::Late => Reply::Again,
                    RequestEnd::Partial | RequestEnd::Gone => Reply::Nobody,
                };
                Event::Asked { side, reply }
            }
            Aim::Serve { .. } | Aim::Nobody => Event::Nothing,
        }
    }
}

impl Network for Mx {
    type Place = Place;
    type Origin = Address;
    type Bound = Bound;

    const WORDS: Words = Words { name: "mx", messages: "messages of MX", rma: "matched messages of MX" };

    fn own(&self) -> Place {
        self.own
    }

    fn number(&self) -> u32 {
        self.own.id
    }

    fn of_uri(uri: &str) -> Option<Place> {
        Place::of_uri(uri)
    }

    fn uri(place: Place) -> String {
        place.uri()
    }

    /// By the library's word alone.
    fn at(&self, origin: Address, _: u32) -> Place {
        self.end.place(origin)
    }

    #[inline]
    fn is_from(place: Place, origin: Address) -> bool {
        place.address == Some(origin)
    }

    #[inline]
    fn next(&mut self, _: &Registrations<Bound>, bytes: &mut Vec<u8>) -> Option<Happened> {
        // A wake-up can come before the wait that it was for.
        if !self.is_armed && self.watcher.take() == Some(None) {
            self.end.wake();
        }
        if let Some(message) = self.next_message() {
            return Some(message);
        }
        if let Some(ended) = self.ended.pop_front() {
            return Some(Event::Ended(ended));
        }
        let finished = self.finished.pop_front().or_else(|| self.take_ended());
        if let Some(finished) = finished.filter(|finished| finished.end == RequestEnd::Done) {
            return Some(self.on_finished(&finished));
        }
        // What a peer has sent comes before its end.
        self.end.inbound().take(&mut self.incoming, bytes);
        let message = self.next_message();
        match (message, finished) {
            (Some(message), finished) => {
                if let Some(finished) = finished {
                    self.finished.push_back(finished);
                }
                Some(message)
            }
            (None, Some(finished)) => Some(self.on_finished(&finished)),
            (None, None) => None,
        }
    }

    #[inline]
    fn has_more(&self) -> bool {
        !self.incoming.is_empty() || !self.ended.is_empty() || !self.finished.is_empty()
    }

    fn progress(&mut self) {
        while let Some(finished) = self.end.test_any() {
            let flight = self.requests.flights.get_mut(finished.token);
            if flight.is_some_and(|flight| matches!(flight.aim, Aim::Serve { .. })) {
                // It lets go of what it uses.
                self.on_finished(&finished);
            } else {
                self.finished.push_back(finished);
            }
        }
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.requests.has_room()
    }

    fn is_short(&self) -> bool {
        !self.owed.is_empty()
    }

    fn mend(&mut self) {
        self.send_owed();
    }

    fn unsent(&self) -> usize {
        self.requests.unsent()
    }

    #[inline]
    fn write_message(&mut self, message: &Message<'_>) -> Option<Buffer> {
        self.requests.pool.write_message(message)
    }

    fn write(&mut self, bytes: &[u8]) -> Option<Buffer> {
        self.requests.pool.write(bytes)
    }

    fn give(&mut self, buffer: u32) {
        self.requests.pool.give(buffer);
    }

    #[inline]
    fn put(&mut self, goal: Goal, put: &Put<Place>) -> Sent {
        let Some(address) = put.to.address else {
            // The peer has never been found, so nobody there waits for anything.
            put.bytes.into_iter().for_each(|(buffer, _)| self.requests.pool.give(buffer));
            return Sent::Over;
        };
        let to = (address, bits(put.header, put.class));
        match self.requests.send(&self.end, goal, to, put.bytes, put.ack) {
            None => Sent::No,
            Some(Begun::Ended(RequestEnd::Done)) => Sent::Over,
            Some(Begun::Entered) => Sent::Begun,
            Some(Begun::Ended(_)) => {
                self.ended.push_back(Ended { goal, fate: Fate::Gone });
                Sent::Begun
            }
        }
    }

    /// Finds the endpoint, or sends the request if that is done.
    fn ask(&mut self, side: u32, to: Place, header: u64, request: &[u8]) -> bool {
        if to.address.is_none() {
            if !self.requests.flights.has_room() {
                return false;
            }
            let token = self.requests.enter(Flight::new(Aim::Find { side, place: to }));
            return self.requests.begin(token, self.end.connect(to.nic, to.id, token).ok());
        }
        let Some(bytes) = self.requests.pool.write(request) else { return false };
        let put = Put { to, class: cci_over::Class::Setup, header, bytes: Some(bytes), ack: true };
        let is_sent = self.put(Goal::Control { side }, &put).has_begun();
        if !is_sent {
            self.requests.pool.give(bytes.0);
        }
        is_sent
    }

    fn transfer(&mut self, goal: Goal, way: &Way<Place>, part: Part) -> bool {
        self.begin_transfer(goal, way, part)
    }

    fn on_own(
        &mut self,
        way: &Way<Place>,
        registrations: &Registrations<Bound>,
        _: Header,
        bytes: &[u8],
    ) -> Option<Ended> {
        self.on_message(way, registrations, bytes)
    }

    fn cancel(&mut self, is_meant: impl Fn(Goal) -> bool) {
        self.requests.cancel(&self.end, |aim| matches!(aim, Aim::Of(goal) if is_meant(*goal)));
    }

    fn leave(&mut self, number: u32) {
        self.owed.retain(|(way, _)| way.number != number);
        self.requests.cancel(&self.end, |aim| match aim {
            Aim::Serve { side, .. } | Aim::Find { side, .. } => *side == number,
            _ => false,
        });
    }

    fn attach(&mut self, _: u64, _: &Memory, _: Rights) -> Option<Bound> {
        Some(Bound::new(()))
    }

    fn release(&mut self, bound: Bound) -> Result<(), Bound> {
        if Arc::strong_count(&bound) == 1 { Ok(()) } else { Err(bound) }
    }

    fn watch(&mut self) -> bool {
        self.is_armed = self.incoming.is_empty()
            && self.ended.is_empty()
            && self.finished.is_empty()
            && self.watcher.watch()
            && self.end.inbound().watch();
        self.is_armed
    }

    fn unwatch(&mut self) {
        self.is_armed = false;
        if self.watcher.is_watching() {
            self.end.inbound().unwatch();
            self.end.wake();
        }
    }

    fn end(&mut self, _: Vec<Bound>) {
        let Some(lease) = self.lease.take() else { return };
        // A forked child leaves everything as it is.
        if !lease.is_of_this_process() {
            return;
        }
        let end = &self.end;
        self.watcher.end(|| end.close());
        self.end.free();
        self.requests.free_all();
    }
}
