//! Order within a connection.
//!
//! An operation holds back what its program posts after it, where that could overtake it: a fence,
//! and on an ordered connection an operation with a message, or a large message.

use crate::lane::Lane;
use crate::lane::operation::Operation;
use crate::lane::shared::Shared;
use crate::lane::work::{Behind, Hold, Sent, Work};
use cci_proto::{Access, Attribute};
use cci_transport::{Connection, Core};
use std::collections::VecDeque;

/// Whether an operation is a barrier for what comes after it.
fn is_barrier(operation: &Operation) -> bool {
    let is_ordered = operation.ending.cell.attribute() == Attribute::ReliableOrdered;
    operation.fence || is_ordered && (operation.message.is_some() || operation.access == Access::Large)
}

/// Whether it waits for everything of its connection before it.
fn waits(operation: &Operation) -> bool {
    let is_ordered = operation.ending.cell.attribute() == Attribute::ReliableOrdered;
    operation.fence || is_ordered && operation.access == Access::Large
}

/// Whether anything of a connection from before this operation is open.
fn has_earlier(work: &Work, cell: &'static Connection, operation: &Operation) -> bool {
    let is_its = |other: Option<&'static Connection>| other.is_some_and(|other| std::ptr::eq(other, cell));
    let mut operations = work.operations.iter();
    operations.any(|(_, other)| other.order < operation.order && is_its(Some(other.ending.cell)))
        || work.waiting.iter().any(|waiting| is_its(Some(waiting.cell)))
        || work.in_flight.iter().any(|sent| is_its(sent.cell()) && !matches!(sent, Sent::Nothing))
}

impl Lane {
    /// Queues a new operation: it is ready, unless one before it holds it back.
    pub(super) fn queue_operation(&mut self, s: &mut Shared, core: &mut Core, place: u32) {
        let Some(work) = &mut self.work else { return };
        let Some(cell) = work.operations.get(place).map(|operation| operation.ending.cell) else { return };
        if let Some(hold) = work.hold_of(cell) {
            hold.behind.push_back(Behind::Operation(place));
            return;
        }
        self.admit(s, core, place, VecDeque::new());
    }

    /// Has an operation that nothing holds back be ready, or wait for those before it. `behind`:
    /// what it holds back, if it does.
    fn admit(&mut self, s: &mut Shared, core: &mut Core, place: u32, mut behind: VecDeque<Behind>) {
        let Some(work) = &mut self.work else { return };
        let Some(operation) = work.operations.get(place) else { return self.let_go(s, core, behind) };
        let cell = operation.ending.cell;
        let waits = waits(operation) && has_earlier(work, cell, operation);
        if is_barrier(operation) {
            work.holds.push(Hold { cell, barrier: place, waits, behind: std::mem::take(&mut behind) });
        }
        if !waits {
            work.operations.ready.push_back(place);
            self.activate(s);
        }
        self.let_go(s, core, behind);
    }

    /// Lets go what was held back, up to the next barrier.
    fn let_go(&mut self, s: &mut Shared, core: &mut Core, mut behind: VecDeque<Behind>) {
        while let Some(next) = behind.pop_front() {
            match next {
                Behind::Message(waiting) => {
                    self.work(s).waiting.push_back(waiting);
                    self.activate(s);
                }
                Behind::Operation(place) => {
                    let is_barrier = self.operation(place).is_some_and(is_barrier);
                    if is_barrier {
                        return self.admit(s, core, place, behind);
                    }
                    self.admit(s, core, place, VecDeque::new());
                }
            }
        }
    }

    /// An operation holds nothing back any more.
    pub(super) fn release_hold(&mut self, s: &mut Shared, core: &mut Core, cell: &'static Connection, place: u32) {
        let Some(work) = &mut self.work else { return };
        let is_its = |hold: &Hold| hold.barrier == place && std::ptr::eq(hold.cell, cell);
        let Some(at) = work.holds.iter().position(is_its) else { return };
        // A fence holds back until its end, others until their message has its place.
        let is_open = work.operations.get(place).is_some_and(|operation| operation.fence);
        if !is_open {
            let hold = work.holds.swap_remove(at);
            self.let_go(s, core, hold.behind);
        }
    }

    /// Something has ended: operations that wait for all before them may be ready now.
    pub(crate) fn check_holds(&mut self, s: &mut Shared, core: &mut Core) {
        loop {
            let Some(work) = &mut self.work else { return };
            let may_begin = |hold: &Hold| {
                let operation = work.operations.get(hold.barrier);
                hold.waits && operation.is_none_or(|operation| !has_earlier(work, hold.cell, operation))
            };
            let Some(at) = work.holds.iter().position(may_begin) else { return };
            let place = work.holds[at].barrier;
            if work.operations.get(place).is_some() {
                work.holds[at].waits = false;
                work.operations.ready.push_back(place);
                self.activate(s);
            } else {
                let hold = work.holds.swap_remove(at);
                self.let_go(s, core, hold.behind);
            }
        }
    }
}
