//! An RMA or a large message that is open, and what a lane knows of relayed ones.

use crate::lane::state::EndpointState;
use crate::sys::Local;
use cci_mem::memory::Memory;
use cci_proto::{Access, Atomic, Attribute, Failure, Registration, RmaHandle};
use cci_transport::{Connection, Core, Posted, Slot};

/// How far an operation got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It has ended.
    Done,
    /// It waits; whether it got on meanwhile.
    Open(bool),
    /// It waits for the peer, and nothing else waits for its turn.
    Parked,
}

/// Since when an operation waits that has no timeout.
pub(crate) const NEVER: u64 = u64::MAX;

/// What an RMA has still to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Ask for memory for a large message.
    Ask,
    /// The peer was asked for memory for a large message, and is to answer.
    AwaitMemory,
    /// Copy, from this byte on.
    Copy(u64),
    /// Relay through slots, from this byte on.
    Relay(u64),
    /// The target has everything, or was asked for everything, and is to answer.
    Await,
    /// Deliver the message, or say that a large one is there.
    Message,
}

/// An RMA that is open.
pub(crate) struct Pending {
    pub(crate) cell: &'static Connection,
    pub(crate) slot: &'static Slot,
    pub(crate) posted: Posted,
    pub(crate) access: Access,
    pub(crate) local: Registration,
    /// Offset in it of the first byte.
    pub(crate) local_offset: u64,
    pub(crate) remote: RmaHandle,
    pub(crate) remote_offset: u64,
    pub(crate) len: u64,
    pub(crate) message: Option<(Box<[u8]>, usize)>,
    /// A large message.
    pub(crate) large: Option<Large>,
    pub(crate) stage: Stage,
    /// Number of the operation in its lane's relayed frames.
    pub(crate) operation: u32,
    pub(crate) since: u64,
}

impl Pending {
    /// Ends the operation.
    pub(crate) fn end(&mut self, state: &mut EndpointState, core: &mut Core, outcome: Result<(), Failure>) {
        if outcome.is_ok() {
            self.cell.counters.on_rma(self.len);
            core.counters().on_rma(self.len);
        }
        core.end_operation(self.slot, self.cell, self.posted, outcome);
        if let Some((data, _)) = self.message.take() {
            state.buffers.push(data);
        }
    }

    /// `len` bytes of the operation here, from `at` on, while the local registration lives.
    pub(crate) fn local_at<'s>(&'s self, state: &'s EndpointState, at: u64, len: usize) -> Result<Local<'s>, Failure> {
        let own = self.large.as_ref().map(Large::memory);
        let memory = own.or_else(|| state.registry.living(self.local)).ok_or(Failure::RemoteHandle)?;
        Local::of(memory, self.local_offset + at, len).ok_or(Failure::Copy)
    }

    /// Whether it is a large message for whose end the others of its connection wait.
    pub(crate) fn holds(&self) -> bool {
        self.large.is_some() && self.cell.attribute() == Attribute::ReliableOrdered
    }
}

/// What a large message has beside an RMA.
pub(crate) struct Large {
    pub(crate) memory: Memory,
    /// The operation in which it asked: the peer knows its memory by that.
    pub(crate) number: u32,
    /// The peer has given memory.
    pub(crate) is_placed: bool,
}

impl Large {
    /// The message.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// What a lane knows of relayed operations.
#[derive(Default)]
pub(crate) struct Relay {
    last: u32,
    /// The operation that this side began and that is open.
    current: Option<u32>,
    /// The read or atomic operation that this side began: its number, where the next byte goes, and
    /// how many are missing.
    reading: Option<Reading>,
    /// How the current operation ended.
    result: Option<Result<(), Failure>>,
    /// The write of the peer that was refused; the rest of its pieces is dropped.
    refused: Option<u32>,
}

pub(crate) struct Reading {
    pub(crate) operation: u32,
    pub(crate) number: Registration,
    /// Offset of the next byte in that registration.
    pub(crate) at: u64,
    pub(crate) left: u64,
}

/// A read of the peer that this side serves.
pub(crate) struct Serve {
    pub(crate) operation: u32,
    pub(crate) number: Registration,
    /// Offset of the first byte in that registration.
    pub(crate) start: u64,
    pub(crate) done: u64,
    pub(crate) len: u64,
}

impl Relay {
    /// A number for an operation that begins; never 0.
    pub(crate) fn begin(&mut self) -> u32 {
        let number = self.number();
        self.current = Some(number);
        number
    }

    /// A number for an operation of another kind; never 0.
    pub(crate) fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        self.last
    }

    /// How the current operation ended, if it has.
    pub(crate) fn result(&self) -> Option<Result<(), Failure>> {
        self.result
    }

    /// The target was asked for bytes, or for a word.
    pub(crate) fn begin_reading(&mut self, reading: Reading) {
        self.reading = Some(reading);
    }

    /// What this operation still reads.
    pub(crate) fn reading(&mut self, operation: u32) -> Option<&mut Reading> {
        self.reading.as_mut().filter(|reading| reading.operation == operation)
    }

    /// Takes what this operation reads, if it is one word.
    pub(crate) fn take_word(&mut self, operation: u32) -> Option<Reading> {
        self.reading.take_if(|reading| reading.operation == operation && Atomic::is_word(reading.left))
    }

    /// The current operation has its result.
    pub(crate) fn finish(&mut self, outcome: Result<(), Failure>) {
        (self.reading, self.result) = (None, Some(outcome));
    }

    /// The target tells how an operation ended. False: it is not the current one.
    pub(crate) fn on_result(&mut self, operation: u32, outcome: Result<(), Failure>) -> bool {
        let is_current = self.current == Some(operation);
        if is_current {
            self.finish(outcome);
        }
        is_current
    }

    /// Whether this write of the peer was refused.
    pub(crate) fn is_refused(&self, operation: u32) -> bool {
        self.refused == Some(operation)
    }

    /// Refuses a write of the peer. False: it was refused already.
    pub(crate) fn refuse(&mut self, operation: u32) -> bool {
        self.refused.replace(operation) != Some(operation)
    }

    /// The operation is over: what still comes for it is dropped.
    pub(crate) fn end(&mut self, operation: u32) {
        if self.current == Some(operation) {
            self.current = None;
            self.reading = None;
            self.result = None;
        }
    }

    /// A local registration is gone: what still comes for it is dropped.
    pub(crate) fn forget(&mut self, number: Registration) {
        if self.reading.as_ref().is_some_and(|reading| reading.number == number) {
            self.reading = None;
        }
    }
}
