//! The connections of a lane by number: eight bytes for each that is not being opened.

use crate::{Connection, ConnectionState};
use cci_mem::sync::Ordering;
use std::collections::{BTreeMap, VecDeque};

/// Bits of a number that say the place in the table. The others count the lives of the place, so
/// that frames for a connection that is gone find nobody. A place whose lives are all counted is
/// used no more: no number comes a second time, because a peer that was stopped may answer any
/// number that it was ever sent.
const INDEX_BITS: u32 = 20;
const INDEX: u32 = (1 << INDEX_BITS) - 1;

/// The connections that one lane carries. A lane is what two endpoints share for all of their
/// connections; each side names a connection by a number of its own, which it gives once. `O` is
/// what the transport keeps of a connection that is being opened.
///
/// ```
/// # use cci_transport::{Connection, ConnectionTable};
/// let connection: &'static Connection = Box::leak(Box::default());
/// let mut table = ConnectionTable::default();
/// let number = table.enter(connection, Some("payload"));
/// assert!(table.cell(number).is_some() && table.pending(number) == Some(&"payload"));
/// assert!(table.leave(number).is_some() && table.is_empty());
/// assert_ne!(table.enter(connection, None), number);
/// ```
pub struct ConnectionTable<O> {
    cells: Vec<Option<&'static Connection>>,
    /// Numbers for those that come: free places in the order in which they became free.
    next: VecDeque<u32>,
    /// Places that are used no more.
    retired: usize,
    pending: BTreeMap<u32, O>,
}

impl<O> Default for ConnectionTable<O> {
    fn default() -> Self {
        Self { cells: Vec::new(), next: VecDeque::new(), retired: 0, pending: BTreeMap::new() }
    }
}

impl<O> ConnectionTable<O> {
    /// Enters a connection and gives it its number.
    pub fn enter(&mut self, cell: &'static Connection, pending: Option<O>) -> u32 {
        let number = self.next.pop_front().unwrap_or_else(|| {
            self.cells.push(None);
            u32::try_from(self.cells.len() - 1).unwrap_or(INDEX)
        });
        self.cells[(number & INDEX) as usize] = Some(cell);
        cell.local.store(number, Ordering::Relaxed);
        if let Some(pending) = pending {
            self.pending.insert(number, pending);
        }
        number
    }

    /// The connection that has this number, opening or open.
    #[inline]
    #[must_use]
    pub fn cell(&self, number: u32) -> Option<&'static Connection> {
        let cell = self.cells.get((number & INDEX) as usize).copied().flatten()?;
        (cell.local.load(Ordering::Relaxed) == number).then_some(cell)
    }

    /// The connection that has this number, if it is open: frames that use it are for no other.
    #[inline]
    #[must_use]
    pub fn open_cell(&self, number: u32) -> Option<&'static Connection> {
        self.cell(number).filter(|cell| cell.state() == ConnectionState::Open)
    }

    /// What the opening connection with this number waits for.
    #[must_use]
    pub fn pending(&self, number: u32) -> Option<&O> {
        self.pending.get(&number)
    }

    /// As [`ConnectionTable::pending`], to be changed.
    #[must_use]
    pub fn pending_mut(&mut self, number: u32) -> Option<&mut O> {
        self.pending.get_mut(&number)
    }

    /// Changes what all opening connections wait for.
    pub fn each_pending(&mut self, change: impl FnMut(&mut O)) {
        self.pending.values_mut().for_each(change);
    }

    /// The opening connection with this number has its answer.
    pub fn answered(&mut self, number: u32) -> Option<(&'static Connection, O)> {
        Some((self.cell(number)?, self.pending.remove(&number)?))
    }

    /// Takes a connection out.
    pub fn leave(&mut self, number: u32) -> Option<(&'static Connection, Option<O>)> {
        let cell = self.cell(number)?;
        self.cells[(number & INDEX) as usize] = None;
        match number.checked_add(1 << INDEX_BITS) {
            Some(next) => self.next.push_back(next),
            None => self.retired += 1,
        }
        Some((cell, self.pending.remove(&number)))
    }

    /// Whether another connection would not fit.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.next.is_empty() && self.cells.len() > INDEX as usize
    }

    /// Whether no connection is in the table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next.len() + self.retired == self.cells.len()
    }

    /// All connections.
    pub fn cells(&self) -> impl Iterator<Item = &'static Connection> + '_ {
        self.cells.iter().filter_map(|cell| *cell)
    }

    /// Those that are not being opened.
    pub fn open_cells(&self) -> impl Iterator<Item = &'static Connection> + '_ {
        self.cells().filter(|cell| !self.pending.contains_key(&cell.local.load(Ordering::Relaxed)))
    }

    /// Numbers of those that are being opened, with what they wait for.
    pub fn all_pending(&self) -> impl Iterator<Item = (u32, &O)> + '_ {
        self.pending.iter().map(|(number, pending)| (*number, pending))
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionTable, INDEX};
    use crate::Connection;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_names_one_connection_only() {
        const LIVES: u32 = 1 << 12;
        let cell: &'static Connection = Box::leak(Box::default());
        let mut table = ConnectionTable::<()>::default();
        let first = table.enter(cell, None);
        assert!(table.cell(first).is_some() && !table.is_empty());
        assert!(table.leave(first).is_some() && table.is_empty());
        assert!(table.cell(first).is_none() && table.leave(first).is_none());
        let mut seen = BTreeSet::from([first]);
        for life in 1..3 * LIVES {
            let next = table.enter(cell, None);
            assert_eq!(next & INDEX, life / LIVES, "a place has 4,096 lives");
            assert!(seen.insert(next), "life {life}");
            assert!(table.cell(next).is_some() && table.cell(first).is_none());
            assert!(!table.is_empty() && table.leave(next).is_some() && table.is_empty());
        }
    }
}
