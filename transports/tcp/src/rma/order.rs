//! Order within a connection.
//!
//! An operation holds back what its program posts after it, where that could overtake it: a fence,
//! and on an ordered connection an operation with a message, or a large message.

use crate::lane::Lane;
use crate::lane::operation::Operation;
use crate::lane::shared::Shared;
use crate::lane::work::{Behind, Hold, Sent, Work};
use cci_proto::{Access, Attribute, Failure};
use cci_transport::{Connection, Core};
use std::collections::VecDeque;

/// Operations of a row, at most.
const LONGEST_ROW: usize = 64;

/// Whether an operation is a barrier for what comes after it.
fn is_barrier(operation: &Operation) -> bool {
    let is_ordered = operation.ending.cell.attribute() == Attribute::ReliableOrdered;
    operation.fence
        || is_ordered && (operation.message.is_some() || operation.access == Access::Large || operation.in_parts)
}

/// Whether it waits for everything of its connection before it.
fn waits(operation: &Operation) -> bool {
    let is_ordered = operation.ending.cell.attribute() == Attribute::ReliableOrdered;
    operation.fence || is_ordered && (operation.access == Access::Large || operation.in_parts)
}

/// Whether an operation may go at the same time as others of its kind on an ordered connection,
/// because nobody can tell which bytes came first.
fn may_go_in_row(operation: &Operation) -> bool {
    operation.in_parts && operation.access == Access::Write && operation.message.is_none() && !operation.fence
}

/// Whether two writes touch no common byte. Registrations may overlap each other.
fn are_disjoint(one: &Operation, other: &Operation) -> bool {
    let end = |operation: &Operation| operation.remote_offset.saturating_add(operation.len);
    let is_before = |one: &Operation, other: &Operation| end(one) <= other.remote_offset;
    one.handle == other.handle && (is_before(one, other) || is_before(other, one))
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
        if work.hold_of(cell).is_some() {
            return self.queue_behind(s, cell, place);
        }
        self.admit(s, core, place, VecDeque::new());
    }

    /// Queues an operation behind the one that holds it back, or with it.
    fn queue_behind(&mut self, s: &mut Shared, cell: &'static Connection, place: u32) {
        let Some(work) = &mut self.work else { return };
        let Work { holds, operations, .. } = &mut **work;
        let Some(hold) = holds.iter_mut().find(|hold| std::ptr::eq(hold.cell, cell)) else { return };
        let goes_with = |operation: &Operation| {
            let mut row = hold.row.iter().filter_map(|other| operations.get(*other));
            may_go_in_row(operation) && row.all(|other| are_disjoint(other, operation))
        };
        let is_free = hold.behind.is_empty() && (1..LONGEST_ROW).contains(&hold.row.len());
        if !is_free || !operations.get(place).is_some_and(goes_with) {
            hold.behind.push_back(Behind::Operation(place));
            return;
        }
        hold.row.push_back(place);
        if !hold.waits {
            operations.ready.push_back(place);
            self.activate(s);
        }
    }

    /// Whether an operation that has ended waits for the end of those before it in its row.
    pub(super) fn waits_in_row(&mut self, place: u32, outcome: Result<(), Failure>) -> bool {
        let Some(work) = &mut self.work else { return false };
        let waits = work.holds.iter().any(|hold| hold.row.iter().skip(1).any(|other| *other == place));
        if waits && let Some(operation) = work.operations.get_mut(place) {
            operation.outcome = Some(outcome);
            work.operations.detach(place);
        }
        waits
    }

    /// The first of a row has ended. The next one, if it has ended before.
    pub(super) fn next_in_row(&mut self, cell: &'static Connection, place: u32) -> Option<(u32, Result<(), Failure>)> {
        let work = self.work.as_mut()?;
        let hold = work.hold_of(cell).filter(|hold| hold.row.front() == Some(&place))?;
        hold.row.pop_front();
        let next = *hold.row.front()?;
        hold.barrier = next;
        Some((next, work.operations.get(next)?.outcome?))
    }

    /// Has an operation that nothing holds back be ready, or wait for those before it. `behind`:
    /// what it holds back, if it does.
    fn admit(&mut self, s: &mut Shared, core: &mut Core, place: u32, mut behind: VecDeque<Behind>) {
        let Some(work) = &mut self.work else { return };
        let Some(operation) = work.operations.get(place) else { return self.let_go(s, core, behind) };
        let cell = operation.ending.cell;
        let waits = waits(operation) && has_earlier(work, cell, operation);
        if is_barrier(operation) {
            let row = if may_go_in_row(operation) { VecDeque::from([place]) } else { VecDeque::new() };
            work.holds.push(Hold { cell, barrier: place, waits, behind: std::mem::take(&mut behind), row });
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
                if work.holds[at].row.is_empty() {
                    work.operations.ready.push_back(place);
                } else {
                    work.operations.ready.extend(&work.holds[at].row);
                }
                self.activate(s);
            } else {
                let hold = work.holds.swap_remove(at);
                self.let_go(s, core, hold.behind);
            }
        }
    }
}
