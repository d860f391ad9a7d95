//! Which way is polled when (`docs/design/auto.md`, Progress).

use crate::auto::Auto;
use crate::way::{NO_WAY, WARM};
use cci_transport::{Core, PollSet, Readiness, Slot, monotonic};
use rustix::io::Errno;

/// Descriptors that one look at the handle reports: each way, timer and waker.
const READY: usize = 9;

impl Auto {
    /// Polls every warm way, and the cold ones that have something to do if it is their turn.
    /// `all`: polls every way.
    pub(crate) fn turn(&mut self, core: &mut Core, all: bool) {
        let is_due = self.left == 0;
        if !all {
            if !core.has_event() {
                self.cool(core);
            }
            if !core.has_sleepers() {
                self.disarm_warm(core);
            }
        }
        let ready = if is_due && !all { self.ready_ways() } else { 0 };
        if is_due {
            // Also where no way is cold: a way that always has something must not keep calls from
            // the one beside it.
            self.interval.on_look(monotonic());
            self.left = self.interval.calls();
        }
        self.left -= 1;
        for number in self.numbers() {
            let way = &mut self.ways[usize::from(number)];
            let is_cold = way.warm == 0 && core.is_way_armed(number);
            if is_cold && !all && ready & 1 << number == 0 {
                continue;
            }
            way.warm = way.warm.saturating_sub(u32::from(!way.is_always_warm && !all));
            let before = core.newest_event();
            self.within(core, number, |transport, core| transport.progress(core));
            if is_newer(core.newest_event(), before) || core.has_outcomes() || is_cold && !all {
                self.warm(number);
            }
        }
        self.end_call(core);
        if self.connects.is_waiting() {
            self.go_on_in_time(core);
        }
        if !self.expected.is_empty() {
            self.expire_clients(core);
        }
        self.find_plain(core);
    }

    /// The ways whose handles are readable, a bit each.
    fn ready_ways(&self) -> u32 {
        if self.ways.iter().all(|way| way.warm > 0) {
            return 0;
        }
        let mut events = [PollSet::NO_EVENT; READY];
        let count = match self.set.ready(&mut events) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            // Which are is not reported: all have their turn.
            Err(_) => return u32::MAX,
        };
        let ways = events[..count].iter().map(|event| event.data.u64());
        ways.filter(|key| *key < self.ways.len() as u64).fold(0, |ready, way| ready | 1 << way)
    }

    /// Arms the handle of each way that has delivered nothing for a while, so that it tells what
    /// there is to do. While an event waits, a way could not be quiet.
    fn cool(&mut self, core: &mut Core) {
        for number in self.numbers() {
            if self.ways[usize::from(number)].warm == 0
                && !core.is_way_armed(number)
                && self.within(core, number, |transport, core| transport.arm(core)) != Some(true)
            {
                self.warm(number);
            }
        }
    }

    /// Has a way that is polled at every call do without its handle: settling it after each call
    /// takes several system calls.
    fn disarm_warm(&mut self, core: &mut Core) {
        for number in self.numbers() {
            if self.ways[usize::from(number)].warm > 0 && core.is_way_armed(number) {
                self.within(core, number, |transport, core| transport.disarm(core));
            }
        }
    }

    /// Sees whether the next calls may go one way at once, with at most a look at another one.
    fn find_plain(&mut self, core: &mut Core) {
        let mut warm = self.numbers().filter(|number| self.ways[usize::from(*number)].warm > 0);
        let (first, second, third) = (warm.next(), warm.next(), warm.next());
        let is_quick = |number: u8| self.ways[usize::from(number)].is_always_warm;
        let (plain, beside) = match (first, second, third) {
            (Some(sole), None, _) => (sole, NO_WAY),
            (Some(quick), Some(other), None) if is_quick(quick) && !is_quick(other) => (other, quick),
            _ => (NO_WAY, NO_WAY),
        };
        // While connects or accepts are open, their ends are decided before a call takes an event:
        // a message may have come behind one.
        let is_settled = self.connects.is_idle() && self.accepts.is_idle();
        let is_free = is_settled && !core.is_handle_in_use() && !core.is_armed() && !core.has_outcomes();
        let is_armed = [plain, beside].into_iter().any(|number| core.is_way_armed(number));
        self.plain = NO_WAY;
        if plain != NO_WAY && is_free && !is_armed {
            (self.plain, self.beside) = (plain, beside);
            self.resume_plain(core);
        }
    }

    /// Makes the plain way the current one.
    fn resume_plain(&mut self, core: &mut Core) {
        if core.way() != self.plain {
            core.enter_way(self.plain);
            core.leave_way();
        }
    }

    /// A poll where no event waits and nobody uses the handle.
    #[inline]
    pub(crate) fn poll_quickly(&mut self, core: &mut Core) -> Option<&'static Slot> {
        if self.left != 0
            && let Some(way) = self.ways.get_mut(usize::from(self.plain))
        {
            self.left -= 1;
            let found = way.transport.poll(core);
            if self.beside != NO_WAY {
                return self.poll_beside(core, found);
            }
            self.end_call(core);
            return found;
        }
        self.poll_at_length(core)
    }

    /// The rest of a poll that has gone a way of the network: a look at the way beside it, which is
    /// within this host.
    fn poll_beside(&mut self, core: &mut Core, found: Option<&'static Slot>) -> Option<&'static Slot> {
        self.end_call(core);
        let (plain, beside) = (self.plain, self.beside);
        let Some(way) = self.ways.get_mut(usize::from(plain)) else { return found };
        if found.is_some() {
            way.warm = WARM;
            return found;
        }
        way.warm = way.warm.saturating_sub(1);
        let is_cold = way.warm == 0;
        if self.ways.get(usize::from(beside)).is_some_and(|way| way.transport.has_news()) {
            self.within(core, beside, |transport, core| transport.progress(core));
            let is_decided = core.has_outcomes();
            self.end_call(core);
            if !is_cold && !is_decided {
                self.plain = plain;
                self.resume_plain(core);
            }
        }
        if is_cold {
            (self.plain, self.left) = (NO_WAY, 0);
        }
        core.pop()
    }

    #[inline(never)]
    fn poll_at_length(&mut self, core: &mut Core) -> Option<&'static Slot> {
        self.turn(core, false);
        core.pop()
    }

    /// Progress, while events wait or somebody may wait on the handle.
    pub(crate) fn make_progress(&mut self, core: &mut Core) {
        let with_handle = core.is_handle_in_use() || core.is_armed();
        if with_handle && self.has_timer && self.set.drain_timer() {
            self.has_timer = false;
            self.readiness.on_timer_fired();
        }
        self.turn(core, with_handle);
        if !with_handle {
            return;
        }
        if core.has_event() {
            Readiness::on_found(self, core, None);
        } else {
            let now = monotonic();
            Readiness::on_empty(self, core, Some(now), Readiness::tick(now));
        }
    }
}

fn is_newer(now: Option<&'static Slot>, before: Option<&'static Slot>) -> bool {
    match (now, before) {
        (Some(now), Some(before)) => !std::ptr::eq(now, before),
        (now, _) => now.is_some(),
    }
}
