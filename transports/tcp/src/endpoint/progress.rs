//! Progress: what has arrived, what may leave, what is late.

use super::{LISTENER, Tcp};
use crate::lane::Phase;
use crate::lane::grants::kept_for_asking;
use cci_proto::Time;
use cci_transport::{Background, BackgroundWork, Core, Gauge, PollSet, monotonic};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::time::Duration;

/// Descriptors reported at once.
const READY: usize = 64;
/// All descriptors are looked at in every so many calls.
const LOOK_EVERY: u32 = 16;
/// Grants for each lane that wants some, while the program has events to take.
const GRANTED_AT_ONCE: usize = 4;
/// Shortest timed sleep of the progress thread.
const GRANULE: Duration = Duration::from_micros(50);
/// Sleep of the progress thread where the system refuses to watch a stream.
const UNWATCHED: Duration = Duration::from_millis(1);

impl Tcp {
    /// Makes progress without waiting. Returns whether something has arrived, and the time.
    pub(super) fn step(&mut self, core: &mut Core, reads: bool) -> (bool, Time) {
        let now = monotonic();
        self.shared.now = now;
        self.shared.inbox.begin_call(core);
        if !self.shared.urgent.is_empty() {
            self.pay_urgent(core);
        }
        let mut found = reads && self.read(core);
        if !self.shared.active.is_empty() {
            found |= self.work_on_active(core);
        }
        self.finish_step(core, now);
        if !found {
            self.pay_all(core);
        }
        (found, now)
    }

    /// What a step does seldom.
    fn finish_step(&mut self, core: &mut Core, now: Time) {
        if self.has_streams {
            self.accept_streams(core);
        }
        if self.shared.check_at.is_some_and(|at| at <= now) {
            self.check_timers(core, now);
        }
        if !self.names.is_empty() {
            self.take_names(core, now);
        }
        if !self.shared.pending_events.is_empty() {
            self.shared.pending_events.flush(core);
        }
        if self.shared.landings_wait {
            self.land(core);
        }
        if std::mem::take(&mut self.shared.is_short) {
            self.recall_grants(1);
        }
        if self.shared.grants_due {
            self.give_grants(core);
        }
        self.bury_ended(core);
        while !self.shared.redirected.is_empty() {
            self.follow_redirects(core);
            self.bury_ended(core);
        }
    }

    /// Reads what has arrived.
    fn read(&mut self, core: &mut Core) -> bool {
        self.calls = self.calls.wrapping_add(1);
        let mut found = self.read_hot(core);
        let looks = self.hot.lane.is_none()
            || self.look_at_all > 0
            || core.is_armed() && !found
            || self.calls.is_multiple_of(LOOK_EVERY);
        if looks {
            self.look_at_all = self.look_at_all.saturating_sub(1);
            found |= self.read_all(core);
        }
        found
    }

    /// Looks at all descriptors.
    fn read_all(&mut self, core: &mut Core) -> bool {
        let mut events = [PollSet::NO_EVENT; READY];
        let count = match self.shared.set.ready(&mut events) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(_) => return self.read_unreported(core),
        };
        let mut found = false;
        for event in &events[..count] {
            let (key, flags) = (event.data.u64(), event.flags);
            match key {
                PollSet::TIMER => {
                    if self.shared.set.drain_timer() {
                        self.readiness.on_timer_fired();
                        self.timer = Some(None);
                    }
                }
                PollSet::WAKER => {}
                LISTENER => self.has_streams = true,
                _ => found |= self.on_ready(core, key, flags),
            }
        }
        found
    }

    /// Looks at all descriptors by themselves, because the system refuses to report which are
    /// ready.
    #[cold]
    fn read_unreported(&mut self, core: &mut Core) -> bool {
        self.has_streams = self.listens_at.is_none();
        if self.shared.set.drain_timer() {
            self.readiness.on_timer_fired();
            self.timer = Some(None);
        }
        let mut keys = Vec::new();
        for lane in self.lanes.iter().flatten().filter(|lane| lane.socket.is_some()) {
            let room = if lane.is_blocked { EventFlags::OUT } else { EventFlags::empty() };
            keys.push((lane.key(), EventFlags::IN | room));
            keys.extend(lane.stream_keys().map(|key| (key, EventFlags::IN | EventFlags::OUT)));
        }
        keys.into_iter().fold(false, |found, (key, flags)| self.on_ready(core, key, flags) | found)
    }

    fn on_ready(&mut self, core: &mut Core, key: u64, flags: EventFlags) -> bool {
        let hot = self.hot.lane;
        let Some((lane, shared)) = self.lane_by_key(key) else {
            let found = self.on_stream_ready(core, key, flags);
            if found {
                self.on_further_delivered();
            }
            return found;
        };
        let number = lane.number;
        if lane.phase == Phase::Dialing {
            self.on_dialed(core, number);
            return true;
        }
        if flags.contains(EventFlags::OUT) {
            lane.activate(shared);
        }
        let found =
            flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP) && lane.receive(shared, core) > 0;
        if found && hot != Some(number) {
            self.on_delivered(number);
        }
        found
    }

    /// Sends what may leave, and goes on with what one call did not finish.
    fn work_on_active(&mut self, core: &mut Core) -> bool {
        let mut found = false;
        // Those that become active now have their turn in the next call.
        let next = std::mem::take(&mut self.shared.spare_active);
        let mut active = std::mem::replace(&mut self.shared.active, next);
        for number in &active {
            let Some((lane, shared)) = self.lane(*number) else { continue };
            lane.on_activated();
            lane.resume(shared, core);
            found |= lane.has_rest() && lane.receive(shared, core) > 0;
            lane.flush(shared, core);
            lane.trim(shared);
        }
        active.clear();
        self.shared.spare_active = active;
        found
    }

    /// Tells peers of grants that no answer has taken along since the last call.
    fn pay_urgent(&mut self, core: &mut Core) {
        while let Some(number) = self.shared.urgent.pop() {
            let Some((lane, shared)) = self.lane(number) else { continue };
            if lane.given.is_urgent() {
                lane.pay(shared);
                lane.flush(shared, core);
            }
        }
    }

    /// Tells peers what was taken and granted, if nothing else has.
    pub(super) fn pay_all(&mut self, core: &mut Core) {
        while let Some(number) = self.shared.owing.pop() {
            let Some((lane, shared)) = self.lane(number) else { continue };
            lane.on_paid();
            lane.pay(shared);
            lane.flush(shared, core);
        }
    }

    /// Sends what was to wait for more, before the program sleeps.
    pub(super) fn send_rest_now(&mut self, core: &mut Core) {
        self.pay_all(core);
        if !self.shared.active.is_empty() {
            self.work_on_active(core);
            // A stream that has room again may owe something.
            self.pay_all(core);
        }
    }

    /// Buries lanes that are over.
    pub(crate) fn bury_ended(&mut self, core: &mut Core) {
        while let Some((number, cause)) = self.shared.ended.pop() {
            self.bury(core, number, &cause);
        }
    }

    /// Gives peers memory for large messages, as far as there is room.
    #[cold]
    pub(super) fn land(&mut self, core: &mut Core) {
        core.place_landings(|core, asked, memory| match self.lane_of(asked.connection) {
            Some((lane, shared)) => lane.place(shared, core, asked, memory),
            None => cci_transport::Placed::Refused,
        });
        self.shared.landings_wait = core.landings().is_waiting();
    }

    /// Grants messages to the lanes that want some, in turn. Where slots are short, lanes that do
    /// not use theirs are asked to give them back.
    #[cold]
    pub(super) fn give_grants(&mut self, core: &mut Core) {
        self.shared.grants_due = false;
        // A program with events to take returns them soon: lanes get some grants each then, where
        // they would get one at a time now.
        let (_, slots) = core.recv_count();
        let enough = (GRANTED_AT_ONCE * self.shared.wanting.len()).min(slots / 4);
        if core.has_event() && self.shared.inbox.spare(core) < enough {
            self.shared.grants_due = true;
            return;
        }
        while let Some(number) = self.shared.wanting.front().copied() {
            if self.shared.inbox.spare(core) == 0
                && !(self.shared.inbox.starve(core) && self.shared.inbox.spare(core) > 0)
            {
                return self.recall_grants(self.shared.wanting.len());
            }
            self.shared.wanting.pop_front();
            let others = self.shared.wanting.len();
            let Some((lane, shared)) = self.lane(number) else { continue };
            lane.is_wanting = false;
            // What idle lanes hold must not grow into the last slots: there each gets what it uses,
            // unless the program returns slots soon.
            let kept = if core.has_event() { 0 } else { kept_for_asking(slots) };
            let spare = shared.inbox.spare(core).saturating_sub(kept) / (others + 1);
            lane.grant(shared, core, spare.max(1));
            lane.pay(shared);
        }
        if core.is_starving() && !self.shared.inbox.is_short(core) {
            core.set_starving(false);
        }
    }

    /// Asks so many lanes for the grants that they do not use.
    #[cold]
    fn recall_grants(&mut self, mut left: usize) {
        for _ in 0..self.lanes.len() {
            if left == 0 {
                return;
            }
            self.recall_at = (self.recall_at + 1) % self.lanes.len();
            let number = u32::try_from(self.recall_at).unwrap_or(0);
            let Some((lane, shared)) = self.lane(number) else { continue };
            if !lane.is_wanting && lane.phase == Phase::Open && lane.given.outstanding() > 0 && !lane.given.recalled {
                lane.given.recalled = true;
                lane.put(shared, crate::frame::Kind::Recall, 0, 0, &[]);
                left -= 1;
            }
        }
    }

    /// Whether a call would make progress without an arrival.
    pub(super) fn is_runnable(&self) -> bool {
        let is_runnable = |number: &u32| {
            let lane = self.lanes.get(*number as usize).and_then(Option::as_deref);
            lane.is_some_and(|lane| lane.has_rest() || !lane.is_blocked || lane.may_feed())
        };
        self.has_streams || self.shared.active.iter().any(is_runnable) || !self.shared.ended.is_empty()
    }

    /// Whether there is work that the progress thread must do if the program makes no call.
    fn is_needed(&self, core: &Core) -> bool {
        self.reads_in_background(core) || !self.shared.active.is_empty() || !self.shared.owing.is_empty()
    }

    /// Ends a call: attaches the endpoint to the progress thread, or notifies the thread.
    #[inline]
    pub(super) fn after(&mut self, core: &Core) {
        if self.background.must_start() {
            self.background.start(self.shared.set.handle());
        }
        if self.background.expects_call() {
            Background::act_on_call(&self.background, self.is_needed(core));
        }
    }

    /// Whether the progress thread reads. Unless the endpoint is present, it does only while
    /// operations of this side are open, or memory is registered for peers: an absent program is
    /// not alive to peers that only send it messages.
    fn reads_in_background(&self, core: &Core) -> bool {
        core.is_present() || self.shared.exposed > 0 || self.shared.open_operations > 0
    }

    /// Makes one step for the progress thread.
    pub(super) fn background_step(&mut self, core: &mut Core) -> BackgroundWork {
        let watches = self.reads_in_background(core);
        let (found, now) = self.step(core, watches);
        self.pay_all(core);
        self.publish_gauges(core);
        if !self.is_needed(core) {
            self.background.park();
            return BackgroundWork::Done;
        }
        let wakes = !watches || self.watch_hot();
        let limit = if found || self.is_runnable() {
            Some(Duration::ZERO)
        } else if !wakes {
            Some(UNWATCHED)
        } else {
            self.deadline().map(|deadline| (deadline - now).max(GRANULE))
        };
        self.background.set_acting();
        BackgroundWork::Pending { limit, watches, armed: core.is_armed() }
    }

    pub(super) fn publish_gauges(&mut self, core: &mut Core) {
        core.publish_gauges();
        core.set_gauges(&[
            (Gauge::Strays, self.shared.strays),
            (
                Gauge::Malformed,
                self.shared.malformed + self.shared.sealing.as_ref().map_or(0, |sealing| sealing.forged),
            ),
            (Gauge::InFlight, self.shared.open_operations as u64),
        ]);
    }

    /// A step of an endpoint that closes.
    pub(crate) fn step_once(&mut self, core: &mut Core) -> (bool, Time) {
        let stepped = self.step(core, true);
        self.send_rest_now(core);
        stepped
    }
}
