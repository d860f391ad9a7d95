//! The connections of an endpoint by the cookie that the engine passes with every call: eight bytes
//! for each.

use cci_mem::sync::Ordering;
use cci_proto::EventKind;
use cci_transport::{Connection, Slot};
use std::collections::BTreeMap;

/// A connect or an accept whose event is pending.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    /// Reserved for the event. `None` for an accepted client, whose event takes a slot when the
    /// client confirms.
    pub(super) slot: Option<&'static Slot>,
    /// CONNECT or ACCEPT.
    pub(super) kind: EventKind,
    pub(super) context: u64,
    /// The client was redirected once. A second redirection is refused, so that redirections end.
    pub(super) redirected: bool,
}

/// The table.
#[derive(Default)]
pub(super) struct ConnectionTable {
    cells: Vec<Option<&'static Connection>>,
    free: Vec<u32>,
    openings: BTreeMap<u64, Opening>,
}

impl ConnectionTable {
    /// Adds a connection, and returns its cookie, which is never 0.
    pub(super) fn enter(&mut self, cell: &'static Connection, opening: Opening) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.cells.push(None);
            u32::try_from(self.cells.len() - 1).unwrap_or(u32::MAX)
        });
        self.cells[at as usize] = Some(cell);
        cell.remote.store(at, Ordering::Relaxed);
        let user = u64::from(at) + 1;
        self.openings.insert(user, opening);
        user
    }

    /// The connection with this cookie.
    #[inline]
    pub(super) fn cell(&self, user: u64) -> Option<&'static Connection> {
        let at = usize::try_from(user.checked_sub(1)?).ok()?;
        self.cells.get(at).copied().flatten()
    }

    /// The cookie of a connection, if it is in the table.
    pub(super) fn user(&self, cell: &'static Connection) -> Option<u64> {
        let user = u64::from(cell.remote.load(Ordering::Relaxed)) + 1;
        self.cell(user).filter(|other| std::ptr::eq(*other, cell)).map(|_| user)
    }

    /// The pending connect or accept of a connection.
    pub(super) fn opening(&mut self, user: u64) -> Option<&mut Opening> {
        self.openings.get_mut(&user)
    }

    /// Ends the pending connect or accept.
    pub(super) fn opened(&mut self, user: u64) -> Option<Opening> {
        self.openings.remove(&user)
    }

    /// Removes a connection.
    pub(super) fn leave(&mut self, user: u64) -> Option<(&'static Connection, Option<Opening>)> {
        let cell = self.cell(user)?;
        let at = cell.remote.load(Ordering::Relaxed);
        self.cells[at as usize] = None;
        self.free.push(at);
        Some((cell, self.openings.remove(&user)))
    }

    /// Whether a connect or an accept is pending.
    #[inline]
    pub(super) fn is_opening(&self) -> bool {
        !self.openings.is_empty()
    }

    /// All connections.
    pub(super) fn cells(&self) -> impl Iterator<Item = &'static Connection> + '_ {
        self.cells.iter().filter_map(|cell| *cell)
    }
}
