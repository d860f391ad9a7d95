//! Spinning or armed: who pays for sleeping. `docs/design/reliable.md`, The OS handle.

use super::{Reliable, away};
use crate::{Core, Linger, Link, Patience, Turn};
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
        self.settle_handle(core)
    }

    /// Has arriving frames make the handle readable, or not. False: they do not, although they should.
    pub(super) fn watch(&mut self, on: bool) -> bool {
        if self.mode.unwatched == on {
            self.mode.unwatched = !self.link.watch(on);
        }
        !on || !self.mode.unwatched
    }

    /// The program polls again: nobody is to be told of frames. The helper thread may be waiting for one.
    #[inline]
    pub(super) fn come_back(&mut self, core: &Core) {
        if self.mode.unwatched || core.armed {
            return;
        }
        self.watch(false);
        if self.mode.unwatched {
            self.mode.signalled = false;
            self.signal();
        }
    }

    /// Leaves the handle readable for a program that is answered soon. False: it is not.
    pub(super) fn linger(&mut self, core: &mut Core) -> bool {
        let lingers = self.mode.linger.is_on() && self.mode.waiter.is_none();
        if lingers {
            self.let_row_leave(core);
            self.signal();
        }
        lingers
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

    /// Keeps an armed handle true to what there is to do. True: nothing.
    pub(super) fn settle_handle(&mut self, core: &mut Core) -> bool {
        self.let_row_leave(core);
        self.look_for_frames(core);
        if core.has_event() || self.is_runnable() || core.has_room_again() {
            self.signal();
            return false;
        }
        let lies = self.lie_down();
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

    /// Has the link wake us. False: something has arrived already.
    fn lie_down(&mut self) -> bool {
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
        // A timer that fires too early costs an empty call, less than setting it anew with every message.
        let suffices = armed.wants_write == wanted.wants_write
            && wanted.deadline.is_none_or(|wanted| armed.deadline.is_some_and(|armed| armed <= wanted));
        if suffices && !self.mode.signalled {
            return true;
        }
        let next = if suffices { armed } else { wanted };
        self.mode.armed = Some(next);
        self.link.rearm(next.deadline, next.wants_write, std::mem::take(&mut self.mode.signalled))
    }

    /// For a call that waits while events do: a descriptor that these do not make readable. None: there is something to do.
    pub(super) fn arm_quietly(&mut self, core: &mut Core) -> Option<OwnedFd> {
        core.armed = true;
        let watched = self.watch(true);
        self.settle_handle(core);
        if !watched || self.is_runnable() {
            return None;
        }
        if self.mode.waiter.is_none() {
            self.mode.waiter = Some(away::watch(self.link.handle()).ok()?);
        }
        away::drain(self.mode.waiter.as_ref()?);
        // Once more after that: what arrives from now on is told.
        let wanted = Armed { deadline: self.deadline(), wants_write: self.blocked };
        self.mode.armed = Some(wanted);
        if !self.link.arm(wanted.deadline, wanted.wants_write) {
            return None;
        }
        self.mode.waiter.as_ref()?.try_clone().ok()
    }

    /// Makes the handle readable.
    pub(super) fn signal(&mut self) {
        if !self.mode.signalled {
            self.mode.signalled = true;
            let _ = rustix::io::write(&*self.link.waker(), &1u64.to_ne_bytes());
        }
    }

    fn disarm(&mut self, core: &mut Core) {
        self.link.disarm();
        (self.mode.signalled, self.mode.stale, self.mode.armed) = (false, false, None);
        core.armed = false;
        self.come_back(core);
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
        let is_past = |armed: Armed| armed.deadline.is_some_and(|deadline| deadline <= now);
        self.mode.stale |= core.armed && (self.mode.empty || self.mode.armed.is_some_and(is_past));
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
