//! Requests as a server sees them: nothing is kept for a client before it has shown that it receives at its address, and one that
//! the network repeats, or the client because the answer was lost, is asked of the program once.

use super::Engine;
use super::conn::{Conn, State};
use super::handshake::{Opening, take_offer};
use super::host::{Event, Host, Index};
use super::random::keyed;
use super::reply::{Answer, back};
use crate::wire::{Connect, Header, Kind, Reason, Reject, Retry};
use crate::{Address, Time};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

/// How long a cookie proves an address, microseconds.
const COOKIE_LIFE: u64 = 10_000_000;
/// How long a request is known: longer than a cookie, so that no old frame brings it back.
const LIFE: u64 = 2 * COOKIE_LIFE;
/// Requests that are known at most; the oldest are forgotten for new ones.
const MOST: usize = 1 << 13;

/// A keyed hash of the client's identifier and address, which nobody finds another pair for: a quarter of their size.
pub(super) type Key = u64;

/// What became of a request.
pub(super) enum Known {
    /// It has, or had, a connection.
    Here {
        place: u32,
        id: u64,
    },
    Rejected {
        from: u64,
    },
    Redirected(Box<Redirected>),
}

/// Where a client was sent.
pub(super) struct Redirected {
    pub(super) from: u64,
    pub(super) token: u64,
    pub(super) uri: Box<[u8]>,
}

/// Requests seen lately.
pub(super) struct Requests {
    known: BTreeMap<Key, (Known, Time)>,
    /// When to forget which, in order; an entry counts if the request's own time is the same.
    ages: VecDeque<(Time, Key)>,
}

impl Requests {
    pub(super) const fn new() -> Self {
        Self { known: BTreeMap::new(), ages: VecDeque::new() }
    }

    pub(super) fn insert(&mut self, now: Time, key: Key, known: Known) {
        let until = now.plus_micros(LIFE);
        while self.ages.len() >= MOST {
            self.forget_first();
        }
        self.known.insert(key, (known, until));
        self.ages.push_back((until, key));
    }

    /// Whether one is old enough to be forgotten.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.ages.front().is_some_and(|(until, _)| *until <= now)
    }

    fn get(&self, key: &Key) -> Option<&Known> {
        self.known.get(key).map(|(known, _)| known)
    }

    fn forget_first(&mut self) {
        if let Some((until, key)) = self.ages.pop_front()
            && self.known.get(&key).is_some_and(|(_, own)| *own == until)
        {
            self.known.remove(&key);
        }
        // What many at a time needed is not kept for ever.
        if self.ages.len() * 8 < self.ages.capacity() {
            self.ages.shrink_to(2 * self.ages.len());
        }
    }

    /// Entries, for tests of their bound.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.ages.len().max(self.known.len())
    }
}

impl Engine {
    /// A client asks.
    pub(super) fn on_connect<H: Host>(&mut self, now: Time, from: &Address, connect: &Connect<'_>, host: &mut H) {
        let key = self.key(connect.header.from, from);
        let reject = |from| {
            let header = Header { from, ..back(&connect.header, Kind::Reject) };
            Answer::Reject(Reject { header, reason: Reason::Program, cookie: connect.cookie })
        };
        let answer = match self.requests.get(&key) {
            Some(Known::Here { place, id }) => {
                let (place, id) = (*place, *id);
                if self.table.find(id) == Some(place) {
                    return self.repeat_accept(place);
                }
                // Closed before the client heard that it was accepted.
                reject(id)
            }
            Some(Known::Rejected { from }) => reject(*from),
            Some(Known::Redirected(there)) if connect.token == 0 || connect.token != there.token => {
                let header = Header { from: there.from, ..back(&connect.header, Kind::Redirect) };
                Answer::Redirect { header, cookie: connect.cookie, token: there.token, uri: there.uri.clone() }
            }
            Some(Known::Redirected(_)) | None if self.is_proven(now, from, connect) => {
                return self.admit(now, from, connect, host);
            }
            Some(Known::Redirected(_)) | None => {
                let cookie_time = now.micros();
                let cookie = self.cookie(now, from, connect.header.from, cookie_time);
                Answer::Retry(Retry { header: back(&connect.header, Kind::Retry), cookie, cookie_time })
            }
        };
        self.reply(*from, answer);
    }

    /// The client has not heard of its acceptance.
    fn repeat_accept(&mut self, place: u32) {
        if let Some(opening) = self.openings.get_mut(&place)
            && self.table.get(place).is_some_and(|conn| conn.state == State::Accepting)
        {
            opening.hurry();
            self.make_ready(place);
        }
    }

    /// What a client's request is known by.
    pub(super) fn key(&self, id: u64, address: &Address) -> Key {
        // A cookie is of two words: one is never taken for the other.
        keyed(self.cookie_key, &[id], &address.0)
    }

    /// Whether the client has shown that it receives at its address.
    fn is_proven(&self, now: Time, from: &Address, connect: &Connect<'_>) -> bool {
        u64::from(now.micros().wrapping_sub(connect.cookie_time)) <= COOKIE_LIFE
            && connect.cookie == self.cookie(now, from, connect.header.from, connect.cookie_time)
    }

    /// The whole time goes into it: what travels wraps after 71 minutes.
    fn cookie(&self, now: Time, from: &Address, id: u64, time: u32) -> u64 {
        let age = u64::from(now.micros().wrapping_sub(time));
        keyed(self.cookie_key, &[id, (now.0 / 1000).wrapping_sub(age)], &from.0)
    }

    /// A new request of a client whose address is proven.
    fn admit<H: Host>(&mut self, now: Time, from: &Address, connect: &Connect<'_>, host: &mut H) {
        let key = self.key(connect.header.from, from);
        let Some((place, id)) = self.table.take(&mut self.random) else {
            let reject = Reject {
                header: back(&connect.header, Kind::Reject),
                reason: Reason::Resources,
                cookie: connect.cookie,
            };
            return self.reply(*from, Answer::Reject(reject));
        };
        let mut conn = Conn::new(id, connect.header.from, *from, connect.offer.attribute, 0);
        self.first_seq(&mut conn);
        conn.state = State::Requested;
        conn.note_number(connect.header.number, connect.header.time, now.micros());
        take_offer(&mut conn, &connect.offer, &self.config);
        self.table.put(place, conn);
        self.openings.insert(place, Opening::of_request(connect.cookie));
        let attribute = connect.offer.attribute;
        let expected = self.expected.iter().position(|token| *token == connect.token).filter(|_| connect.token != 0);
        let event = match expected {
            Some(_) => Event::Expected { attribute, token: connect.token },
            None => Event::Request { attribute, payload: connect.payload },
        };
        if !host.event(Index(place), 0, event) {
            return self.remove(place);
        }
        if let Some(at) = expected {
            self.expected.swap_remove(at);
        }
        self.requests.insert(now, key, Known::Here { place, id });
    }

    /// Requests that no repeated frame can bring back, since its cookie is too old; one that the program still thinks about
    /// is kept.
    pub(super) fn forget_requests(&mut self, now: Time) {
        while let Some((until, key)) = self.requests.ages.front().copied().filter(|(until, _)| *until <= now) {
            let pending = match self.requests.known.get(&key) {
                Some((Known::Here { place, id }, own)) if *own == until => {
                    let state = self.table.find(*id).and_then(|found| self.table.get(found)).map(|conn| conn.state);
                    matches!(state, Some(State::Requested | State::Accepting))
                        .then_some(Known::Here { place: *place, id: *id })
                }
                _ => None,
            };
            self.requests.forget_first();
            if let Some(known) = pending {
                self.requests.insert(now, key, known);
            }
        }
    }
}
