//! Admission of connection requests: the known requests, and how many each network has. Every table
//! is bounded, and no network takes what others need.
//!
//! A request is *pending* from its admission until it is refused, redirected, closed, given up or confirmed. Then it is
//! *answered*, and known for as long as a cookie of its client can be valid, so that a repeated CONNECT is no second request.
//! An answered request is forgotten earlier only together with the validity of the cookies that are as old.

use super::random::keyed;
use crate::{Address, Time};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

/// Time for which a cookie proves an address and an answered request is known, microseconds.
pub(super) const COOKIE_LIFE: u64 = 10_000_000;
/// Shortest life of a cookie, microseconds. Under any load a client has this long to return its
/// cookie.
const LEAST_LIFE: u64 = 1_000_000;
/// Most known requests.
pub(super) const MOST: usize = 1 << 15;
/// One network has at most one in this many of them.
const SHARE: usize = 4;
/// Most pending requests of one network in a small table, of which it may have half.
const SMALL: u32 = 16;

/// A keyed hash of the client's identifier and address, a quarter of their size. A client cannot
/// compute collisions.
pub(super) type Key = u64;

/// The state of a request.
pub(super) enum RequestState {
    /// It has, or had, a connection.
    Here { index: u32, id: u64 },
    /// It was accepted, and its client has not confirmed in time: it may ask anew.
    GivenUp,
    /// Refused by the program.
    Rejected { from: u64 },
    /// Sent elsewhere.
    Redirected(Box<Redirection>),
}

/// Where a client was sent.
pub(super) struct Redirection {
    pub(super) from: u64,
    pub(super) token: u64,
    pub(super) uri: Box<[u8]>,
}

/// A request.
struct Request {
    state: RequestState,
    network: u64,
    /// When it was answered; none while it is pending.
    answered: Option<Time>,
}

/// What a network has.
#[derive(Default)]
struct Network {
    /// Known requests, and how many of them are pending.
    known: usize,
    pending: u32,
    /// Cookies up to this time are void.
    void: Time,
}

/// Recent requests.
#[derive(Default)]
pub(super) struct Admission {
    requests: BTreeMap<Key, Request>,
    /// Answered requests by the time of the answer: of all, and of each network.
    ages: BTreeSet<(Time, Key)>,
    ages_of: BTreeSet<(u64, Time, Key)>,
    networks: BTreeMap<u64, Network>,
    pending: u32,
    /// Cookies of every network up to this time are void.
    void: Time,
}

impl Admission {
    pub(super) fn get(&self, key: Key) -> Option<&RequestState> {
        self.requests.get(&key).map(|request| &request.state)
    }

    /// Returns when a request was answered.
    pub(super) fn answered(&self, key: Key) -> Option<Time> {
        self.requests.get(&key)?.answered
    }

    /// Returns the time up to which cookies of this network are void.
    pub(super) fn void(&self, network: u64) -> Time {
        self.networks.get(&network).map_or(self.void, |of| of.void.max(self.void))
    }

    /// Whether another request of this network may be kept, if `most` of all may be pending.
    /// Forgets others for it where that leaves the cookies of the last second valid.
    pub(super) fn has_room(&mut self, now: Time, network: u64, most: u32) -> bool {
        let of = self.networks.get(&network);
        let (known, pending) = of.map_or((0, 0), |of| (of.known, of.pending));
        if self.pending >= most || pending >= share(most) {
            return false;
        }
        let left = MOST - self.requests.len().min(MOST);
        // As with frame buffers: never more than is left for others, so that any number of greedy
        // networks leave some.
        if known > 0 && known >= left.min(MOST / SHARE) {
            return self.forget_oldest_of(now, network);
        }
        left > 0 || self.forget_oldest(now)
    }

    /// Inserts a pending request.
    pub(super) fn insert(&mut self, key: Key, network: u64, index: u32, id: u64) {
        self.remove(key);
        self.requests.insert(key, Request { state: RequestState::Here { index, id }, network, answered: None });
        let of = self.networks.entry(network).or_default();
        of.known += 1;
        of.pending += 1;
        self.pending += 1;
    }

    /// Notes that a request has been answered; `state`: how, if not by a connection.
    pub(super) fn answer(&mut self, now: Time, key: Key, state: Option<RequestState>) {
        let Some(request) = self.requests.get_mut(&key) else { return };
        if let Some(state) = state {
            request.state = state;
        }
        if request.answered.is_some() {
            return;
        }
        request.answered = Some(now);
        self.ages.insert((now, key));
        self.ages_of.insert((request.network, now, key));
        self.pending -= 1;
        if let Some(of) = self.networks.get_mut(&request.network) {
            of.pending -= 1;
        }
    }

    /// Whether one is old enough to be forgotten.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.ages.first().is_some_and(|(at, _)| at.plus_micros(COOKIE_LIFE) < now)
    }

    /// Forgets those that no repeated frame can bring back, since every cookie of theirs is too
    /// old.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some((at, key)) = self.ages.first().copied().filter(|(at, _)| at.plus_micros(COOKIE_LIFE) < now) {
            self.ages.remove(&(at, key));
            self.remove(key);
        }
    }

    /// A client gets no cookie while its request is known: none of those that are forgotten here
    /// has one that is newer than its answer.
    fn forget_oldest(&mut self, now: Time) -> bool {
        let Some((at, key)) = self.ages.first().copied().filter(|(at, _)| is_old(now, *at)) else { return false };
        self.void = self.void.max(at);
        self.remove(key);
        true
    }

    fn forget_oldest_of(&mut self, now: Time, network: u64) -> bool {
        let oldest = self.ages_of.range((network, Time(0), 0)..).next().copied();
        let Some((_, at, key)) = oldest.filter(|(of, at, _)| *of == network && is_old(now, *at)) else { return false };
        if let Some(of) = self.networks.get_mut(&network) {
            of.void = of.void.max(at);
        }
        self.remove(key);
        true
    }

    /// Removes a request, answered or not.
    pub(super) fn remove(&mut self, key: Key) {
        let Some(request) = self.requests.remove(&key) else { return };
        let is_pending = match request.answered {
            Some(at) => {
                self.ages.remove(&(at, key));
                self.ages_of.remove(&(request.network, at, key));
                false
            }
            None => true,
        };
        self.pending -= u32::from(is_pending);
        let Some(of) = self.networks.get_mut(&request.network) else { return };
        of.known -= 1;
        of.pending -= u32::from(is_pending);
        if of.known == 0 {
            // What it has forgotten stays forgotten.
            self.void = self.void.max(of.void);
            self.networks.remove(&request.network);
        }
    }

    /// Entries, for tests of their bound.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.requests.len().max(self.networks.len()).max(self.ages.len()).max(self.ages_of.len())
    }

    /// Pending requests, for tests.
    #[cfg(test)]
    pub(super) fn pending(&self) -> u32 {
        self.pending
    }
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
pub(super) fn key(secret: [u64; 2], id: u64, address: &Address) -> Key {
    // A cookie is of two words: one is never taken for the other.
    keyed(secret, &[id], &address.0)
}
