//! A node: its slots, its memory, its operations, and what the engine asks of it.

use super::messages::{Stream, Wrong};
use super::pattern;
use super::transfers::{self, Transfers};
use super::violation::{Rule, Violation};
use cci_proto::engine::{Event, Host, Index, MAX_LARGE, MessageBuffer, Op, Sealer, Source, Target, ToySealer};
use cci_proto::wire::Crc;
use cci_proto::{Atomic, Attribute, Failure};
use cci_sim::network::Time;

/// Bytes of the memory of each node that RMA changes.
pub(super) const ARENA: usize = 1 << 19;

/// A registration: what it covers, and what peers may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registration {
    /// The words that name it.
    pub(super) handle: [u64; 2],
    /// The memory that RMA changes, or the pattern.
    pub(super) arena: bool,
    /// Peers may read.
    pub(super) read: bool,
    /// Peers may write.
    pub(super) write: bool,
    /// It has not ended.
    pub(super) alive: bool,
}

/// Bytes that a frame carries from where they lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    arena: bool,
    start: usize,
    len: usize,
}

/// What a slot is used for.
#[derive(Clone, Debug, Default)]
struct Slot {
    bytes: Vec<u8>,
    len: usize,
    filled: usize,
    taken: bool,
}

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// The send of a message of a stream.
    Send(u32, u32),
    /// An RMA.
    Transfer(u32),
}

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEvent {
    /// Somebody asks for a connection.
    Request(Attribute, Vec<u8>),
    /// The client with this token has come.
    Expected(Attribute, u64),
    /// The client is to go to this node with this token.
    Redirected(u32, u64),
    /// It is open.
    Open(u32),
    /// A connect ended without one.
    Refused(Failure),
    /// It is broken.
    Broken(Failure),
    /// Nothing was received for the keepalive timeout.
    Silent,
}

/// What all nodes are measured by.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    /// The time, for reports.
    pub(super) now: Time,
    /// What each side of each connection sends.
    pub(super) streams: Vec<Stream>,
    /// All RMAs.
    pub(super) transfers: Transfers,
    /// Streams that may fail, because one side closed, or a timeout is set.
    pub(super) excused: Vec<bool>,
    /// Streams whose receiver has closed or broken: nothing of theirs may change its memory.
    pub(super) over: Vec<bool>,
    /// Frames whose bytes were in memory before they were checked, and those of them that were
    /// accepted.
    pub(super) copied_unchecked: u32,
    pub(super) accepted: u32,
    /// The first rule that was broken.
    pub(super) violation: Option<Violation>,
}

impl Oracle {
    /// A rule was broken; the first one counts.
    pub(super) fn violate(&mut self, rule: Rule, detail: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { rule, at: self.now, detail });
        }
    }

    fn judge(&mut self, verdict: Result<(), Wrong>) {
        if let Err((rule, detail)) = verdict {
            self.violate(rule, detail);
        }
    }

    /// Whether the message of this RMA may never come.
    pub(super) fn may_miss(transfers: &Transfers) -> impl Fn(u32) -> bool {
        |number| {
            let transfer = transfers.get(number);
            transfer.refused || transfer.expect == transfers::Expect::Refusal
        }
    }
}

/// A node.
#[derive(Debug)]
pub(super) struct Side {
    /// Its number.
    pub(super) number: u32,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots whose messages the program has, in order of delivery.
    pub(super) borrowed: Vec<u32>,
    /// The memory that RMA changes, as far as it is used.
    pub(super) arena: Vec<u8>,
    /// Which RMA changed each byte last: its number and one.
    touched: Vec<u16>,
    /// What peers may reach.
    pub(super) registrations: Vec<Registration>,
    operations: Vec<Option<Operation>>,
    free_operations: Vec<u32>,
    /// What happened to connections, to be handled when the engine has returned.
    pub(super) connection_events: Vec<(Index, u32, ConnectionEvent)>,
    /// The next requests that are turned away for lack of room.
    pub(super) turn_away: u32,
    /// Large messages for which a peer wants memory.
    pub(super) landings: Vec<Asked>,
    /// The keys of sealed connections.
    pub(super) sealer: Option<ToySealer>,
}

/// A large message for which a peer wants memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Cookie of the connection.
    pub(super) user: u32,
    /// The peer's number of the operation.
    pub(super) operation: u32,
    /// It waits for the next time.
    pub(super) waits: bool,
}

impl Side {
    /// A node with so many slots and operations.
    #[must_use]
    pub(super) fn new(number: u32, slots: u32, operations: u32) -> Self {
        Self {
            number,
            slots: vec![Slot::default(); slots as usize],
            free: (0..slots).rev().collect(),
            borrowed: Vec::new(),
            arena: Vec::new(),
            touched: Vec::new(),
            registrations: Vec::new(),
            operations: vec![None; operations as usize],
            free_operations: (0..operations).rev().collect(),
            connection_events: Vec::new(),
            turn_away: 0,
            landings: Vec::new(),
            sealer: None,
        }
    }

    /// Memory up to here is used by RMA from now on.
    pub(super) fn extend(&mut self, end: usize) {
        self.arena.resize(end, 0);
        self.touched.resize(end, 0);
    }

    /// The number that the next operation would have.
    #[must_use]
    pub(super) fn next_operation(&self) -> Option<Op> {
        self.free_operations.last().map(|number| Op(*number))
    }

    /// The operation with that number has begun.
    pub(super) fn begin_operation(&mut self, operation: Operation) {
        if let Some(number) = self.free_operations.pop() {
            self.operations[number as usize] = Some(operation);
        }
    }

    /// The engine has refused the operation that began last.
    pub(super) fn withdraw(&mut self, op: Op) {
        self.operations[op.0 as usize] = None;
        self.free_operations.push(op.0);
    }

    /// Operations that have not ended.
    #[must_use]
    pub(super) fn open_operations(&self) -> usize {
        self.operations.len() - self.free_operations.len()
    }

    /// Operations of this kind that have not ended.
    #[must_use]
    pub(super) fn open(&self, is_of_kind: impl Fn(Operation) -> bool) -> usize {
        self.operations.iter().flatten().filter(|operation| is_of_kind(**operation)).count()
    }

    /// Slots that are not free.
    #[must_use]
    pub(super) fn taken_slots(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The program returns the `at`-th event that it has.
    pub(super) fn give_back(&mut self, at: usize) {
        let slot = self.borrowed.swap_remove(at);
        self.slots[slot as usize].taken = false;
        self.free.push(slot);
    }

    /// The bytes that a frame carries.
    #[must_use]
    pub(super) fn piece(&self, piece: &Piece) -> &[u8] {
        let memory = if piece.arena { &self.arena } else { pattern::bytes() };
        &memory[piece.start..piece.start + piece.len]
    }

    /// The registration that this names, if the whole operation is allowed.
    fn reach(&self, target: &Target, write: bool) -> Option<&Registration> {
        let found = self.registrations.iter().find(|registration| registration.handle == target.handle)?;
        let limit = if found.arena { ARENA } else { pattern::LEN } as u64;
        let fits = target.offset.checked_add(target.len).is_some_and(|end| end <= limit);
        let allowed = if write { found.write } else { found.read };
        (found.alive && fits && allowed).then_some(found)
    }
}

/// A node together with what it is measured by: what an engine is given.
#[derive(Debug)]
pub(super) struct CheckedHost<'a> {
    /// The node.
    pub(super) side: &'a mut Side,
    /// The oracle.
    pub(super) oracle: &'a mut Oracle,
}

impl CheckedHost<'_> {
    /// The RMA that a peer is doing here.
    fn peer_transfer(&mut self, target: &Target, arena: bool) -> Option<u32> {
        let found = self.oracle.transfers.at(transfers::place(self.side.number, arena, target.offset));
        let Some(number) = found else {
            let detail = format!("an RMA that nobody started reached node {}: {target:?}", self.side.number);
            self.oracle.violate(Rule::Memory, detail);
            return None;
        };
        let transfer = self.oracle.transfers.get(number);
        if transfer.len as u64 != target.len {
            let detail = format!("RMA {number} of {} bytes reached its target as {target:?}", transfer.len);
            self.oracle.violate(Rule::Memory, detail);
            return None;
        }
        if self.oracle.over[transfer.stream as usize] {
            self.oracle
                .violate(Rule::MemoryAfterEnd, format!("RMA {number} reached a side that had ended the connection"));
        }
        let verdict = self.oracle.transfers.start(number);
        self.oracle.judge(verdict);
        Some(number)
    }

    /// Bytes of an RMA are copied into this node's memory before they are verified. No accepted
    /// bytes may be there.
    fn copy_unchecked(&mut self, number: u32, at: u64, len: usize) {
        let transfer = *self.oracle.transfers.get(number);
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let mark = u16::try_from(number + 1).unwrap_or(u16::MAX);
        let is_inside = at.checked_add(len).is_some_and(|end| end <= transfer.len);
        if !is_inside || self.side.touched[transfer.to + at..][..len].iter().any(|touched| *touched >= mark) {
            let detail = format!("RMA {number}: {len} bytes that nobody had checked were written at {at}");
            self.oracle.violate(Rule::Memory, detail);
        }
        self.oracle.copied_unchecked += 1;
    }

    /// Bytes of an RMA arrive in this node's memory.
    fn put(&mut self, number: u32, at: u64, bytes: &[u8]) {
        let transfer = *self.oracle.transfers.get(number);
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= transfer.len);
        if !fits || bytes != &pattern::bytes()[transfer.from + at..transfer.from + at + bytes.len()] {
            return self
                .oracle
                .violate(Rule::Memory, format!("RMA {number}: wrong bytes at {at}, {} of them", bytes.len()));
        }
        let mark = u16::try_from(number + 1).unwrap_or(u16::MAX);
        let range = transfer.to + at..transfer.to + at + bytes.len();
        for touched in &mut self.side.touched[range.clone()] {
            if *touched >= mark {
                let detail = format!("RMA {number} changed a byte that RMA {} had changed, at {at}", *touched - 1);
                return self.oracle.violate(Rule::MemoryAfterEnd, detail);
            }
            *touched = mark;
        }
        self.side.arena[range].copy_from_slice(bytes);
        self.oracle.transfers.get_mut(number).done += bytes.len();
    }

    fn refuse(&mut self, target: &Target, arena: bool) -> Failure {
        if let Some(number) = self.oracle.transfers.at(transfers::place(self.side.number, arena, target.offset))
            && self.oracle.transfers.get(number).len as u64 == target.len
        {
            self.oracle.transfers.get_mut(number).refused = true;
        }
        Failure::RemoteHandle
    }
}

/// The stream that the receiver of this cookie receives: a cookie is the receiver's own stream.
fn received_stream(user: u32) -> u32 {
    user ^ 1
}

impl Host for CheckedHost<'_> {
    type Piece = Piece;

    fn sealer(&mut self) -> Option<&mut dyn Sealer> {
        self.side.sealer.as_mut().map(|sealer| sealer as &mut dyn Sealer)
    }

    fn credit(&self) -> u32 {
        u32::try_from(self.side.free.len()).unwrap_or(u32::MAX)
    }

    fn begin(&mut self, user: u32, len: u32) -> Option<MessageBuffer> {
        if self.oracle.over[received_stream(user) as usize] {
            self.oracle
                .violate(Rule::EndsOnce, format!("a message began on a connection that had ended, cookie {user}"));
        }
        let number = self.side.free.pop()?;
        let slot = &mut self.side.slots[number as usize];
        *slot = Slot { bytes: std::mem::take(&mut slot.bytes), len: len as usize, filled: 0, taken: true };
        if slot.bytes.len() < slot.len {
            slot.bytes.resize(slot.len, 0);
        }
        Some(MessageBuffer(number))
    }

    fn fill(&mut self, buffer: MessageBuffer, at: u32, bytes: &[u8]) {
        let slot = &mut self.side.slots[buffer.0 as usize];
        let at = at as usize;
        if !slot.taken || at + bytes.len() > slot.len {
            return self.oracle.violate(Rule::Memory, format!("slot {buffer:?} was filled beyond its end or after it"));
        }
        slot.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        slot.filled += bytes.len();
    }

    fn deliver(&mut self, user: u32, buffer: MessageBuffer) {
        let slot = &self.side.slots[buffer.0 as usize];
        let stream = received_stream(user);
        if !slot.taken || self.side.borrowed.contains(&buffer.0) {
            return self.oracle.violate(Rule::SlotLost, format!("slot {buffer:?} was delivered but not taken"));
        }
        if slot.filled != slot.len {
            let detail = format!("stream {stream}: a message of {} bytes was delivered with {}", slot.len, slot.filled);
            return self.oracle.violate(Rule::Memory, detail);
        }
        if self.oracle.over[stream as usize] {
            return self
                .oracle
                .violate(Rule::EndsOnce, format!("stream {stream}: delivery on a connection that had ended"));
        }
        let Oracle { streams, transfers, .. } = &mut *self.oracle;
        let verdict = streams[stream as usize].deliver(stream, &slot.bytes[..slot.len], Oracle::may_miss(transfers));
        self.side.borrowed.push(buffer.0);
        match verdict {
            Err((rule, detail)) => self.oracle.violate(rule, detail),
            Ok(index) => {
                let completes = self.oracle.streams[stream as usize].get(index).transfer;
                if let Some(transfer) = completes.map(|number| self.oracle.transfers.get(number))
                    && transfer.done != transfer.len
                {
                    let detail =
                        format!("stream {stream}, message {index}: {} of {} bytes", transfer.done, transfer.len);
                    self.oracle.violate(Rule::MessageAfterData, detail);
                }
            }
        }
    }

    fn abandon(&mut self, buffer: MessageBuffer) {
        let slot = &mut self.side.slots[buffer.0 as usize];
        if !slot.taken || self.side.borrowed.contains(&buffer.0) {
            return self.oracle.violate(Rule::SlotLost, format!("slot {buffer:?} was abandoned but not taken"));
        }
        slot.taken = false;
        self.side.free.push(buffer.0);
    }

    fn write(&mut self, _: u32, target: &Target, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        if self.side.reach(target, true).is_none() {
            return Err(self.refuse(target, true));
        }
        let number = self.peer_transfer(target, true).ok_or(Failure::RemoteHandle)?;
        self.put(number, at, bytes);
        Ok(())
    }

    fn write_checked(&mut self, _: u32, target: &Target, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        self.side.reach(target, true)?;
        let number = self.peer_transfer(target, true)?;
        self.copy_unchecked(number, at, bytes.len());
        Some(crc.update(bytes))
    }

    fn written(&mut self, target: &Target, at: u64, bytes: &[u8]) {
        self.oracle.accepted += 1;
        if let Some(number) = self.peer_transfer(target, true) {
            self.put(number, at, bytes);
        }
    }

    fn source(&mut self, source: &Source, at: u64, len: u32) -> Result<Piece, Failure> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        match source {
            Source::Local(op) => {
                let Some(Operation::Transfer(number)) = self.side.operations[op.0 as usize] else {
                    self.oracle
                        .violate(Rule::MemoryAfterEnd, format!("{op:?} is not a write that is open, but was read"));
                    return Err(Failure::Copy);
                };
                let transfer = self.oracle.transfers.get(number);
                Ok(Piece { arena: false, start: transfer.from + at, len: len as usize })
            }
            Source::Served(target) => {
                self.may_read(0, target)?;
                let arena = self.side.reach(target, false).is_some_and(|registration| registration.arena);
                let start = usize::try_from(target.offset).unwrap_or(usize::MAX) + at;
                Ok(Piece { arena, start, len: len as usize })
            }
        }
    }

    fn may_read(&mut self, _: u32, target: &Target) -> Result<(), Failure> {
        let Some(registration) = self.side.reach(target, false) else { return Err(self.refuse(target, false)) };
        let key = if registration.arena { transfers::READ_BACK } else { 0 };
        let keyed = Target { offset: target.offset + key, ..*target };
        self.peer_transfer(&keyed, false).map(|_| ()).ok_or(Failure::RemoteHandle)
    }

    fn large(&mut self, user: u32, operation: u32, len: u64) -> Result<(), Failure> {
        let landings = &mut self.side.landings;
        let count = landings.iter().filter(|asked| asked.user == user).count();
        if count >= MAX_LARGE || self.oracle.over[received_stream(user) as usize] {
            let detail = format!("{count} large messages wait, and one of {len} bytes comes, cookie {user}");
            self.oracle.violate(Rule::Bounds, detail);
        }
        landings.push(Asked { user, operation, waits: operation.is_multiple_of(2) });
        Ok(())
    }

    /// The word keeps its value, which the pattern has; that the target is asked once is what
    /// counts.
    fn atomic(&mut self, user: u32, target: &Target, atomic: Atomic) -> Result<u64, Failure> {
        self.may_read(user, target)?;
        let number = self.peer_transfer(target, false).ok_or(Failure::RemoteHandle)?;
        let transfer = self.oracle.transfers.get_mut(number);
        let was_changed = std::mem::replace(&mut transfer.changed, true);
        if was_changed || !transfer.atomic || atomic != Atomic::FetchAdd(number.into()) {
            let detail = format!("RMA {number}: {atomic:?} at its target, changed before: {was_changed}");
            self.oracle.violate(Rule::Memory, detail);
        }
        let at = usize::try_from(target.offset).unwrap_or(usize::MAX);
        Ok(u64::from_ne_bytes(pattern::bytes()[at..at + 8].try_into().unwrap_or_default()))
    }

    fn place(&mut self, op: Op, at: u64, bytes: &[u8]) {
        match self.side.operations[op.0 as usize] {
            Some(Operation::Transfer(number)) if self.oracle.transfers.get(number).read => self.put(number, at, bytes),
            other => {
                let detail = format!("bytes came for {op:?}, which is {other:?} and no read that is open");
                self.oracle.violate(Rule::MemoryAfterEnd, detail);
            }
        }
    }

    fn place_checked(&mut self, op: Op, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        match self.side.operations[op.0 as usize] {
            Some(Operation::Transfer(number)) if self.oracle.transfers.get(number).read => {
                self.copy_unchecked(number, at, bytes.len());
                Some(crc.update(bytes))
            }
            // What is wrong with it, `place` says.
            _ => None,
        }
    }

    fn placed(&mut self, op: Op, at: u64, bytes: &[u8]) {
        self.oracle.accepted += 1;
        self.place(op, at, bytes);
    }

    fn ended(&mut self, op: Op, outcome: Result<(), Failure>) {
        let Some(operation) = self.side.operations.get_mut(op.0 as usize).and_then(Option::take) else {
            return self.oracle.violate(Rule::EndsOnce, format!("{op:?} ended ({outcome:?}), but is not open"));
        };
        self.side.free_operations.push(op.0);
        let stream = match operation {
            Operation::Send(stream, index) => {
                let verdict = self.oracle.streams[stream as usize].end(stream, index, outcome);
                self.oracle.judge(verdict);
                stream
            }
            Operation::Transfer(number) => {
                let transfer = *self.oracle.transfers.get(number);
                let stream = transfer.stream;
                let delivered =
                    transfer.message.is_some_and(|index| self.oracle.streams[stream as usize].get(index).delivered);
                let verdict = self.oracle.transfers.end(number, outcome, delivered);
                self.oracle.judge(verdict);
                stream
            }
        };
        if let Err(failure) = outcome
            && failure.breaks_connection()
            && !self.oracle.excused[stream as usize]
        {
            let detail =
                format!("stream {stream}: {operation:?} failed, {failure:?}, on a connection that nobody closed");
            self.oracle.violate(Rule::Cause, detail);
        }
    }

    fn event(&mut self, index: Index, user: u32, event: Event<'_>) -> bool {
        let event = match event {
            Event::Request { .. } | Event::Expected { .. } if self.side.turn_away > 0 => {
                self.side.turn_away -= 1;
                return false;
            }
            Event::Request { attribute, payload } => ConnectionEvent::Request(attribute, payload.to_vec()),
            Event::Open { max_send_size, .. } => ConnectionEvent::Open(max_send_size),
            Event::Refused { failure, .. } => ConnectionEvent::Refused(failure),
            Event::Broken(failure) => ConnectionEvent::Broken(failure),
            Event::Silent => ConnectionEvent::Silent,
            Event::Expected { attribute, token } => ConnectionEvent::Expected(attribute, token),
            Event::Redirected { uri, token } => {
                let node = std::str::from_utf8(uri).ok().and_then(|uri| uri.strip_prefix("node-")?.parse().ok());
                ConnectionEvent::Redirected(node.unwrap_or(u32::MAX), token)
            }
        };
        self.side.connection_events.push((index, user, event));
        true
    }
}
