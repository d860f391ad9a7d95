//! The OS handle: what arming it means here.

use crate::{Network, Over};
use cci_proto::Time;
use cci_transport::{Arming, Core, HandleCheck, Readiness, monotonic};

impl<N: Network> Arming for Over<N> {
    fn readiness(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    /// The network drains the waker, and has it written with the next event.
    fn prepare(&mut self, core: &mut Core, _: HandleCheck) -> bool {
        let deadline = self.deadline(monotonic());
        let wakes = self.handle.set_timer(deadline) || deadline.is_none();
        let has_work = !wakes || core.has_event() || core.has_room_again() || self.is_runnable();
        let is_idle = !has_work && self.net.watch();
        if is_idle {
            self.readiness.take_signalled();
        }
        is_idle
    }

    /// The program polls again.
    fn on_disarmed(&mut self, _: &mut Core) {
        self.net.unwatch();
    }

    /// Nothing to forget: `prepare` sets the timer each time, at the cost of a system call.
    fn forget_timer(&mut self) {}

    fn set_edge_timer(&mut self, at: Time) -> bool {
        self.handle.set_timer(Some(at))
    }

    fn write_waker(&self) {
        self.handle.write_waker();
    }
}
