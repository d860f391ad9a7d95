//! A lane: everything this endpoint has with one peer endpoint.

pub(crate) mod activity;
pub(crate) mod admission;
pub(crate) mod operation;
pub(crate) mod pause;
pub(crate) mod peer;
pub(crate) mod queue;
pub(crate) mod receive;
pub(crate) mod room;
pub(crate) mod schedule;
pub(crate) mod send;
pub(crate) mod sleeping;
pub(crate) mod stall;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod waiting_since;
#[allow(unsafe_code)]
pub(crate) mod wire;

use crate::format::address::Address;
use crate::lane::activity::Activity;
use crate::lane::admission::{Admission, HeldSlots};
use crate::lane::peer::PeerEndpoint;
use crate::lane::queue::{Op, OperationQueue};
use crate::lane::schedule::Schedule;
use crate::lane::sleeping::Sleeping;
use crate::lane::state::{EndpointState, PayloadToken};
use crate::lane::table::{PendingConnect, PendingRequest, Table};
use crate::lane::wire::Wire;
use crate::memory::announced::Announced;
use crate::memory::imports::Imports;
use crate::memory::of_peer::PeerMemory;
use cci_mem::sleep;
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, Failure};
use cci_transport::{Connection, ConnectionState, Core, PendingRequests};

/// Where a lane is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Client: the first phase; where the listener's backlog is full, tried again by timer.
    Connecting(Address),
    /// Client: HELLO sent.
    HelloSent,
    /// Server: waits for HELLO, since this time.
    Answering(u64),
    /// Usable.
    Ready,
    /// The peer is gone; what it published is still being delivered.
    Draining,
    /// Over; waits for borrowed payloads.
    Dead,
}

pub(crate) struct Lane {
    number: u32,
    /// What a receive slot holds that has a small message of this lane: [`PayloadToken::token`].
    // This field and the next are no private ones with functions: those cost a call that polls
    // eight instructions (ci/instructions --c).
    pub(crate) token: u64,
    pub(crate) phase: Phase,
    pub(crate) peer: PeerEndpoint,
    pub(crate) wire: Option<Wire>,
    pub(crate) peer_memory: PeerMemory,
    /// The peer's memory that the program has imported.
    pub(crate) imports: Imports,
    pub(crate) table: Table,
    pub(crate) requests: PendingRequests<PendingRequest>,
    /// What waits for room in the lane, or for the peer.
    pub(crate) queue: OperationQueue,
    /// What the peer knows of this endpoint's segments.
    pub(crate) announced: Announced,
    pub(crate) held: HeldSlots,
    pub(crate) admission: Admission,
    pub(crate) sleeping: Sleeping,
    pub(crate) schedule: Schedule,
    pub(crate) activity: Activity,
    /// Relayed RMA that this side serves or awaits.
    pub(crate) relay: crate::lane::operation::Relay,
    /// For whoever watches.
    stall: crate::lane::waiting_since::Stall,
}

impl Lane {
    pub(crate) fn new(number: u32, phase: Phase, now: u64) -> Self {
        Self {
            number,
            token: PayloadToken::Lane(number, None).token(),
            phase,
            peer: PeerEndpoint::default(),
            wire: None,
            peer_memory: PeerMemory::default(),
            imports: Imports::default(),
            table: Table::default(),
            requests: PendingRequests::default(),
            queue: OperationQueue::default(),
            announced: Announced::default(),
            held: HeldSlots::default(),
            admission: Admission::default(),
            sleeping: Sleeping::default(),
            schedule: Schedule::default(),
            activity: Activity::new(now),
            relay: crate::lane::operation::Relay::default(),
            stall: crate::lane::waiting_since::Stall::default(),
        }
    }

    /// The lane's number at this endpoint.
    #[inline(always)]
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The clock is to look at this lane.
    pub(crate) fn start_timing(&mut self, state: &mut EndpointState) {
        if self.schedule.begin_timing() {
            state.newly_timed.push(self.number);
        }
    }

    /// Calls are to poll this lane, and the clock is to look at it: something waits to be sent.
    pub(crate) fn busy(&mut self, state: &mut EndpointState) {
        self.start_timing(state);
        if self.schedule.begin_polling() {
            state.newly_hot.push(self.number);
        }
    }

    /// The parts that a usable lane has.
    #[inline]
    pub(crate) fn ready_wire(&mut self) -> Option<&mut Wire> {
        if self.phase == Phase::Ready { self.wire.as_mut() } else { None }
    }

    /// Enters a connection into the table and gives it its number.
    pub(crate) fn enter(&mut self, cell: &'static Connection, pending: Option<PendingConnect>) -> u32 {
        cell.lane.store(self.number, Ordering::Relaxed);
        self.activity.on_used();
        self.watch_keepalive(cell);
        self.table.enter(cell, pending)
    }

    /// Has the clock look at the keepalive of this connection, if it has one.
    pub(crate) fn watch_keepalive(&mut self, cell: &Connection) {
        if cell.keepalive.load(Ordering::Relaxed) > 0 {
            self.activity.set_watchful(true);
        }
    }

    /// Takes a connection out of the table; frames for it are dropped from now on.
    pub(crate) fn leave(&mut self, number: u32, now: u64) -> Option<(&'static Connection, Option<PendingConnect>)> {
        let left = self.table.leave(number)?;
        if self.table.is_empty() {
            self.activity.on_unused(now);
        }
        Some(left)
    }

    /// Sends a wake-up if the consumer of what was just published needs one.
    #[inline(always)]
    pub(crate) fn wake_consumer(&self) {
        if let Some(wire) = &self.wire
            && sleep::must_wake(wire.outbound.sleep, wire.pairing)
        {
            self.wake();
        }
    }

    /// Sends a wake-up if the producer waits for the room that was just made: entries or slots.
    #[inline(always)]
    pub(crate) fn wake_producer(&self) {
        if let Some(wire) = &self.wire
            && sleep::must_wake(wire.inbound.wait, wire.pairing)
        {
            self.wake();
        }
    }

    #[cold]
    pub(crate) fn wake(&self) {
        self.peer.wake();
    }

    /// Gives a payload slot back to the peer after the program has returned its event.
    pub(crate) fn release(&mut self, slot: Option<u32>, count: u32) {
        self.held.release(count);
        let (Some(slot), Some(wire)) = (slot, self.wire.as_mut()) else { return };
        if self.phase != Phase::Ready {
            return;
        }
        wire.grant(slot);
        self.wake_producer();
    }

    /// Breaks a connection: its operations end with `failure`, the program is told as it asked, the
    /// table forgets it.
    pub(crate) fn break_connection(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        number: u32,
        failure: Failure,
    ) {
        let Some((cell, pending)) = self.leave(number, state.now) else { return };
        self.resume(state, number);
        self.start_timing(state);
        if let Some(pending) = pending {
            fail_connect(core, cell, &pending, failure);
            return self.on_answered(core);
        }
        cell.set_state(ConnectionState::Broken);
        state.registry.orphan(cell);
        self.end_imports(state, core, cell);
        self.end_landings(state, core, cell);
        self.fail_operations(state, core, Some(cell), failure);
        for event in core.break_events(cell) {
            state.queue_event(core, event, cell);
        }
    }

    /// Ends a connect that waits for its answer, and says why.
    pub(crate) fn refuse_connect(&mut self, now: u64, core: &mut Core, number: u32, end: (Failure, String)) {
        let (failure, reason) = end;
        if let Some((cell, Some(pending))) = self.leave(number, now) {
            fail_connect(core, cell, &pending, failure);
            core.explain(pending.slot, reason);
            self.on_answered(core);
        }
    }

    /// Whether the peer copies to or from the registration that this word names, or any.
    pub(crate) fn is_copying(&self, announced: Option<u64>) -> bool {
        let names = |wire: &Wire| announced.map_or(wire.is_copying(), |word| wire.is_protected(word));
        self.wire.as_ref().is_some_and(names) && self.peer.may_copy()
    }

    /// Ends queued operations of one connection, or of all.
    pub(crate) fn fail_operations(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        of: Option<&'static Connection>,
        failure: Failure,
    ) {
        let concerns = |cell: &'static Connection| of.is_none_or(|of| std::ptr::eq(of, cell));
        let relay = &mut self.relay;
        self.queue.retain_operations(|op| match op {
            Op::Message(waiting) if concerns(waiting.cell) => {
                core.end_operation(waiting.slot, waiting.cell, waiting.posted, Err(failure));
                state.reuse(waiting.data);
                None
            }
            Op::Rma(mut pending) if concerns(pending.cell) => {
                relay.end(pending.operation);
                pending.end(state, core, Err(failure));
                None
            }
            other => Some(other),
        });
        self.on_moved(core);
        self.on_unparked(core);
        if !self.queue.has_no_turn() {
            self.busy(state);
        }
    }
}

fn fail_connect(core: &mut Core, cell: &'static Connection, pending: &PendingConnect, failure: Failure) {
    core.finish_opening(pending.slot, EventKind::Connect, pending.context, Err(failure));
    core.end_connection(cell);
}
