//! Connections by the cookie that the engine passes with every call: the place among the endpoint's
//! connections, plus one. So the engine's cookies need no table of their own.

use cci_proto::{Address, EventKind};
use cci_transport::{Connection, Core, Slot};
use std::collections::BTreeMap;

/// A connect or an accept whose event is pending.
pub(super) struct PendingConnection {
    /// Reserved for the event. `None` for an accepted client, whose event takes a slot when the
    /// client confirms.
    pub(super) slot: Option<&'static Slot>,
    /// CONNECT or ACCEPT.
    pub(super) kind: EventKind,
    pub(super) context: u64,
    /// The client was redirected once. A second redirection is refused, so that redirections end.
    pub(super) redirected: bool,
    /// Where a client asks, at first if its host has several addresses.
    pub(super) to: Address,
    /// Where it asks, if its host has several addresses: a sentence for its failure.
    pub(super) tried: Option<String>,
}

/// The cookie of a connection, which is never 0.
pub(super) fn cookie_of(cell: &'static Connection) -> u32 {
    cell.place() + 1
}

/// The place of the connection with this cookie.
#[inline]
pub(super) fn place(cookie: u32) -> u32 {
    cookie.wrapping_sub(1)
}

/// The connection with this cookie. `None`: it has ended.
#[inline]
pub(super) fn cell(core: &Core, cookie: u32) -> Option<&'static Connection> {
    core.connection(cookie.checked_sub(1)?)
}

/// Whether the engine has a part in this connection, which is not free: groups are the driver's.
pub(super) fn is_engines(core: &Core, cell: &'static Connection) -> bool {
    !cell.attribute().is_multicast() && core.has_connection(cell)
}

/// The connects and accepts whose events are pending, by the cookies of their connections.
#[derive(Default)]
pub(super) struct PendingConnections(BTreeMap<u32, PendingConnection>);

impl PendingConnections {
    /// Adds one, and returns the cookie of its connection.
    pub(super) fn begin(&mut self, cell: &'static Connection, opening: PendingConnection) -> u32 {
        let cookie = cookie_of(cell);
        self.0.insert(cookie, opening);
        cookie
    }

    pub(super) fn get(&mut self, cookie: u32) -> Option<&mut PendingConnection> {
        self.0.get_mut(&cookie)
    }

    /// Removes the one of a connection, if there is one.
    pub(super) fn end(&mut self, cookie: u32) -> Option<PendingConnection> {
        self.0.remove(&cookie)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
