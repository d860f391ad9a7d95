//! What comes from peers, and what has become of this side's puts and gets.

use crate::Portals;
use crate::blocks::BLOCK;
use crate::inbox::Request;
use crate::net::{Ended, Goal, Net};
use crate::side::{Early, PATIENCE};
use crate::sys::{Event, Kind, Process};
use crate::wire::{Address, Class, Header, Opening, Verb, short_tag, words};
use cci_proto::{Atomic, Failure};
use cci_transport::Core;

/// What a put brings besides its bytes.
#[derive(Clone, Copy)]
struct Arrival {
    initiator: Process,
    header: Header,
    class: Class,
    has_failed: bool,
}

impl Portals {
    /// Handles an event.
    pub(crate) fn on_event(&mut self, core: &mut Core, event: &Event) {
        match event.kind {
            Kind::PutEnd if event.user >> 32 == BLOCK => self.on_put(core, event),
            Kind::Unlink if event.user >> 32 == BLOCK => self.on_spent(event.user),
            Kind::SendEnd => {
                let ended =
                    Net::token(event.user, event.bits).and_then(|token| self.net.on_sent(token, !event.has_failed));
                ended.into_iter().for_each(|ended| self.on_ended(core, &ended));
            }
            Kind::Ack | Kind::ReplyEnd => {
                let token = Net::token(event.user, event.bits);
                let ended = token.and_then(|token| self.net.on_answered(token, !event.has_failed));
                ended.into_iter().for_each(|ended| self.on_ended(core, &ended));
            }
            Kind::PutEnd | Kind::Unlink | Kind::Other => {}
        }
    }

    /// A block is full.
    fn on_spent(&mut self, user: u64) {
        let class = user >> 24 & 0xff;
        let blocks = match class {
            0 => &mut self.reliable,
            1 => &mut self.unreliable,
            _ => &mut self.setup,
        };
        if !blocks.refill(&self.net.interface, user) {
            self.is_short = true;
        }
    }

    fn on_put(&mut self, core: &mut Core, event: &Event) {
        let (Some(header), Some(class)) = (Header::of(event.header), Address::class(event.bits)) else {
            return self.strays += 1;
        };
        let mut bytes = std::mem::take(&mut self.scratch);
        let len = usize::try_from(event.len).unwrap_or(usize::MAX).min(bytes.len());
        let blocks = match class {
            Class::Reliable => &self.reliable,
            Class::Unreliable => &self.unreliable,
            _ => &self.setup,
        };
        let is_whole = blocks.copy_out(event.user, event.offset, &mut bytes[..len]);
        let arrival = Arrival { initiator: event.initiator, header, class, has_failed: event.has_failed || !is_whole };
        if class == Class::Setup {
            self.on_setup(core, &arrival, &bytes[..len]);
        } else {
            self.on_arrival(core, &arrival, &bytes[..len]);
        }
        self.scratch = bytes;
    }

    /// What is for an endpoint, and not for a connection.
    fn on_setup(&mut self, core: &mut Core, arrival: &Arrival, bytes: &[u8]) {
        let Some((opening, payload)) = Opening::parse(bytes).filter(|_| !arrival.has_failed) else {
            return self.strays += 1;
        };
        let from = Address { process: arrival.initiator, number: opening.endpoint };
        match arrival.header.verb {
            Verb::Request => self.on_request(core, Request { from, opening, payload: payload.to_vec() }),
            Verb::Withdraw => {
                self.inbox.withdraw(|request| request.from == from && request.opening.tag == opening.tag);
            }
            _ => self.strays += 1,
        }
    }

    /// What is for a connection.
    fn on_arrival(&mut self, core: &mut Core, arrival: &Arrival, bytes: &[u8]) {
        let Arrival { initiator, header, class, has_failed } = *arrival;
        let now = self.now;
        let side = self.sides.get_mut(header.to);
        let side = side.filter(|side| side.peer.process == initiator && short_tag(side.tag) == header.tag);
        let Some(side) = side else { return self.on_late(arrival, bytes) };
        if has_failed {
            // Its bytes are not whole: the peer has died while they were read.
            return self.break_side(core, header.to, Failure::Disconnected);
        }
        side.hear(now);
        if class == Class::Unreliable {
            if header.verb == Verb::Message {
                self.show_or_drop(core, header.to, bytes);
            }
            return;
        }
        match header.verb {
            Verb::Message | Verb::Close | Verb::Atomic if header.sequence == side.expected => {
                self.on_sequenced(core, header.to, header.verb, bytes);
                self.on_early(core, header.to);
            }
            Verb::Message | Verb::Close | Verb::Atomic => {
                let (sequence, verb) = (header.sequence, header.verb);
                side.early.push(Early { sequence, verb, payload: bytes.to_vec() });
            }
            Verb::Credit => {
                let waits = side.on_credit(core, &mut self.net, now);
                self.stall(header.to, waits);
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
                    side.on_atomic(core, &mut self.net, (serial, (is_done == 1).then_some(old)), now);
                }
            }
            Verb::Accept => self.on_accepted(core, header.to, bytes),
            Verb::Reject => self.end_connect(core, header.to, Failure::Refused),
            Verb::Redirect => self.on_redirected(core, header.to, bytes),
            Verb::Pong | Verb::Request | Verb::Withdraw => {}
        }
    }

    /// What comes for a connection that has ended here, or never was.
    fn on_late(&mut self, arrival: &Arrival, bytes: &[u8]) {
        match arrival.header.verb {
            Verb::Close => self.sides.bury(arrival.header.to),
            // The connect has timed out meanwhile: nobody holds this end.
            Verb::Accept if !arrival.has_failed => {
                if let Some((opening, _)) = Opening::parse(bytes) {
                    let to = Address { process: arrival.initiator, number: opening.endpoint };
                    self.answer(to, (opening.number, opening.tag), Verb::Close, &[]);
                }
            }
            _ => self.strays += 1,
        }
    }

    /// An unreliable message: shown, or dropped where no slot is free.
    fn show_or_drop(&mut self, core: &mut Core, number: u32, bytes: &[u8]) {
        let Some(side) = self.sides.get_mut(number) else { return };
        if !self.inbox.turns.is_empty() || !self.inbox.show_message(core, side.cell, bytes) {
            side.cell.counters.on_dropped();
            core.counters().on_dropped();
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
            _ if side.backlog.is_empty() && self.inbox.turns.is_empty() => {
                if self.inbox.show_message(core, side.cell, bytes) {
                    self.take_one(number);
                } else {
                    side.backlog.push_back(bytes.to_vec());
                    self.inbox.turns.push_back(number);
                }
            }
            _ => {
                if side.backlog.is_empty() {
                    self.inbox.turns.push_back(number);
                }
                side.backlog.push_back(bytes.to_vec());
            }
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
        let memory = self.registrations.word(bits, (number, side.tag)).filter(|_| Atomic::is_word(len));
        let old = memory.and_then(|memory| memory.update(offset, len as usize, |old| atomic.apply(old, len)));
        let words = [serial, u64::from(old.is_some()), old.unwrap_or_default()];
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if !side.control(&mut self.net, Verb::AtomicDone, &payload) {
            // Its initiator waits until its send timeout.
            self.is_short = true;
        }
        self.take_one(number);
    }

    /// A put or a get has ended.
    fn on_ended(&mut self, core: &mut Core, ended: &Ended) {
        let (now, is_done) = (self.now, ended.is_done);
        let (number, serial) = match ended.goal {
            Goal::Stray => return,
            Goal::Control { side } | Goal::Request { side } | Goal::Here { side } | Goal::AfterRequest { side } => {
                (side, 0)
            }
            Goal::Message { side, serial }
            | Goal::Write { side, serial }
            | Goal::Read { side, serial }
            | Goal::Probe { side, serial }
            | Goal::AfterProbe { side, serial } => (side, serial),
        };
        let Some(side) = self.sides.get_mut(number) else { return self.go_on(core) };
        let waits = match ended.goal {
            Goal::Request { .. } | Goal::Here { .. } | Goal::AfterRequest { .. } => {
                return self.on_asked(core, number, ended);
            }
            Goal::Read { .. } => {
                let outcome = if is_done { Ok(()) } else { Err(Failure::RemoteHandle) };
                side.on_data(core, &mut self.net, serial, outcome, now)
            }
            // The peer's process has ended.
            _ if !is_done => return self.break_side(core, number, Failure::Disconnected),
            Goal::Message { .. } => side.on_message(core, &mut self.net, serial, now),
            Goal::Write { .. } => side.on_data(core, &mut self.net, serial, Ok(()), now),
            Goal::AfterProbe { .. } => {
                // Its probe was dropped, and so was the write, if both are still there.
                let probe = Goal::Probe { side: number, serial };
                let write = Goal::Write { side: number, serial };
                if !self.net.has(probe) || !self.net.has(write) {
                    return;
                }
                self.net.cancel(|goal| goal == probe || goal == write);
                side.on_data(core, &mut self.net, serial, Err(Failure::RemoteHandle), now)
            }
            Goal::Control { .. } | Goal::Probe { .. } | Goal::Stray => false,
        };
        self.stall(number, waits);
        self.go_on(core);
    }

    /// A request has arrived, or the sentinel behind it.
    fn on_asked(&mut self, core: &mut Core, number: u32, ended: &Ended) {
        if !ended.is_done {
            return self.end_connect(core, number, Failure::Refused);
        }
        let Goal::AfterRequest { side } = ended.goal else { return };
        let (request, here) = (Goal::Request { side }, Goal::Here { side });
        if !self.net.has(request) {
            return;
        }
        // It was dropped: nobody has that number, or there is no room.
        let is_nobody = self.net.has(here);
        self.net.cancel(|goal| goal == request || goal == here);
        if is_nobody {
            return self.end_connect(core, number, Failure::Refused);
        }
        let retry = self.now + 5 * PATIENCE;
        if let Some(pending) = self.sides.get_mut(number).and_then(|side| side.pending.as_mut()) {
            pending.retry = Some(retry);
        }
        self.remind(Some(retry));
    }

    /// Notes a connection that waits for room in the interface.
    pub(crate) fn stall(&mut self, number: u32, waits: bool) {
        if waits {
            self.stalled.push_back(number);
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
            let waits = side.is_some_and(|side| side.restart(core, &mut self.net, now));
            self.stall(number, waits);
        }
    }
}
