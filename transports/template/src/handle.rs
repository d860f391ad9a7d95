//! The OS handle: the descriptors that a program sleeps on, and what arming them means here.
//!
//! One descriptor stands for all reasons to call, because a program puts one into its event loop.
//! `Readiness` decides when the handle is armed; this file does it.

use crate::Template;
use cci_proto::Time;
use cci_transport::{Arming, Core, HandleCheck, PollSet, Readiness};
use rustix::io::Result;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The timer for deadlines and edges, and the waker, which arrivals write. A transport with sockets
/// adds them to the set.
pub(crate) struct Handle {
    set: PollSet,
    /// What the timer is set to: setting it costs a system call. `None`: it was set for an edge.
    timer: Option<Option<Time>>,
}

impl Handle {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { set: PollSet::new()?, timer: Some(None) })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.set.handle()
    }

    pub(crate) fn waker(&self) -> Arc<OwnedFd> {
        self.set.waker()
    }

    /// Makes the handle readable at a deadline, and quiet as far as the last one was the reason.
    /// False: the system refuses, so that the program is to call again instead of sleeping.
    fn set_timer(&mut self, deadline: Option<Time>) -> bool {
        if self.timer == Some(deadline) {
            return true;
        }
        let is_set = self.set.set_timer(deadline);
        self.timer = is_set.then_some(deadline);
        is_set || deadline.is_none()
    }
}

impl Arming for Template {
    fn readiness(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    /// Arrivals write the waker from now on. There is no other descriptor whose edge could have
    /// passed, so that there is nothing to check first.
    fn prepare(&mut self, core: &mut Core, _: HandleCheck) -> bool {
        let wakes = self.handle.set_timer(self.deadline());
        let has_work = !wakes || core.has_event() || core.has_room_again() || self.is_runnable();
        let is_idle = self.mailbox.watch(has_work);
        if is_idle {
            self.readiness.take_signalled();
        }
        is_idle
    }

    fn stay_awake(&mut self, _: &mut Core) {
        self.mailbox.unwatch();
    }

    fn on_disarmed(&mut self, _: &mut Core) {
        self.mailbox.unwatch();
    }

    fn forget_timer(&mut self) {
        self.handle.timer = None;
    }

    fn set_edge_timer(&mut self, at: Time) -> bool {
        self.handle.set.set_timer(Some(at))
    }

    fn write_waker(&self) {
        self.handle.set.write_waker();
    }
}
