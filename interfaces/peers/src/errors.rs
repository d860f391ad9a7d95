//! What can go wrong with a peer.

use crate::name::Name;
use cci::ConnectError;
use std::fmt;
use std::time::Duration;

/// Why a link that was up has ended.
///
/// # Example
///
/// ```
/// assert_eq!(cci_peers::Lost::Closed.to_string(), "the peer has closed the connection, or has ended");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// The peer has closed the connection, or has ended.
    Closed,
    /// The peer was silent for the keepalive time of the endpoint.
    Silent,
    /// Another process has come by this name; the next link is to that one.
    Replaced,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the peer has closed the connection, or has ended",
            Self::Silent => "the peer was silent for the keepalive time",
            Self::Replaced => "another process has come by the name of the peer",
        })
    }
}

/// Why there is no link to a peer; what waited for it is given back.
///
/// # Example
///
/// ```
/// use cci_peers::{Name, Unreached};
///
/// /// Whether to wait longer may help.
/// fn may_come(why: &Unreached) -> bool {
///     matches!(why, Unreached::NeverCame { .. })
/// }
/// assert!(!may_come(&Unreached::Unknown(Name::Number(1))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreached {
    /// It has not been there yet, and did not come within the limit.
    NeverCame {
        /// Its name.
        name: Name,
        /// How long it was waited for.
        waited: Duration,
        /// Why the last attempt failed.
        last: String,
    },
    /// It was there, has gone, and did not come back within the limit.
    Went {
        /// Its name.
        name: Name,
        /// Why the last attempt failed.
        last: String,
    },
    /// The directory has no such peer.
    Unknown(Name),
    /// What the directory gave cannot be connected to.
    Refused {
        /// Its name.
        name: Name,
        /// Why.
        why: ConnectError,
    },
    /// This side has closed.
    Closed,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverCame { name, waited, last } => {
                let waited = waited.as_secs_f64();
                write!(
                    f,
                    "the peer {name} did not come within {waited:.3} s: {last}; see that it runs, or raise the limit"
                )
            }
            Self::Went { name, last } => write!(f, "the peer {name} was there and has gone: {last}"),
            Self::Unknown(name) => write!(f, "there is no peer {name}; correct the name, or enter it into the table"),
            Self::Refused { name, why } => write!(f, "the peer {name} cannot be connected to: {why}"),
            Self::Closed => f.write_str("this side has closed its links"),
        }
    }
}

impl std::error::Error for Unreached {}

/// Why an operation may not wait, or a peer is not taken.
///
/// # Example
///
/// ```
/// assert!(cci_peers::Why::Own.to_string().contains("own"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// As many operations as may do so wait for this peer.
    Full,
    /// The name is that of this side.
    Own,
    /// The name of the host is longer than 253 bytes.
    TooLong,
    /// There are as many peers as there may be.
    TooMany,
    /// This side has closed.
    Closed,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too many operations wait for this peer; wait until the link is up, or raise most_waiting",
            Self::Own => "the peer is this side's own name; serve it without a connection",
            Self::TooLong => "the name of the peer's host is longer than 253 bytes; write a shorter one",
            Self::TooMany => "there are as many peers as there may be; raise most_peers",
            Self::Closed => "this side has closed its links",
        })
    }
}

impl std::error::Error for Why {}

/// An operation that was not taken, and why.
///
/// # Example
///
/// ```
/// fn show<W>(refused: &cci_peers::Refused<W>) -> String {
///     refused.why.to_string()
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused<W> {
    /// It is the program's again.
    pub operation: W,
    /// Why.
    pub why: Why,
}
