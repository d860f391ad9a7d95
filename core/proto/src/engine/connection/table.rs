//! Connections by their index and by their identifier, which nobody guesses.

use super::conn::Conn;
use super::ids::{self, Ids};
use crate::Places;
use crate::engine::random::Random;

/// Connections that get memory together.
const CHUNK: usize = 512;

/// The connections of an endpoint.
pub(crate) struct Table {
    conns: Places<Conn, CHUNK>,
    ids: Ids,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { conns: Places::new(), ids: Ids::new() }
    }

    /// Returns an index and an identifier for a new connection, which [`Table::put`] adds; `None`:
    /// no memory, or 16 million connections.
    pub(crate) fn take(&mut self, random: &mut Random) -> Option<(u32, u64)> {
        let index = self.conns.reserve(ids::MAX_INDEX)?;
        // Nobody draws 0 or the same number twice in the life of an endpoint; it would be found
        // wrong.
        let id = loop {
            let id = random.next();
            if id != 0 && self.find(id).is_none() {
                break id;
            }
        };
        self.ids.make_room(id, |index| id_of(&self.conns, index))?;
        Some((index, id))
    }

    /// Connections that there are.
    pub(crate) fn len(&self) -> usize {
        self.conns.len()
    }

    /// One more than the largest index that was ever in use.
    pub(crate) fn end(&self) -> u32 {
        u32::try_from(self.conns.used()).unwrap_or(u32::MAX)
    }

    /// Adds a connection with the index and the identifier that [`Table::take`] returned last.
    pub(crate) fn put(&mut self, index: u32, conn: Conn) {
        self.ids.insert(conn.id, index);
        self.conns.put(index, conn);
    }

    pub(crate) fn remove(&mut self, index: u32) {
        if let Some(id) = self.get(index).map(|conn| conn.id) {
            self.ids.remove(id, |index| id_of(&self.conns, index));
            self.conns.remove(index);
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Conn> {
        self.conns.get(index)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Conn> {
        self.conns.get_mut(index)
    }

    /// The connection with this identifier.
    #[inline]
    pub(crate) fn find(&self, id: u64) -> Option<u32> {
        self.ids.find(id, |index| self.get(index).is_some_and(|conn| conn.id == id))
    }
}

/// The identifier of a connection; 0, which is no identifier, where there is none.
fn id_of(conns: &Places<Conn, CHUNK>, index: u32) -> u64 {
    conns.get(index).map_or(0, |conn| conn.id)
}
