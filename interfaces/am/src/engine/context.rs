//! The contexts that the engine gives to what it starts.

/// What an operation or a channel was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// A target, index and generation: its channel, and messages to it.
    Target(u32, u32),
    Source(u32, u32),
    /// A bulk request from this staging buffer.
    Staged(u32, u32),
    /// A bulk request from the segment.
    InPlace(u32),
    /// The bulk reply in this buffer.
    Reply(u32),
    Get(u32),
}

const LOW: u64 = 0xffff_ffff;

impl Context {
    #[inline]
    pub(crate) const fn pack(self) -> u64 {
        let (tag, high, low) = match self {
            Self::Target(index, generation) => (0, generation, index),
            Self::Source(index, generation) => (1, generation, index),
            Self::Staged(buffer, id) => (2, buffer, id),
            Self::InPlace(id) => (3, 0, id),
            Self::Reply(buffer) => (4, 0, buffer),
            Self::Get(id) => (5, 0, id),
        };
        (tag << 60) | (high as u64) << 32 | low as u64
    }

    #[inline]
    pub(crate) const fn unpack(word: u64) -> Self {
        let (high, low) = ((word >> 32) as u32 & 0x0fff_ffff, (word & LOW) as u32);
        match word >> 60 {
            0 => Self::Target(low, high),
            1 => Self::Source(low, high),
            2 => Self::Staged(high, low),
            3 => Self::InPlace(low),
            4 => Self::Reply(low),
            _ => Self::Get(low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Context;

    #[test]
    fn contexts_are_unpacked_as_they_were_packed() {
        let (most, bits) = (u32::MAX, (1 << crate::peers::GENERATION_BITS) - 1);
        for context in [
            Context::Target(most, bits),
            Context::Source(0, bits),
            Context::Staged(7, most),
            Context::InPlace(most),
            Context::Reply(3),
            Context::Get(most),
        ] {
            assert_eq!(Context::unpack(context.pack()), context);
        }
    }
}
