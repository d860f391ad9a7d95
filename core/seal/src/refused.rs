//! Why nothing was sealed or opened.

use cci_mem::secrets::Wiped;
use std::fmt;

/// Why a call did nothing. None of them has a part of a secret in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The tag is wrong: the bytes are forged, damaged, or sealed under another key.
    Forged,
    /// The buffers have lengths that fit no message.
    Length,
    /// No key is there: the connection has none, or none of this phase.
    NoKey,
    /// The number of a frame is not above the one before: its nonce may have been used.
    Reused,
    /// The key has sealed as many frames as it may: [`crate::vault::MOST_FRAMES`].
    WornOut,
    /// This process was forked from the one that has the key.
    Forked,
    /// No memory for keys, or no random bytes.
    NoMemory,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forged => "the tag is wrong; both sides need the same secret",
            Self::Length => "the message has an impossible length",
            Self::NoKey => "there is no key of this connection and phase",
            Self::Reused => "the number was used for a frame before; give each frame a new one",
            Self::WornOut => "the key has sealed its share of frames; change to the next key",
            Self::Forked => "a forked process has no key of its parent; open an endpoint of its own in it",
            Self::NoMemory => "no memory for keys; raise the limit of address space",
        })
    }
}

impl std::error::Error for Refused {}

impl From<Wiped> for Refused {
    fn from(_: Wiped) -> Self {
        Self::Forked
    }
}

impl From<rustix::io::Errno> for Refused {
    fn from(_: rustix::io::Errno) -> Self {
        Self::NoMemory
    }
}
