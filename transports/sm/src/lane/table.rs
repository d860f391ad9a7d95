//! A lane's table of connections: eight bytes for each that is not being opened.

use crate::format::address::Address;
use cci_mem::sync::Ordering;
use cci_proto::Attribute;
use cci_transport::{Connection, ConnectionState, Slot};
use std::collections::{BTreeMap, VecDeque};

/// Bits of a number that say the place in the table. The others count the lives of the place, so
/// that frames for a connection that is gone find nobody. A place whose lives are all counted is
/// used no more: no number comes a second time, because a peer that was stopped may answer any
/// number that it was ever sent.
const INDEX_BITS: u32 = 20;
const INDEX: u32 = (1 << INDEX_BITS) - 1;

/// A connect that waits for its answer.
pub(crate) struct Opening {
    /// Reserved for the CONNECT event.
    pub(crate) slot: &'static Slot,
    pub(crate) context: u64,
    /// Milliseconds of the endpoint's clock.
    pub(crate) deadline: Option<u64>,
    /// What was asked, should the client be sent elsewhere or the lane close before the answer.
    pub(crate) payload: Box<[u8]>,
    pub(crate) token: u64,
    /// Not to be tried on another lane again.
    pub(crate) last_try: bool,
}

/// A request that waits for the program's answer.
pub(crate) struct PendingRequest {
    /// The client's number.
    pub(crate) number: u32,
    pub(crate) attribute: Attribute,
    pub(crate) max_send_size: u32,
}

/// A client that was sent to another endpoint.
pub(crate) struct Redirected {
    pub(crate) cell: &'static Connection,
    pub(crate) opening: Opening,
    pub(crate) address: Address,
}

#[derive(Default)]
pub(crate) struct Table {
    cells: Vec<Option<&'static Connection>>,
    /// Numbers for those that come: free places in the order in which they became free.
    next: VecDeque<u32>,
    /// Places that are used no more.
    retired: usize,
    openings: BTreeMap<u32, Opening>,
}

impl Table {
    /// Enters a connection and gives it its number.
    pub(crate) fn enter(&mut self, cell: &'static Connection, opening: Option<Opening>) -> u32 {
        let number = self.next.pop_front().unwrap_or_else(|| {
            self.cells.push(None);
            u32::try_from(self.cells.len() - 1).unwrap_or(INDEX)
        });
        self.cells[(number & INDEX) as usize] = Some(cell);
        cell.local.store(number, Ordering::Relaxed);
        if let Some(opening) = opening {
            self.openings.insert(number, opening);
        }
        number
    }

    /// The connection that has this number, opening or open.
    #[inline]
    pub(crate) fn cell(&self, number: u32) -> Option<&'static Connection> {
        let cell = self.cells.get((number & INDEX) as usize).copied().flatten()?;
        (cell.local.load(Ordering::Relaxed) == number).then_some(cell)
    }

    /// The connection that has this number, if it is open: frames that use it are for no other.
    #[inline]
    pub(crate) fn open_cell(&self, number: u32) -> Option<&'static Connection> {
        self.cell(number).filter(|cell| cell.state() == ConnectionState::Open)
    }

    /// What the opening connection with this number waits for.
    pub(crate) fn opening(&self, number: u32) -> Option<&Opening> {
        self.openings.get(&number)
    }

    /// The opening connection with this number has its answer.
    pub(crate) fn opened(&mut self, number: u32) -> Option<(&'static Connection, Opening)> {
        Some((self.cell(number)?, self.openings.remove(&number)?))
    }

    /// Takes a connection out.
    pub(crate) fn leave(&mut self, number: u32) -> Option<(&'static Connection, Option<Opening>)> {
        let cell = self.cell(number)?;
        self.cells[(number & INDEX) as usize] = None;
        match number.checked_add(1 << INDEX_BITS) {
            Some(next) => self.next.push_back(next),
            None => self.retired += 1,
        }
        Some((cell, self.openings.remove(&number)))
    }

    /// Whether another connection would not fit.
    pub(crate) fn is_full(&self) -> bool {
        self.next.is_empty() && self.cells.len() > INDEX as usize
    }

    /// Whether no connection is in the table.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.len() + self.retired == self.cells.len()
    }

    /// All connections.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &'static Connection> + '_ {
        self.cells.iter().filter_map(|cell| *cell)
    }

    /// Those that are not being opened.
    pub(crate) fn open_cells(&self) -> impl Iterator<Item = &'static Connection> + '_ {
        self.cells().filter(|cell| !self.openings.contains_key(&cell.local.load(Ordering::Relaxed)))
    }

    /// Numbers of those that are being opened, with what they wait for.
    pub(crate) fn openings(&self) -> impl Iterator<Item = (u32, &Opening)> + '_ {
        self.openings.iter().map(|(number, opening)| (*number, opening))
    }
}

#[cfg(test)]
mod tests {
    use super::{INDEX, Table};
    use cci_transport::Connection;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_names_one_connection_only() {
        const LIVES: u32 = 1 << 12;
        let cell: &'static Connection = Box::leak(Box::default());
        let mut table = Table::default();
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
