//! RMA by matched messages: the side that receives data posts a receive, and names its match bits.
//!
//! | operation | initiator | target |
//! |---|---|---|
//! | write | WRITE: registration and range | |
//! | | | posts a receive; READY: its match bits |
//! | | `mx_issend` of the data | |
//! | read | posts a receive; READ: registration, range and match bits | |
//! | | | `mx_isend` of the data |
//! | either | | REFUSED: no such registration, range or right |

use crate::network::Mx;
use crate::requests::{Aim, Bound, Flight};
use crate::sys::{End, Lent};
use crate::wire::{Own, Place, data, own_header};
use cci_mem::memory::Memory;
use cci_over::{Class, Ended, Fate, Goal, Network, Part, Put, Registrations, Way};
use cci_proto::Rights;
use std::sync::Arc;

/// Answers that wait for a buffer.
const MOST_OWED: usize = 4_096;
/// The steps of a random walk through all words (SplitMix64).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Mx {
    /// Match bits of data, which no other transfer to this endpoint has, and which nobody guesses.
    fn next_data(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(STEP);
        let mut word = self.seed;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        data(word ^ word >> 31)
    }

    fn send_own(&mut self, way: &Way<Place>, own: Own) -> bool {
        let Some(bytes) = self.requests.pool.write(&own.emit()) else { return false };
        let header = own_header(way.remote, way.tag);
        let put = Put { to: way.to, class: Class::Reliable, header, bytes: Some(bytes), ack: false };
        let is_sent = self.put(Goal::Control { side: way.number }, &put).has_begun();
        if !is_sent {
            self.requests.pool.give(bytes.0);
        }
        is_sent
    }

    /// Begins a write or a read. False: there is no room.
    pub(crate) fn begin_transfer(&mut self, goal: Goal, way: &Way<Place>, part: Part) -> bool {
        let Part { memory, bits, offset } = part;
        let len = memory.len();
        if u32::try_from(len).is_err() {
            // MX has no such message.
            self.ended.push_back(Ended { goal, fate: Fate::Refused });
            return true;
        }
        let is_write = matches!(goal, Goal::Write { .. });
        let flight = Flight { len, ..Flight::new(Aim::Of(goal)) };
        let token = self.requests.enter(flight);
        let number = u64::from(token);
        let own = if is_write {
            if let Some(flight) = self.requests.flights.get_mut(token) {
                flight.data = Some(memory);
            }
            Own::Write { token: number, bits, offset, len }
        } else {
            let word = self.next_data();
            if !self.requests.begin(token, self.end.receive(memory, word, token).ok()) {
                return false;
            }
            Own::Read { token: number, bits, offset, len, data: word }
        };
        let is_sent = self.send_own(way, own);
        if !is_sent {
            self.requests.cancel(&self.end, |aim| matches!(aim, Aim::Of(of) if *of == goal));
        }
        is_sent
    }

    /// What the network of a peer has sent on a connection.
    pub(crate) fn on_message(
        &mut self,
        way: &Way<Place>,
        registrations: &Registrations<Bound>,
        bytes: &[u8],
    ) -> Option<Ended> {
        match Own::parse(bytes)? {
            Own::Write { token, bits, offset, len } => {
                let (found, word) = (reach(registrations, way, (bits, offset, len), Rights::WRITE), self.next_data());
                let is_posted = found.is_some_and(|(memory, uses)| {
                    self.serve(way, uses, |end, token| end.receive(memory, word, token).ok())
                });
                self.answer(way, if is_posted { Own::Ready { token, data: word } } else { Own::Refused { token } });
            }
            Own::Read { token, bits, offset, len, data: word } => {
                let found = reach(registrations, way, (bits, offset, len), Rights::READ);
                let to = (way.to.address?, data(word));
                let is_sent = found.is_some_and(|(memory, uses)| {
                    self.serve(way, uses, |end, token| end.send(memory, to, token, false).ok())
                });
                if !is_sent {
                    self.answer(way, Own::Refused { token });
                }
            }
            Own::Ready { token, data: word } => {
                let (token, goal) = self.transfer_of(way, token)?;
                let memory = self.requests.flights.get_mut(token).and_then(|flight| flight.data.take())?;
                let sent = self.end.send(memory, (way.to.address?, data(word)), token, true);
                if !self.requests.begin(token, sent.ok()) {
                    return Some(Ended { goal, fate: Fate::Gone });
                }
            }
            Own::Refused { token } => {
                let (_, goal) = self.transfer_of(way, token)?;
                self.requests.cancel(&self.end, |aim| matches!(aim, Aim::Of(of) if *of == goal));
                return Some(Ended { goal, fate: Fate::Refused });
            }
        }
        None
    }

    /// A transfer of this side on a connection, by the token that its peer has sent back.
    fn transfer_of(&mut self, way: &Way<Place>, token: u64) -> Option<(u32, Goal)> {
        let token = u32::try_from(token).ok()?;
        match self.requests.flights.get_mut(token)?.aim {
            Aim::Of(goal @ (Goal::Write { side, .. } | Goal::Read { side, .. })) if side == way.number => {
                Some((token, goal))
            }
            _ => None,
        }
    }

    /// Begins a request for a peer.
    fn serve(&mut self, way: &Way<Place>, uses: Bound, begin: impl FnOnce(&End, u32) -> Option<Lent>) -> bool {
        if !self.requests.flights.has_room() {
            return false;
        }
        let token = self.requests.enter(Flight::new(Aim::Serve { side: way.number, _uses: uses }));
        let lent = begin(&self.end, token);
        self.requests.begin(token, lent)
    }

    fn answer(&mut self, way: &Way<Place>, own: Own) {
        // A peer for which more wait asks for too much: it waits until its send timeout.
        if !self.send_own(way, own) && self.owed.len() < MOST_OWED {
            self.owed.push_back((*way, own));
        }
    }

    /// Sends answers that found no buffer.
    pub(crate) fn send_owed(&mut self) {
        for _ in 0..self.owed.len() {
            let Some((way, own)) = self.owed.pop_front() else { return };
            self.answer(&way, own);
        }
    }
}

/// A part of a registration that the peer of a connection may use so, and what keeps it registered.
fn reach(
    registrations: &Registrations<Bound>,
    way: &Way<Place>,
    (bits, offset, len): (u64, u64, u64),
    rights: Rights,
) -> Option<(Memory, Bound)> {
    let (memory, uses) = registrations.reach(bits, (way.number, way.tag), rights)?;
    Some((memory.part(offset, len).filter(|part| u32::try_from(part.len()).is_ok())?, Arc::clone(uses)))
}
