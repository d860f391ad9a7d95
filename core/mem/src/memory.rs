//! A range of this process's memory that RMA may touch.

use crate::segment::Segment;
use std::sync::Arc;

/// Address and length of a range that stays valid while it is registered.
#[derive(Clone, Debug)]
pub struct Memory {
    start: usize,
    len: u64,
    /// The library allocation that it is, kept as long as it is registered.
    _kept: Option<Arc<Segment>>,
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
        Self { start: start.expose_provenance(), len, _kept: None }
    }

    /// Names bytes of a library allocation, which stays mapped as long as this value or its registration lives.
    #[must_use]
    pub fn of_segment(segment: Arc<Segment>, len: usize) -> Self {
        let len = len.min(segment.len()) as u64;
        Self { start: segment.base().expose_provenance(), len, _kept: Some(segment) }
    }

    /// The first address.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it names nothing: null, or no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == 0 || self.len == 0
    }
}
