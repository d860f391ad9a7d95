//! What a lane's sleep words say, and which wake-ups are under way (`docs/design/sm.md`, Sleep and
//! wake).

use crate::lane::wire::Wire;
use cci_mem::sleep::{self, ASLEEP};
use cci_mem::sync::Ordering;

/// The state of a lane's sleep words and wake-ups.
#[derive(Default)]
pub(crate) struct Sleeping {
    /// The inbound sleep word says something else than AWAKE.
    armed: bool,
    /// The outbound wait word says something else than AWAKE.
    waiting: bool,
    /// The peer may have taken a sleep token since the last look.
    woken: bool,
    /// The wake-up that came with it has been read.
    wake_read: bool,
}

impl Sleeping {
    /// Arms the inbound word, and the outbound one if something `waits` for room. Returns whether
    /// the caller owes a heavy fence.
    pub(crate) fn arm(&mut self, wire: &Wire, waits: bool) -> bool {
        let mut heavy = false;
        if !self.armed || wire.inbound.sleep.load(Ordering::Relaxed) != ASLEEP {
            heavy |= !self.armed;
            self.armed = true;
            sleep::arm(wire.inbound.sleep);
        }
        if waits && (!self.waiting || wire.outbound.wait.load(Ordering::Relaxed) != ASLEEP) {
            heavy |= !self.waiting;
            self.waiting = true;
            sleep::arm(wire.outbound.wait);
        }
        heavy
    }

    /// Says AWAKE in both words.
    pub(crate) fn disarm(&mut self, wire: Option<&Wire>) {
        if let Some(wire) = wire {
            if self.armed {
                sleep::disarm(wire.inbound.sleep);
            }
            if self.waiting {
                sleep::disarm(wire.outbound.wait);
            }
        }
        (self.armed, self.waiting) = (false, false);
    }

    /// The lane has become usable: its words say AWAKE.
    pub(crate) fn on_usable(&mut self) {
        self.armed = false;
    }

    /// Whether the lane was armed while something waited for room in it.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting
    }

    /// Frames have come, perhaps with a wake-up.
    #[inline(always)]
    pub(crate) fn on_received(&mut self) {
        self.woken = true;
    }

    /// A wake-up was read from the socket.
    pub(crate) fn on_wake_up_read(&mut self) {
        (self.woken, self.wake_read) = (true, true);
    }

    /// Whether the peer may have sent a wake-up since [`Sleeping::forget_wake_up`].
    pub(crate) fn may_be_woken(&self) -> bool {
        self.woken
    }

    /// No wake-up is left to be read.
    pub(crate) fn forget_wake_up(&mut self) {
        (self.woken, self.wake_read) = (false, false);
    }

    /// Whether the peer has sent a wake-up that nobody has read, or is about to.
    pub(crate) fn is_wake_up_coming(&self, wire: Option<&Wire>) -> bool {
        let is_token_taken = |wire: &Wire| wire.inbound.sleep.load(Ordering::Relaxed) != ASLEEP;
        self.woken && self.armed && !self.wake_read && wire.is_some_and(is_token_taken)
    }
}
