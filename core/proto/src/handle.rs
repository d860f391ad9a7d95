//! RMA handles and rights.

use core::fmt;

/// 32 bytes that name a registration. Programs copy and send them as they like; a handle is known
/// by content. The first two words identify the registration on its endpoint and carry its secret,
/// the others are hints.
///
/// # Example
///
/// ```
/// # use cci_proto as cci;
/// use cci::RmaHandle;
///
/// /// The handle in a peer's message.
/// fn handle(message: &[u8]) -> Option<RmaHandle> {
///     RmaHandle::from_bytes(message)
/// }
/// let sent = [7; 32];
/// assert_eq!(handle(&sent).map(RmaHandle::to_bytes), Some(sent));
/// assert_eq!(handle(&sent[1..]), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct RmaHandle {
    /// The words of `cci_rma_handle_t::stuff`.
    stuff: [u64; 4],
}

impl RmaHandle {
    /// Makes the handle of these words. For transports, which give them their meaning.
    #[doc(hidden)]
    #[must_use]
    pub const fn from_words(stuff: [u64; 4]) -> Self {
        Self { stuff }
    }

    /// Returns the words. For transports.
    #[doc(hidden)]
    #[must_use]
    pub const fn words(&self) -> [u64; 4] {
        self.stuff
    }

    /// Returns the words that identify the registration: index and generation, mixed with a key of
    /// the endpoint, and the secret. For transports.
    #[doc(hidden)]
    #[must_use]
    pub const fn name(&self) -> [u64; 2] {
        [self.stuff[0], self.stuff[1]]
    }

    /// Returns the handle as the bytes that a program sends to a peer: the words in little-endian
    /// order, which is also how a C program's copy of `cci_rma_handle_t` lies in memory on the
    /// processors that the library runs on.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.stuff) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns the handle in the bytes that a peer sent; `None` unless there are exactly 32.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let mut stuff = [0; 4];
        for (word, chunk) in stuff.iter_mut().zip(bytes.chunks_exact(8)) {
            *word =
                u64::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7]]);
        }
        Some(Self { stuff })
    }
}

impl fmt::Debug for RmaHandle {
    /// Names the registration without its secret, so that a log gives nobody access.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RmaHandle({:016x})", self.stuff[0])
    }
}

/// What remote peers may do with a registration.
///
/// # Example
///
/// ```
/// # use cci_proto as cci;
/// use cci::Rights;
///
/// assert!(Rights::READ_WRITE.has(Rights::READ) && !Rights::READ.has(Rights::WRITE));
/// assert_eq!(Rights::from_bits(1), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rights(u32);

impl Rights {
    /// Local use only.
    pub const NONE: Self = Self(0);
    /// Peers may read.
    pub const READ: Self = Self(16);
    /// Peers may write.
    pub const WRITE: Self = Self(32);
    /// Peers may read and write.
    pub const READ_WRITE: Self = Self(16 | 32);

    /// The rights with these `CCI_FLAG_READ` and `CCI_FLAG_WRITE` bits; `None` when another is set.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits & !(16 | 32) == 0 { Some(Self(bits)) } else { None }
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether every right of `other` is granted.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
