//! The OS handle: listening socket and streams, beside the timer and the waker of every handle.

use super::Tcp;
use cci_proto::Time;
use cci_transport::{Arming, Core, HandleCheck, PollSet, Readiness};
use rustix::fd::OwnedFd;
use std::sync::Arc;

impl Tcp {
    /// Makes the handle readable at a deadline. False: the system refuses.
    fn set_timer(&mut self, deadline: Option<Time>) -> bool {
        if self.timer == Some(deadline) {
            return true;
        }
        let is_set = self.shared.set.set_timer(deadline);
        self.timer = is_set.then_some(deadline);
        is_set || deadline.is_none()
    }

    /// Whether a descriptor other than the waker is ready.
    fn is_ready(&mut self) -> bool {
        let mut events = [PollSet::NO_EVENT; 8];
        let Ok(count) = self.shared.set.ready(&mut events) else { return self.shared.set.is_readable() };
        events[..count].iter().any(|event| event.data.u64() != PollSet::WAKER)
    }

    /// Arms for a blocking call: returns a descriptor that waiting events do not make readable.
    /// `None`: there is something to do.
    pub(super) fn arm_for_call(&mut self, core: &mut Core) -> Option<Arc<OwnedFd>> {
        core.on_armed();
        Readiness::settle(self, core, HandleCheck::Skip);
        if self.is_runnable() || !self.watch_hot() {
            return None;
        }
        self.call_handle.open(self.shared.set.handle(), &mut self.readiness).ok()?;
        self.shared.set.drain_waker();
        let was_signalled = self.readiness.take_signalled();
        self.call_handle.drain();
        let deadline = self.deadline();
        let is_quiet = self.set_timer(deadline) && !self.is_ready();
        let descriptor = self.call_handle.shared();
        if was_signalled && core.has_event() {
            // Others sleep on the handle, which stays readable while events wait.
            Readiness::signal(self);
            self.call_handle.drain();
        }
        descriptor.filter(|_| is_quiet && !self.is_ready())
    }
}

impl Arming for Tcp {
    #[inline(always)]
    fn readiness(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    fn prepare(&mut self, core: &mut Core, check: HandleCheck) -> bool {
        self.send_rest_now(core);
        let deadline = self.deadline();
        // Both, in any case: what is not watched would not wake the program.
        let wakes = self.watch_hot() & self.set_timer(deadline);
        if !wakes || core.has_event() || core.has_room_again() || self.is_runnable() {
            return false;
        }
        if self.readiness.take_signalled() {
            self.shared.set.drain_waker();
        }
        check == HandleCheck::Skip || !self.is_ready()
    }

    fn stay_awake(&mut self, core: &mut Core) {
        self.send_rest_now(core);
    }

    fn forget_timer(&mut self) {
        self.timer = None;
    }

    fn set_edge_timer(&mut self, at: Time) -> bool {
        self.shared.set.set_timer(Some(at))
    }

    fn write_waker(&self) {
        self.shared.set.write_waker();
    }
}
