//! The order in which the ends of operations are reported on RO: that in which they began. Sends
//! end in that order by themselves, so it is kept from the oldest open RMA on.

use crate::Failure;
use crate::engine::host::Op;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

type Outcome = Result<(), Failure>;

#[derive(Clone, Copy, Debug)]
enum End {
    /// It is not ordered.
    Unordered,
    /// The operation has not ended.
    Open,
    /// The operation has ended; an earlier operation has not.
    Ended(Outcome),
}

/// The ends of an endpoint's operations, by their number.
#[derive(Default)]
pub(crate) struct OrderedEnds(Vec<End>);

impl OrderedEnds {
    /// Notes the end of an operation, which is reported in its turn. Returns false if it is not
    /// ordered.
    pub(crate) fn note(&mut self, op: Op, outcome: Outcome) -> bool {
        match self.0.get_mut(op.0 as usize) {
            Some(end @ End::Open) => *end = End::Ended(outcome),
            _ => return false,
        }
        true
    }
}

/// The operations of a flow whose ends are reported in order, the oldest first.
#[derive(Default)]
pub(crate) struct EndOrder(VecDeque<Op>);

impl EndOrder {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes the end of an operation wait for those before it.
    pub(crate) fn push(&mut self, op: Op, ends: &mut OrderedEnds) {
        self.0.push_back(op);
        let at = op.0 as usize;
        if ends.0.len() <= at {
            ends.0.resize(at + 1, End::Unordered);
        }
        ends.0[at] = End::Open;
    }

    /// Removes the oldest operation if it has ended.
    pub(crate) fn pop_ended(&mut self, ends: &mut OrderedEnds) -> Option<(Op, Outcome)> {
        let op = *self.0.front()?;
        let end = ends.0.get_mut(op.0 as usize)?;
        let End::Ended(outcome) = *end else { return None };
        *end = End::Unordered;
        self.0.pop_front();
        Some((op, outcome))
    }

    /// Removes all operations. Returns those that have ended.
    pub(crate) fn drain(&mut self, ends: &mut OrderedEnds) -> impl Iterator<Item = (Op, Outcome)> {
        self.0.drain(..).filter_map(|op| {
            let end = ends.0.get_mut(op.0 as usize)?;
            match core::mem::replace(end, End::Unordered) {
                End::Ended(outcome) => Some((op, outcome)),
                End::Unordered | End::Open => None,
            }
        })
    }

    /// Returns an empty order with the memory of this one.
    pub(super) fn emptied(mut self) -> Self {
        self.0.clear();
        self
    }
}
