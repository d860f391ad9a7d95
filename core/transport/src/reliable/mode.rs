//! Spinning or armed: who pays for sleeping. `docs/design/reliable.md`, The OS handle.

use super::{Reliable, away};
use crate::{Core, Link, Patience, Turn};
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
    /// The waker is written.
    signalled: bool,
    /// The handle may be readable for a reason that is over: the timer, or a waker that others wrote.
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
        self.settle_handle(core)
    }

    /// Whether the handle is readable whatever there is to do, for the program and for nobody else.
    pub(super) fn is_readable_still(&self) -> bool {
        self.mode.signalled && self.mode.waiter.is_none()
    }

    /// Keeps an armed handle true to what there is to do. True: nothing.
    pub(super) fn settle_handle(&mut self, core: &mut Core) -> bool {
        if self.row.is_waiting() {
            let now = self.link.now();
            self.transmit(core, now, false);
        }
        if core.has_event() || self.is_runnable() {
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

    /// Has the link wake us. False: something has arrived already.
    fn lie_down(&mut self) -> bool {
        if self.mode.signalled || self.mode.stale {
            self.link.disarm();
            (self.mode.signalled, self.mode.stale, self.mode.armed) = (false, false, None);
        }
        let wanted = Armed { deadline: self.deadline(), wants_write: self.blocked };
        // A timer that fires too early costs an empty call, less than setting it anew with every message.
        let suffices = |armed: Armed| {
            armed.wants_write == wanted.wants_write
                && wanted.deadline.is_none_or(|wanted| armed.deadline.is_some_and(|armed| armed <= wanted))
        };
        if self.mode.armed.is_some_and(suffices) {
            return true;
        }
        self.mode.armed = Some(wanted);
        self.link.arm(wanted.deadline, wanted.wants_write)
    }

    /// For a call that waits while events do: a descriptor that these do not make readable. None: there is something to do.
    pub(super) fn arm_quietly(&mut self, core: &mut Core) -> Option<OwnedFd> {
        core.armed = true;
        self.settle_handle(core);
        if self.is_runnable() {
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
        self.signal();
    }

    /// A call has found something.
    #[inline]
    pub(super) fn on_found(&mut self) {
        self.mode.patience.on_found();
    }

    /// A call has found nothing.
    pub(super) fn on_empty(&mut self, core: &mut Core, now: Time) {
        self.mode.stale |= core.armed;
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
