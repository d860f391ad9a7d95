//! Registered memory from which mirrors are written, and into which they are read.

use crate::mirror::memory::BLOCK;
use cci::{Endpoint, Registration, Rights, RmaHandle, SharedMemory};
use std::sync::Arc;

/// Blocks of a host.
const COUNT: usize = 16;

/// Blocks, each with the number of operations that use it.
pub(crate) struct Staging {
    pub(super) memory: Arc<SharedMemory>,
    registration: Registration<Arc<SharedMemory>>,
    users: [u32; COUNT],
}

impl Staging {
    /// `None`: there is no room.
    pub(crate) fn new(endpoint: &Endpoint) -> Option<Self> {
        let memory = Arc::new(SharedMemory::new(COUNT * BLOCK).ok()?);
        let registration = endpoint.register(Arc::clone(&memory), Rights::NONE).ok()?;
        Some(Self { memory, registration, users: [0; COUNT] })
    }

    pub(crate) fn handle(&self) -> &RmaHandle {
        self.registration.handle()
    }

    /// A block that no operation uses; its first byte.
    pub(crate) fn find(&self) -> Option<usize> {
        self.users.iter().position(|users| *users == 0).map(|at| at * BLOCK)
    }

    /// An operation uses the block of this byte.
    pub(crate) fn begin(&mut self, offset: usize) {
        self.users[offset / BLOCK] += 1;
    }

    pub(crate) fn end(&mut self, offset: usize) {
        let users = &mut self.users[offset / BLOCK];
        *users = users.saturating_sub(1);
    }
}
