//! The operations of the trait `Transport`.

use crate::format::address::Address;
use crate::format::layout::{ENTRIES, NOTHING, kind, unpair};
use crate::lane::state::PayloadToken;
use crate::lane::table::{PendingConnect, PendingRequest, RETRIES};
use crate::lane::{Lane, Phase};
use crate::memory::registry::News;
use crate::shortcut::Sm;
use crate::slow_path::SlowPath;
use cci_mem::memory::Memory;
use cci_mem::ring::{BODY, Header};
use cci_mem::source::Source;
use cci_mem::sync::Ordering;
use cci_proto::{
    ConnectError, EventKind, Failure, Flags, ImportError, PauseError, RegisterError, RequestError, Rights, RmaError,
    RmaHandle, SendError,
};
use cci_transport::{
    Connect, Connection, ConnectionReport, Core, HandleCheck, Imported, Message, Peer, Posted, Readiness, Rma, Slot,
    Transport,
};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long deregistration waits for a peer that has announced a copy.
const COPY_LIMIT: Duration = Duration::from_millis(100);

impl SlowPath {
    /// Asks the endpoint at `address`, on the lane that leads there, or on a new one.
    pub(crate) fn join(
        &mut self,
        core: &mut Core,
        address: Address,
        cell: &'static Connection,
        pending: PendingConnect,
    ) {
        self.state.deadlines_moved = true;
        let usable = |lane: &Lane| {
            lane.peer.address() == Some(address)
                && !lane.table.is_full()
                && matches!(lane.phase, Phase::Ready | Phase::HelloSent | Phase::Connecting(_))
        };
        let known = self.lanes.iter().flatten().find(|lane| usable(lane)).map(|lane| lane.number());
        let number = known.unwrap_or_else(|| self.add_lane(Phase::Connecting(address)));
        let Some(lane) = self.lanes[number as usize].as_deref_mut() else { return };
        lane.ask(&mut self.state, cell, pending);
        if known.is_none()
            && let Err(cause) = lane.open_socket(&mut self.state, address)
        {
            self.tear_down(core, number, cause);
        }
        if let Some(lane) = self.lanes[number as usize].as_deref_mut() {
            lane.show_connects(core, self.state.now);
        }
    }

    /// The lane of an unanswered request, and the request; none when its client is gone.
    fn pending_request(&mut self, request: &'static Slot) -> Option<(u32, PendingRequest)> {
        let (PayloadToken::Lane(number, _) | PayloadToken::Spill(number, _)) =
            PayloadToken::from_token(request.payload.load(Ordering::Relaxed))?;
        let pending = self.lanes.get_mut(number as usize)?.as_mut()?.requests.take(request)?;
        Some((number, pending))
    }

    /// Waits until no living peer copies to or from this registration, or from any. Names a peer
    /// that goes on for longer than `limit`.
    pub(crate) fn wait_for_copies(&self, announced: Option<u64>, limit: Duration) -> Result<(), String> {
        // Hardly ever does a peer copy then: the clock is read if one does.
        let mut begun = None;
        while let Some(lane) = self.lanes.iter().flatten().find(|lane| lane.is_copying(announced)) {
            if begun.get_or_insert_with(Instant::now).elapsed() >= limit {
                return Err(lane.peer.process_name());
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// As [`Transport::register`].
    pub(crate) fn register(
        &mut self,
        memory: Memory,
        rights: Rights,
        only: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        let (handle, news) = self.state.registry.register(memory, rights, only)?;
        if news != News::default() {
            self.announce(news.segment);
        }
        Ok(handle)
    }

    /// Ends a registration, waiting at most `limit` for peers that copy.
    fn deregister_within(&mut self, core: &mut Core, handle: &RmaHandle, limit: Duration) -> Result<(), RegisterError> {
        let number = self.state.registry.find_to_kill(handle).ok_or(RegisterError::UnknownHandle)?;
        self.state.registry.kill(number);
        let (importers, name) = self.state.registry.take_importers(number);
        for lane in importers {
            if let Some(lane) = self.lanes.get_mut(lane as usize).and_then(Option::as_deref_mut) {
                lane.withdraw(&mut self.state, name);
            }
        }
        if let Err(peer) = self.wait_for_copies(Some(number.word()), limit) {
            core.add_busy_peer(peer);
            return Err(RegisterError::Busy);
        }
        for lane in self.lanes.iter_mut().flatten() {
            lane.relay.forget(number);
        }
        if self.state.registry.forget(number, crate::clock::precise_now) {
            self.state.deadlines_moved = true;
            self.expire_segments(0);
        }
        Ok(())
    }

    /// Has peers give back the segments that have lingered for long enough, or are too many.
    pub(crate) fn expire_segments(&mut self, now: u64) {
        while let Some(number) = self.state.registry.expire(now) {
            self.announce(Some(number));
        }
    }

    /// Tells all peers what has become of a segment, and of the chunks of registrations.
    fn announce(&mut self, segment: Option<u64>) {
        for lane in self.lanes.iter_mut().flatten().filter(|lane| lane.phase == Phase::Ready) {
            if let Some(number) = segment {
                lane.announced.on_change(number);
            }
            lane.announce(&mut self.state);
            lane.start_timing(&mut self.state);
        }
    }
}

impl Transport for Sm {
    fn uri(&self) -> &str {
        &self.seen().state.uri
    }

    fn handle(&self) -> BorrowedFd<'_> {
        self.seen().handle()
    }

    fn connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let slow = self.slow();
        let address = Address::from_uri(connect.uri).ok_or(ConnectError::BadUri)?;
        if connect.attribute.is_multicast() {
            return Err(ConnectError::NotImplemented);
        }
        let slot = core.take_send().ok_or(ConnectError::NoBuffers)?;
        let opened = core.open_connection(connect.attribute, connect.context, slow.state.max_send_size);
        let Ok(cell) = opened else {
            core.release(slot);
            return Err(ConnectError::NoMemory);
        };
        slow.state.now = crate::clock::precise_now();
        let limit =
            connect.timeout.map(|timeout| u64::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(u64::MAX));
        let pending = PendingConnect {
            slot,
            context: connect.context,
            deadline: limit.map(|limit| crate::clock::precise_next().saturating_add(limit)),
            payload: connect.payload.into(),
            token: 0,
            retries: RETRIES,
        };
        slow.join(core, address, cell, pending);
        if slow.state.has_deferred() {
            slow.run_deferred(core);
        }
        Ok(())
    }

    fn accept(&mut self, core: &mut Core, request: &'static Slot, context: u64) -> Result<(), RequestError> {
        let slow = self.slow();
        let slot = core.take_send().ok_or(RequestError::NoBuffers)?;
        let Some((number, pending)) = slow.pending_request(request) else {
            core.finish_opening(slot, EventKind::Accept, context, Err(Failure::Disconnected));
            return Ok(());
        };
        if let Some(lane) = slow.lanes[number as usize].as_deref_mut() {
            lane.accept_pending(&mut slow.state, core, &pending, slot, context);
        }
        Ok(())
    }

    fn peer(&self, request: &'static Slot) -> Option<Peer> {
        let (PayloadToken::Lane(number, _) | PayloadToken::Spill(number, _)) =
            PayloadToken::from_token(request.payload.load(Ordering::Relaxed))?;
        let lane =
            self.seen().lanes.get(number as usize)?.as_deref().filter(|lane| lane.requests.get(request).is_some())?;
        let known = lane.peer.process()?;
        let mut peer = Peer::default();
        (peer.user, peer.process) = (Some(known.uid), u32::try_from(known.pid).ok().filter(|pid| *pid != 0));
        Some(peer)
    }

    fn reject(&mut self, _: &mut Core, request: &'static Slot) -> Result<(), RequestError> {
        let slow = self.slow();
        if let Some((number, pending)) = slow.pending_request(request)
            && let Some(lane) = slow.lanes[number as usize].as_deref_mut()
        {
            lane.post(&mut slow.state, Header { kind: kind::REJECT, len: 0, word: pending.number }, NOTHING, None);
        }
        Ok(())
    }

    fn expect(&mut self, core: &mut Core, token: u64, context: u64, limit: Duration) -> Result<(), RequestError> {
        let slow = self.slow();
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let deadline = crate::clock::precise_next().saturating_add(limit);
        slow.state.expected.expect(core, token, context, deadline)?;
        slow.state.deadlines_moved = true;
        Ok(())
    }

    fn forget_expected(&mut self, core: &mut Core, token: u64) -> bool {
        let slow = self.slow();
        let was_expected = slow.state.expected.forget(core, token);
        slow.state.deadlines_moved |= was_expected;
        was_expected
    }

    fn redirect(&mut self, _: &mut Core, request: &'static Slot, uri: &str, token: u64) -> Result<(), RequestError> {
        let slow = self.slow();
        // A client that is gone needs no answer; the endpoint that expects it reports its absence.
        let Some((number, pending)) = slow.pending_request(request) else { return Ok(()) };
        let Some(lane) = slow.lanes[number as usize].as_deref_mut() else { return Ok(()) };
        let redirected = lane.redirect(&mut slow.state, &pending, uri, token);
        if redirected.is_err() {
            lane.requests.insert(request, pending);
        }
        redirected
    }

    fn disconnect(&mut self, core: &mut Core, connection: &'static Connection) {
        let slow = self.slow();
        match slow.lane_for(connection) {
            Some((lane, state)) => lane.disconnect(state, core, connection),
            None => core.end_connection(connection),
        }
        slow.state.pending_events.forget(connection);
        slow.state.deadlines_moved = true;
    }

    fn pause(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.slow().set_paused(core, connection, true)
    }

    fn resume(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.slow().set_paused(core, connection, false)
    }

    #[inline]
    fn send(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        // One in one piece has tried that in `post`.
        if matches!(message, Message::Many(..))
            && message.len() > BODY
            && let Some(sent) = self.send_in_slot(core, connection, message, posted)
        {
            return sent.map(|()| None);
        }
        let (lane, state) = self.slow().lane_for(connection).ok_or(SendError::Disconnected)?;
        lane.send(state, core, connection, message, posted)
    }

    fn send_large(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        memory: Memory,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let (lane, state) = self.slow().lane_for(connection).ok_or(SendError::Disconnected)?;
        lane.send_large(state, core, connection, memory, posted)
    }

    fn reserve(&mut self, _: &mut Core, connection: &'static Connection, len: usize) -> Option<(Memory, u64)> {
        // An entry takes it: nothing changes until it is sent.
        if len <= BODY { None } else { self.reserve_slot(connection, len) }
    }

    fn commit(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        room: (u64, usize),
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.commit_slot(core, connection, room, posted)
    }

    fn cancel(&mut self, core: &mut Core, room: u64) {
        let slow = self.slow();
        let (slot, number) = unpair(room);
        let Some(lane) = slow.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { return };
        lane.cancel(&mut slow.state, core, slot);
        if lane.is_over() {
            slow.remove_lane(number);
        }
    }

    fn post(
        &mut self,
        message: Source<'_>,
        context: u64,
        connection: &'static Connection,
        core: &mut Core,
        flags: Flags,
    ) -> Result<(), SendError> {
        match (flags.has(Flags::SILENT), message.len().is_multiple_of(8)) {
            (true, true) => self.post_as::<true, true>(message, context, connection, core),
            (true, false) => self.post_as::<true, false>(message, context, connection, core),
            (false, true) => self.post_as::<false, true>(message, context, connection, core),
            (false, false) => self.post_as::<false, false>(message, context, connection, core),
        }
    }

    fn rma(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        let (lane, state) = self.slow().lane_for(connection).ok_or(RmaError::Disconnected)?;
        lane.rma(state, core, connection, rma, posted)
    }

    fn register(
        &mut self,
        _: &mut Core,
        memory: Memory,
        rights: Rights,
        only: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        self.slow().register(memory, rights, only)
    }

    fn deregister(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.slow().deregister_within(core, handle, COPY_LIMIT)
    }

    fn import(
        &mut self,
        _: &mut Core,
        connection: &'static Connection,
        handle: &RmaHandle,
    ) -> Result<Imported, ImportError> {
        let (lane, state) = self.slow().lane_for(connection).ok_or(ImportError::Disconnected)?;
        lane.import(state, connection, handle)
    }

    fn retire(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.slow().deregister_within(core, handle, Duration::ZERO)
    }

    fn progress(&mut self, core: &mut Core) {
        self.progress_quickly(core);
    }

    #[inline]
    fn poll(&mut self, core: &mut Core) -> Option<&'static Slot> {
        self.poll_quickly(core)
    }

    fn arm(&mut self, core: &mut Core) -> bool {
        let slow = self.slow();
        Readiness::arm_now(slow, core)
    }

    fn disarm(&mut self, core: &mut Core) {
        let slow = self.slow();
        Readiness::disarm_now(slow, core);
    }

    #[inline]
    fn has_news(&self) -> bool {
        self.seen().state.has_new_hint() || self.seen().has_work()
    }

    fn arm_in_call(&mut self, core: &mut Core) -> Option<Arc<OwnedFd>> {
        let slow = self.slow();
        if Readiness::arm(slow, core, HandleCheck::Once) {
            return Some(slow.state.control.shared_handle());
        }
        slow.arm_quietly(core)
    }

    fn settle(&mut self, core: &mut Core) {
        let slow = self.slow();
        let (popped, empty) = (core.take_popped(), core.take_empty());
        let check = slow.readiness.begin_settle(empty);
        if Readiness::keep_readable(slow, core, empty) || popped && slow.is_readable_still() {
            return;
        }
        Readiness::settle(slow, core, check);
        core.publish_gauges();
    }

    fn leave_edge(&mut self, core: &mut Core) {
        let slow = self.slow();
        Readiness::leave_edge(slow, core);
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.seen().state.control.waker()
    }

    fn refill(&mut self, core: &mut Core) {
        let slow = self.slow();
        core.sweep_all_recv(|slot| slow.state.released.add(slot));
        slow.release();
        slow.retry_all(core);
        if slow.state.landings_wait {
            slow.land(core);
        }
    }

    fn options_changed(&mut self, _: &mut Core, connection: &'static Connection) {
        let slow = self.slow();
        slow.state.deadlines_moved = true;
        let now = crate::clock::precise_next();
        if let Some((lane, state)) = slow.lane_for(connection) {
            lane.activity.set_watchful(true);
            lane.start_timing(state);
            lane.start_clocks(now);
        }
    }

    fn report(&self, core: &Core, connection: &'static Connection) -> ConnectionReport {
        let lane = self.seen().lane_of(connection);
        let mut report = ConnectionReport {
            path: "lane in shared memory, polled by the receiver, woken over a Unix socket while it sleeps".into(),
            window: ENTRIES as u32,
            strays: self.seen().state.strays,
            ..ConnectionReport::of("sm", connection)
        };
        let Some(lane) = lane else {
            report.why = core.why_broken(connection).unwrap_or("the peer is gone").into();
            return report;
        };
        (report.rma_path, report.why) = match lane.peer.no_process_vm() {
            None => (
                "library memory: direct copy; other memory: process_vm".into(),
                format!(
                    "{} belongs to the same user of this host, and a trial transfer by process_vm succeeded",
                    lane.peer.uri()
                ),
            ),
            Some(why) => (
                "library memory: direct copy; other memory: relayed through slots by the target".into(),
                format!("{} belongs to the same user of this host, but {why}", lane.peer.uri()),
            ),
        };
        report
    }

    fn close(&mut self, core: &mut Core, limit: Duration) {
        let slow = self.slow();
        slow.close_all(core, limit);
    }
}
