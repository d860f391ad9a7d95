//! The methods of [`Core`] for threads that sleep.

use crate::{Core, Slot};
use cci_mem::descriptors;
use std::os::fd::OwnedFd;
use std::sync::Arc;

impl Core {
    /// Wakes every thread that sleeps, because the endpoint closes.
    pub(in crate::endpoint) fn wake_all_sleepers(&mut self) {
        self.sleepers.wake_all();
    }

    /// Records that a thread is about to sleep until the operation in this slot has ended. Returns
    /// an eventfd that is readable from then on. `None`: no descriptor is left.
    pub fn fall_asleep(&mut self, slot: &'static Slot) -> Option<Arc<OwnedFd>> {
        let waker = match self.sleepers.spare.pop() {
            Some(spare) => spare,
            None => Arc::new(descriptors::eventfd(0).ok()?),
        };
        self.sleepers.asleep.push((slot, Arc::clone(&waker)));
        Some(waker)
    }

    /// Whether some thread sleeps until an operation has ended.
    #[must_use]
    pub fn has_sleepers(&self) -> bool {
        !self.sleepers.asleep.is_empty()
    }

    /// Records that the thread has woken up which [`Core::fall_asleep`] gave this waker.
    pub fn wake_up(&mut self, slot: &'static Slot, waker: Arc<OwnedFd>) {
        if self.sleepers.take(slot).is_none() {
            let _ = rustix::io::read(&*waker, &mut [0_u8; 8]);
        }
        self.sleepers.spare.push(waker);
    }
}
