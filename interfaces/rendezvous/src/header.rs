//! The front of each message.

/// The first 16 bytes of a message between two endpoints, little-endian: kind, flags, what is given
/// back, a word and a long of the kind's own. What they mean is the interface's.
///
/// # Example
///
/// ```
/// use cci_rendezvous::Header;
///
/// let header = Header { credit: 9, ..Header::new(2, 1, 8, 77) };
/// assert_eq!(Header::read(&header.emit()), header);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the message is.
    pub kind: u8,
    /// Bits of the kind.
    pub flags: u8,
    /// Granules given back ([`GRANULE`](crate::GRANULE)).
    pub credit: u16,
    /// Mostly a length, bytes.
    pub word: u32,
    /// Mostly what matches.
    pub long: u64,
}

impl Header {
    /// Bytes of a header.
    pub const LEN: usize = 16;

    /// Returns a header that gives nothing back.
    #[inline]
    #[must_use]
    pub const fn new(kind: u8, flags: u8, word: u32, long: u64) -> Self {
        Self { kind, flags, credit: 0, word, long }
    }

    /// Whether it has one of these flags.
    #[inline]
    #[must_use]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the bytes.
    #[inline]
    #[must_use]
    pub fn emit(&self) -> [u8; Self::LEN] {
        let front = u64::from(self.kind) | u64::from(self.flags) << 8;
        let front = front | u64::from(self.credit) << 16 | u64::from(self.word) << 32;
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&front.to_le_bytes());
        bytes[8..].copy_from_slice(&self.long.to_le_bytes());
        bytes
    }

    /// Returns what these bytes say; each kind and flag is possible.
    #[inline]
    #[must_use]
    pub fn read(bytes: &[u8; Self::LEN]) -> Self {
        let ([front, long], []) = bytes.as_chunks::<8>() else { unreachable!("twice eight bytes") };
        let front = u64::from_le_bytes(*front);
        Self {
            kind: front as u8,
            flags: (front >> 8) as u8,
            credit: (front >> 16) as u16,
            word: (front >> 32) as u32,
            long: u64::from_le_bytes(*long),
        }
    }
}
