//! What is compared: a message's envelope with the pattern of a receive.

use crate::lists::Key;

/// What a message states for matching: where it is from, and its match bits.
///
/// # Example
///
/// ```
/// use cci_matching::{Envelope, Pattern};
///
/// let message = Envelope { source: 3, bits: 0x50 };
/// assert!(Pattern::exact(3, 0x50).matches(&message));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// The sender; an interface chooses the numbers. Portals puts the node into the upper half and
    /// the process into the lower half, so that a pattern can leave out either.
    pub source: u64,
    /// The match bits.
    pub bits: u64,
}

impl Envelope {
    /// Both words, as a key.
    #[inline]
    pub(crate) const fn key(&self) -> Key {
        (self.source, self.bits)
    }
}

/// Which bits of an envelope are compared: those that are 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Masks {
    source: u64,
    bits: u64,
}

impl Masks {
    /// Every bit is compared.
    pub(crate) const ALL: Self = Self { source: !0, bits: !0 };

    /// The part of an envelope that is compared. Patterns and envelopes match where it is equal.
    #[inline]
    pub(crate) fn key(self, envelope: &Envelope) -> Key {
        Envelope { source: envelope.source & self.source, bits: envelope.bits & self.bits }.key()
    }
}

/// What a receive or a match entry asks for. A mask bit of 1 means that the bit is compared, as in
/// MX; the ignore bits of Portals are the complement.
///
/// # Example
///
/// ```
/// use cci_matching::{Envelope, Pattern};
///
/// // Any source; the lower 8 bits are ignored.
/// let pattern = Pattern::new(0, 0, 0x4200, !0xff);
/// assert!(pattern.matches(&Envelope { source: 9, bits: 0x42ab }));
/// assert!(!pattern.matches(&Envelope { source: 9, bits: 0x43ab }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub(crate) wanted: Envelope,
    pub(crate) masks: Masks,
}

impl Pattern {
    /// Creates a pattern for messages whose source equals `source` in the bits of `source_mask`,
    /// and whose match bits equal `bits` in those of `mask`. Bits outside of the masks are ignored.
    #[inline]
    #[must_use]
    pub fn new(source: u64, source_mask: u64, bits: u64, mask: u64) -> Self {
        let masks = Masks { source: source_mask, bits: mask };
        let (source, bits) = masks.key(&Envelope { source, bits });
        Self { wanted: Envelope { source, bits }, masks }
    }

    /// Creates a pattern without wildcards.
    #[inline]
    #[must_use]
    pub fn exact(source: u64, bits: u64) -> Self {
        Self::new(source, !0, bits, !0)
    }

    /// Creates a pattern that matches every message.
    #[inline]
    #[must_use]
    pub fn any() -> Self {
        Self::new(0, 0, 0, 0)
    }

    /// Whether the pattern matches a message.
    #[inline]
    #[must_use]
    pub fn matches(&self, envelope: &Envelope) -> bool {
        self.masks.key(envelope) == self.key()
    }

    /// What the compared part of a message must equal.
    #[inline]
    pub(crate) fn key(&self) -> Key {
        self.wanted.key()
    }
}

/// What an entry of a list can take, stated in advance: an entry that matches a message and offers
/// less than the message needs is passed over without being asked.
///
/// # Example
///
/// ```
/// use cci_matching::Offer;
///
/// let entry = Offer { rights: 0b01, room: 100 };
/// assert!(entry.covers(Offer { rights: 0b01, room: 100 }));
/// assert!(!entry.covers(Offer { rights: 0b11, room: 8 }) && !entry.covers(Offer { rights: 0, room: 101 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a walk reads these two words of each entry")]
pub struct Offer {
    /// Bits whose meaning is the interface's. Each bit that is needed must be offered.
    pub rights: u32,
    /// An amount, for instance bytes. `u32::MAX` stands for all larger ones as well.
    pub room: u32,
}

impl Offer {
    /// Covers every need.
    pub const ALL: Self = Self { rights: u32::MAX, room: u32::MAX };
    /// As a need: every entry covers it.
    pub const NONE: Self = Self { rights: 0, room: 0 };

    /// Whether what is needed is offered.
    #[inline]
    #[must_use]
    pub const fn covers(self, need: Self) -> bool {
        need.rights & !self.rights == 0 && need.room <= self.room
    }
}
