//! The OS handle: the timer for deadlines, and the waker, which arrivals write.
//!
//! One descriptor stands for all reasons to call, because a program puts one into its event loop. A
//! transport with descriptors of its own adds them to the set.

use cci_proto::Time;
use cci_transport::PollSet;
use rustix::io::Result;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

pub(crate) struct Handle {
    set: PollSet,
    /// What the timer is set to: setting it costs a system call.
    deadline: Option<Time>,
}

impl Handle {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { set: PollSet::new()?, deadline: None })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.set.handle()
    }

    pub(crate) fn waker(&self) -> Arc<OwnedFd> {
        self.set.waker()
    }

    /// Makes the handle readable at a deadline, and quiet as far as the last one was the reason.
    pub(crate) fn set_timer(&mut self, deadline: Option<Time>) {
        if self.deadline != deadline && self.set.set_timer(deadline) {
            self.deadline = deadline;
        }
    }
}

/// Makes a waker readable. It is non-blocking, and never full.
pub(crate) fn ring(waker: &OwnedFd) {
    let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
}

/// Makes a waker quiet.
pub(crate) fn drain(waker: &OwnedFd) {
    let _ = rustix::io::read(waker, &mut [0; 8]);
}
