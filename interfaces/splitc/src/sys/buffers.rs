//! Memory for messages: a NIC writes what comes into parts that were posted, and reads what goes.

use cci::{Memory, SharedMemory};
use std::ptr;

/// The memory.
#[derive(Debug)]
pub(crate) struct Buffers {
    memory: SharedMemory,
    start: *mut u8,
    len: usize,
}

impl Buffers {
    /// Allocates it. None: no memory.
    pub(crate) fn new(len: usize) -> Option<Self> {
        let memory = SharedMemory::new(len).ok()?;
        let start = ptr::with_exposed_provenance_mut(memory.memory().start());
        Some(Self { memory, start, len })
    }

    /// What is registered.
    pub(crate) fn memory(&self) -> Memory {
        self.memory.memory()
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "a part of the buffers");
        self.start.wrapping_add(offset)
    }

    /// Copies to a part that is not posted.
    #[inline]
    pub(crate) fn put(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: inside, as checked; a NIC of this thread alone uses the memory, and this part not
        // now. No reference into it is left: `read` ends before its caller writes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(offset, bytes.len()), bytes.len()) };
    }

    /// Has `take` read a part that is not posted. It does not write to this memory.
    #[inline]
    pub(crate) fn read<R>(&self, offset: usize, len: usize, take: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: inside, as checked; nobody writes to this part until it is posted, which `take`
        // does not do.
        take(unsafe { std::slice::from_raw_parts(self.at(offset, len), len) })
    }
}
