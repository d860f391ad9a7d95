//! Who is at the other side of a connection.

use cci_peers::Peer;

/// The other side of a connection; `None`: this host itself.
pub(crate) type Partner = Option<Peer>;
/// A connection as its owner names it.
pub(crate) type Key = (Partner, u64);
