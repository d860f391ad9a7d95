//! What comes from peers, and what has become of this side's messages and transfers.

use crate::inbox::Request;
use crate::network::{Arrival, Class, Ended, Event, Fate, Goal, Network, Reply};
use crate::side::{Early, Side, Wants};
use crate::sides::Sides;
use crate::wire::{Header, Opening, Verb, short_tag, words};
use crate::{Over, PATIENCE, longest};
use cci_proto::{Atomic, Failure, MAX_REQUEST, Rights};
use cci_transport::{Core, monotonic};

/// The connection that a message names, if it is of this sender.
#[inline]
fn side_of<N: Network>(sides: &mut Sides<N::Place>, origin: N::Origin, header: Header) -> Option<&mut Side<N::Place>> {
    let side = sides.get_mut(header.to)?;
    (N::is_from(side.peer, origin) && short_tag(side.tag) == header.tag).then_some(side)
}

impl<N: Network> Over<N> {
    /// Handles what has happened next. False: nothing has.
    pub(crate) fn take_event(&mut self, core: &mut Core) -> bool {
        let Some(event) = self.net.next(&self.registrations, &mut self.scratch) else { return false };
        match event {
            Event::Arrival(arrival) if arrival.class == Class::Unreliable => self.on_unreliable(core, &arrival),
            Event::Arrival(arrival) => {
                let scratch = std::mem::take(&mut self.scratch);
                let bytes = arrival.bytes(&scratch);
                match Header::of(arrival.header) {
                    None => self.strays += 1,
                    Some(header) if arrival.class == Class::Setup => self.on_setup(core, (&arrival, header), bytes),
                    Some(header) => self.on_arrival(core, (&arrival, header), bytes),
                }
                self.scratch = scratch;
            }
            Event::Ended(ended) => self.on_ended(core, ended),
            Event::Asked { side, reply } => self.on_asked(core, side, reply),
            Event::Stray => self.strays += 1,
            Event::Nothing => {}
        }
        true
    }

    /// What is for an endpoint, and not for a connection.
    fn on_setup(&mut self, core: &mut Core, (arrival, header): (&Arrival<N::Origin>, Header), bytes: &[u8]) {
        let is_fine = |payload: &[u8]| !arrival.has_failed && payload.len() <= MAX_REQUEST;
        let Some((opening, payload)) = Opening::parse(bytes).filter(|(_, payload)| is_fine(payload)) else {
            return self.strays += 1;
        };
        let from = self.net.at(arrival.origin, opening.endpoint);
        match header.verb {
            Verb::Request => self.on_request(core, Request { from, opening, payload: payload.to_vec() }),
            Verb::Withdraw => {
                self.inbox.withdraw(|request| request.from == from && request.opening.tag == opening.tag);
            }
            _ => self.strays += 1,
        }
    }

    /// Bytes of the longest that a peer may send on a connection. A network hands over what comes
    /// as it is.
    #[inline]
    fn most_of(&self, verb: Verb) -> usize {
        if verb == Verb::Message { self.max_send_size as usize } else { longest(self.max_send_size) }
    }

    /// A message that may be lost. Nothing that comes so changes a connection.
    #[inline]
    fn on_unreliable(&mut self, core: &mut Core, arrival: &Arrival<N::Origin>) {
        let Self { sides, inbox, scratch, .. } = self;
        let header = Header::of(arrival.header);
        let header = header.filter(|header| header.verb == Verb::Message);
        let side = header.and_then(|header| side_of::<N>(sides, arrival.origin, header));
        let Some(side) = side else { return self.strays += 1 };
        if arrival.has_failed {
            // Its bytes are not whole: the peer has died while they were read.
            let number = side.number;
            return self.break_side(core, number, Failure::Disconnected);
        }
        let bytes = arrival.bytes(scratch);
        if bytes.len() > self.max_send_size as usize {
            // No slot could take it.
            return self.strays += 1;
        }
        side.hear(self.now);
        let cell = side.cell;
        if !inbox.turns.is_empty() || !inbox.show_message(core, cell, bytes) {
            // No slot is free.
            cell.counters.on_dropped();
            core.counters().on_dropped();
        }
    }

    /// What is for a connection, and must not be lost.
    fn on_arrival(&mut self, core: &mut Core, (arrival, header): (&Arrival<N::Origin>, Header), bytes: &[u8]) {
        let Arrival { origin, has_failed, .. } = *arrival;
        let (now, most) = (self.now, self.most_of(header.verb));
        let side = side_of::<N>(&mut self.sides, origin, header);
        let Some(side) = side else { return self.on_late((arrival, header), bytes) };
        if has_failed {
            // Its bytes are not whole: the peer has died while they were read.
            return self.break_side(core, header.to, Failure::Disconnected);
        }
        if bytes.len() > most {
            // No slot could take it, and it would hold up what comes after it.
            self.strays += 1;
            return self.break_side(core, header.to, Failure::Disconnected);
        }
        side.hear(now);
        match header.verb {
            Verb::Message | Verb::Close | Verb::Atomic if side.keeps_too_much() => {
                // It has sent more than it has credits for, and would fill this memory.
                self.strays += 1;
                self.break_side(core, header.to, Failure::Disconnected);
            }
            Verb::Message | Verb::Close | Verb::Atomic if header.sequence == side.expected => {
                self.on_sequenced(core, header.to, header.verb, bytes);
                self.on_early(core, header.to);
            }
            Verb::Message | Verb::Close | Verb::Atomic => {
                let (sequence, verb) = (header.sequence, header.verb);
                side.early.push(Early { sequence, verb, payload: bytes.to_vec() });
            }
            Verb::Credit => {
                let wants = side.on_credit(core, &mut self.net, now);
                self.follow(header.to, wants);
            }
            Verb::NotReady => {
                side.is_refused = true;
                side.cell.counters.on_rnr();
                core.counters().on_not_ready();
            }
            Verb::Ping => {
                if !side.control(&mut self.net, Verb::Pong, &[]) {
                    self.owed.push_back((header.to, Verb::Pong));
                }
            }
            Verb::AtomicDone => {
                if let Some([serial, is_done, old]) = words(bytes) {
                    let wants = side.on_atomic(core, &mut self.net, (serial, (is_done == 1).then_some(old)), now);
                    self.follow(header.to, wants);
                }
            }
            Verb::Accept => self.on_accepted(core, (header.to, origin), bytes),
            Verb::Reject => self.end_connect(core, header.to, Failure::Refused),
            Verb::Redirect => self.on_redirected(core, header.to, bytes),
            Verb::Own => {
                let ended = side.way().and_then(|way| self.net.on_own(&way, &self.registrations, header, bytes));
                ended.into_iter().for_each(|ended| self.on_ended(core, ended));
            }
            Verb::Pong | Verb::Request | Verb::Withdraw | Verb::Data => {}
        }
    }

    /// What comes for a connection that has ended here, or never was.
    fn on_late(&mut self, (arrival, header): (&Arrival<N::Origin>, Header), bytes: &[u8]) {
        match header.verb {
            Verb::Close => self.sides.bury(header.to),
            // The connect has timed out meanwhile: nobody holds this end.
            Verb::Accept if !arrival.has_failed => {
                if let Some((opening, _)) = Opening::parse(bytes) {
                    let to = self.net.at(arrival.origin, opening.endpoint);
                    self.answer(to, (opening.number, opening.tag), Verb::Close, &[]);
                }
            }
            _ => self.strays += 1,
        }
    }

    /// What was sent before what came already.
    fn on_early(&mut self, core: &mut Core, number: u32) {
        while let Some(side) = self.sides.get_mut(number) {
            let at = side.early.iter().position(|early| early.sequence == side.expected);
            let Some(at) = at else { return };
            let early = side.early.swap_remove(at);
            self.on_sequenced(core, number, early.verb, &early.payload);
        }
    }

    /// The next message of a connection, or its end.
    fn on_sequenced(&mut self, core: &mut Core, number: u32, verb: Verb, bytes: &[u8]) {
        let Some(side) = self.sides.get_mut(number) else { return };
        side.expected = side.expected.wrapping_add(1);
        match verb {
            Verb::Close => self.on_close(core, number),
            Verb::Atomic => self.on_atomic_request(number, bytes),
            _ if !side.holds_messages && self.inbox.turns.is_empty() => {
                if self.inbox.show_message(core, side.cell, bytes) {
                    self.take_one(number);
                } else {
                    self.hold(core, number, bytes);
                }
            }
            _ => self.hold(core, number, bytes),
        }
    }

    /// The program has one more message of a connection.
    pub(crate) fn take_one(&mut self, number: u32) {
        if let Some(side) = self.sides.get_mut(number)
            && !side.take_one(&mut self.net)
        {
            self.owed.push_back((number, Verb::Credit));
        }
    }

    /// A peer asks for an atomic operation. The processor makes it one operation for everybody else
    /// who changes the word, and for the program that owns it.
    fn on_atomic_request(&mut self, number: u32, bytes: &[u8]) {
        let Some(side) = self.sides.get_mut(number) else { return };
        let Some([serial, bits, offset, kind, first, second]) = words(bytes) else { return };
        let (len, code) = (kind & 0xff, kind >> 8);
        let atomic = match code {
            0 => Atomic::FetchAdd(first),
            _ => Atomic::CompareSwap { expected: first, desired: second },
        };
        let memory = self.registrations.reach(bits, (number, side.tag), Rights::READ_WRITE);
        let memory = memory.filter(|_| Atomic::is_word(len));
        let old = memory.and_then(|(memory, _)| memory.update(offset, len as usize, |old| atomic.apply(old, len)));
        let words = [serial, u64::from(old.is_some()), old.unwrap_or_default()];
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // Without room its initiator waits until its send timeout.
        let _ = side.control(&mut self.net, Verb::AtomicDone, &payload);
        self.take_one(number);
    }

    /// A message or a transfer has ended.
    fn on_ended(&mut self, core: &mut Core, ended: Ended) {
        let now = self.now;
        let (number, serial) = match ended.goal {
            Goal::Stray => return,
            Goal::Control { side } => (side, 0),
            Goal::Message { side, serial } | Goal::Write { side, serial } | Goal::Read { side, serial } => {
                (side, serial)
            }
        };
        let Some(side) = self.sides.get_mut(number) else { return self.go_on(core) };
        let wants = match (ended.goal, ended.fate) {
            (_, Fate::Gone) => return self.break_side(core, number, Failure::Disconnected),
            (Goal::Message { .. }, _) => side.on_message(core, &mut self.net, serial, now),
            (Goal::Write { .. } | Goal::Read { .. }, fate) => {
                let outcome = if fate == Fate::Done { Ok(()) } else { Err(Failure::RemoteHandle) };
                side.on_data(core, &mut self.net, serial, outcome, now)
            }
            (Goal::Control { .. } | Goal::Stray, _) => Wants::default(),
        };
        self.follow(number, wants);
        self.go_on(core);
    }

    /// A request was dropped, or goes on to where its server is.
    fn on_asked(&mut self, core: &mut Core, number: u32, reply: Reply<N::Place>) {
        match reply {
            Reply::Nobody => self.end_connect(core, number, Failure::Refused),
            Reply::Again => self.ask_again(number, 5 * PATIENCE),
            Reply::Found(place) => {
                if let Some(side) = self.sides.get_mut(number).filter(|side| side.pending.is_some()) {
                    side.peer = place;
                    self.ask(number);
                }
            }
        }
    }

    /// Notes what a connection needs.
    pub(crate) fn follow(&mut self, number: u32, wants: Wants) {
        if wants.room {
            self.stalled.push_back(number);
        }
        if wants.probe {
            if self.alarm.is_none() {
                // Nothing was due, so that the clock was not read.
                self.now = monotonic();
            }
            self.remind(Some(self.now + PATIENCE));
        }
    }

    /// Has connections go on that waited for room.
    pub(crate) fn go_on(&mut self, core: &mut Core) {
        let mut left = self.stalled.len();
        while left > 0 && self.net.has_room() {
            left -= 1;
            let Some(number) = self.stalled.pop_front() else { return };
            let now = self.now;
            let side = self.sides.get_mut(number);
            let wants = side.map_or_else(Wants::default, |side| side.restart(core, &mut self.net, now));
            self.follow(number, wants);
        }
    }
}
