//! Sending: messages, and what leaves when.

use super::posted::{Data, Ending};
use super::shared::{Cause, OUT, Shared};
use super::work::{Behind, Sent, Waiting};
use super::{Lane, Phase};
use crate::frame::{Header, Kind, OF_OPERATION, OPERATION, WANT};
use crate::sys;
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, SendError};
use cci_transport::{Connection, Core, Message, Posted, Slot, monotonic};
use rustix::io::Errno;

/// Messages of unreliable connections are dropped while so many bytes wait.
const DATAGRAMS: usize = 16 << 10;

/// How a message is to end, whose time begins now.
pub(crate) fn ending(slot: &'static Slot, cell: &'static Connection, posted: Posted) -> Ending {
    Ending { slot, cell, posted, deadline: cell.send_deadline(monotonic) }
}

impl Lane {
    /// Sends a message of an open connection.
    #[inline]
    pub(crate) fn send(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        cell: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        if self.phase != Phase::Open {
            return Err(SendError::Disconnected);
        }
        let slot = core.take_send().ok_or(SendError::NoBuffers)?;
        let len = message.len();
        cell.on_begun();
        if cell.attribute() == Attribute::Unreliable {
            let is_sent = self.send_datagram(s, core, cell, &message);
            let counters = core.counters();
            if is_sent {
                cell.counters.on_sent();
                counters.on_sent(len);
            } else {
                cell.counters.on_dropped();
                counters.on_dropped();
            }
            // The end of an unreliable message promises nothing about the receiver.
            core.end_operation(slot, cell, posted, Ok(()));
            return Ok((posted == Posted::Waited).then_some(slot));
        }
        cell.counters.on_sent();
        core.counters().on_sent(len);
        s.open_operations += 1;
        let ending = ending(slot, cell, posted);
        if let Some(deadline) = ending.deadline {
            s.check_by(deadline);
        }
        let may_answer = std::mem::take(&mut self.may_answer);
        let work = self.work(s);
        let is_alone = work.in_flight.is_empty();
        let is_held = !work.holds.is_empty() && work.hold_of(cell).is_some();
        if is_held || !work.waiting.is_empty() || !self.may_put(len) {
            let data = Data::copy(&message, || s.buffer());
            let waiting = Waiting { data, cell, sent: Sent::Message(ending), write: None };
            self.wait(s, core, waiting);
        } else {
            if self.given.may_tell() {
                self.pay(s);
            }
            self.put_message(s, cell, &message, None);
            self.work(s).in_flight.push_back(Sent::Message(ending));
            if is_alone || may_answer || posted == Posted::Waited {
                self.flush(s, core);
            } else {
                self.activate(s);
            }
        }
        Ok((posted == Posted::Waited).then_some(slot))
    }

    /// Whether a message of so many bytes may be put behind what leaves next.
    #[inline]
    fn may_put(&self, len: usize) -> bool {
        self.credit.is_left() && (self.out.is_empty() || self.out.left().len() + len <= OUT)
    }

    /// Keeps a message until there is a grant and room, or until its connection's turn.
    fn wait(&mut self, s: &mut Shared, core: &mut Core, waiting: Waiting) {
        let has_credit = self.credit.is_left();
        let work = self.work(s);
        let cell = waiting.cell;
        if let Some(hold) = work.hold_of(cell) {
            hold.behind.push_back(Behind::Message(waiting));
        } else {
            work.waiting.push_back(waiting);
            if !has_credit {
                self.want(s);
                cell.counters.on_rnr();
                core.counters().on_not_ready();
            }
            self.activate(s);
        }
    }

    /// Tells the peer that messages wait for grants, once until there is one.
    fn want(&mut self, s: &mut Shared) {
        if !self.wants {
            self.wants = true;
            if self.given.recalled {
                return self.put(s, Kind::Pong, WANT, 0, &[]);
            }
            let limit = self.given.tell();
            self.put(s, Kind::Grant, WANT, 0, &[&limit.to_le_bytes()]);
        }
    }

    /// Puts a message behind what leaves next, for its caller to have it sent. There is a grant.
    /// `write`: the number of the write that it belongs to.
    #[inline]
    fn put_message(&mut self, s: &mut Shared, cell: &'static Connection, message: &Message<'_>, write: Option<u32>) {
        if self.out.is_bare() {
            self.out.set_buffer(s.buffer());
        }
        self.credit.on_sent();
        let connection = cell.remote.load(Ordering::Relaxed);
        let mut header =
            Header { len: message.len(), kind: Kind::Message, flags: 0, connection, taken: self.given.taken };
        self.untold = false;
        match write {
            None => self.out.message(&header, message),
            Some(write) => {
                (header.len, header.flags) = (OPERATION + message.len(), OF_OPERATION);
                self.out.frame(&header, &[&write.to_le_bytes()]);
                message.copy_to(self.out.room(message.len()));
            }
        }
    }

    /// Sends a message of an unreliable connection, or drops it. Returns whether it was sent.
    fn send_datagram(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        cell: &'static Connection,
        message: &Message<'_>,
    ) -> bool {
        let is_full = !self.out.is_empty() && self.out.left().len() + message.len() > DATAGRAMS;
        if is_full || self.is_blocked {
            return false;
        }
        if self.out.is_bare() {
            self.out.set_buffer(s.buffer());
        }
        let is_alone = self.out.is_empty();
        let connection = cell.remote.load(Ordering::Relaxed);
        let header = Header { len: message.len(), kind: Kind::Datagram, flags: 0, connection, taken: self.given.taken };
        self.untold = false;
        self.out.message(&header, message);
        if is_alone {
            self.flush(s, core);
        } else {
            self.activate(s);
        }
        true
    }

    /// Puts the message of an operation behind what leaves next, or lets it wait.
    pub(crate) fn send_of_operation(&mut self, s: &mut Shared, core: &mut Core, place: u32) {
        let work = self.work(s);
        let Some(operation) = work.operations.get_mut(place) else { return };
        let (cell, write) = (operation.ending.cell, operation.number);
        let Some(data) = operation.message.take() else { return };
        let sent = if write.is_some() { Sent::Nothing } else { Sent::Operation(place, cell) };
        let waiting = Waiting { data, cell, sent, write };
        if work.waiting.is_empty() && self.may_put(waiting.data.bytes().len()) {
            self.put_waiting(s, waiting);
        } else {
            // Not behind the operation itself.
            let has_credit = self.credit.is_left();
            self.work(s).waiting.push_back(waiting);
            if !has_credit {
                self.want(s);
                cell.counters.on_rnr();
                core.counters().on_not_ready();
            }
            self.activate(s);
        }
    }

    fn put_waiting(&mut self, s: &mut Shared, waiting: Waiting) {
        let Waiting { data, cell, sent, write } = waiting;
        self.put_message(s, cell, &Message::from(data.bytes()), write);
        self.work(s).in_flight.push_back(sent);
        s.reuse(data.into_buffer());
        self.activate(s);
    }

    /// Puts messages that wait behind what leaves next, as far as there are grants and room.
    fn put_all_waiting(&mut self, s: &mut Shared) {
        while let Some(work) = &mut self.work
            && let Some(waiting) = work.waiting.front()
        {
            let len = waiting.data.bytes().len();
            if !self.may_put(len) {
                if !self.credit.is_left() {
                    self.want(s);
                }
                return;
            }
            let Some(waiting) = self.work(s).waiting.pop_front() else { return };
            self.put_waiting(s, waiting);
        }
    }

    /// Sends what leaves next, as far as the stream takes it: the rest of a fragment, frames, and
    /// then one more fragment. Active again if more is left that could leave.
    pub(crate) fn flush(&mut self, s: &mut Shared, core: &mut Core) {
        if !matches!(self.phase, Phase::Open | Phase::Greeting) {
            return;
        }
        // Those that are checked are short.
        let mut fragments = if self.checks { 16 } else { 1 };
        loop {
            match self.flush_step(s, core, &mut fragments) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Errno::AGAIN) => {
                    self.is_blocked = true;
                    self.watch_room(s, true);
                    self.activate(s);
                    self.feed(s, core);
                    return;
                }
                Err(error) => return self.on_send_failed(s, error),
            }
        }
        if self.is_blocked {
            self.is_blocked = false;
            self.watch_room(s, false);
            if self.is_owing() {
                self.owe(s);
            }
        }
        self.give_buffer_back(s);
    }

    /// The stream takes no bytes any more.
    #[cold]
    fn on_send_failed(&mut self, s: &mut Shared, error: Errno) {
        if error == Errno::KEYREJECTED {
            return self.on_unsealed(s);
        }
        if !sys::is_end_of_stream(error) {
            let has_fragment = self.work.as_ref().is_some_and(|work| work.fragment.is_some());
            return self.end_refused(s, if has_fragment { "sendmsg" } else { "sendto" }, error);
        }
        // What has arrived is read first: the end of the stream comes behind it.
        self.out.take_buffer();
        self.is_blocked = true;
        self.watch_room(s, false);
    }

    /// Sends one thing. False: nothing is left for this call.
    fn flush_step(&mut self, s: &mut Shared, core: &mut Core, fragments: &mut u32) -> Result<bool, Errno> {
        let Some(socket) = &self.socket else { return Ok(false) };
        if let Some(seal) = &mut self.seal {
            seal.push(s, socket)?;
        }
        if let Some(work) = &mut self.work
            && work.fragment.is_some()
        {
            return self.flush_fragment(s, core);
        }
        if !self.out.is_empty() {
            let left = self.out.left();
            let count = match self.seal.as_mut().filter(|seal| seal.is_open()) {
                Some(seal) => seal.send(s, socket, left)?,
                None => sys::send(socket, left)?,
            };
            if count < left.len() {
                self.out.on_left(count);
                // A record takes less than all; what the stream does not take of it leaves next.
                return if self.seal.is_some() { Ok(true) } else { Err(Errno::AGAIN) };
            }
            self.out.on_left(count);
            self.answers = 0;
            if self.work.as_ref().is_some_and(|work| !work.waiting.is_empty()) {
                self.put_all_waiting(s);
            }
            return Ok(true);
        }
        if self.work.as_ref().is_some_and(|work| !work.waiting.is_empty()) {
            // Where there is no grant, this asks for some.
            self.put_all_waiting(s);
            if !self.out.is_empty() {
                return Ok(true);
            }
        }
        if *fragments == 0 || self.phase != Phase::Open {
            if self.phase == Phase::Open && self.has_rma_to_send() {
                self.activate(s);
            }
            return Ok(false);
        }
        *fragments -= 1;
        Ok(self.begin_fragment(s, core))
    }

    /// The peer has taken messages.
    #[inline]
    pub(super) fn on_taken(&mut self, s: &mut Shared, core: &mut Core, taken: u32) {
        let Some(count) = self.credit.on_taken(taken) else { return self.end(s, Cause::Violation) };
        for _ in 0..count {
            let Some(sent) = self.work.as_mut().and_then(|work| work.in_flight.pop_front()) else { return };
            match sent {
                Sent::Message(ending) => s.end(core, ending, Ok(())),
                Sent::Operation(place, _) => self.end_operation(s, core, place, Ok(())),
                Sent::Nothing => {}
            }
        }
        if count > 0 && self.work.as_ref().is_some_and(|work| !work.holds.is_empty()) {
            self.check_holds(s, core);
        }
    }

    /// The peer has granted messages.
    pub(super) fn on_grant(&mut self, s: &mut Shared, limit: u32) {
        if !self.credit.on_granted(limit) {
            return self.end(s, Cause::Violation);
        }
        self.is_refused = self.wants && !self.credit.is_left();
        if self.credit.is_left() {
            self.wants = false;
            if self.work.as_ref().is_some_and(|work| !work.waiting.is_empty()) {
                self.put_all_waiting(s);
            }
        }
    }
}
