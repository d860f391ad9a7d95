//! The OS handle: what arming it means here.

use crate::Portals;
use crate::wire::Class;
use cci_proto::Time;
use cci_transport::{Arming, Core, HandleCheck, Readiness, monotonic};

impl Arming for Portals {
    fn readiness(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    /// The watcher takes the event queue over, and writes the waker with the next event: also with
    /// one that is there already.
    fn prepare(&mut self, core: &mut Core, _: HandleCheck) -> bool {
        let deadline = self.deadline(monotonic());
        let wakes = self.handle.set_timer(deadline) || deadline.is_none();
        let has_work = !wakes || core.has_event() || core.has_room_again() || self.is_runnable();
        let is_idle = !has_work && self.watcher.watch();
        if is_idle {
            self.readiness.take_signalled();
        }
        is_idle
    }

    /// The program polls: it reads the queue itself again.
    fn on_disarmed(&mut self, _: &mut Core) {
        if self.watcher.is_watching() {
            self.wake_watcher();
        }
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

impl Portals {
    /// Puts an event into the queue that the watcher waits for.
    pub(crate) fn wake_watcher(&mut self) {
        let to = self.address();
        // Without room there are events under way, which wake it as well.
        let _ = self.stray(to, Class::Wake, 0, &[]);
    }
}
