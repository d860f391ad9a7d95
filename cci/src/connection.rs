//! Connections as programs hold them.

use cci_transport as transport;
use std::fmt;

/// A connection: a small value that names it. Stale once disconnected; a stale one is refused, never mistaken for another.
#[derive(Clone, Copy)]
pub struct Connection {
    pub(crate) cell: &'static transport::Connection,
    generation: u32,
}

impl Connection {
    /// The connection as it was in this life.
    pub(crate) fn of_life(cell: &'static transport::Connection, generation: u32) -> Self {
        Self { cell, generation }
    }

    /// The connection, unless this handle is stale or belongs to another endpoint.
    #[inline(always)]
    pub(crate) fn live(&self, endpoint: &'static transport::Endpoint) -> Option<&'static transport::Connection> {
        let here = self.cell.endpoint.get().is_some_and(|owner| std::ptr::eq(owner, endpoint));
        (here && self.cell.generation() == self.generation).then_some(self.cell)
    }

    /// Largest message, bytes. Never changes.
    #[must_use]
    pub fn max_send_size(&self) -> u32 {
        self.cell.max_send_size.load(cci_mem::sync::Ordering::Relaxed)
    }

    /// What the connection promises.
    #[must_use]
    pub fn attribute(&self) -> crate::Attribute {
        self.cell.attribute()
    }

    /// The context given to connect or accept.
    #[must_use]
    pub fn context(&self) -> u64 {
        self.cell.context.load(cci_mem::sync::Ordering::Relaxed)
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
        write!(f, "Connection({:p}#{} {})", self.cell, self.generation, self.attribute().name())
    }
}
