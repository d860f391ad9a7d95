//! Timers: what is due on a connection, and its next deadline.

use super::ack::note_retry;
use super::mtu;
use crate::engine::connection::conn::{Conn, NONE, State, bit};
use crate::engine::connection::exchange::Exchange;
use crate::engine::connection::rtt::LEAST_TIMEOUT;
use crate::engine::connection::unreachable::Unreachable;
use crate::engine::flow::Flow;
use crate::engine::flow::idle_probing::IDLE;
use crate::engine::flow::in_flight::InFlight;
use crate::engine::host::{Event, Host};
use crate::engine::index::Index;
use crate::engine::send::schedule::has_work;
use crate::engine::state::Engine;
use crate::{Failure, Time};

/// Time without progress after which the engine gives up a peer that owes acknowledgements,
/// whatever the timeouts, unless it is patient, nanoseconds.
const GIVE_UP: u64 = 60_000_000_000;
/// Probes that it needs before that.
const GIVE_UP_PROBES: u32 = 8;
/// Probe timeouts in a row after which a path is suspected to swallow large frames (RFC 8899,
/// section 4.4).
const BLACK_HOLE_PROBES: u32 = 4;
/// Pings in a keepalive timeout.
const PINGS: u32 = 4;

impl Engine {
    /// Handles the timers that are due. Call it at the time that `poll_timeout` returns. Earlier it
    /// does nothing.
    #[inline]
    pub fn handle_timeout<H: Host>(&mut self, now: Time, host: &mut H) {
        if self.timers.is_due(now) || self.admission.is_due(now) {
            self.expire(now, host);
        }
    }

    /// Handles every timer that is due.
    fn expire<H: Host>(&mut self, now: Time, host: &mut H) {
        while let Some((deadline, index)) = self.timers.pop(now) {
            let Some(conn) = self.table.get_mut(index).filter(|conn| conn.armed == deadline) else { continue };
            conn.armed = Time(u64::MAX);
            if conn.state != State::Open {
                self.look_at_exchange(now, index, host);
                self.mark_ready(index);
                continue;
            }
            self.look(now, index, host);
            if self.table.get(index).is_some_and(|conn| has_work(conn, self.flows.get(conn.flow))) {
                self.mark_ready(index);
            } else {
                self.arm(now, index);
            }
        }
        self.admission.expire(now);
        let table = &self.table;
        self.timers.sweep(table.len(), |deadline, index| table.get(index).is_some_and(|conn| conn.armed == deadline));
    }

    /// Handles what is due on an open connection.
    fn look<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        self.expire_losses(now, index);
        if self.check_unreachable(now, index) {
            return self.break_connection(now, index, Failure::Disconnected, host);
        }
        let gives_up = !self.config.patient;
        let Some(conn) = self.table.get_mut(index) else { return };
        let mut broken = None;
        if let Some(flow) = self.flows.get_mut(conn.flow) {
            broken = send_timeout(now, conn, flow);
            if flow.peer.retry_at().is_some_and(|at| at <= now) {
                note_retry(now, flow);
                flow.probe_timeout.set_due();
                if flow.peer.unanswered() >= BLACK_HOLE_PROBES
                    && flow.send_window.front().is_some_and(InFlight::is_above_base)
                {
                    mtu::fall_back(conn, flow);
                }
                if gives_up && is_gone(now, conn, flow.peer.unanswered()) {
                    broken = Some(Failure::TimedOut);
                }
                if !flow.send_window.awaits_ack() {
                    // There is nothing to retransmit: an acknowledgement tells the peer's state.
                    conn.set(bit::PING);
                }
            }
            if probe_at(conn, flow).is_some_and(|at| at <= now) {
                let can_probe = flow.send_window.awaits_ack();
                flow.probe_timeout.on_timeout(now, can_probe);
                if !can_probe {
                    conn.set(bit::PING);
                }
                let probes = flow.probe_timeout.count();
                if probes >= BLACK_HOLE_PROBES {
                    mtu::fall_back(conn, flow);
                }
                // A peer that is heard and accepts nothing is no better than a silent one. A clock
                // that jumped says nothing.
                let stalled = now.since(flow.probe_timeout.progress_at());
                if gives_up && probes > GIVE_UP_PROBES && stalled > GIVE_UP {
                    broken = Some(Failure::TimedOut);
                }
            }
            if idle_probe_at(flow).is_some_and(|at| at <= now) {
                flow.idle_probing.on_probe(now);
                conn.set(bit::PING);
                if gives_up && is_gone(now, conn, flow.idle_probing.probes()) {
                    broken = Some(Failure::TimedOut);
                }
            }
            if !conn.is_reliable()
                && let Some(buffer) = flow.message_parts.expire(now)
            {
                // A part of the message was lost.
                host.abandon(buffer);
                self.freed = true;
            }
            if broken.is_none() && flow.is_quiet() && flow.idle_probing.is_idle(now) {
                let number = core::mem::replace(&mut conn.flow, NONE);
                self.flows.give(number);
            }
        }
        if let Some(failure) = broken {
            return self.break_connection(now, index, failure, host);
        }
        self.keep_alive(now, index, host);
    }

    fn keep_alive<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.keepalive > 0) else { return };
        let silence = conn.silence(now);
        let first = conn.keepalive / PINGS;
        if silence >= conn.keepalive && !conn.has(bit::SILENCE_REPORTED | bit::PINGED) {
            // The clock jumped, or no call was made for long: the peer was not probed yet.
            conn.newest_at = now.micros().wrapping_sub(conn.keepalive - first);
            conn.set(bit::PING);
        } else if silence >= conn.keepalive && !conn.has(bit::SILENCE_REPORTED) {
            conn.set(bit::SILENCE_REPORTED);
            let host_cookie = conn.host_cookie;
            host.event(Index(index), host_cookie, Event::Silent);
        } else if silence >= first {
            conn.set(bit::PING);
        }
    }

    /// Sets timeouts of a connection: for operations that do not end, and for silence;
    /// microseconds, 0 = never.
    pub fn set_timeouts(&mut self, now: Time, index: Index, send_timeout: u32, keepalive: u32) {
        if let Some(conn) = self.table.get_mut(index.0) {
            (conn.send_timeout, conn.keepalive) = (send_timeout, keepalive);
            if keepalive > 0 {
                conn.newest_at = now.micros();
            }
            conn.clear(bit::SILENCE_REPORTED | bit::PINGED);
        }
        self.arm(now, index.0);
    }

    /// The timeouts of a connection: for sending, and of a silent peer; microseconds.
    #[must_use]
    pub fn timeouts(&self, index: Index) -> Option<(u32, u32)> {
        self.table.get(index.0).map(|conn| (conn.send_timeout, conn.keepalive))
    }

    /// Arms the timer of a connection for what will be due next.
    pub(crate) fn arm(&mut self, now: Time, index: u32) {
        let Some(conn) = self.table.get_mut(index) else { return };
        let flow = self.flows.get(conn.flow);
        let is_open = conn.state == State::Open;
        let unreachable = if self.unreachable.is_empty() || !is_open { None } else { self.unreachable.get(&index) };
        if is_open && unreachable.is_none() && flow.is_some_and(|flow| is_armed(conn, flow)) {
            return;
        }
        let exchange = self.exchanges.get(&index).map(Exchange::next_at);
        let exchange = exchange.or(unreachable.map(Unreachable::next_at));
        let due = if conn.state == State::Open { next_due(now, conn, flow) } else { None };
        let next = match (exchange, due) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if let Some(next) = next {
            self.timers.arm(index, next.max(now), &mut conn.armed);
        }
    }
}

/// Returns whether to give up a peer that left this many probes unanswered and was silent for
/// `GIVE_UP`.
fn is_gone(now: Time, conn: &Conn, unanswered: u32) -> bool {
    unanswered > GIVE_UP_PROBES && u64::from(conn.silence(now)) * 1000 > GIVE_UP
}

/// Returns whether a peer was silent, and asked, for so long that an engine gives it up which is
/// not patient.
pub(super) fn is_overdue(now: Time, conn: &Conn, flow: &Flow) -> bool {
    let asked = flow.probe_timeout.count().max(flow.peer.unanswered()).max(flow.idle_probing.probes());
    is_gone(now, conn, asked)
}

/// Returns the failure if the oldest operation is older than the send timeout.
fn send_timeout(now: Time, conn: &Conn, flow: &Flow) -> Option<Failure> {
    let due = send_due(conn, flow)?;
    (due <= now).then_some(if flow.peer.is_ready() { Failure::TimedOut } else { Failure::NotReady })
}

fn send_due(conn: &Conn, flow: &Flow) -> Option<Time> {
    if conn.send_timeout == 0 {
        return None;
    }
    oldest(flow).map(|since| since.plus_micros(u64::from(conn.send_timeout)))
}

/// Returns since when the oldest operation of a flow waits; for RMA and what waits behind it, since
/// when no bytes have moved.
pub(crate) fn oldest(flow: &Flow) -> Option<Time> {
    // An RMA may take long. It is late only if no bytes move.
    let rma = (!flow.open_rmas.is_empty())
        .then(|| flow.open_rmas.since().max(flow.probe_timeout.progress_at()).max(flow.open_rmas.moved_at()));
    let oldest_message = flow.send_window.oldest_message().or_else(|| flow.queue.oldest_message());
    let messages = oldest_message.map(|since| match rma {
        // It began after an RMA, which it may wait for: it is its message, or behind it. Without a
        // slot it has arrived, and waits for the peer's program.
        Some(moved) if since >= flow.open_rmas.since() => since.max(flow.peer.not_ready_since().unwrap_or(moved)),
        _ => since,
    });
    match (messages, rma) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Returns when to retransmit the oldest frame as a probe.
fn probe_at(conn: &Conn, flow: &Flow) -> Option<Time> {
    // A frame that the peer holds has arrived and is not acknowledged yet. That acknowledgement may
    // be lost.
    let waits = flow.send_window.has_sent() || !flow.send_window.awaits_ack();
    (waits && !flow.send_window.is_empty() && flow.peer.is_ready())
        .then(|| flow.probe_timeout.since().plus_micros(conn.probe_timeout(flow.probe_timeout.count())))
}

/// Returns when to probe an idle peer: everything of ours has arrived, and it owes the end of an
/// RMA or the rest of something received in part. No other timer would detect its loss.
fn idle_probe_at(flow: &Flow) -> Option<Time> {
    let is_owed = !flow.open_rmas.is_empty() || flow.awaits_rest();
    let waits = is_owed && flow.send_window.is_empty() && flow.peer.is_ready();
    waits.then(|| flow.idle_probing.probe_at())
}

/// Whether the timer looks at an open connection before anything can be due on it: said at once of
/// one on which messages come and go, without a look at all that may be due on others. Whoever adds
/// a deadline to [`next_due`] adds its condition here.
fn is_armed(conn: &Conn, flow: &Flow) -> bool {
    let may_be_due = conn.keepalive | conn.send_timeout != 0
        || !flow.open_rmas.is_empty()
        || flow.loss_detection.due_at().is_some()
        || !flow.peer.is_ready()
        || flow.send_window.has_lost()
        || flow.slicing.is_some()
        || flow.awaits_rest()
        || flow.has_unsent();
    let soonest = if flow.send_window.is_empty() {
        flow.idle_probing.idle_at()
    } else {
        flow.probe_timeout.since().plus_micros(LEAST_TIMEOUT)
    };
    !may_be_due && conn.armed <= soonest
}

/// Returns when something will be due on an open connection.
fn next_due(now: Time, conn: &Conn, flow: Option<&Flow>) -> Option<Time> {
    let mut next: Option<Time> = None;
    let mut want = |at: Option<Time>| {
        if let Some(at) = at {
            next = Some(next.map_or(at, |next| next.min(at)));
        }
    };
    if conn.keepalive > 0 && !conn.has(bit::SILENCE_REPORTED) {
        let silence = conn.silence(now);
        let first = conn.keepalive / PINGS;
        let left =
            if silence < first { first - silence } else { first.min(conn.keepalive.saturating_sub(silence)).max(1) };
        want(Some(now.plus_micros(u64::from(left))));
    }
    if let Some(flow) = flow {
        want(probe_at(conn, flow));
        want(idle_probe_at(flow));
        want(flow.loss_detection.due_at());
        want(send_due(conn, flow));
        want(flow.peer.retry_at());
        let has_unsent = flow.has_unsent() || flow.send_window.has_lost() || flow.slicing.is_some();
        if has_unsent && flow.congestion.next_at() > now {
            want(Some(flow.congestion.next_at()));
        }
        if !conn.is_reliable() {
            want(flow.message_parts.expires_at());
        }
        if flow.is_quiet() {
            want(Some(flow.idle_probing.idle_at()));
        } else if !flow.queue.is_empty() && flow.send_window.is_empty() && flow.peer.is_ready() {
            // The queue waits for something that has no time of its own, as the barrier of an RMA.
            want(Some(now.plus_micros(IDLE)));
        }
    }
    next
}
