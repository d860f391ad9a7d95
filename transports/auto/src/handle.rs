//! The OS handle: an epoll descriptor with the handles of all ways in it.

use crate::auto::Auto;
use crate::way::{NO_WAY, WARM};
use cci_proto::Time;
use cci_transport::{Arming, Core, HandleCheck, Readiness};
use std::os::fd::OwnedFd;
use std::sync::Arc;

impl Arming for Auto {
    #[inline(always)]
    fn readiness(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    /// Arms each way, or has it settle if it is armed. A way with something to do keeps its own
    /// handle readable, and so this one.
    fn prepare(&mut self, core: &mut Core, check: HandleCheck) -> bool {
        let deadline = self.deadline();
        let mut is_idle = true;
        if self.has_timer || deadline.is_some() {
            // Where the system refuses the timer, the program is to call again instead of sleeping.
            is_idle = self.set.set_timer(deadline) || deadline.is_none();
            self.has_timer = deadline.is_some();
        }
        for number in self.numbers() {
            is_idle &= self.prepare_way(core, number, check);
        }
        // What the ways have done by settling may set deadlines, and have them do more.
        is_idle &= !core.has_outcomes();
        self.end_call(core);
        // A refused program takes its events next, and that call is to find the room.
        let has_room = if check == HandleCheck::Skip { core.would_have_room() } else { core.has_room_again() };
        is_idle &= !core.has_event() && !has_room;
        // Whoever else has written the waker was heard by this call.
        if is_idle && (self.readiness.take_signalled() || check != HandleCheck::Skip) {
            self.set.drain_waker();
        }
        is_idle
    }

    fn stay_awake(&mut self, _: &mut Core) {}

    fn on_disarmed(&mut self, _: &mut Core) {}

    /// `prepare` sets the timer each time it is in use: each way has its own for its deadlines.
    fn forget_timer(&mut self) {}

    fn set_edge_timer(&mut self, at: Time) -> bool {
        let at = self.deadline().map_or(at, |deadline| at.min(deadline));
        self.has_timer |= self.set.set_timer(Some(at));
        self.has_timer
    }

    fn write_waker(&self) {
        self.set.write_waker();
    }
}

impl Auto {
    /// Arms a way. False: it has something to do, as far as it says so.
    fn prepare_way(&mut self, core: &mut Core, number: u8, check: HandleCheck) -> bool {
        let Some(way) = self.ways.get_mut(usize::from(number)) else { return true };
        self.plain = NO_WAY;
        core.enter_way(number);
        let is_idle = if core.is_armed() {
            if check != HandleCheck::Skip {
                core.on_empty_call();
            }
            way.transport.settle(core);
            true
        } else {
            way.transport.arm(core)
        };
        core.leave_way();
        // Once the program polls again it polls every way for a while.
        way.warm = WARM;
        is_idle
    }

    /// A descriptor for a blocking call, over one of each way.
    pub(crate) fn arm_ways_in_call(&mut self, core: &mut Core) -> Option<Arc<OwnedFd>> {
        // Whatever ends the sleep, or forbids it, the next call looks at the cold ways too.
        self.left = 0;
        self.plain = NO_WAY;
        for number in self.numbers() {
            let own = self.within(core, number, |transport, core| transport.arm_in_call(core))??;
            self.call_set.put(number, own).ok()?;
        }
        if core.has_outcomes() {
            self.decide(core);
            return None;
        }
        self.call_set.epoll.clone()
    }
}
