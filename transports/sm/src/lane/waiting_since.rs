//! Since when a lane waits, which [`stall`](crate::lane::stall) shows.

/// Since when a lane waits for its peer; milliseconds of the endpoint's clock, 0: it does not.
#[derive(Default)]
pub(crate) struct Stall {
    /// Nothing of the queue has moved.
    pub(super) queue: u64,
    /// The first of those that are open now was asked for.
    pub(super) connects: u64,
    /// Large messages were seen to wait for memory.
    pub(super) memory: u64,
    /// Something of the queue has moved since the last look.
    pub(super) moved: bool,
}

impl Stall {
    /// Whether the queue was seen to wait.
    #[inline]
    pub(crate) fn is_seen(&self) -> bool {
        self.queue != 0
    }
}
