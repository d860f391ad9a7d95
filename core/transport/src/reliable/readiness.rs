//! Spinning or armed: who pays for sleeping. `docs/design/reliable.md`, The OS handle.

use super::{Reliable, progress_thread};
use crate::{Core, Edge, Linger, Link, Patience, Turn};
use cci_proto::Time;
use std::os::fd::OwnedFd;

/// A tick, nanoseconds.
const TICK: u64 = 4_000_000;

/// What the link was armed with.
#[derive(Clone, Copy, Debug)]
struct Armed {
    deadline: Option<Time>,
    wants_write: bool,
}

impl Armed {
    /// A timer that fires too early costs an empty call, less than setting it anew with every message.
    fn suffices_for(self, wanted: Armed) -> bool {
        self.wants_write == wanted.wants_write
            && wanted.deadline.is_none_or(|wanted| self.deadline.is_some_and(|deadline| deadline <= wanted))
    }

    fn is_past(self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// How the handle stands.
#[derive(Default)]
pub(super) struct Mode {
    patience: Patience,
    linger: Linger,
    /// Frames that arrive do not make the handle readable.
    unwatched: bool,
    /// The waker is written.
    signalled: bool,
    /// The last call that looked found nothing.
    empty: bool,
    /// The handle may be readable for a reason that is over: the timer, a waker that others wrote, an error.
    stale: bool,
    armed: Option<Armed>,
    /// For calls that wait: tells arrivals once, although events that nobody takes keep the handle readable.
    waiter: Option<OwnedFd>,
}

impl<L: Link> Reliable<L> {
    /// From now on the handle wakes. True: there is nothing to do.
    pub(super) fn arm_handle(&mut self, core: &mut Core) -> bool {
        core.armed = true;
        self.mode.armed = None;
        self.mode.linger.stop();
        self.settle_handle(core, !self.link.is_virtual())
    }

    /// Has arriving frames make the handle readable, or not. False: they do not, although they should.
    pub(super) fn watch(&mut self, on: bool) -> bool {
        if self.mode.unwatched == on {
            self.mode.unwatched = !self.link.watch(on);
        }
        !on || !self.mode.unwatched
    }

    /// Stops the link from reporting frames, because the program polls again. The progress thread may have been
    /// waiting for one.
    #[inline]
    pub(super) fn unwatch(&mut self, core: &Core) {
        if self.mode.unwatched || core.armed {
            return;
        }
        self.watch(false);
        if self.mode.unwatched {
            self.mode.signalled = false;
            self.signal();
        }
    }

    /// Leaves the handle readable for a program that is answered soon. `empty`: the call answered that there is no event, and
    /// leaves an edge to come. False: it does not linger.
    pub(super) fn linger(&mut self, core: &mut Core, empty: bool) -> bool {
        let lingers = self.mode.linger.is_on() && self.mode.waiter.is_none();
        if lingers {
            self.let_row_leave(core);
            if empty {
                self.signal_again();
            } else {
                self.signal();
            }
        }
        lingers
    }

    /// Settles after a call that answered that there is no event: the handle lies down, or gives an edge.
    pub(super) fn settle_empty(&mut self, core: &mut Core) {
        let (was_signalled, is_virtual) = (self.mode.signalled, self.link.is_virtual());
        // Looking at a virtual network makes its time pass.
        if !self.settle_handle(core, !is_virtual) && was_signalled && !is_virtual {
            self.signal_again();
        }
    }

    /// Has a disarmed handle give an edge soon.
    pub(super) fn ring(&mut self, core: &mut Core) {
        if self.link.is_virtual() {
            return;
        }
        let now = self.link.now();
        match self.mode.patience.edge(now) {
            Edge::Coming => {}
            Edge::At(at) if self.link.ring(at) => {}
            Edge::Now | Edge::At(_) => self.signal_again(),
            Edge::Arm => {
                if !self.arm_handle(core) {
                    self.disarm(core);
                    self.signal_again();
                }
            }
        }
    }

    /// The program has asked for an armed handle.
    pub(super) fn arm_now(&mut self, core: &mut Core) -> bool {
        self.mode.patience.stop();
        self.arm_handle(core)
    }

    fn let_row_leave(&mut self, core: &mut Core) {
        if self.row.is_waiting() {
            let now = self.link.now();
            self.transmit(core, now, false);
        }
    }

    /// Whether the handle is readable whatever there is to do, for the program and for nobody else.
    pub(super) fn is_readable_still(&self) -> bool {
        self.mode.signalled && self.mode.waiter.is_none()
    }

    /// A call that gives the program an event does not set the timer, which on a virtual machine is a trap into its host: the event
    /// would wait for it. The handle stays readable instead, so that the program calls once more, perhaps with an answer that
    /// makes the timer needless. False: the timer may stand as it is.
    pub(super) fn puts_timer_off(&mut self, core: &mut Core) -> bool {
        self.let_row_leave(core);
        let stands = self.mode.armed.and_then(|armed| armed.deadline);
        let is_late = self.deadline().is_some_and(|wanted| stands.is_none_or(|stands| wanted < stands));
        let puts_off = is_late && self.mode.waiter.is_none() && !self.link.is_virtual();
        if puts_off {
            self.signal();
        }
        puts_off
    }

    /// Keeps an armed handle true to what there is to do; `looks`: a descriptor may be readable whose edge is over. True: nothing.
    pub(super) fn settle_handle(&mut self, core: &mut Core, looks: bool) -> bool {
        self.let_row_leave(core);
        self.look_for_frames(core);
        if core.has_event() || self.is_runnable() || core.has_room_again() {
            self.signal();
            return false;
        }
        let lies = self.lie_down(looks);
        if !lies {
            // It may lie in the link's own memory, of which no descriptor tells.
            self.signal();
        }
        lies
    }

    /// Tells a program that was refused for lack of frame buffers when some were given back since.
    fn look_for_frames(&mut self, core: &mut Core) {
        if self.refused_at.is_some_and(|at| at != self.engine.released()) {
            self.refused_at = None;
            core.end_shortage();
        }
    }

    /// Has the link wake us; `looks`: not without having looked at it. False: something has arrived already.
    fn lie_down(&mut self, looks: bool) -> bool {
        if !self.watch(true) {
            return false;
        }
        if self.mode.stale || self.mode.signalled && self.mode.armed.is_none() {
            self.link.disarm();
            (self.mode.signalled, self.mode.stale, self.mode.armed) = (false, false, None);
        }
        let wanted = Armed { deadline: self.deadline(), wants_write: self.blocked };
        let Some(armed) = self.mode.armed else {
            self.mode.armed = Some(wanted);
            return self.link.arm(wanted.deadline, wanted.wants_write);
        };
        let suffices = armed.suffices_for(wanted);
        if suffices && !self.mode.signalled && !looks {
            return true;
        }
        let next = if suffices { armed } else { wanted };
        self.mode.armed = Some(next);
        if looks {
            if std::mem::take(&mut self.mode.signalled) {
                self.link.disarm();
            }
            return self.link.arm(next.deadline, next.wants_write);
        }
        self.link.rearm(next.deadline, next.wants_write, std::mem::take(&mut self.mode.signalled))
    }

    /// For a call that waits while events do: a descriptor that these do not make readable. None: there is something to do.
    pub(super) fn arm_quietly(&mut self, core: &mut Core) -> Option<OwnedFd> {
        core.armed = true;
        let watched = self.watch(true);
        self.settle_handle(core, false);
        if !watched || self.is_runnable() {
            return None;
        }
        if self.mode.waiter.is_none() {
            self.mode.waiter = Some(progress_thread::watch(self.link.handle()).ok()?);
        }
        // A timer that has fired keeps the link's handle readable until it is drained. What else may have set one is not known here.
        let now = self.link.now();
        if self.mode.armed.is_none_or(|armed| armed.is_past(now)) {
            self.link.disarm();
            self.mode.armed = None;
            if self.mode.signalled {
                self.write_waker();
            }
        }
        progress_thread::drain(self.mode.waiter.as_ref()?);
        // Once more after that: what arrives from now on is told.
        let wanted = Armed { deadline: self.deadline(), wants_write: self.blocked };
        let armed = self.mode.armed.filter(|armed| armed.suffices_for(wanted)).unwrap_or(wanted);
        self.mode.armed = Some(armed);
        if !self.link.arm(armed.deadline, armed.wants_write) {
            self.mode.armed = None;
            return None;
        }
        self.mode.waiter.as_ref()?.try_clone().ok()
    }

    /// Makes the handle readable.
    pub(super) fn signal(&mut self) {
        if !self.mode.signalled {
            self.mode.signalled = true;
            self.write_waker();
        }
    }

    /// Makes the handle readable, with an edge also where it is readable already.
    fn signal_again(&mut self) {
        self.mode.signalled = true;
        self.write_waker();
    }

    fn write_waker(&self) {
        let _ = rustix::io::write(&*self.link.waker(), &1u64.to_ne_bytes());
    }

    fn disarm(&mut self, core: &mut Core) {
        self.link.disarm();
        (self.mode.signalled, self.mode.stale, self.mode.armed) = (false, false, None);
        core.armed = false;
        self.unwatch(core);
        self.signal();
    }

    /// A call has found something.
    #[inline]
    pub(super) fn on_found(&mut self, core: &Core, now: Time) {
        self.mode.empty = false;
        // In virtual time nothing comes by looking longer.
        if core.armed && !self.link.is_virtual() {
            self.mode.linger.on_found(|| now);
        }
        self.mode.patience.on_found();
    }

    /// A call has found nothing.
    pub(super) fn on_empty(&mut self, core: &mut Core, now: Time) {
        // One empty call is what a program makes before it sleeps. Another shows that the handle did not let it.
        self.mode.stale |= core.armed && (self.mode.empty || self.mode.armed.is_some_and(|armed| armed.is_past(now)));
        self.mode.empty = true;
        if core.armed {
            self.mode.linger.on_empty(now);
        }
        match self.mode.patience.on_empty(core.armed, core.handle_in_use, now.0 / TICK) {
            Turn::Stay => {}
            Turn::Arm => {
                if !self.arm_handle(core) {
                    self.disarm(core);
                }
            }
            Turn::Disarm => self.disarm(core),
        }
    }
}
