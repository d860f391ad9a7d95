//! A lane: a stream to one peer endpoint, with all connections that this side, or the peer, makes
//! over it.

pub(crate) mod further;
pub(crate) mod grants;
pub(crate) mod incoming;
pub(crate) mod operation;
pub(crate) mod output;
pub(crate) mod pause;
pub(crate) mod pending_connect;
pub(crate) mod posted;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod serving;
pub(crate) mod shared;
pub(crate) mod sum;
pub(crate) mod work;

pub(crate) use pending_connect::PendingConnect;

use crate::frame::{Header, Kind};
use crate::seal::Sealed;
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, Failure, Time};
use cci_transport::{Connection, ConnectionState, ConnectionTable, Core, PollSet};
use further::Further;
use grants::{Credit, Given};
use incoming::Incoming;
use output::Output;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use shared::{Cause, Shared, name_of};
use std::net::SocketAddr;
use std::time::Duration;
use work::{Sent, Work};

/// What a connection that is not on a lane has for the lane's number.
pub(crate) const NO_LANE: u32 = u32::MAX;

/// Bytes of answers that wait, at most. A peer of ours leaves 32 bytes for each operation that it
/// may have open, and few for each connect.
const MOST_ANSWERS: usize = 1 << 20;

/// A lane with open operations is asked for a sign of life after this silence, and so often.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// Where a lane is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits until it may dial.
    Queued,
    /// Dialing failed; it dials again at this time.
    Paused(Time),
    Dialing,
    /// The stream is there; the peer's HELLO is not.
    Greeting,
    Open,
    /// It is about to be buried.
    Over,
}

pub(crate) struct Lane {
    pub(crate) number: u32,
    /// Tells it from earlier lanes of this number.
    pub(crate) life: u32,
    pub(crate) phase: Phase,
    pub(crate) socket: Option<OwnedFd>,
    /// This side dialed.
    pub(crate) dialed: bool,
    /// It counts among those that are dialing.
    pub(crate) is_dialing: bool,
    /// The peer has asked for a connection: it does not go to make room for other strangers.
    pub(crate) has_asked: bool,
    pub(crate) peer: SocketAddr,
    /// Operations that the peer allows at a time.
    pub(crate) operations: u32,
    /// The peer's largest message.
    pub(crate) peer_max: u32,
    pub(crate) table: ConnectionTable<PendingConnect>,
    pub(crate) out: Output,
    pub(crate) given: Given,
    pub(crate) credit: Credit,
    /// While operations are open.
    pub(crate) work: Option<Box<Work>>,
    pub(crate) incoming: Incoming,
    /// When the peer was heard last.
    pub(crate) heard: Time,
    pub(crate) pinged: Time,
    /// Since when it has had no connection, or since when it dials.
    pub(crate) idle_since: Time,
    /// How often dialing has failed.
    pub(crate) attempts: u32,
    /// The last stream was closed by the peer before it answered.
    pub(crate) was_turned_away: bool,
    /// In [`Shared::active`].
    is_active: bool,
    /// In [`Shared::owing`].
    owes: bool,
    /// Taken messages that no frame has told the peer of.
    untold: bool,
    /// Paused connections, by this side's numbers.
    pub(crate) paused: Vec<u32>,
    /// In [`Shared::wanting`]: the peer wants grants.
    pub(crate) is_wanting: bool,
    /// It has said so after it was asked to give grants back, and before its answer.
    wanted_in_recall: bool,
    /// This side has said that it wants grants.
    pub(crate) wants: bool,
    /// The peer has answered that, and has none.
    pub(crate) is_refused: bool,
    /// Bytes of answers among those that leave next.
    answers: usize,
    /// The peer's PING is to be answered.
    pings: bool,
    /// The last call has not read everything.
    has_more: bool,
    /// The stream takes no more bytes for now.
    pub(crate) is_blocked: bool,
    /// The handle becomes readable when the stream takes bytes.
    watches_room: bool,
    /// The stream is not in the set of descriptors: the endpoint reads it in each call.
    is_unwatched: bool,
    /// A message has arrived since the last frame left: what leaves next may be its answer.
    may_answer: bool,
    /// Some connection may have a keepalive.
    pub(crate) is_watched: bool,
    /// Bytes of RMA leave with a checksum.
    pub(crate) checks: bool,
    /// The next stream is not sealed, since the peer has no secret and this side takes that.
    pub(crate) asks_plain: bool,
    /// Its further streams, where both sides take some.
    pub(crate) further: Option<Box<Further>>,
    /// What its first stream has, if that is sealed.
    pub(crate) seal: Option<Box<Sealed>>,
}

impl Lane {
    pub(crate) fn new(number: u32, life: u32, peer: SocketAddr, phase: Phase, now: Time) -> Self {
        Self {
            number,
            life,
            phase,
            socket: None,
            dialed: false,
            is_dialing: false,
            has_asked: false,
            peer,
            operations: 0,
            peer_max: 0,
            table: ConnectionTable::default(),
            out: Output::default(),
            given: Given::default(),
            credit: Credit::default(),
            work: None,
            incoming: Incoming::default(),
            heard: now,
            pinged: now,
            idle_since: now,
            attempts: 0,
            was_turned_away: false,
            is_active: false,
            owes: false,
            untold: false,
            paused: Vec::new(),
            is_wanting: false,
            wanted_in_recall: false,
            wants: false,
            is_refused: false,
            answers: 0,
            pings: false,
            has_more: false,
            is_blocked: false,
            watches_room: false,
            is_unwatched: false,
            may_answer: false,
            is_watched: false,
            checks: false,
            asks_plain: false,
            further: None,
            seal: None,
        }
    }

    /// The key of its descriptor.
    pub(crate) fn key(&self) -> u64 {
        u64::from(self.life) << 32 | u64::from(self.number)
    }

    /// The peer, for sentences.
    pub(crate) fn peer_uri(&self) -> String {
        format!("{}{}", crate::settings::SCHEME, self.peer)
    }

    /// Has the next call that makes progress work on this lane.
    #[inline]
    pub(crate) fn activate(&mut self, s: &mut Shared) {
        if !self.is_active {
            self.is_active = true;
            s.active.push(self.number);
        }
    }

    /// The call works on it.
    pub(crate) fn on_activated(&mut self) {
        self.is_active = false;
    }

    /// The peer is to be told what was taken, unless an answer does it before.
    pub(crate) fn owe(&mut self, s: &mut Shared) {
        self.untold = true;
        if !self.owes {
            self.owes = true;
            s.owing.push(self.number);
        }
    }

    /// Whether the peer is to be told anything that no frame has.
    pub(crate) fn is_owing(&self) -> bool {
        self.untold || self.pings || self.given.untold().is_some()
    }

    /// A frame tells the peer what was taken.
    pub(crate) fn on_told(&mut self) {
        self.untold = false;
    }

    /// What it owes is paid now.
    pub(crate) fn on_paid(&mut self) {
        self.owes = false;
    }

    /// It is over, for this cause.
    #[cold]
    pub(crate) fn end(&mut self, s: &mut Shared, cause: Cause) {
        if self.phase != Phase::Over {
            self.phase = Phase::Over;
            s.malformed += u64::from(cause == Cause::Violation);
            s.ended.push((self.number, cause));
        }
    }

    /// It is over, because the system refuses a call. No peer causes that, and trying again would
    /// meet the same.
    #[cold]
    pub(crate) fn end_refused(&mut self, s: &mut Shared, call: &str, error: Errno) {
        let (peer, error) = (self.peer_uri(), std::io::Error::from(error));
        let reason = format!("the system refuses {call} for the stream to {peer} ({error}); allow this call");
        self.end(s, Cause::System(reason));
    }

    /// What it has while operations are open.
    #[inline]
    pub(crate) fn work(&mut self, s: &mut Shared) -> &mut Work {
        if self.work.is_none() {
            // A peer that falls silent meanwhile is noticed by the timers.
            s.check_by(s.now + SILENCE);
        }
        self.work.get_or_insert_with(|| s.work())
    }

    /// Gives the memory of what leaves next back, if nothing does.
    #[inline]
    fn give_buffer_back(&mut self, s: &mut Shared) {
        if self.out.is_empty() && !self.out.is_bare() {
            s.reuse(self.out.take_buffer());
        }
    }

    /// Gives memory back that it does not need any more.
    pub(crate) fn trim(&mut self, s: &mut Shared) {
        self.give_buffer_back(s);
        if self.work.as_ref().is_some_and(|work| work.is_empty())
            && let Some(work) = self.work.take()
        {
            s.reuse_work(work);
        }
    }

    /// Appends a frame to what leaves next.
    pub(crate) fn put(&mut self, s: &mut Shared, kind: Kind, flags: u8, connection: u32, parts: &[&[u8]]) {
        if self.out.is_bare() {
            self.out.set_buffer(s.buffer());
        }
        let len = parts.iter().map(|part| part.len()).sum();
        let header = Header { len, kind, flags, connection, taken: self.given.taken };
        self.untold = false;
        self.out.frame(&header, parts);
        self.activate(s);
    }

    /// Appends an answer to a frame of the peer. One that causes answers and does not read them
    /// breaks the protocol.
    pub(crate) fn answer(&mut self, s: &mut Shared, kind: Kind, connection: u32, parts: &[&[u8]]) {
        self.answers += crate::frame::HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
        if self.answers > MOST_ANSWERS {
            return self.end(s, Cause::Violation);
        }
        self.put(s, kind, 0, connection, parts);
    }

    /// Tells the peer what was taken and granted, if no frame has.
    pub(crate) fn pay(&mut self, s: &mut Shared) {
        // Behind bytes that cannot leave it is said once, when they have left: it is as much as it
        // is then.
        if self.phase != Phase::Open || self.is_blocked {
            return;
        }
        let pings = std::mem::take(&mut self.pings);
        if self.given.may_tell() || self.untold && !self.given.recalled {
            let limit = self.given.tell();
            self.answer(s, Kind::Grant, 0, &[&limit.to_le_bytes()]);
        }
        if pings || self.untold {
            self.answer(s, Kind::Pong, 0, &[]);
        }
    }

    /// Whether more can be read or handled than one call does.
    pub(crate) fn has_rest(&self) -> bool {
        self.has_more
    }

    /// Grants the peer messages, at most so many.
    pub(crate) fn grant(&mut self, s: &mut Shared, core: &Core, most: usize) {
        let count = self.given.wanted().min(u32::try_from(most).unwrap_or(u32::MAX));
        self.given.add(count, s.share(core));
        s.inbox.grant(count);
    }

    /// Grants the peer as many messages as it is to have, unless others wait for theirs.
    pub(crate) fn top_up(&mut self, s: &mut Shared, core: &mut Core) {
        let may_send = self.given.wanted() > 0 && !self.table.is_empty();
        if may_send && (s.wanting.is_empty() || self.is_wanting) {
            // One slot is left for what was refused because all were granted.
            let (slots, _) = core.recv_count();
            let one = usize::from((s.landings_wait || s.keeps_one) && slots > 1);
            let kept = if self.is_wanting { one } else { self.given.kept_from(slots).max(one) };
            let spare = s.inbox.spare(core).saturating_sub(kept);
            self.grant(s, core, spare);
        }
    }

    /// A timeout of this connection has changed: its time begins now.
    pub(crate) fn restart_timeouts(&mut self, cell: &'static Connection, now: Time) {
        if let Some(work) = &mut self.work {
            work.set_deadlines(cell, cell.send_deadline(|| now));
        }
    }

    /// The stream is gone, and another is to take its place: nothing of it is left.
    pub(crate) fn begin_again(&mut self) {
        self.out.take_buffer();
        self.incoming = Incoming::default();
        (self.is_blocked, self.untold, self.owes) = (false, false, false);
        self.on_watched(false);
        self.table.each_pending(|pending| (pending.is_asked, pending.ask_at) = (false, None));
    }

    /// Enters a connection, and gives it its number.
    pub(crate) fn enter(&mut self, cell: &'static Connection, pending: Option<PendingConnect>) -> u32 {
        cell.lane.store(self.number, Ordering::Relaxed);
        self.is_watched |= cell.keepalive.load(Ordering::Relaxed) > 0;
        self.table.enter(cell, pending)
    }

    /// Takes a connection out: frames for it are dropped from now on.
    pub(crate) fn leave(
        &mut self,
        s: &mut Shared,
        number: u32,
    ) -> Option<(&'static Connection, Option<PendingConnect>)> {
        let left = self.table.leave(number)?;
        self.end_pause(s, number);
        left.0.lane.store(NO_LANE, Ordering::Relaxed);
        if self.table.is_empty() {
            self.idle_since = s.now;
            s.check_by(s.now);
        }
        Some(left)
    }

    /// Breaks a connection: its operations end with `failure`, and the program learns it as it has
    /// asked to.
    pub(crate) fn break_connection(&mut self, s: &mut Shared, core: &mut Core, number: u32, failure: Failure) {
        let Some((cell, pending)) = self.leave(s, number) else { return };
        if let Some(pending) = pending {
            return end_connect(s, core, cell, &pending, failure, None);
        }
        cell.set_state(ConnectionState::Broken);
        self.end_connection_state(s, core, number, cell, failure);
        for event in core.break_events(cell) {
            s.notify(core, event, cell);
        }
    }

    /// Ends everything that a connection has on this lane.
    pub(crate) fn end_connection_state(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        number: u32,
        cell: &'static Connection,
        failure: Failure,
    ) {
        s.registrations.orphan(name_of(cell));
        self.end_landings(s, core, cell);
        self.end_operations_of(s, core, cell, failure);
        if let Some(work) = &mut self.work {
            work.serving.refuse_all_of(number);
        }
    }

    /// Ends the messages and operations of a connection.
    fn end_operations_of(&mut self, s: &mut Shared, core: &mut Core, cell: &'static Connection, failure: Failure) {
        let Some(mut work) = self.work.take() else { return };
        let mut cancelled = Vec::new();
        let is_its = |sent: &Sent| sent.cell().is_some_and(|other| std::ptr::eq(other, cell));
        for sent in work.in_flight.iter_mut().filter(|sent| is_its(sent)) {
            if let Sent::Message(ending) = std::mem::replace(sent, Sent::Nothing) {
                s.end(core, ending, Err(failure));
            }
        }
        for _ in 0..work.waiting.len() {
            let Some(waiting) = work.waiting.pop_front() else { break };
            if !std::ptr::eq(waiting.cell, cell) {
                work.waiting.push_back(waiting);
            } else {
                if let Sent::Message(ending) = waiting.sent {
                    s.end(core, ending, Err(failure));
                }
                // The peer keeps the write's number until it learns that no message comes.
                cancelled.extend(waiting.write);
                s.reuse(waiting.data.into_buffer());
            }
        }
        if let Some(at) = work.holds.iter().position(|hold| std::ptr::eq(hold.cell, cell)) {
            for behind in work.holds.swap_remove(at).behind {
                if let work::Behind::Message(work::Waiting { sent: Sent::Message(ending), .. }) = behind {
                    s.end(core, ending, Err(failure));
                }
            }
        }
        let is_its = |operation: &operation::Operation| std::ptr::eq(operation.ending.cell, cell);
        let places: Vec<u32> =
            work.operations.iter().filter(|(_, operation)| is_its(operation)).map(|(place, _)| place).collect();
        self.work = Some(work);
        for number in cancelled {
            self.put(s, Kind::Cancel, 0, 0, &[&number.to_le_bytes()]);
        }
        for place in places {
            self.abandon_operation(s, core, place, failure);
        }
        self.activate(s);
    }

    /// Watches the stream for room, or stops that.
    pub(crate) fn watch_room(&mut self, s: &mut Shared, on: bool) {
        if self.watches_room != on {
            self.watches_room = on;
            if !self.watch(s) {
                self.watches_room = !on;
            }
        }
    }

    /// Watches the stream for what it waits for now. False: the system has no room for that.
    pub(crate) fn watch(&mut self, s: &mut Shared) -> bool {
        let Some(socket) = &self.socket else { return false };
        let read = if self.is_stalled() { EventFlags::empty() } else { EventFlags::IN };
        let room = if self.watches_room { EventFlags::OUT } else { EventFlags::empty() };
        let watch = if self.is_unwatched { PollSet::watch } else { PollSet::rewatch };
        match watch(&s.set, socket, self.key(), read | room) {
            Ok(()) => self.is_unwatched = false,
            Err(Errno::NOMEM | Errno::NOSPC) => return false,
            // A lane that nobody reports would keep its program awake for ever, or never wake it.
            Err(error) => self.end_refused(s, "epoll_ctl", error),
        }
        true
    }

    /// Stops watching the stream, if it is watched for bytes alone: the endpoint reads it in each
    /// call instead.
    pub(crate) fn unwatch(&mut self, s: &Shared) {
        let has_bytes_alone = self.phase == Phase::Open && !self.is_stalled() && !self.watches_room;
        if has_bytes_alone
            && !self.is_unwatched
            && let Some(socket) = &self.socket
        {
            self.is_unwatched = s.set.unwatch(socket).is_ok();
        }
    }

    /// The stream was given to the set of descriptors, watched for room or not.
    pub(crate) fn on_watched(&mut self, room: bool) {
        (self.watches_room, self.is_unwatched) = (room, false);
    }

    /// Whether the stream is not in the set of descriptors.
    #[inline]
    pub(crate) fn is_unwatched(&self) -> bool {
        self.is_unwatched
    }

    /// Whether closing it now would lose something that was sent: bytes that have not left, or
    /// messages that the peer has not taken.
    pub(crate) fn has_unsent(&self) -> bool {
        self.phase == Phase::Open
            && (!self.out.is_empty()
                || self.seal.as_ref().is_some_and(|seal| seal.has_unsent())
                || self.work.as_ref().is_some_and(|work| {
                    !work.in_flight.is_empty() || !work.waiting.is_empty() || work.fragment.is_some()
                })
                || self.has_unsent_parts())
    }
}

/// Ends a connect without a connection, and says why.
pub(crate) fn end_connect(
    s: &mut Shared,
    core: &mut Core,
    cell: &'static Connection,
    pending: &PendingConnect,
    failure: Failure,
    reason: Option<String>,
) {
    s.open_operations = s.open_operations.saturating_sub(1);
    core.finish_opening(pending.slot, EventKind::Connect, pending.context, Err(failure));
    if let Some(reason) = reason {
        core.explain(pending.slot, reason);
    }
    core.end_connection(cell);
}
