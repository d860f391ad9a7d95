//! Connections as programs hold them.

use cci_mem::sync::Ordering;
use cci_proto::Attribute;
use cci_transport as transport;
use std::fmt;

/// A connection: a small value that names it, to be copied and kept as the program likes.
///
/// It owns nothing: the connection lives until [`crate::EndpointFor::disconnect`], or until its
/// endpoint closes. From then on the value is stale: every call with it is refused, and it is never
/// mistaken for a later connection. Any thread may use it.
///
/// # Example
///
/// ```
/// # use cci::{Connection, Endpoint};
/// fn largest(connection: Connection) -> usize {
///     connection.max_send_size().map_or(0, |bytes| bytes as usize)
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Connection {
    pub(crate) cell: &'static transport::Connection,
    generation: u32,
}

impl Connection {
    /// The connection as it was in this life.
    #[inline(always)]
    pub(crate) fn of_life(cell: &'static transport::Connection, generation: u32) -> Self {
        Self { cell, generation }
    }

    /// The connection, unless this handle is stale or belongs to another endpoint.
    #[inline(always)]
    pub(crate) fn live(&self, endpoint: &'static transport::Endpoint) -> Option<&'static transport::Connection> {
        let here = self.cell.endpoint.get().is_some_and(|owner| std::ptr::eq(owner, endpoint));
        (here && self.cell.generation() == self.generation).then_some(self.cell)
    }

    /// Returns the size of the largest message, in bytes; `None` when the connection has ended.
    #[must_use]
    pub fn max_send_size(&self) -> Option<u32> {
        self.cell.of_life(self.generation, |cell| cell.max_send_size.load(Ordering::Relaxed))
    }

    /// Returns what the connection promises; `None` when it has ended.
    #[must_use]
    pub fn attribute(&self) -> Option<Attribute> {
        self.cell.of_life(self.generation, transport::Connection::attribute)
    }

    /// Returns the context given to connect or accept; `None` when the connection has ended.
    #[must_use]
    pub fn context(&self) -> Option<u64> {
        self.cell.of_life(self.generation, |cell| cell.context.load(Ordering::Relaxed))
    }
}

impl PartialEq for Connection {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.cell, other.cell) && self.generation == other.generation
    }
}

impl Eq for Connection {}

impl std::hash::Hash for Connection {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (std::ptr::from_ref(self.cell).addr(), self.generation).hash(state);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attribute = self.attribute().map_or("ended", Attribute::name);
        write!(f, "Connection({:p}#{} {attribute})", self.cell, self.generation)
    }
}
