//! A range of this process's memory that RMA may touch.

/// Address and length of a range that stays valid while it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    start: usize,
    len: u64,
}

impl Memory {
    /// Names a range.
    ///
    /// # Safety
    ///
    /// While the range is registered, it stays mapped (or the program accepts that transfers fail), no Rust reference
    /// to it is alive except to atomics or cells, and the program reads and writes it knowing that peers with rights do
    /// so too.
    #[must_use]
    pub unsafe fn new(start: *mut u8, len: u64) -> Self {
        Self { start: start.expose_provenance(), len }
    }

    /// The first address.
    #[must_use]
    pub fn start(self) -> usize {
        self.start
    }

    /// Bytes.
    #[must_use]
    pub fn len(self) -> u64 {
        self.len
    }

    /// Whether it names nothing: null, or no byte.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == 0 || self.len == 0
    }
}
