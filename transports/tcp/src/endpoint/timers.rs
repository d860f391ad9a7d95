//! What time brings: timeouts, keepalive, retries, the end of lanes that nobody needs.

use super::Tcp;
use crate::frame::{Kind, OWN};
use crate::lane::shared::{Cause, Elsewhere, Shared};
use crate::lane::work::{Behind, Sent, Work};
use crate::lane::{Lane, PendingConnect, Phase, SILENCE, end_connect};
use crate::sys;
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, Failure, Time};
use cci_transport::{Connection, Core};
use std::time::Duration;

/// How long a stranger may take to say HELLO.
const HELLO_LIMIT: Duration = Duration::from_secs(5);
/// How long a lane without connections is kept.
const IDLE_LIMIT: Duration = Duration::from_secs(1);

/// The connections and deadlines of open operations.
fn deadlines(work: &Work) -> impl Iterator<Item = (Time, &'static Connection)> + '_ {
    let of_sent = |sent: &Sent| match sent {
        Sent::Message(ending) => Some((ending.deadline?, ending.cell)),
        _ => None,
    };
    let behind = work.holds.iter().flat_map(|hold| &hold.behind).filter_map(move |behind| match behind {
        Behind::Message(waiting) => of_sent(&waiting.sent),
        Behind::Operation(_) => None,
    });
    let operations = work.operations.iter();
    let operations = operations.filter_map(|(_, other)| Some((other.ending.deadline?, other.ending.cell)));
    let waiting = work.waiting.iter().filter_map(move |waiting| of_sent(&waiting.sent));
    work.in_flight.iter().filter_map(of_sent).chain(waiting).chain(behind).chain(operations)
}

impl Lane {
    /// Does what is due, and returns when to look again.
    fn check(&mut self, s: &mut Shared, core: &mut Core, now: Time) -> Option<Time> {
        self.trim(s);
        self.check_connects(s, core, now);
        self.check_operations(s, core, now);
        let connects = self
            .table
            .all_pending()
            .flat_map(|(_, pending)| [Some(pending.deadline), pending.ask_at, pending.elsewhere_at()]);
        let connects = connects.flatten().min();
        let operations = self.work.as_ref().and_then(|work| deadlines(work).map(|(deadline, _)| deadline).min());
        let streams = self.check_streams(s, now);
        let next = [connects, operations, streams, self.check_keepalive(s, core, now), self.check_phase(s, now)];
        next.into_iter().flatten().min()
    }

    fn check_connects(&mut self, s: &mut Shared, core: &mut Core, now: Time) {
        let late = |pending: &PendingConnect| pending.deadline <= now;
        loop {
            let number = self.table.all_pending().find(|(_, pending)| late(pending)).map(|(number, _)| number);
            let Some(number) = number else { break };
            let Some((cell, Some(pending))) = self.leave(s, number) else { return };
            let peer = self.peer_uri();
            let reason = match self.phase {
                Phase::Open if pending.is_asked && pending.was_busy => {
                    format!("{peer} had no room for another request, and has not answered since")
                }
                Phase::Open if pending.is_asked => format!("the program at {peer} has not answered the request"),
                Phase::Open => format!("{peer} has no room for another request"),
                Phase::Greeting => format!("{peer} took the connection, but does not answer as a tcp endpoint"),
                _ if self.was_turned_away => {
                    format!("{peer} closes each stream at once; it has too many clients, or too few descriptors")
                }
                _ => format!("{peer} does not answer; is a firewall between?"),
            };
            if pending.is_asked && self.phase == Phase::Open {
                self.put(s, Kind::Disconnect, OWN, number, &[]);
            }
            let reason = pending.others.sentence(reason);
            end_connect(s, core, cell, &pending, Failure::TimedOut, Some(reason));
        }
        self.ask_elsewhere(s, now);
        let is_due = |pending: &PendingConnect| pending.ask_at.is_some_and(|at| at <= now);
        if self.table.all_pending().any(|(_, pending)| is_due(pending)) {
            self.ask_all(s, now);
        }
    }

    /// Has connects ask the next address of their host, where this one has had its turn.
    fn ask_elsewhere(&mut self, s: &mut Shared, now: Time) {
        let is_over = |pending: &PendingConnect| pending.elsewhere_at().is_some_and(|at| at <= now);
        loop {
            let number = self.table.all_pending().find(|(_, pending)| is_over(pending)).map(|(number, _)| number);
            let Some((cell, Some(mut pending))) = number.and_then(|number| self.leave(s, number)) else { return };
            let next = pending.others.after(self.peer, now).unwrap_or(self.peer);
            s.redirected.push((cell, pending, Elsewhere::Address(next)));
        }
    }

    fn check_operations(&mut self, s: &mut Shared, core: &mut Core, now: Time) {
        loop {
            let Some(work) = &self.work else { return };
            let late = deadlines(work).find(|(deadline, _)| *deadline <= now).map(|(_, cell)| cell);
            let Some(cell) = late else { return };
            let failure = if self.is_refused { Failure::NotReady } else { Failure::TimedOut };
            let (number, remote) = (cell.local.load(Ordering::Relaxed), cell.remote.load(Ordering::Relaxed));
            self.break_connection(s, core, number, failure);
            self.put(s, Kind::Disconnect, 0, remote, &[]);
        }
    }

    fn check_keepalive(&mut self, s: &mut Shared, core: &mut Core, now: Time) -> Option<Time> {
        if !self.is_watched || self.phase != Phase::Open {
            return None;
        }
        let heard = self.heard;
        let watched = |cell: &&'static Connection| cell.keepalive.load(Ordering::Relaxed) > 0;
        let limit = |cell: &'static Connection| Duration::from_micros(cell.keepalive.load(Ordering::Relaxed).into());
        let since = |cell: &'static Connection| heard.max(opened_at(cell, now));
        while let Some(cell) = self.table.open_cells().filter(watched).find(|cell| now >= since(cell) + limit(cell)) {
            cell.keepalive.store(0, Ordering::Relaxed);
            s.notify(core, EventKind::KeepaliveTimedOut, cell);
        }
        let shortest = self.table.open_cells().filter(watched).map(limit).min();
        self.is_watched = shortest.is_some();
        let shortest = shortest?;
        if now >= heard + shortest / 3 && now >= self.pinged + shortest / 3 {
            self.ping(s, now);
        }
        Some(now + (shortest / 4).max(Duration::from_millis(1)))
    }

    fn ping(&mut self, s: &mut Shared, now: Time) {
        self.pinged = now;
        if self.out.is_empty() {
            self.put(s, Kind::Ping, 0, 0, &[]);
        }
    }

    /// What the lane's own life asks for.
    fn check_phase(&mut self, s: &mut Shared, now: Time) -> Option<Time> {
        match self.phase {
            Phase::Greeting if !self.dialed => self.end_after(s, now, HELLO_LIMIT),
            Phase::Queued | Phase::Paused(_) | Phase::Dialing | Phase::Greeting if self.table.is_empty() => {
                self.end(s, Cause::Idle);
                None
            }
            Phase::Paused(at) => (at > now).then_some(at),
            Phase::Open if self.work.is_some() => self.check_silence(s, now),
            Phase::Open if self.dialed && self.table.is_empty() && self.out.is_empty() => {
                self.end_after(s, now, IDLE_LIMIT)
            }
            _ => None,
        }
    }

    fn end_after(&mut self, s: &mut Shared, now: Time, limit: Duration) -> Option<Time> {
        let end = self.idle_since + limit;
        if now < end {
            return Some(end);
        }
        self.end(s, Cause::Idle);
        None
    }

    /// Asks a silent peer for a sign of life while operations are open.
    fn check_silence(&mut self, s: &mut Shared, now: Time) -> Option<Time> {
        if s.gone_after.is_some_and(|limit| self.has_silent_stream(limit)) {
            self.end(s, Cause::Silent);
            return None;
        }
        if now >= self.heard + SILENCE && now >= self.pinged + SILENCE {
            let info = self.socket.as_ref().and_then(sys::info).unwrap_or_default();
            let is_late = |limit| info.unacknowledged > 0 && info.last_acknowledged >= limit;
            if s.gone_after.is_some_and(is_late) {
                self.end(s, Cause::Silent);
                return None;
            }
            self.ping(s, now);
        }
        Some(now + SILENCE / 4)
    }
}

/// When a connection opened, by its milliseconds, which wrap around.
fn opened_at(cell: &Connection, now: Time) -> Time {
    #[expect(clippy::cast_possible_truncation, reason = "the difference is what counts")]
    let age = ((now.0 / 1_000_000) as u32).wrapping_sub(cell.opened_at.load(Ordering::Relaxed));
    Time(now.0.saturating_sub(u64::from(age) * 1_000_000))
}

impl Tcp {
    /// Does what is due.
    #[cold]
    pub(super) fn check_timers(&mut self, core: &mut Core, now: Time) {
        self.shared.check_at = None;
        while self.shared.expected.expire(core, now).is_some() {}
        self.listen_again(now);
        for number in 0..self.lanes.len() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let Some((lane, shared)) = self.lane(number) else { continue };
            // Its deadlines hold whether it dials now or not.
            if let Some(next) = lane.check(shared, core, now) {
                shared.check_by(next);
            }
            let is_due = matches!(lane.phase, Phase::Paused(at) if at <= now) || lane.phase == Phase::Queued;
            if is_due {
                self.dial(core, number);
            }
        }
        if !self.shared.active.is_empty() {
            self.send_rest_now(core);
        }
    }

    /// The next deadline.
    pub(super) fn deadline(&self) -> Option<Time> {
        let names = self.names.iter().map(|name| name.deadline).min();
        [self.shared.check_at, self.shared.expected.deadline(), names].into_iter().flatten().min()
    }
}
