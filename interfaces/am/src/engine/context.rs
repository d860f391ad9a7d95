//! The contexts that the engine gives to what it starts.

use crate::peers::{KEY_BITS, Peer};

/// What an operation or a channel was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// A target: its channel, and messages to it.
    Target(Peer),
    Source(Peer),
    /// A bulk request from this staging buffer.
    Staged(u32, u32),
    /// A bulk request from the segment.
    InPlace(u32),
    /// The bulk reply in this buffer.
    Reply(u32),
    Get(u32),
}

impl Context {
    #[inline]
    pub(crate) const fn pack(self) -> u64 {
        let (tag, rest) = match self {
            Self::Target(peer) => (0, peer.key),
            Self::Source(peer) => (1, peer.key),
            Self::Staged(buffer, id) => (2, (buffer as u64) << 32 | id as u64),
            Self::InPlace(id) => (3, id as u64),
            Self::Reply(buffer) => (4, buffer as u64),
            Self::Get(id) => (5, id as u64),
        };
        (tag << KEY_BITS) | rest
    }

    #[inline]
    pub(crate) const fn unpack(word: u64) -> Self {
        let rest = word & ((1 << KEY_BITS) - 1);
        let low = rest as u32;
        match word >> KEY_BITS {
            0 => Self::Target(Peer { key: rest }),
            1 => Self::Source(Peer { key: rest }),
            2 => Self::Staged((rest >> 32) as u32, low),
            3 => Self::InPlace(low),
            4 => Self::Reply(low),
            _ => Self::Get(low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_unpacked_as_they_were_packed() {
        let (most, key) = (u32::MAX, (1 << KEY_BITS) - 1);
        for context in [
            Context::Target(Peer { key }),
            Context::Source(Peer { key: key - 1 }),
            Context::Staged(7, most),
            Context::InPlace(most),
            Context::Reply(3),
            Context::Get(most),
        ] {
            assert_eq!(Context::unpack(context.pack()), context);
        }
    }
}
