//! Admission of connection requests: the known requests, and how many each network has. Every table
//! is bounded, and no network takes what others need.
//!
//! A request is *pending* from its admission until it is refused, redirected, closed, given up or
//! confirmed. Then it is *answered*, and known for as long as a cookie of its client can be valid,
//! so that a repeated CONNECT is no second request. An answered request is forgotten earlier only
//! together with the validity of the cookies that are as old.

use crate::engine::connection::ids::Ids;
use crate::engine::random::keyed;
use crate::wire::TAG;
use crate::{Address, Places, Time};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// Time for which a cookie proves an address and an answered request is known, microseconds.
pub(crate) const COOKIE_LIFE: u64 = 10_000_000;
/// Shortest life of a cookie, microseconds. Under any load a client has this long to return its
/// cookie.
const LEAST_LIFE: u64 = 1_000_000;
/// Most known requests.
pub(crate) const MAX_KNOWN_REQUESTS: usize = 1 << 15;
/// One network has at most one in this many of them.
const SHARE: usize = 4;
/// Most pending requests of one network in a small table, of which it may have half.
const SMALL: u32 = 16;

/// A keyed hash of the client's identifier and address, a quarter of their size. A client cannot
/// compute collisions.
pub(crate) type Key = u64;

/// The state of a request.
pub(crate) enum RequestState {
    /// It has, or had, a connection.
    Here { index: u32, id: u64 },
    /// It was accepted, and its client has not confirmed in time: it may ask anew.
    GivenUp,
    /// Refused by the program.
    Rejected { from: u64 },
    /// The same in a sealed handshake.
    Denied(Box<Denial>),
    /// Sent elsewhere.
    Redirected(Box<Redirection>),
}

/// A rejection, with its tag.
pub(crate) struct Denial {
    pub(crate) from: u64,
    pub(crate) tag: [u8; TAG],
}

/// Where a client was sent.
pub(crate) struct Redirection {
    pub(crate) from: u64,
    pub(crate) token: u64,
    pub(crate) uri: Box<[u8]>,
    pub(crate) tag: Option<[u8; TAG]>,
}

/// Where no request stands.
const NOWHERE: u32 = u32::MAX;

/// A request.
struct Request {
    key: Key,
    state: RequestState,
    network: u64,
    /// When it was answered; [`PENDING`] before.
    answered: Time,
    /// Neighbours among all answered requests, and among those of its network.
    of_all: Neighbours,
    of_network: Neighbours,
}

// A network has 8,192 of them at most.
const _: () = assert!(size_of::<Option<Request>>() <= 56);

/// The time of the answer of a pending request.
const PENDING: Time = Time(u64::MAX);

/// Places of the requests that were answered before and after one.
#[derive(Clone, Copy)]
struct Neighbours {
    older: u32,
    newer: u32,
}

/// Requests by their places.
type Requests = Places<Request, 64>;

/// Which list of answered requests: of all, or of a network.
type Which = fn(&mut Request) -> &mut Neighbours;
const OF_ALL: Which = |request| &mut request.of_all;
const OF_NETWORK: Which = |request| &mut request.of_network;

/// Answered requests, linked in the order of their answers.
struct Answered {
    oldest: u32,
    newest: u32,
}

impl Default for Answered {
    fn default() -> Self {
        Self { oldest: NOWHERE, newest: NOWHERE }
    }
}

impl Answered {
    /// Appends the newest.
    fn append(&mut self, requests: &mut Requests, at: u32, which: Which) {
        let older = core::mem::replace(&mut self.newest, at);
        if let Some(request) = requests.get_mut(at) {
            *which(request) = Neighbours { older, newer: NOWHERE };
        }
        match requests.get_mut(older) {
            Some(request) => which(request).newer = at,
            None => self.oldest = at,
        }
    }

    /// Takes one out of the list.
    fn remove(&mut self, requests: &mut Requests, request: &mut Request, which: Which) {
        let Neighbours { older, newer } = *which(request);
        match requests.get_mut(older) {
            Some(request) => which(request).newer = newer,
            None => self.oldest = newer,
        }
        match requests.get_mut(newer) {
            Some(request) => which(request).older = older,
            None => self.newest = older,
        }
    }
}

/// What a network has.
#[derive(Default)]
struct Network {
    /// Known requests, and how many of them are pending.
    known: usize,
    pending: u32,
    answered: Answered,
    /// Cookies up to this time are void.
    void: Time,
}

/// Recent requests.
pub(crate) struct Admission {
    requests: Requests,
    /// Their places by their keys, which are as random as identifiers.
    places: Ids,
    answered: Answered,
    networks: BTreeMap<u64, Network>,
    pending: u32,
    /// Cookies of every network up to this time are void.
    void: Time,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            requests: Requests::new(),
            places: Ids::new(),
            answered: Answered::default(),
            networks: BTreeMap::new(),
            pending: 0,
            void: Time(0),
        }
    }
}

impl Admission {
    fn find(&self, key: Key) -> Option<u32> {
        self.places.find(key, |at| self.requests.get(at).is_some_and(|request| request.key == key))
    }

    pub(crate) fn get(&self, key: Key) -> Option<&RequestState> {
        self.requests.get(self.find(key)?).map(|request| &request.state)
    }

    /// Returns when a request was answered.
    pub(crate) fn answered(&self, key: Key) -> Option<Time> {
        self.requests.get(self.find(key)?).map(|request| request.answered).filter(|at| *at != PENDING)
    }

    /// Returns the time up to which cookies of this network are void.
    pub(crate) fn void(&self, network: u64) -> Time {
        self.networks.get(&network).map_or(self.void, |of| of.void.max(self.void))
    }

    /// Whether another request of this network may be kept, if `most` of all may be pending.
    /// Forgets others for it where that leaves the cookies of the last second valid.
    pub(crate) fn has_room(&mut self, now: Time, network: u64, most: u32) -> bool {
        let of = self.networks.get(&network);
        let (known, pending) = of.map_or((0, 0), |of| (of.known, of.pending));
        if self.pending >= most || pending >= share(most) {
            return false;
        }
        let left = MAX_KNOWN_REQUESTS - self.requests.len().min(MAX_KNOWN_REQUESTS);
        // As with frame buffers: never more than is left for others, so that any number of greedy
        // networks leave some.
        if known > 0 && known >= left.min(MAX_KNOWN_REQUESTS / SHARE) {
            return self.forget_oldest_of(now, network);
        }
        left > 0 || self.forget_oldest(now)
    }

    /// Inserts a pending request. Returns false if there is no memory for it.
    pub(crate) fn insert(&mut self, key: Key, network: u64, index: u32, id: u64) -> bool {
        self.remove(key);
        let requests = &self.requests;
        let has_room = self.places.make_room(key, |at| key_of(requests, at)).is_some();
        let Some(at) = self.requests.reserve(NOWHERE).filter(|_| has_room) else { return false };
        let alone = Neighbours { older: NOWHERE, newer: NOWHERE };
        let state = RequestState::Here { index, id };
        let request = Request { key, state, network, answered: PENDING, of_all: alone, of_network: alone };
        self.requests.put(at, request);
        self.places.insert(key, at);
        let of = self.networks.entry(network).or_default();
        of.known += 1;
        of.pending += 1;
        self.pending += 1;
        true
    }

    /// Notes that a request has been answered; `state`: how, if not by a connection.
    pub(crate) fn answer(&mut self, now: Time, key: Key, state: Option<RequestState>) {
        let Some(at) = self.find(key) else { return };
        let Some(request) = self.requests.get_mut(at) else { return };
        if let Some(state) = state {
            request.state = state;
        }
        if request.answered != PENDING {
            return;
        }
        request.answered = now;
        let network = request.network;
        self.answered.append(&mut self.requests, at, OF_ALL);
        self.pending -= 1;
        if let Some(of) = self.networks.get_mut(&network) {
            of.answered.append(&mut self.requests, at, OF_NETWORK);
            of.pending -= 1;
        }
    }

    /// The request that was answered first of a list: when, and its key.
    fn oldest(&self, answered: &Answered) -> Option<(Time, Key)> {
        self.requests.get(answered.oldest).map(|request| (request.answered, request.key))
    }

    /// Whether one is old enough to be forgotten.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.oldest(&self.answered).is_some_and(|(at, _)| at.plus_micros(COOKIE_LIFE) < now)
    }

    /// Forgets those that no repeated frame can bring back, since every cookie of theirs is too
    /// old.
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some((_, key)) = self.oldest(&self.answered).filter(|(at, _)| at.plus_micros(COOKIE_LIFE) < now) {
            self.remove(key);
        }
    }

    /// A client gets no cookie while its request is known: none of those that are forgotten here
    /// has one that is newer than its answer.
    fn forget_oldest(&mut self, now: Time) -> bool {
        let Some((at, key)) = self.oldest(&self.answered).filter(|(at, _)| is_old(now, *at)) else { return false };
        self.void = self.void.max(at);
        self.remove(key);
        true
    }

    fn forget_oldest_of(&mut self, now: Time, network: u64) -> bool {
        let oldest = self.networks.get(&network).and_then(|of| self.oldest(&of.answered));
        let Some((at, key)) = oldest.filter(|(at, _)| is_old(now, *at)) else { return false };
        if let Some(of) = self.networks.get_mut(&network) {
            of.void = of.void.max(at);
        }
        self.remove(key);
        true
    }

    /// Removes a request, answered or not.
    pub(crate) fn remove(&mut self, key: Key) {
        let Some(at) = self.find(key) else { return };
        let requests = &self.requests;
        self.places.remove(key, |at| key_of(requests, at));
        let Some(mut request) = self.requests.remove(at) else { return };
        let is_pending = request.answered == PENDING;
        self.pending -= u32::from(is_pending);
        if !is_pending {
            self.answered.remove(&mut self.requests, &mut request, OF_ALL);
        }
        if let Some(of) = self.networks.get_mut(&request.network) {
            of.known -= 1;
            of.pending -= u32::from(is_pending);
            if !is_pending {
                of.answered.remove(&mut self.requests, &mut request, OF_NETWORK);
            }
            if of.known == 0 {
                // What it has forgotten stays forgotten.
                self.void = self.void.max(of.void);
                self.networks.remove(&request.network);
            }
        }
        if self.requests.is_empty() {
            // What very many requests at a time needed is not kept for ever.
            self.requests = Requests::new();
        }
    }

    /// Entries, for tests of their bound.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.requests.len().max(self.networks.len())
    }

    /// Pending requests, for tests.
    #[cfg(test)]
    pub(crate) fn pending(&self) -> u32 {
        self.pending
    }
}

/// The key of the request at a place.
fn key_of(requests: &Requests, at: u32) -> Key {
    requests.get(at).map_or(0, |request| request.key)
}

/// What one network may have pending of so many: a quarter; of a small table half.
fn share(most: u32) -> u32 {
    (most / 4).max(SMALL.min(most / 2)).max(1)
}

/// Returns whether an answered request may be forgotten for another one.
fn is_old(now: Time, at: Time) -> bool {
    at.plus_micros(LEAST_LIFE) < now
}

/// Returns the key of a client's request.
pub(crate) fn key(secret: [u64; 2], id: u64, address: &Address) -> Key {
    // A cookie is of two words: one is never taken for the other.
    keyed(secret, &[id], &address.0)
}

#[cfg(test)]
mod tests;
