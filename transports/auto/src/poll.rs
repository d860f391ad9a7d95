//! Which way is polled when (`docs/design/auto.md`, Progress).

use crate::auto::{Auto, NO_WAY, TURN};
use cci_transport::{Core, PollSet, Readiness, Slot, monotonic};

/// Descriptors that one look at the handle reports: each way, timer and waker.
const READY: usize = 9;

impl Auto {
    /// Polls every warm way, and the cold ones that have something to do if it is their turn.
    /// `all`: polls every way.
    pub(crate) fn turn(&mut self, core: &mut Core, all: bool) {
        let is_due = self.left == 0;
        self.left = if is_due { TURN - 1 } else { self.left - 1 };
        if !all && !core.has_event() {
            self.cool(core);
        }
        let ready = if is_due && !all { self.ready_ways() } else { 0 };
        for number in self.numbers() {
            let way = &mut self.ways[usize::from(number)];
            let is_cold = way.warm == 0 && core.is_way_armed(number);
            if is_cold && !all && ready & 1 << number == 0 {
                continue;
            }
            way.warm = way.warm.saturating_sub(u32::from(!way.is_always_warm && !all));
            let before = core.newest_event();
            self.within(core, number, |transport, core| transport.progress(core));
            if is_newer(core.newest_event(), before) || is_cold && !all {
                self.warm(number);
            }
        }
        self.end_call(core);
        if self.connects.is_waiting() {
            self.go_on_in_time(core);
        }
        self.find_plain(core);
    }

    /// The ways whose handles are readable, a bit each.
    fn ready_ways(&self) -> u32 {
        if self.ways.iter().all(|way| way.warm > 0) {
            return 0;
        }
        let mut events = [PollSet::NO_EVENT; READY];
        let count = self.set.ready(&mut events).unwrap_or(0);
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

    /// Sees whether the next calls may go one way at once.
    fn find_plain(&mut self, core: &mut Core) {
        let mut warm = self.numbers().filter(|number| self.ways[usize::from(*number)].warm > 0);
        let (first, second) = (warm.next(), warm.next());
        let is_free = !core.is_handle_in_use() && !core.is_armed() && !core.has_outcomes();
        self.plain = match (first, second) {
            (Some(number), None) if is_free && !core.is_way_armed(number) => {
                if core.way() != number {
                    core.enter_way(number);
                    core.leave_way();
                }
                number
            }
            _ => NO_WAY,
        };
    }

    /// A poll where no event waits and nobody uses the handle.
    #[inline]
    pub(crate) fn poll_quickly(&mut self, core: &mut Core) -> Option<&'static Slot> {
        if self.left != 0
            && let Some(way) = self.ways.get_mut(usize::from(self.plain))
        {
            self.left -= 1;
            let found = way.transport.poll(core);
            self.end_call(core);
            return found;
        }
        self.poll_at_length(core)
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
