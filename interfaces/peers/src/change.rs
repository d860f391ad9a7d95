//! Peers as an interface names them, and what it is given back about them.

use crate::errors::{Lost, Unreached};
use cci::Connection;
use std::collections::VecDeque;

/// A peer of one [`Peers`](crate::Peers): a short name, valid as long as that.
///
/// # Example
///
/// ```
/// # use cci_peers::{Name, Options, Peers, Table};
/// let mut peers: Peers<()> = Peers::new(Name::Number(0), Box::new(Table::new()), &Options::new())?;
/// let peer = peers.peer(&Name::Number(1))?;
/// assert_eq!(peers.peer(&Name::Number(1)), Ok(peer));
/// assert_eq!(peers.name(peer), Some(&Name::Number(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer(pub(crate) u32);

impl Peer {
    /// Returns the number of this peer: peers count from 0, in the order in which they were named
    /// or came.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What has become of an operation: [`crate::Peers::defer`].
///
/// # Example
///
/// ```
/// # use cci_peers::Deferred;
/// fn is_for_now<W>(deferred: &Deferred<W>) -> bool {
///     matches!(deferred, Deferred::Now(..))
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "now or later")]
pub enum Deferred<W> {
    /// The link is up: do it now.
    Now(Connection, W),
    /// It comes back in a [`Change`].
    Waits,
}

/// What has become of a link: [`crate::Peers::poll_change`].
///
/// # Example
///
/// ```
/// # use cci_peers::Change;
/// fn shown<W>(change: &Change<W>) -> String {
///     match change {
///         Change::Up { waiting, .. } => format!("up, for {} operations", waiting.len()),
///         Change::Down { why, .. } => why.to_string(),
///         Change::Failed { why, .. } => why.to_string(),
///         _ => "something new".into(),
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Change<W> {
    /// The link is up.
    Up {
        /// To whom.
        peer: Peer,
        /// Reliable and ordered.
        connection: Connection,
        /// Whether this is another process than the last link was to, or the first one.
        is_new: bool,
        /// What waited, in order.
        waiting: VecDeque<W>,
    },
    /// The link that was up is no more.
    Down {
        /// To whom.
        peer: Peer,
        /// Why.
        why: Lost,
    },
    /// There is no link, and what waited is given back.
    Failed {
        /// To whom.
        peer: Peer,
        /// Why.
        why: Unreached,
        /// What waited, in order.
        waiting: VecDeque<W>,
    },
}

/// What has happened so far.
///
/// # Example
///
/// ```
/// assert_eq!(cci_peers::Counts::default().attempts, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Connects that this side has begun.
    pub attempts: u64,
    /// Requests of peers that were accepted.
    pub accepted: u64,
    /// Requests that were rejected because the link is there, or is coming by this side's connect.
    pub surplus: u64,
    /// Requests that were rejected because they were for another name, or of nobody who is known.
    pub strangers: u64,
    /// Messages that were no first message of a peer; their connections were closed.
    pub malformed: u64,
}
