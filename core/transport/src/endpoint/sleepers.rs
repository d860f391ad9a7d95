//! Threads that sleep in BLOCKING calls, each until its operation has ended.

mod core;

use crate::Slot;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The wakers of these threads. What ends an operation may be a call of another thread, or the
/// progress thread: then no descriptor of the transport is readable any more.
#[derive(Default)]
pub(super) struct Sleepers {
    /// The slots that threads sleep for; few, so that a search is short.
    asleep: Vec<(&'static Slot, Arc<OwnedFd>)>,
    /// Wakers that nobody sleeps on, drained.
    spare: Vec<Arc<OwnedFd>>,
}

impl Sleepers {
    /// Wakes the thread that sleeps for this operation, if one does.
    #[inline]
    pub(super) fn wake(&mut self, slot: &'static Slot) {
        if !self.asleep.is_empty() {
            self.wake_one(slot);
        }
    }

    #[cold]
    fn wake_one(&mut self, slot: &'static Slot) {
        if let Some((_, waker)) = self.take(slot) {
            write(&waker);
        }
    }

    /// Wakes all, because the endpoint closes.
    pub(super) fn wake_all(&mut self) {
        self.asleep.drain(..).for_each(|(_, waker)| write(&waker));
    }

    fn take(&mut self, slot: &'static Slot) -> Option<(&'static Slot, Arc<OwnedFd>)> {
        let at = self.asleep.iter().position(|(asleep, _)| std::ptr::eq(*asleep, slot))?;
        Some(self.asleep.swap_remove(at))
    }
}

fn write(waker: &OwnedFd) {
    // Non-blocking, and never full.
    let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
}
