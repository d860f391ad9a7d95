//! Flags of `send` and `rma`.

use core::ops::{BitOr, BitOrAssign};

/// A set of operation flags, with the bit values of `CCI_FLAG_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Return the final status; no event.
    pub const BLOCKING: Self = Self(1);
    /// Allows the library to read the caller's buffer until the operation ends. No transport does:
    /// each reads the buffer during the call only.
    pub const NO_COPY: Self = Self(2);
    /// No SEND event on success.
    pub const SILENT: Self = Self(8);
    /// RMA: copy from the remote registration to the local one.
    pub const READ: Self = Self(16);
    /// RMA: copy from the local registration to the remote one.
    pub const WRITE: Self = Self(32);
    /// RMA: after all earlier operations of the connection, before all later ones.
    pub const FENCE: Self = Self(64);

    const SEND: u32 = 1 | 2 | 8;
    const RMA: u32 = Self::SEND | 16 | 32 | 64;

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The flags with these bits, whatever they mean.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The flags of a send with these bits; `None` when another bit is set.
    #[must_use]
    pub const fn for_send(bits: u32) -> Option<Self> {
        if bits & !Self::SEND == 0 { Some(Self(bits)) } else { None }
    }

    /// Whether there is no other flag than SILENT.
    #[inline(always)]
    #[must_use]
    pub const fn are_plain(self) -> bool {
        self.0 & !Self::SILENT.0 == 0
    }

    /// The flags of an RMA with these bits; `None` when another bit is set, or not exactly one of
    /// READ and WRITE.
    #[must_use]
    pub const fn for_rma(bits: u32) -> Option<Self> {
        let direction = bits & (Self::READ.0 | Self::WRITE.0);
        if bits & !Self::RMA == 0 && direction.count_ones() == 1 { Some(Self(bits)) } else { None }
    }

    /// The flags of an atomic operation with these bits; `None` when another bit is set.
    #[must_use]
    pub const fn for_atomic(bits: u32) -> Option<Self> {
        if bits & !(Self::SEND | Self::FENCE.0) == 0 { Some(Self(bits)) } else { None }
    }

    /// Whether every flag of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
