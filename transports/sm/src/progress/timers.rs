//! What time brings: timeouts, keepalive, retries, closing of lanes that nobody needs.

use crate::format::layout::{NOTHING, kind};
use crate::lane::queue::Op;
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use crate::memory::announced::Blocked;
use crate::setup::handshake::Cause;
use crate::slow_path::SlowPath;
use cci_mem::ring::Header;
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, Failure, Time};
use cci_transport::{Connection, Core};

/// What the system or the program had no room for, such as a full backlog, memory or an event, is
/// tried again this often, milliseconds.
const TRY_AGAIN: u64 = 10;
/// Segments for which the system had no memory are announced again this often, milliseconds.
const ANNOUNCE_AGAIN: u64 = 100;
/// How long a client may take to say HELLO, milliseconds.
const HELLO_LIMIT: u64 = 5_000;
/// How long a lane without connections is kept, milliseconds.
const IDLE_LIMIT: u64 = 1_000;
/// How long the listener rests when descriptors are short, milliseconds.
const LISTEN_AGAIN: u64 = 100;

/// Milliseconds of a timeout in microseconds, rounded up.
fn millis(micros: u32) -> u64 {
    u64::from(micros).div_ceil(1000)
}

/// When a send times out, if ever.
fn send_deadline(cell: &'static Connection, since: u64) -> Option<u64> {
    let timeout = cell.send_timeout.load(Ordering::Relaxed);
    (timeout > 0).then(|| since.saturating_add(millis(timeout)))
}

impl Lane {
    fn op_deadlines(&self) -> impl Iterator<Item = (u64, &'static Connection)> + '_ {
        self.queue.all().filter_map(|op| {
            let (cell, since) = match op {
                Op::Message(waiting) => (waiting.cell, waiting.since),
                Op::Rma(pending) => (pending.cell, pending.since),
                Op::Frame { .. } | Op::Serve(_) => return None,
            };
            send_deadline(cell, since).map(|deadline| (deadline, cell))
        })
    }

    /// Operations that began to wait without a timeout count from now on.
    pub(crate) fn start_clocks(&mut self, now: u64) {
        for op in self.queue.all_mut() {
            let since = match op {
                Op::Message(waiting) => &mut waiting.since,
                Op::Rma(pending) => &mut pending.since,
                Op::Frame { .. } | Op::Serve(_) => continue,
            };
            *since = (*since).min(now);
        }
    }

    fn connect_deadlines(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.table.all_pending().filter_map(|(number, pending)| Some((pending.deadline?, number)))
    }

    fn late_connects(&self, now: u64) -> Vec<u32> {
        self.connect_deadlines().filter(|(deadline, _)| *deadline <= now).map(|(_, number)| number).collect()
    }

    fn late_op(&self, now: u64) -> Option<&'static Connection> {
        self.op_deadlines().find(|(deadline, _)| *deadline <= now).map(|(_, cell)| cell)
    }

    fn keepalives(&self) -> impl Iterator<Item = (u64, &'static Connection)> + '_ {
        self.table.open_cells().filter(|_| self.activity.is_watchful()).filter_map(|cell| {
            let timeout = cell.keepalive.load(Ordering::Relaxed);
            (timeout > 0).then(|| (millis(timeout), cell))
        })
    }

    /// What this lane owes to the clock. A cause: it is to be closed.
    fn on_tick(&mut self, state: &mut EndpointState, core: &mut Core) -> Option<Cause> {
        let now = state.now;
        self.activity.on_tick(now);
        self.announce(state);
        self.give_up_connects(core, now);
        while let Some(cell) = self.late_op(now) {
            self.give_up(state, core, cell);
        }
        self.keep_alive(state, core);
        match self.phase {
            // Every connect that wanted this lane has been given up.
            Phase::Connecting(_) | Phase::HelloSent if self.table.is_empty() => Some(Cause::Idle),
            Phase::Connecting(address) => self.open_socket(state, address).err(),
            Phase::Answering(since) if now > since + HELLO_LIMIT => Some(Cause::Refused),
            Phase::Ready
                if self.is_idle() && self.activity.idle_since().is_some_and(|since| now >= since + IDLE_LIMIT) =>
            {
                Some(Cause::Idle)
            }
            _ => None,
        }
    }

    /// Whether nothing needs the lane. A frame in its ring does: it may be a request that waits for
    /// a receive slot, or for the program's next call.
    fn is_idle(&self) -> bool {
        self.queue.is_empty()
            && self.requests.is_empty()
            && self.held.is_empty()
            && !self.wire.as_ref().is_some_and(|wire| wire.is_copying() || wire.has_frame())
    }

    fn give_up_connects(&mut self, core: &mut Core, now: u64) {
        let late = self.late_connects(now);
        for number in &late {
            let reason = match self.phase {
                Phase::Connecting(address) => format!("too many wait to be taken by {address} already"),
                Phase::HelloSent => format!("{} took the connection, but does not answer", self.peer.name()),
                _ if self.is_refused() => format!("{} has no room for another request", self.peer.name()),
                _ => format!("the program at {} has not answered the request", self.peer.name()),
            };
            self.refuse_connect(now, core, *number, (Failure::TimedOut, reason));
        }
        if !late.is_empty() {
            self.forget_given_up();
        }
    }

    /// Whether the peer has no room for what lies in its ring.
    fn is_refused(&self) -> bool {
        self.wire.as_ref().is_some_and(|wire| wire.outbound.rnr.load(Ordering::Relaxed) != 0)
    }

    /// A send has waited for too long: the receiver had no room, or did not answer at all.
    fn give_up(&mut self, state: &mut EndpointState, core: &mut Core, cell: &'static Connection) {
        let failure = if self.is_refused() { Failure::NotReady } else { Failure::TimedOut };
        let number = cell.local.load(Ordering::Relaxed);
        let remote = cell.remote.load(Ordering::Relaxed);
        self.break_connection(state, core, number, failure);
        self.post(state, Header { kind: kind::DISCONNECT, len: 0, word: remote }, NOTHING, None);
    }

    fn keep_alive(&mut self, state: &mut EndpointState, core: &mut Core) {
        if !self.activity.is_watchful() || self.admission.is_stopped() {
            return;
        }
        if self.peer.is_present() {
            // Its process answers by being alive: the socket and the pidfd tell of its end.
            return self.activity.set_watchful(false);
        }
        let now = state.now;
        #[expect(clippy::cast_possible_truncation, reason = "the difference is what counts")]
        let silence = |cell: &Connection, received_at: u64| {
            now.saturating_sub(received_at)
                .min(u64::from((now as u32).wrapping_sub(cell.opened_at.load(Ordering::Relaxed))))
        };
        let received_at = self.activity.received_at();
        while let Some((_, cell)) = self.keepalives().find(|(limit, cell)| silence(cell, received_at) >= *limit) {
            cell.keepalive.store(0, Ordering::Relaxed);
            state.queue_event(core, EventKind::KeepaliveTimedOut, cell);
        }
        let watchful = self.keepalives().next().is_some();
        self.activity.set_watchful(watchful);
        let asks = self.keepalives().find(|(limit, cell)| silence(cell, received_at) * 3 >= *limit);
        if let Some((limit, cell)) = asks
            && (now - self.activity.pinged()) * 3 >= limit
            && !self.queue.has_controls()
        {
            self.activity.on_pinged(now);
            let remote = cell.remote.load(Ordering::Relaxed);
            self.post(state, Header { kind: kind::PING, len: 0, word: remote }, NOTHING, None);
        }
    }

    /// When this lane wants to be looked at, if ever.
    fn next_deadline(&self, now: u64) -> Option<u64> {
        let phase = match self.phase {
            Phase::Connecting(_) => Some(now + TRY_AGAIN),
            Phase::Answering(since) => Some(since + HELLO_LIMIT + 1),
            Phase::Ready if self.is_idle() => self.activity.idle_since().map(|since| since + IDLE_LIMIT),
            _ => None,
        };
        let outbox = (self.announced.blocked() == Some(Blocked::Short)).then_some(now + ANNOUNCE_AGAIN);
        let memory = self.wire.as_ref().is_some_and(|wire| wire.lacks_memory).then_some(now + TRY_AGAIN);
        let connects = self.connect_deadlines().map(|(deadline, _)| deadline).min();
        let ops = self.op_deadlines().map(|(deadline, _)| deadline).min();
        let keepalive = self.keepalives().map(|(limit, _)| now + (limit / 3).max(1)).min();
        [phase, outbox, memory, connects, ops, keepalive].into_iter().flatten().min()
    }
}

impl SlowPath {
    /// To be called when the clock has moved.
    pub(crate) fn on_tick(&mut self, core: &mut Core) {
        let now = self.state.now;
        self.state.pending_events.flush(core);
        self.state.control.listen_again(now, LISTEN_AGAIN);
        self.on_newly_timed();
        // From the end: a lane that is removed takes its place with it.
        for at in (0..self.timed.len()).rev() {
            let Some(number) = self.timed.get(at).copied() else { continue };
            let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { continue };
            if let Some(cause) = lane.on_tick(&mut self.state, core) {
                self.tear_down(core, number, cause);
            } else if lane.is_over() {
                self.remove_lane(number);
            } else if lane.is_quiet() {
                lane.schedule.end_timing();
                self.timed.swap_remove(at);
            }
        }
        while self.state.expected.expire(core, now).is_some() {}
        self.expire_segments(now);
        self.state.deadlines_moved = true;
    }

    /// Sets the timer to the next deadline.
    pub(crate) fn set_timer(&mut self) {
        let now = crate::clock::precise_now();
        let timed = self.timed.iter().filter_map(|number| self.lane(*number));
        let lanes = timed.filter_map(|lane| lane.next_deadline(now)).min();
        let expected = self.state.expected.deadline();
        let segments = self.state.registry.deadline();
        let listening = (!self.state.control.is_listening()).then_some(now + LISTEN_AGAIN);
        let pending_events = (!self.state.pending_events.is_empty()).then_some(now + TRY_AGAIN);
        let next = [lanes, expected, segments, listening, pending_events].into_iter().flatten().min();
        // A millisecond later, because deadlines and clock readings are whole milliseconds.
        let at = next.map(|next| Time(next.max(now).saturating_add(1).saturating_mul(1_000_000)));
        self.state.timer_refused = !self.state.control.set_timer(at) && at.is_some();
    }
}
