//! The end of lanes, and of the endpoint.

use crate::format::layout::ENTRIES;
use crate::format::layout::{NOTHING, kind};
use crate::lane::table::Redirected;
use crate::lane::wire::Wire;
use crate::lane::{Lane, Phase};
use crate::memory::announced::Announced;
use crate::memory::of_peer::PeerMemory;
use crate::setup::handshake::Cause;
use crate::slow_path::SlowPath;
use crate::sys::Peer;
use cci_mem::cancellation::Uncancelled;
use cci_mem::ring::Header;
use cci_mem::sync::Ordering;
use cci_proto::Failure;
use cci_transport::{Core, PeerCopy, Unsent, send_rest};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Frames that a ring holds: a peer that goes on publishing after its end does not hold us.
const RING_ENTRIES: u32 = ENTRIES as u32;

impl Cause {
    /// How a connect ends on a lane that never became usable, or was closed under it.
    fn of_connect(self) -> Failure {
        match self {
            Self::NobodyListens | Self::Refused => Failure::Refused,
            Self::Violation => Failure::Protocol,
            Self::NoMemory => Failure::NoMemory,
            Self::Gone | Self::Idle => Failure::Disconnected,
        }
    }

    /// The same as a sentence.
    fn sentence(self, peer_name: &str, refusal: Option<&str>) -> String {
        match (self, refusal) {
            (Self::NobodyListens, _) => format!("nobody listens at {peer_name}"),
            (Self::Refused, Some(why)) => format!("no handshake with {peer_name}: {why}"),
            (Self::Refused, None) => format!("no handshake with {peer_name}"),
            (Self::Violation, _) => format!("{peer_name} breaks the protocol"),
            (Self::NoMemory, _) => format!("no memory or descriptor for a lane to {peer_name}"),
            (Self::Gone | Self::Idle, _) => format!("{peer_name} has closed its endpoint or died"),
        }
    }
}

impl SlowPath {
    /// Ends the lanes to a process that is dead. Another process may have its number by now.
    #[cold]
    pub(crate) fn tear_down_process(&mut self, core: &mut Core, pid: u32) {
        let is_of =
            |lane: &Lane| lane.peer.ends().is_some_and(|(_, peer)| peer.pid.cast_unsigned() == pid && peer.is_dead());
        let numbers: Vec<u32> =
            self.lanes.iter().flatten().filter(|lane| is_of(lane)).map(|lane| lane.number()).collect();
        for number in numbers {
            self.tear_down(core, number, Cause::Gone);
        }
    }

    /// Ends a lane. What the peer had published is delivered first, unless the peer broke the
    /// protocol.
    pub(crate) fn tear_down(&mut self, core: &mut Core, number: u32, cause: Cause) {
        let _uncancelled = Uncancelled::new();
        let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { return };
        if let (Some(socket), Some(peer)) = (lane.peer.take_socket(), lane.peer.process()) {
            self.state.control.forget_lane(&socket, peer);
        }
        if cause == Cause::Gone {
            lane.peer.on_gone();
        }
        self.state.lanes_changed = true;
        self.state.deadlines_moved = true;
        let was_ready = lane.phase == Phase::Ready;
        match lane.phase {
            Phase::Dead => return,
            Phase::Draining if cause != Cause::Violation => return,
            _ => {}
        }
        lane.announced = Announced::default();
        let drains = was_ready && cause != Cause::Violation;
        if drains {
            // A client whose CONNECT arrives now asks again on another lane.
            lane.phase = Phase::Draining;
            lane.end_stop(&mut self.state);
            if lane.receive(&mut self.state, core, RING_ENTRIES).is_err() {
                return self.finish_teardown(core, number, Cause::Violation);
            }
        }
        let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { return };
        lane.fail_operations(&mut self.state, core, None, Failure::Disconnected);
        lane.queue.clear_controls();
        if drains {
            lane.busy(&mut self.state);
            self.drain(core, number);
            return;
        }
        self.finish_teardown(core, number, cause);
    }

    /// [`SlowPath::drain`] for all such lanes: nothing but a call brings one to its end.
    #[cold]
    pub(crate) fn drain_all(&mut self, core: &mut Core) {
        for at in (0..self.hot.len()).rev() {
            let Some(number) = self.hot.get(at).copied() else { continue };
            let lane = self.lanes.get(number as usize).and_then(Option::as_deref);
            if lane.is_some_and(|lane| lane.phase == Phase::Draining) {
                self.drain(core, number);
            }
        }
    }

    /// Delivers what a gone peer had published; what finds no slot waits for the program to return
    /// events.
    pub(crate) fn drain(&mut self, core: &mut Core, number: u32) {
        let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { return };
        let cause = match lane.receive(&mut self.state, core, RING_ENTRIES) {
            Ok(_) if lane.wire.as_ref().is_some_and(|wire| wire.has_frame()) => return,
            Ok(_) => Cause::Gone,
            Err(cci_mem::ring::Violation) => Cause::Violation,
        };
        self.finish_teardown(core, number, cause);
    }

    fn finish_teardown(&mut self, core: &mut Core, number: u32, cause: Cause) {
        let _uncancelled = Uncancelled::new();
        let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { return };
        lane.phase = Phase::Dead;
        lane.start_timing(&mut self.state);
        lane.fail_operations(&mut self.state, core, None, Failure::Disconnected);
        lane.queue.clear_controls();
        lane.requests.clear();
        let numbers: Vec<u32> = lane.table.cells().map(|cell| cell.local.load(Ordering::Relaxed)).collect();
        for number in numbers {
            if let Some(again) = lane.take_retry(number, self.state.now, cause) {
                self.state.redirected.push(again);
                continue;
            }
            if lane.table.pending(number).is_some() {
                let reason = cause.sentence(&lane.peer.name(), lane.peer.refusal());
                lane.refuse_connect(self.state.now, core, number, (cause.of_connect(), reason));
            } else {
                if let (Some(why), Some(cell)) = (lane.peer.refusal(), lane.table.open_cell(number)) {
                    core.explain_break(cell, why.to_owned());
                }
                lane.break_connection(&mut self.state, core, number, Failure::Disconnected);
            }
        }
        lane.admit(&mut self.state, core);
        lane.peer_memory = PeerMemory::default();
        lane.peer.set_doorbell(None);
        let is_over = lane.is_over();
        if lane.schedule.make_cold() {
            self.hot.retain(|other| *other != number);
            self.state.newly_hot.retain(|other| *other != number);
        }
        if is_over {
            self.remove_lane(number);
        }
    }

    /// Flushes what waits, within the limit, and closes all lanes.
    pub(crate) fn close_all(&mut self, core: &mut Core, limit: Duration) {
        let begin = Instant::now();
        // What is left is for copies: a piece takes less.
        let flushing = limit / 5 * 4;
        send_rest(self, core, flushing, Self::handle, |sm, core| {
            if !sm.lanes.iter().flatten().any(|lane| lane.has_unsent()) {
                return Unsent::Nothing;
            }
            if sm.poll_lanes(core) { Unsent::Moving } else { Unsent::Waiting }
        });
        // Nobody touches this program's memory once its endpoint is closed.
        self.state.registry.kill_all();
        let _ = self.wait_for_copies(None, limit.saturating_sub(begin.elapsed()));
        for lane in self.lanes.iter_mut().flatten() {
            lane.queue.clear();
            let remotes: Vec<u32> = lane.table.cells().map(|cell| cell.remote.load(Ordering::Relaxed)).collect();
            for remote in remotes {
                // As far as there is room; the hang-up says the same.
                lane.post(&mut self.state, Header { kind: kind::DISCONNECT, len: 0, word: remote }, NOTHING, None);
            }
            lane.wake();
        }
        for mut lane in self.lanes.drain(..).flatten() {
            lane.imports.forget_all();
            if let Some((socket, peer)) = lane.peer.ends() {
                self.state.control.forget_lane(socket, peer);
            }
            if lane.is_copying(None)
                && let (Some(wire), Some(peer)) = (lane.wire.take(), lane.peer.process().cloned())
            {
                core.keep_unfinished(Copying::boxed(wire, peer, lane.peer.take_socket(), lane.peer.process_name()));
            }
        }
        self.hot.clear();
        self.timed.clear();
    }
}

/// A copy of a peer that was under way when this side closed.
struct Copying {
    wire: Wire,
    peer: Arc<Peer>,
    /// Shut down on this side, so that the peer sees the end, and open, so that the peer's own end
    /// is seen.
    socket: Option<OwnedFd>,
    name: String,
}

impl Copying {
    fn boxed(wire: Wire, peer: Arc<Peer>, socket: Option<OwnedFd>, name: String) -> Box<dyn PeerCopy> {
        Box::new(Self { wire, peer, socket, name })
    }
}

impl PeerCopy for Copying {
    fn is_over(&self) -> bool {
        let is_gone = || self.socket.as_ref().map_or_else(|| self.peer.is_dead(), |socket| self.peer.is_gone(socket));
        !self.wire.is_copying() || is_gone()
    }

    fn peer(&self) -> String {
        self.name.clone()
    }
}

impl Lane {
    /// A connect that met a lane just being closed for lack of use is tried again on a lane of its
    /// own. That one may be closed as well: where processors are short, more than a second may pass
    /// between two calls of one side.
    fn take_retry(&mut self, number: u32, now: u64, cause: Cause) -> Option<Redirected> {
        let address = self.peer.address()?;
        let pending = self.table.pending(number)?;
        if cause != Cause::Gone || pending.retries == 0 {
            return None;
        }
        let (cell, Some(mut pending)) = self.leave(number, now)? else { return None };
        pending.retries -= 1;
        Some(Redirected { cell, pending, address })
    }

    /// Whether nothing of this dead lane is in use: no payload with the program, no copy under way.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Dead && self.held.is_empty() && !self.is_copying(None)
    }

    fn has_unsent(&self) -> bool {
        self.phase == Phase::Ready && !self.queue.is_empty()
    }
}
