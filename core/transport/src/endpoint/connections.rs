//! The connections of an endpoint.

use super::Core;
use super::connection::LAST_PLACE;
use crate::Connection;
use cci_mem::sync::Ordering;
use cci_proto::Attribute;

/// Connections at most: one more is still a number.
const MOST: u32 = LAST_PLACE;

impl Core {
    /// A connection of this endpoint, opening.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn open_connection(
        &mut self,
        attribute: Attribute,
        context: u64,
        max_send_size: u32,
    ) -> rustix::io::Result<&'static Connection> {
        let place = self.connections.open.reserve(MOST).ok_or(rustix::io::Errno::NOMEM)?;
        let connection = self.connections.cells.take()?;
        connection.begin(self.endpoint, attribute, context, max_send_size);
        connection.send_timeout.store(self.send_timeout().micros(), Ordering::Relaxed);
        connection.keepalive.store(self.keepalive().micros(), Ordering::Relaxed);
        connection.put_at(place, self.way());
        self.connections.open.put(place, connection);
        self.count_connections();
        Ok(connection)
    }

    fn count_connections(&self) {
        self.counters.connections.store(self.connections.open.len() as u64, Ordering::Relaxed);
    }

    /// Ends a connection; handles to it are stale, its public part stays readable.
    pub fn end_connection(&mut self, connection: &'static Connection) {
        if self.has_connection(connection) {
            self.connections.open.remove(connection.place());
            self.break_reasons.forget(connection.place());
            connection.end();
            self.count_connections();
            self.connections.cells.give(connection);
        }
    }

    /// Connections that are not free, of the current way, by their places.
    pub fn connections(&self) -> impl Iterator<Item = &'static Connection> + '_ {
        let way = self.way();
        self.connections.open.iter().copied().filter(move |connection| connection.way() == way)
    }

    /// How many connections are not free.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.open.len()
    }

    /// The connection at this place, if it is not free.
    #[inline]
    #[must_use]
    pub fn connection(&self, place: u32) -> Option<&'static Connection> {
        self.connections.open.get(place).copied()
    }

    /// Whether a connection is of this endpoint and not free.
    #[must_use]
    pub fn has_connection(&self, connection: &'static Connection) -> bool {
        let place = connection.place();
        self.connection(place).is_some_and(|other| std::ptr::eq(other, connection))
    }

    /// Ends all connections.
    pub(super) fn end_connections(&mut self) {
        for place in (0..self.connections.open.used()).rev() {
            if let Some(connection) = u32::try_from(place).ok().and_then(|place| self.connection(place)) {
                self.end_connection(connection);
            }
        }
    }
}
