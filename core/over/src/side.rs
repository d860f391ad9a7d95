//! One end of a connection: its operations in order, its credits, and what arrives for it.

use crate::inbox::Request;
use crate::network::{Buffer, Class, Goal, Network, Part, Put, Sent, Way};
use crate::wire::{Verb, header};
use cci_mem::memory::Memory;
use cci_mem::sync::Ordering;
use cci_proto::{Access, Atomic, Failure, Time};
use cci_transport::{Connection, ConnectionState, Core, Posted, Slot};
use std::collections::VecDeque;
use std::time::Duration;

/// How long a write waits for its ack before its target is asked whether it has dropped it.
pub const PATIENCE: Duration = Duration::from_millis(1);
/// Atomic operations of a connection under way: their answers need room at this side.
const MOST_ATOMICS: usize = 2;

/// A connect that waits for its answer.
pub(crate) struct PendingConnect<P> {
    /// Reserved for the CONNECT event, so that the event always finds a slot.
    pub(crate) slot: &'static Slot,
    pub(crate) context: u64,
    pub(crate) deadline: Option<Time>,
    /// What the server is sent; `from` is this endpoint.
    pub(crate) request: Request<P>,
    /// When to send the request again: the server had no room for it.
    pub(crate) retry: Option<Time>,
}

/// What a connection needs once operations were started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    /// A turn, when the library has room.
    pub(crate) room: bool,
    /// A look after [`PATIENCE`]: a write has begun, and may be dropped.
    pub(crate) probe: bool,
}

/// How an operation has ended.
type Outcome = Result<(), Failure>;

/// The data of an RMA.
pub(crate) struct Transfer {
    pub(crate) memory: Memory,
    /// The match bits of the target; `None`: nobody has given this handle.
    pub(crate) bits: Option<u64>,
    pub(crate) remote_offset: u64,
    pub(crate) access: Access,
    pub(crate) is_fence: bool,
}

impl Transfer {
    /// What the network moves; `None`: nobody has given this handle.
    fn part(&self) -> Option<Part> {
        Some(Part { memory: self.memory.clone(), bits: self.bits?, offset: self.remote_offset })
    }
}

/// What an operation is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// Data under way since then; whether the target was asked about them.
    Data(Time, bool),
    /// Data are there, and the message is to be sent.
    Between,
    Message,
}

impl Stage {
    fn is_data(self) -> bool {
        matches!(self, Self::Data(..))
    }
}

/// An operation that is not over.
struct Operation {
    slot: &'static Slot,
    posted: Posted,
    deadline: Option<Time>,
    transfer: Option<Transfer>,
    /// A buffer with the message.
    message: Option<Buffer>,
    stage: Stage,
    /// How it has ended. The event waits for earlier operations.
    outcome: Option<Outcome>,
}

impl Operation {
    /// A write whose data are under way since then, and whose target was not asked about them.
    fn may_be_dropped(&self) -> Option<(Time, &Transfer)> {
        match (self.stage, self.outcome, &self.transfer) {
            (Stage::Data(since, false), None, Some(transfer)) if transfer.access == Access::Write => {
                Some((since, transfer))
            }
            _ => None,
        }
    }
}

/// What has come before its turn.
pub(crate) struct Early {
    pub(crate) sequence: u8,
    pub(crate) verb: Verb,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Side<P> {
    pub(crate) cell: &'static Connection,
    /// This side's number of the connection.
    pub(crate) number: u32,
    /// The peer's endpoint, and its number of the connection once that is known.
    pub(crate) peer: P,
    pub(crate) remote: Option<u32>,
    pub(crate) tag: u64,
    pub(crate) pending: Option<PendingConnect<P>>,
    operations: VecDeque<Operation>,
    /// The number of the first operation, and how many are started.
    first: u64,
    started: usize,
    /// Messages that this side may send, and how many come back at a time.
    credits: u32,
    batch: u32,
    /// What this side has granted, and how many of them the program has taken since the last
    /// credit.
    pub(crate) window: u32,
    taken: u32,
    atomics: usize,
    next_sequence: u8,
    pub(crate) expected: u8,
    pub(crate) early: Vec<Early>,
    /// Messages that wait for a receive slot.
    pub(crate) backlog: VecDeque<Vec<u8>>,
    /// The next message goes to the backlog: others wait there, or the connection is paused.
    pub(crate) holds_messages: bool,
    /// The program wants no message now.
    pub(crate) is_paused: bool,
    /// The peer was told that its messages wait.
    pub(crate) has_refused: bool,
    /// The peer has told that messages wait there.
    pub(crate) is_refused: bool,
    /// The peer has closed the connection; its messages are still delivered.
    pub(crate) is_closed: bool,
    /// When the peer was heard last, and whether it was asked since.
    alive: Time,
    is_asked: bool,
    /// It waits for room in the library.
    is_stalled: bool,
}

impl<P: Copy> Side<P> {
    pub(crate) fn new(cell: &'static Connection, (number, window): (u32, u32), peer: P, tag: u64) -> Self {
        Self {
            cell,
            number,
            peer,
            remote: None,
            tag,
            pending: None,
            operations: VecDeque::with_capacity(16),
            first: 0,
            started: 0,
            credits: 0,
            batch: 0,
            window,
            taken: 0,
            atomics: 0,
            next_sequence: 0,
            expected: 0,
            early: Vec::new(),
            backlog: VecDeque::new(),
            holds_messages: false,
            is_paused: false,
            has_refused: false,
            is_refused: false,
            is_closed: false,
            alive: Time(0),
            is_asked: false,
            is_stalled: false,
        }
    }

    /// Opens the connection at this end.
    pub(crate) fn open(&mut self, remote: u32, most: u32, window: u32, now: Time) {
        let most = self.cell.max_send_size.load(Ordering::Relaxed).min(most);
        self.cell.max_send_size.store(most, Ordering::Relaxed);
        self.cell.set_state(ConnectionState::Open);
        self.remote = Some(remote);
        (self.credits, self.batch) = (window, window / 2);
        self.restart_timeouts(now);
    }

    /// Sends what belongs to the connection. False: the library has no room now.
    pub(crate) fn control(&mut self, net: &mut impl Network<Place = P>, verb: Verb, payload: &[u8]) -> bool {
        let Some(remote) = self.remote else { return true };
        let is_sequenced = matches!(verb, Verb::Close | Verb::Atomic);
        let sequence = if is_sequenced { self.next_sequence } else { 0 };
        let bytes = if payload.is_empty() {
            None
        } else {
            let Some(bytes) = net.write(payload) else { return false };
            Some(bytes)
        };
        let header = header(remote, verb, sequence, self.tag);
        let put = Put { to: self.peer, class: Class::Reliable, header, bytes, ack: false };
        let is_sent = net.put(Goal::Control { side: self.number }, &put).has_begun();
        if !is_sent && let Some((buffer, _)) = bytes {
            net.give(buffer);
        } else if is_sequenced {
            self.next_sequence = self.next_sequence.wrapping_add(1);
        }
        is_sent
    }

    /// Adds an operation: a message, an RMA, or an RMA and the message after its data.
    pub(crate) fn post(
        &mut self,
        slot: &'static Slot,
        posted: Posted,
        (transfer, message): (Option<Transfer>, Option<Buffer>),
        now: impl FnOnce() -> Time,
    ) -> Option<Time> {
        self.cell.on_begun();
        let deadline = self.cell.send_deadline(now);
        let stage = Stage::Waiting;
        self.operations.push_back(Operation { slot, posted, deadline, transfer, message, stage, outcome: None });
        deadline
    }

    /// Whether credits may have come back that a program needs which only sends.
    #[inline]
    pub(crate) fn is_low(&self) -> bool {
        self.credits < self.batch
    }

    /// Whether operations wait whose bytes are still in this program's memory.
    pub(crate) fn has_unsent(&self) -> bool {
        self.pending.is_none() && self.started < self.operations.len()
    }

    /// The place of the operation that `start` would start next; `None`: it has to wait.
    fn next(&self) -> Option<usize> {
        // An RMA that is followed by its message, or is a fence, lets nothing pass.
        if let Some(last) = self.started.checked_sub(1) {
            let operation = &self.operations[last];
            let is_over = operation.outcome.is_some();
            if !is_over && operation.stage == Stage::Between {
                return (self.credits > 0).then_some(last);
            }
            let holds = operation.transfer.as_ref().is_some_and(|of| of.is_fence || operation.message.is_some());
            if !is_over && holds && matches!(operation.stage, Stage::Data(..)) {
                return None;
            }
        }
        let next = self.operations.get(self.started)?;
        let is_reliable = self.cell.attribute().is_reliable();
        let waits = match &next.transfer {
            None => is_reliable && self.credits == 0,
            Some(transfer) => {
                let is_atomic = matches!(transfer.access, Access::Atomic(_));
                is_atomic && (self.credits == 0 || self.atomics >= MOST_ATOMICS) || transfer.is_fence && self.is_busy()
            }
        };
        (!waits).then_some(self.started)
    }

    fn is_busy(&self) -> bool {
        self.operations.iter().take(self.started).any(|operation| operation.outcome.is_none())
    }

    /// Starts operations in order, as far as there are credits and room.
    pub(crate) fn start(&mut self, core: &mut Core, net: &mut impl Network<Place = P>, now: Time) -> Wants {
        let mut wants = Wants::default();
        while let Some(at) = self.next() {
            let Some(remote) = self.remote.filter(|_| !self.is_closed) else { break };
            let operation = &mut self.operations[at];
            let serial = self.first + at as u64;
            let is_transfer = operation.stage == Stage::Waiting && operation.transfer.is_some();
            let begun = if is_transfer {
                let begun = self.begin_transfer(net, at, serial, now);
                wants.probe |= self.operations[at].may_be_dropped().is_some();
                begun
            } else {
                let message = operation.message;
                let sent = self.put_message(core, net, (remote, serial), message);
                let operation = &mut self.operations[at];
                match sent {
                    Sent::No => {}
                    Sent::Begun => (operation.message, operation.stage) = (None, Stage::Message),
                    Sent::Over => (operation.message, operation.outcome) = (None, Some(Ok(()))),
                }
                sent.has_begun()
            };
            if !begun {
                wants.room = !std::mem::replace(&mut self.is_stalled, true);
                break;
            }
            self.started = self.started.max(at + 1);
        }
        // Some may have ended as they were sent.
        self.finish(core, net);
        wants
    }

    /// Hands a message of the program to the network.
    #[inline]
    fn put_message(
        &mut self,
        core: &mut Core,
        net: &mut impl Network<Place = P>,
        (remote, serial): (u32, u64),
        message: Option<Buffer>,
    ) -> Sent {
        if !net.has_room() {
            return Sent::No;
        }
        let is_reliable = self.cell.attribute().is_reliable();
        let (class, sequence) =
            if is_reliable { (Class::Reliable, self.next_sequence) } else { (Class::Unreliable, 0) };
        let header = header(remote, Verb::Message, sequence, self.tag);
        let put = Put { to: self.peer, class, header, bytes: message, ack: is_reliable };
        let sent = net.put(Goal::Message { side: self.number, serial }, &put);
        if sent.has_begun() {
            self.next_sequence = self.next_sequence.wrapping_add(u8::from(is_reliable));
            self.credits -= u32::from(is_reliable);
            self.cell.counters.on_sent();
            core.counters().on_sent(message.map_or(0, |(_, len)| len));
        }
        sent
    }

    /// Sends an unreliable message before which none waits, and returns when it is late. `None`:
    /// nothing was done, and the message is to be posted. One that ends at once is no operation.
    #[inline]
    pub(crate) fn send_at_once(
        &mut self,
        core: &mut Core,
        net: &mut impl Network<Place = P>,
        (slot, posted): (&'static Slot, Posted),
        message: Buffer,
        now: impl FnOnce() -> Time,
    ) -> Option<Option<Time>> {
        let remote = self.remote.filter(|_| self.operations.is_empty())?;
        if self.cell.attribute().is_reliable() {
            return None;
        }
        match self.put_message(core, net, (remote, self.first), Some(message)) {
            Sent::No => None,
            Sent::Over => {
                self.cell.on_begun();
                core.end_operation(slot, self.cell, posted, Ok(()));
                Some(None)
            }
            Sent::Begun => {
                let due = self.post(slot, posted, (None, None), now);
                if let Some(operation) = self.operations.front_mut() {
                    operation.stage = Stage::Message;
                }
                self.started = 1;
                Some(due)
            }
        }
    }

    /// Another turn, after the library had no room.
    pub(crate) fn restart(&mut self, core: &mut Core, net: &mut impl Network<Place = P>, now: Time) -> Wants {
        self.is_stalled = false;
        self.start(core, net, now)
    }

    /// The connection as the network needs it, once it is open.
    pub(crate) fn way(&self) -> Option<Way<P>> {
        let remote = self.remote?;
        Some(Way { to: self.peer, number: self.number, remote, tag: self.tag })
    }

    /// Begins the data of an RMA. False: there is no room now.
    fn begin_transfer(&mut self, net: &mut impl Network<Place = P>, at: usize, serial: u64, now: Time) -> bool {
        let (side, way) = (self.number, self.way());
        let operation = &mut self.operations[at];
        let (Some(transfer), Some(way)) = (&operation.transfer, way) else { return true };
        let is_inside = transfer.remote_offset.checked_add(transfer.memory.len()).is_some();
        let (Some(part), true) = (transfer.part(), is_inside) else {
            operation.outcome = Some(Err(Failure::RemoteHandle));
            return true;
        };
        let begun = match transfer.access {
            Access::Write => net.has_room() && net.transfer(Goal::Write { side, serial }, &way, part),
            Access::Read => net.has_room() && net.transfer(Goal::Read { side, serial }, &way, part),
            Access::Atomic(atomic) => return self.begin_atomic(net, (at, serial), atomic, now),
            // `send_large` is not offered.
            Access::Large => false,
        };
        if begun {
            operation.stage = Stage::Data(now, false);
        }
        begun
    }

    /// Asks the target's transport for an atomic operation.
    fn begin_atomic(
        &mut self,
        net: &mut impl Network<Place = P>,
        (at, serial): (usize, u64),
        atomic: Atomic,
        now: Time,
    ) -> bool {
        let Some(transfer) = &self.operations[at].transfer else { return true };
        let (code, operands) = match atomic {
            Atomic::FetchAdd(addend) => (0, [addend, 0]),
            Atomic::CompareSwap { expected, desired } => (1, [expected, desired]),
        };
        let words = [
            serial,
            transfer.bits.unwrap_or_default(),
            transfer.remote_offset,
            transfer.memory.len() | code << 8,
            operands[0],
            operands[1],
        ];
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if !self.control(net, Verb::Atomic, &payload) {
            return false;
        }
        self.credits -= 1;
        self.atomics += 1;
        self.operations[at].stage = Stage::Data(now, true);
        true
    }

    /// The peer has answered an atomic operation: with the old value, if it was allowed.
    pub(crate) fn on_atomic(
        &mut self,
        core: &mut Core,
        net: &mut impl Network<Place = P>,
        (serial, old): (u64, Option<u64>),
        now: Time,
    ) -> Wants {
        let Some(operation) = self.operation(serial, Stage::is_data) else { return Wants::default() };
        let Some(transfer) =
            operation.transfer.as_ref().filter(|transfer| matches!(transfer.access, Access::Atomic(_)))
        else {
            return Wants::default();
        };
        let outcome = match old {
            None => Err(Failure::RemoteHandle),
            Some(old) => {
                let len = transfer.memory.len();
                let bytes = Atomic::bytes(old, len);
                let is_in = transfer.memory.copy_in(0, &bytes[..(len as usize).min(8)]);
                if is_in { Ok(()) } else { Err(Failure::Copy) }
            }
        };
        self.atomics = self.atomics.saturating_sub(1);
        self.on_data(core, net, serial, outcome, now)
    }

    /// The operation with this number, if it is not over and is at this. A peer may answer what was
    /// never asked: it must not end what the network has still to begin.
    fn operation(&mut self, serial: u64, is_at: impl Fn(Stage) -> bool) -> Option<&mut Operation> {
        let at = usize::try_from(serial.checked_sub(self.first)?).ok()?;
        self.operations.get_mut(at).filter(|operation| operation.outcome.is_none() && is_at(operation.stage))
    }

    /// The data of an RMA are there, or were refused.
    pub(crate) fn on_data(
        &mut self,
        core: &mut Core,
        net: &mut impl Network<Place = P>,
        serial: u64,
        outcome: Outcome,
        now: Time,
    ) -> Wants {
        let Some(operation) = self.operation(serial, Stage::is_data) else { return Wants::default() };
        if outcome.is_ok() && operation.message.is_some() {
            operation.stage = Stage::Between;
        } else {
            operation.outcome = Some(outcome);
        }
        self.start(core, net, now)
    }

    /// A message has ended.
    pub(crate) fn on_message(
        &mut self,
        core: &mut Core,
        net: &mut impl Network<Place = P>,
        serial: u64,
        now: Time,
    ) -> Wants {
        if let Some(operation) = self.operation(serial, |stage| stage == Stage::Message) {
            operation.outcome = Some(Ok(()));
        }
        self.finish(core, net);
        if self.has_unsent() { self.start(core, net, now) } else { Wants::default() }
    }

    /// The peer's program has taken messages.
    pub(crate) fn on_credit(&mut self, core: &mut Core, net: &mut impl Network<Place = P>, now: Time) -> Wants {
        self.is_refused = false;
        // A peer that gives more than it has granted gains nothing.
        self.credits = (self.credits + self.batch).min(self.batch * 2);
        self.start(core, net, now)
    }

    /// Whether what waits here is more than a peer may send: a window of messages, and a farewell.
    pub(crate) fn keeps_too_much(&self) -> bool {
        self.early.len() + self.backlog.len() > self.window as usize
    }

    /// The program has a message of the peer, or it was dropped: counts it for the next credit.
    /// False: the credit is due, and could not be sent.
    pub(crate) fn take_one(&mut self, net: &mut impl Network<Place = P>) -> bool {
        self.taken += 1;
        if self.taken < self.window / 2 {
            return true;
        }
        self.taken = 0;
        self.control(net, Verb::Credit, &[])
    }

    /// Writes whose target is to be asked whether it has dropped them. Returns when to look again.
    pub(crate) fn probe(&mut self, net: &mut impl Network<Place = P>, now: Time) -> Option<Time> {
        let (mut next, way) = (None, self.way()?);
        for at in 0..self.started {
            let operation = &mut self.operations[at];
            let Some((since, transfer)) = operation.may_be_dropped() else { continue };
            let Some(part) = transfer.part() else { continue };
            if now < since + PATIENCE {
                next = Some(since + PATIENCE).into_iter().chain(next).min();
                continue;
            }
            let is_asked = net.doubt(self.number, self.first + at as u64, &way, &part);
            operation.stage = Stage::Data(now, is_asked);
            if !is_asked {
                next = Some(now + PATIENCE);
            }
        }
        next
    }

    /// Ends operations in order, as far as they are over.
    fn finish(&mut self, core: &mut Core, net: &mut impl Network<Place = P>) {
        while let Some(outcome) = self.operations.front().and_then(|operation| operation.outcome) {
            let Some(operation) = self.operations.pop_front() else { return };
            self.started = self.started.saturating_sub(1);
            self.first += 1;
            if let Some((buffer, _)) = operation.message {
                net.give(buffer);
            }
            if let (Some(transfer), Ok(())) = (&operation.transfer, outcome) {
                self.cell.counters.on_rma(transfer.memory.len());
                core.counters().on_rma(transfer.memory.len());
            }
            core.end_operation(operation.slot, self.cell, operation.posted, outcome);
        }
    }

    /// Fails all operations: the first for this cause, the others because the connection has ended.
    pub(crate) fn fail(&mut self, core: &mut Core, net: &mut impl Network<Place = P>, mut cause: Failure) {
        for operation in &mut self.operations {
            operation.outcome =
                operation.outcome.or_else(|| Some(Err(std::mem::replace(&mut cause, Failure::Disconnected))));
        }
        let number = self.number;
        // Bytes of messages stay until the library has sent them; what an RMA uses is the
        // program's again.
        net.cancel(|goal| match goal {
            Goal::Write { side, .. } | Goal::Read { side, .. } => side == number,
            _ => false,
        });
        self.finish(core, net);
        self.cell.set_state(ConnectionState::Broken);
    }

    /// Why the oldest operation has failed, if its time is over.
    pub(crate) fn late(&self, now: Time) -> Option<Failure> {
        self.operations.front()?.deadline.filter(|deadline| *deadline <= now)?;
        Some(if self.is_refused { Failure::NotReady } else { Failure::TimedOut })
    }

    /// The program has changed a timeout: its time begins now.
    pub(crate) fn restart_timeouts(&mut self, now: Time) {
        (self.alive, self.is_asked) = (now, false);
        let deadline = self.cell.send_deadline(|| now);
        self.operations.iter_mut().for_each(|operation| operation.deadline = deadline);
    }

    /// The peer's transport was heard.
    pub(crate) fn hear(&mut self, now: Time) {
        (self.alive, self.is_asked) = (now, false);
    }

    fn keepalive(&self) -> Option<Duration> {
        let micros = self.cell.keepalive.load(Ordering::Relaxed);
        (micros > 0 && self.remote.is_some() && !self.is_closed).then(|| Duration::from_micros(micros.into()))
    }

    /// Asks a peer that was silent for half of the keepalive time. Returns whether it was silent
    /// for the whole time.
    pub(crate) fn check_keepalive(&mut self, net: &mut impl Network<Place = P>, now: Time) -> bool {
        let Some(time) = self.keepalive() else { return false };
        if now >= self.alive + time / 2 && !self.is_asked {
            self.is_asked = self.control(net, Verb::Ping, &[]);
        }
        now >= self.alive + time
    }

    /// When the program must call again though nothing arrives.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let pending = self.pending.as_ref().and_then(|pending| pending.deadline.into_iter().chain(pending.retry).min());
        let operation = self.operations.front().and_then(|operation| operation.deadline);
        let keepalive = self.keepalive().map(|time| self.alive + if self.is_asked { time } else { time / 2 });
        [pending, operation, keepalive].into_iter().flatten().min()
    }
}
