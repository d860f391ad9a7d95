//! The table of open operations: sends and RMAs, by the index of their slot.

use cci_mem::sync::Ordering;
use cci_proto::engine::Op;
use cci_proto::{Failure, Registration};
use cci_transport::{Connection, Core, Posted, Slot};

/// Local memory of an RMA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    /// The registration.
    pub(super) number: Registration,
    /// Where the operation begins in it, bytes.
    pub(super) offset: u64,
    /// Bytes of the operation.
    pub(super) len: u64,
}

/// An open operation.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub(super) slot: &'static Slot,
    pub(super) cell: &'static Connection,
    pub(super) posted: Posted,
    /// Of an RMA.
    pub(super) local: Option<Local>,
    /// The local registration was made for it, and ends with it.
    pub(super) is_own: bool,
    /// The local memory was deregistered while bytes were still to be put there.
    pub(super) spoilt: bool,
}

impl Operation {
    /// Queues the event of the operation's end, counts it, and frees what it holds.
    pub(super) fn finish(self, core: &mut Core, outcome: Result<(), Failure>) {
        let Self { slot, cell, posted, local, spoilt, is_own: _ } = self;
        let outcome = if spoilt { outcome.and(Err(Failure::RemoteHandle)) } else { outcome };
        if let (Some(local), Ok(())) = (local, outcome) {
            cell.counters.on_rma(local.len);
            core.counters().on_rma(local.len);
        }
        core.end_operation(slot, cell, posted, outcome);
    }
}

/// The table. A slot's index in its class is the operation's index here, so that no search is
/// needed. It grows while slots are used for the first time.
#[derive(Default)]
pub(super) struct Operations {
    sends: Vec<Option<Operation>>,
    rmas: Vec<Option<Operation>>,
    /// Number of the first RMA.
    split: u32,
    open: usize,
}

impl Operations {
    /// Empty, for an endpoint with this many send slots.
    pub(super) fn new(send_slots: u32) -> Self {
        Self { split: send_slots, ..Self::default() }
    }

    /// The number of a send in this slot.
    #[inline]
    pub(super) fn send(slot: &Slot) -> Op {
        Op(slot.index.load(Ordering::Relaxed))
    }

    /// Adds an operation.
    #[inline]
    pub(super) fn begin(&mut self, operation: Operation) -> Op {
        let index = operation.slot.index.load(Ordering::Relaxed);
        let (list, number) = match operation.local {
            None => (&mut self.sends, index),
            Some(_) => (&mut self.rmas, self.split.wrapping_add(index)),
        };
        let at = index as usize;
        if at >= list.len() {
            list.resize(at + 1, None);
        }
        list[at] = Some(operation);
        self.open += 1;
        Op(number)
    }

    #[inline]
    fn place(&mut self, op: Op) -> Option<&mut Option<Operation>> {
        match op.0.checked_sub(self.split) {
            None => self.sends.get_mut(op.0 as usize),
            Some(index) => self.rmas.get_mut(index as usize),
        }
    }

    /// Removes an operation that has ended.
    #[inline]
    pub(super) fn end(&mut self, op: Op) -> Option<Operation> {
        let operation = self.place(op)?.take()?;
        self.open -= 1;
        Some(operation)
    }

    /// An open RMA.
    #[inline]
    pub(super) fn rma(&mut self, op: Op) -> Option<(&mut Operation, Local)> {
        let operation = self.place(op)?.as_mut()?;
        let local = operation.local?;
        Some((operation, local))
    }

    /// Operations that are open.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.open
    }
}
