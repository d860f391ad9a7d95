//! Registered memory for RMA whose bytes come from, or go to, memory that is not registered.

use super::bytes::Target;
use cci::{Endpoint, Registration, Rights, RmaHandle, SharedMemory};
use std::ptr;
use std::sync::Arc;

/// The memory. An RMA uses a part of it, from its start until its end.
#[derive(Debug)]
pub(crate) struct Staging {
    registered: Registration<Arc<SharedMemory>>,
    start: *mut u8,
}

impl Staging {
    /// Allocates and registers it. None: no memory.
    pub(crate) fn new(endpoint: &Endpoint, len: usize) -> Option<Self> {
        let memory = Arc::new(SharedMemory::new(len).ok()?);
        let start = ptr::with_exposed_provenance_mut(memory.memory().start());
        Some(Self { registered: endpoint.register(memory, Rights::NONE).ok()?, start })
    }

    pub(crate) fn handle(&self) -> &RmaHandle {
        self.registered.handle()
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!((offset + len) as u64 <= self.registered.len(), "a part of the staging memory");
        self.start.wrapping_add(offset)
    }

    /// Copies to the memory.
    pub(crate) fn put(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: inside, as checked; no RMA uses this part before the caller starts one.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(offset, bytes.len()), bytes.len()) };
    }

    /// Fills a place from the memory.
    pub(crate) fn fill(&self, offset: usize, target: Target) {
        let from = self.at(offset, target.len());
        // SAFETY: inside, as checked; the RMA that wrote there has ended, and the part is read here
        // before its place is taken again. The place is writable by the contract of `Target`; it is
        // not this memory, which no program reaches.
        unsafe { ptr::copy_nonoverlapping(from.cast_const(), target.address(), target.len()) };
    }
}
