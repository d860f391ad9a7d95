//! The OS handle: what arming it means here.
//!
//! One descriptor stands for all reasons to call, because a program puts one into its event loop.
//! `Readiness` decides when the handle is armed; this file does it.

use crate::Template;
use cci_proto::Time;
use cci_transport::{Arming, Core, HandleCheck, Readiness};

impl Arming for Template {
    fn readiness(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    /// The next arrival writes the waker from now on. There is no other descriptor whose edge could
    /// have passed, so that there is nothing to check first.
    fn prepare(&mut self, core: &mut Core, _: HandleCheck) -> bool {
        // The handle becomes readable at the deadline, and quiet as far as the last one was the
        // reason. If the system refuses, the program is to call again instead of sleeping.
        let deadline = self.deadline();
        let wakes = self.mailbox.handle.set_timer(deadline) || deadline.is_none();
        let has_work = !wakes || core.has_event() || core.has_room_again() || self.is_runnable();
        let is_idle = self.mailbox.watch(has_work);
        if is_idle {
            self.readiness.take_signalled();
        }
        is_idle
    }

    /// Nothing to forget: `prepare` sets the timer each time, at the cost of a system call.
    fn forget_timer(&mut self) {}

    fn set_edge_timer(&mut self, at: Time) -> bool {
        self.mailbox.handle.set_timer(Some(at))
    }

    fn write_waker(&self) {
        self.mailbox.handle.write_waker();
    }
}
