//! RMA: the initiator copies, by mapping or by process_vm; see `relay` for the third way. Atomic
//! operations go by mapping or by relay.

mod announce;
mod import;
mod large;
mod relay;

use crate::lane::operation::{NEVER, Pending, Stage, Step};
use crate::lane::queue::Op;
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use crate::memory::registry::Target;
use crate::sys::{self, CopyError, Local, Way};
use cci_mem::hazard;
use cci_mem::ring::Violation;
use cci_mem::streaming;
use cci_mem::sync::Ordering;
use cci_proto::{Access, Atomic, Failure, Registration, RmaError};
use cci_transport::{Connection, Core, Message, Posted, Rma, Slot};
use rustix::io::Errno;

/// Bytes copied in one call: long enough to hide the cost of a call, short enough that other lanes
/// need not wait.
const PIECE: u64 = 1 << 20;

impl Lane {
    /// Starts an RMA of an open connection.
    pub(crate) fn rma(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        cell: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        if self.phase != Phase::Ready {
            return Err(RmaError::Disconnected);
        }
        let (local, memory) = state.registry.find_for(rma.local, cell).ok_or(RmaError::LocalHandle)?;
        let end = rma.local_offset.checked_add(rma.len).ok_or(RmaError::LocalHandle)?;
        if end > memory.len() {
            return Err(RmaError::LocalHandle);
        }
        let slot = core.take_rma().ok_or(RmaError::NoBuffers)?;
        let message = rma.message.map(|message| {
            let mut data = state.buffer();
            let len = message.copy_to(0, &mut data);
            (data, len)
        });
        cell.on_begun();
        let pending = Pending {
            cell,
            slot,
            posted,
            access: rma.access,
            local,
            local_offset: rma.local_offset,
            remote: *rma.remote,
            remote_offset: rma.remote_offset,
            len: rma.len,
            message,
            large: None,
            stage: Stage::Copy(0),
            operation: 0,
            since: if cell.send_timeout.load(Ordering::Relaxed) > 0 { crate::clock::precise_next() } else { NEVER },
        };
        self.begin(state, core, pending);
        Ok((posted == Posted::Waited).then_some(slot))
    }

    /// Begins an operation, or queues it.
    fn begin(&mut self, state: &mut EndpointState, core: &mut Core, mut pending: Pending) {
        // An operation of the queue is in order with the others, and so is a fence.
        let is_first = self.queue.has_no_turn() && !self.queue.is_held(pending.cell);
        match if is_first { self.step(state, core, &mut pending) } else { Ok(Step::Open(false)) } {
            Ok(Step::Done) => {}
            Ok(Step::Parked) => {
                if pending.holds() {
                    self.queue.hold(pending.cell);
                }
                self.queue.park(Op::Rma(Box::new(pending)));
                self.start_timing(state);
                state.deadlines_moved = true;
                self.wake_consumer();
            }
            step => {
                if step.is_err() {
                    state.protocol_errors.push(self.number());
                }
                self.queue.push(Op::Rma(Box::new(pending)));
                self.busy(state);
                if is_first {
                    self.on_stall(core);
                }
                state.deadlines_moved = true;
                // Frames of a relayed operation may have been published.
                self.wake_consumer();
            }
        }
    }

    /// Does what can be done in one call.
    pub(crate) fn step(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        pending: &mut Pending,
    ) -> Result<Step, Violation> {
        let before = pending.stage;
        if pending.stage == Stage::Ask {
            return self.ask_for_landing(pending);
        }
        if let Stage::Copy(from) = pending.stage {
            match self.copy(state, pending, from) {
                Ok(Some(to)) if to < pending.len => {
                    pending.stage = Stage::Copy(to);
                    return Ok(Step::Open(true));
                }
                Ok(Some(_)) => pending.stage = Stage::Message,
                Ok(None) => {
                    pending.operation = self.relay.begin();
                    pending.stage = Stage::Relay(0);
                }
                Err(failure) => {
                    self.end(state, core, pending, Err(failure));
                    return Ok(Step::Done);
                }
            }
        }
        if matches!(pending.stage, Stage::Relay(_) | Stage::Await) {
            match self.relay(state, pending)? {
                None => return Ok(Step::Open(pending.stage != before)),
                Some(outcome) => {
                    self.relay.end(pending.operation);
                    if outcome.is_err() {
                        self.end(state, core, pending, outcome);
                        return Ok(Step::Done);
                    }
                    pending.stage = Stage::Message;
                }
            }
        }
        self.deliver(state, core, pending)
    }

    /// Publishes the message of an RMA whose data are there, and ends it.
    fn deliver(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        pending: &mut Pending,
    ) -> Result<Step, Violation> {
        if let (Some((data, len)), Some(wire)) = (&pending.message, self.wire.as_mut()) {
            let word = pending.cell.remote.load(Ordering::Relaxed);
            if !wire.publish(core, word, Message::from(&data[..*len]))? {
                return Ok(Step::Open(false));
            }
            pending.cell.counters.on_sent();
            self.wake_consumer();
        }
        self.end(state, core, pending, Ok(()));
        Ok(Step::Done)
    }

    /// Ends an operation that has begun.
    fn end(&mut self, state: &mut EndpointState, core: &mut Core, pending: &mut Pending, outcome: Result<(), Failure>) {
        let outcome = self.end_large(state, pending, outcome);
        pending.end(state, core, outcome);
    }

    /// Copies the next piece; says up to which byte, or that neither way of copying is open.
    fn copy(&mut self, state: &mut EndpointState, pending: &Pending, from: u64) -> Result<Option<u64>, Failure> {
        let registry = self.peer_memory.registry().ok_or(Failure::Disconnected)?;
        let connection = pending.cell.remote.load(Ordering::Relaxed);
        let range = (pending.remote_offset, pending.len);
        let target = match registry.resolve(connection, &pending.remote, range, pending.access.rights()) {
            Some(target) => target,
            None => match self.resolve_late(state, pending)? {
                Some(target) => target,
                None => return Ok(None),
            },
        };
        if self.peer_memory.lacks(target.segment) {
            // The target sent it before anyone could know the handle.
            self.read_segments(state);
        }
        let len = usize::try_from(PIECE.min(pending.len - from)).map_err(|_| Failure::Copy)?;
        let local = pending.local_at(state, from, len)?;
        let way = match pending.access {
            Access::Read => Way::Read,
            Access::Write => Way::Write,
            Access::Atomic(atomic) => return self.change(state, pending, &target, atomic),
            // It has become a write before its first byte.
            Access::Large => return Err(Failure::RemoteHandle),
        };
        let (registry, mapped) = self.peer_memory.parts(target.segment);
        let (Some(registry), Some(wire)) = (registry, &self.wire) else { return Err(Failure::Disconnected) };
        let mapped = mapped.and_then(|segment| Some((segment.offset(&target, from, len)?, segment)));
        if mapped.is_none() && self.peer.no_process_vm().is_some() {
            return Ok(None);
        }
        if !registry.enter(wire.outbound.hazard, target.number) {
            return Err(Failure::RemoteHandle);
        }
        let outcome = match mapped {
            Some((offset, segment)) => {
                // After the announcement, so that no page is entered that the target has given
                // back.
                let remote = segment.bytes(offset, len);
                if is_large(pending.len) {
                    sys::streaming_copy(way, local, remote);
                } else {
                    sys::direct_copy(way, local, remote);
                }
                Ok(None)
            }
            None => usize::try_from(target.address.wrapping_add(from))
                .map_err(|_| Failure::Copy)
                .and_then(|remote| self.process_copy(way, local, remote)),
        };
        hazard::release(wire.outbound.hazard);
        let Some(refused) = outcome? else { return Ok(Some(from + len as u64)) };
        self.peer.refuse_process_vm(format!("the kernel refuses process_vm: {refused}"));
        Ok(None)
    }

    /// Resolves the target of an operation whose registration is published in a chunk that was not
    /// mapped. `None`: it cannot be mapped here, and the target looks the registration up itself.
    #[cold]
    #[inline(never)]
    fn resolve_late(&mut self, state: &mut EndpointState, pending: &Pending) -> Result<Option<Target>, Failure> {
        for is_read in [false, true] {
            let registry = self.peer_memory.registry().ok_or(Failure::Disconnected)?;
            if !registry.lacks(&pending.remote) {
                let connection = pending.cell.remote.load(Ordering::Relaxed);
                let range = (pending.remote_offset, pending.len);
                let resolved = registry.resolve(connection, &pending.remote, range, pending.access.rights());
                return resolved.map(Some).ok_or(Failure::RemoteHandle);
            }
            if !is_read {
                // The target sent it before anyone could know the handle.
                self.read_segments(state);
            }
        }
        Ok(None)
    }

    /// Changes a word of a mapped segment; what is not mapped, the target changes itself, as `copy`
    /// says. Both ways it is one operation of the processor, so that they agree on a word that is
    /// used in both.
    fn change(
        &mut self,
        state: &EndpointState,
        pending: &Pending,
        target: &Target,
        atomic: Atomic,
    ) -> Result<Option<u64>, Failure> {
        let Some(wire) = &self.wire else { return Err(Failure::Disconnected) };
        let len = usize::try_from(pending.len).map_err(|_| Failure::RemoteHandle)?;
        let (registry, segment) = self.peer_memory.parts(target.segment);
        let registry = registry.ok_or(Failure::Disconnected)?;
        let Some(word) = segment.and_then(|segment| segment.memory(target, len)) else { return Ok(None) };
        if !registry.enter(wire.outbound.hazard, target.number) {
            return Err(Failure::RemoteHandle);
        }
        let old = word.update(0, len, |old| atomic.apply(old, pending.len));
        hazard::release(wire.outbound.hazard);
        store_word(state, (pending.local, pending.local_offset), pending.len, old.ok_or(Failure::RemoteHandle)?)?;
        Ok(Some(pending.len))
    }

    /// Copies by process_vm. `Some`: the kernel does not let a living peer's memory be copied any
    /// more, and says this.
    fn process_copy(&self, way: Way, local: Local<'_>, remote: usize) -> Result<Option<Errno>, Failure> {
        let (socket, peer) = self.peer.ends().ok_or(Failure::Disconnected)?;
        let Err(error) = sys::process_copy(peer.pid, self.peer.tag(), way, local, remote) else { return Ok(None) };
        if peer.is_gone(socket) {
            return Err(Failure::Disconnected);
        }
        match error {
            CopyError::Bytes => Err(Failure::Copy),
            // Another program, of which the kernel has not closed the peer's socket yet, or which
            // has inherited it.
            CopyError::OtherTag => Err(Failure::Disconnected),
            // It says so of the tag's page and of a local range outside this address space.
            CopyError::Refused(Errno::FAULT) => match sys::copy_tag(peer.pid, self.peer.tag(), way) {
                Ok(()) => Err(Failure::Copy),
                Err(_) => Err(Failure::Disconnected),
            },
            // A process whose first thread has ended, or which may not be traced any more.
            CopyError::Refused(errno) => Ok(Some(errno)),
        }
    }
}

/// Stores the old value of a peer's word of `len` bytes at this place of a registration.
fn store_word(state: &EndpointState, (number, at): (Registration, u64), len: u64, old: u64) -> Result<(), Failure> {
    let memory = state.registry.living(number).ok_or(Failure::RemoteHandle)?;
    let bytes = Atomic::bytes(old, len);
    let word = usize::try_from(len).ok().and_then(|len| bytes.get(..len)).ok_or(Failure::Copy)?;
    if memory.copy_in(at, word) { Ok(()) } else { Err(Failure::Copy) }
}

/// Whether a transfer is copied past the caches. One of a single piece never is.
fn is_large(len: u64) -> bool {
    len > PIECE && len >= streaming::threshold()
}
