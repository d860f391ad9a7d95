//! What arming the OS handle means to a link (`docs/design/reliable.md`, The OS handle).

use super::Reliable;
use crate::Link;
use cci_proto::Time;
use cci_transport::{Arming, CallHandle, Core, HandleCheck, Readiness};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What the link was armed with.
#[derive(Clone, Copy, Debug)]
struct Armed {
    deadline: Option<Time>,
    wants_write: bool,
}

impl Armed {
    /// Whether this setting can stay. A timer that fires too early costs an empty call, which is
    /// cheaper than setting the timer with every message.
    fn suffices_for(self, wanted: Armed) -> bool {
        self.wants_write == wanted.wants_write
            && wanted.deadline.is_none_or(|wanted| self.deadline.is_some_and(|deadline| deadline <= wanted))
    }

    fn is_past(self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// What the endpoint knows of its link's handle.
#[derive(Default)]
pub(super) struct HandleState {
    /// Arriving frames do not make the handle readable.
    unwatched: bool,
    /// The last call that made progress found nothing.
    empty: bool,
    /// The handle may be readable for a reason that has passed: the timer, a waker that others
    /// wrote, an error.
    stale: bool,
    armed: Option<Armed>,
    call_handle: CallHandle,
}

impl<L: Link> Arming for Reliable<L> {
    #[inline(always)]
    fn readiness(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    fn prepare(&mut self, core: &mut Core, check: HandleCheck) -> bool {
        self.send_waiting(core);
        self.check_frame_buffers(core);
        let has_work = core.has_event() || self.is_runnable() || core.has_room_again();
        // The link may hold work in its own memory, which no descriptor reports.
        !has_work && self.arm_link(check != HandleCheck::Skip)
    }

    fn stay_awake(&mut self, core: &mut Core) {
        self.send_waiting(core);
    }

    fn on_disarmed(&mut self, core: &mut Core) {
        self.still_handle();
        self.unwatch(core);
    }

    fn forget_timer(&mut self) {
        self.handle.armed = None;
    }

    fn set_edge_timer(&mut self, at: Time) -> bool {
        self.link.ring(at)
    }

    fn write_waker(&self) {
        let _ = rustix::io::write(&*self.link.waker(), &1u64.to_ne_bytes());
    }

    fn now(&self) -> Time {
        self.link.now()
    }

    #[inline]
    fn is_virtual(&self) -> bool {
        self.link.is_virtual()
    }
}

impl<L: Link> Reliable<L> {
    /// Chooses whether arriving frames make the handle readable. False: they cannot, although `on`.
    pub(super) fn watch(&mut self, on: bool) -> bool {
        if self.handle.unwatched == on {
            self.handle.unwatched = !self.link.watch(on);
        }
        !on || !self.handle.unwatched
    }

    /// Stops the link from reporting frames, because the program polls again. The progress thread
    /// may have been waiting for one.
    #[inline]
    pub(super) fn unwatch(&mut self, core: &Core) {
        if self.handle.unwatched || core.is_armed() {
            return;
        }
        self.watch(false);
        if self.handle.unwatched {
            Readiness::signal_again(self);
        }
    }

    fn send_waiting(&mut self, core: &mut Core) {
        if self.coalescer.is_waiting() {
            let now = self.link.now();
            self.transmit(core, now, false);
        }
    }

    /// Whether the handle is readable because the waker is written, and no blocking call needs
    /// more.
    pub(super) fn is_readable_still(&self) -> bool {
        self.readiness.is_signalled() && !self.readiness.waits_in_call()
    }

    /// Leaves the handle readable instead of setting an earlier timer. A call that returns an event
    /// must not set the timer, because on a virtual machine that traps into the host and delays the
    /// event. The next call sets it, if it is still needed. False: the timer is early enough.
    pub(super) fn postpones_timer(&mut self, core: &mut Core) -> bool {
        self.send_waiting(core);
        let stands = self.handle.armed.and_then(|armed| armed.deadline);
        let is_late = self.deadline().is_some_and(|wanted| stands.is_none_or(|stands| wanted < stands));
        let postpones = is_late && !self.readiness.waits_in_call() && !self.link.is_virtual();
        if postpones {
            Readiness::signal(self);
        }
        postpones
    }

    /// Ends the shortage of a program that was refused for lack of frame buffers, if some were
    /// released since.
    fn check_frame_buffers(&mut self, core: &mut Core) {
        if self.refused_at.is_some_and(|at| at != self.engine.released()) {
            self.refused_at = None;
            core.end_shortage();
        }
    }

    /// Arms the link. `looks`: check its descriptors first. False: something has arrived already.
    fn arm_link(&mut self, looks: bool) -> bool {
        if !self.watch(true) {
            return false;
        }
        if self.handle.stale || self.readiness.is_signalled() && self.handle.armed.is_none() {
            self.still_handle();
        }
        let wanted = Armed { deadline: self.deadline(), wants_write: self.blocked };
        let Some(armed) = self.handle.armed else {
            self.handle.armed = Some(wanted);
            return self.link.arm(wanted.deadline, wanted.wants_write);
        };
        let suffices = armed.suffices_for(wanted);
        if suffices && !self.readiness.is_signalled() && !looks {
            return true;
        }
        let next = if suffices { armed } else { wanted };
        self.handle.armed = Some(next);
        if looks {
            if self.readiness.take_signalled() {
                self.link.disarm();
            }
            return self.link.arm(next.deadline, next.wants_write);
        }
        self.link.rearm(next.deadline, next.wants_write, self.readiness.take_signalled())
    }

    /// Arms for a blocking call: returns a descriptor that waiting events do not make readable.
    /// `None`: there is something to do.
    pub(super) fn arm_for_call(&mut self, core: &mut Core) -> Option<Arc<OwnedFd>> {
        core.on_armed();
        let watched = self.watch(true);
        Readiness::settle(self, core, HandleCheck::Skip);
        if !watched || self.is_runnable() {
            return None;
        }
        self.handle.call_handle.open(self.link.handle(), &mut self.readiness).ok()?;
        // A timer that has fired keeps the link's handle readable until it is drained. While
        // nothing is armed here, other code may have set the timer.
        let now = self.link.now();
        if self.handle.armed.is_none_or(|armed| armed.is_past(now)) {
            let was_signalled = self.readiness.is_signalled();
            self.still_handle();
            if was_signalled {
                Readiness::signal(self);
            }
        }
        self.handle.call_handle.drain();
        // Arm again after the drain, so that every later arrival is reported.
        let wanted = Armed { deadline: self.deadline(), wants_write: self.blocked };
        let armed = self.handle.armed.filter(|armed| armed.suffices_for(wanted)).unwrap_or(wanted);
        self.handle.armed = Some(armed);
        if !self.link.arm(armed.deadline, armed.wants_write) {
            self.handle.armed = None;
            return None;
        }
        self.handle.call_handle.shared()
    }

    /// Drains the waker and a timer that has fired.
    fn still_handle(&mut self) {
        self.link.disarm();
        self.readiness.take_signalled();
        (self.handle.stale, self.handle.armed) = (false, None);
    }

    /// Records a call that found something.
    #[inline]
    pub(super) fn on_found(&mut self, core: &Core, now: Time) {
        self.handle.empty = false;
        Readiness::on_found(self, core, Some(now));
    }

    /// Records an empty call.
    pub(super) fn on_empty(&mut self, core: &mut Core, now: Time) {
        // A program makes one empty call before it sleeps. A second one shows that the handle
        // stayed readable.
        self.handle.stale |=
            core.is_armed() && (self.handle.empty || self.handle.armed.is_some_and(|armed| armed.is_past(now)));
        self.handle.empty = true;
        Readiness::on_empty(self, core, Some(now), Readiness::tick(now));
    }
}
