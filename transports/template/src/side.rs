//! One end of a connection: its operations in order, and what arrives for it.

use crate::mailbox::{Frame, Mailbox, Request};
use crate::rma::Transfer;
use cci_mem::sync::Ordering;
use cci_proto::{Failure, Time};
use cci_transport::{Connection, ConnectionState, Core, Posted, Slot, monotonic};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Frames in a mailbox above which unreliable messages are dropped: a receiver that makes no calls
/// must not cost memory without bound.
const MOST_FRAMES: usize = 16_384;

/// A connect that waits for its answer.
pub(crate) struct PendingConnect {
    /// Reserved for the CONNECT event, so that the event always finds a slot.
    pub(crate) slot: &'static Slot,
    pub(crate) context: u64,
    pub(crate) deadline: Option<Time>,
    /// Kept for the endpoint to which the client may be redirected.
    pub(crate) request: Request,
    /// Who was asked.
    pub(crate) server: Option<Arc<Mailbox>>,
}

impl PendingConnect {
    /// Tells the server that nobody waits for its answer any more.
    pub(crate) fn withdraw(&self) {
        if let Some(server) = &self.server {
            server.push(Frame::Withdrawn { client: self.request.from.number, number: self.request.number });
        }
    }
}

/// What an operation does: an RMA, and then a message.
type Work = (Option<Transfer>, Option<Vec<u8>>);
/// How it has ended.
type Outcome = Result<(), Failure>;

/// An operation that is not over.
struct Operation {
    slot: &'static Slot,
    posted: Posted,
    deadline: Option<Time>,
    rma: Option<Transfer>,
    message: Option<Vec<u8>>,
    /// How it has ended. The event waits for earlier operations.
    outcome: Option<Outcome>,
}

pub(crate) struct Side {
    pub(crate) cell: &'static Connection,
    /// The peer, and its number of the connection. `None` while the connect waits.
    pub(crate) peer: Option<(Arc<Mailbox>, u32)>,
    pub(crate) pending: Option<PendingConnect>,
    operations: VecDeque<Operation>,
    /// The first operations, which are copied or sent; others wait.
    started: usize,
    /// Messages that wait for a receive slot.
    pub(crate) backlog: VecDeque<Vec<u8>>,
    /// The peer was told that its messages wait.
    pub(crate) has_refused: bool,
    /// The peer has told that messages wait there.
    is_refused: bool,
    /// The peer has closed the connection; its messages are still delivered.
    pub(crate) is_closed: bool,
    /// When the keepalive time began at the earliest.
    alive: Time,
}

impl Side {
    pub(crate) fn new(cell: &'static Connection) -> Self {
        Self {
            cell,
            peer: None,
            pending: None,
            operations: VecDeque::new(),
            started: 0,
            backlog: VecDeque::new(),
            has_refused: false,
            is_refused: false,
            is_closed: false,
            alive: monotonic(),
        }
    }

    /// Sends a frame to the peer. False: the peer's endpoint is closed, or not known yet.
    pub(crate) fn push(&self, frame: impl FnOnce(u32) -> Frame) -> bool {
        self.peer.as_ref().is_some_and(|(peer, to)| peer.push(frame(*to)))
    }

    /// Adds an operation: a message, an RMA, or an RMA and the message after its data.
    pub(crate) fn post(&mut self, slot: &'static Slot, posted: Posted, (rma, message): Work) {
        self.cell.on_begun();
        let deadline = self.cell.send_deadline(monotonic);
        self.operations.push_back(Operation { slot, posted, deadline, rma, message, outcome: None });
    }

    /// Whether [`Side::start`] could do something. A fence waits for the operations before it.
    pub(crate) fn is_runnable(&self) -> bool {
        let waits = |next: &Operation| self.started > 0 && next.rma.as_ref().is_some_and(|rma| rma.is_fence);
        self.operations.get(self.started).is_some_and(|next| !waits(next))
    }

    /// Whether operations wait whose bytes are still in this program's memory.
    pub(crate) fn has_unsent(&self) -> bool {
        self.started < self.operations.len()
    }

    /// Starts operations in order, at most one piece of an RMA. One queue keeps order: no operation
    /// overtakes an RMA that is being copied, so that its message comes after the data.
    pub(crate) fn start(&mut self, core: &mut Core, own: &Mailbox) {
        while self.is_runnable() {
            let Some((peer, to)) = &self.peer else { return };
            let operation = &mut self.operations[self.started];
            let copied = operation.rma.as_mut().map_or(Ok(true), |rma| rma.step(own, (peer, *to)));
            operation.outcome = match (copied, operation.message.take()) {
                (Ok(false), message) => {
                    operation.message = message;
                    break;
                }
                (Ok(true), None) => Some(Ok(())),
                (Ok(true), Some(bytes)) => Self::transmit(core, self.cell, (peer, *to), bytes),
                (Err(_), _) if peer.is_closed() => Some(Err(Failure::Disconnected)),
                (Err(failure), _) => Some(Err(failure)),
            };
            self.started += 1;
        }
        self.finish(core);
    }

    /// Sends a message to a peer. Returns how that has ended, if it has.
    fn transmit(core: &Core, cell: &Connection, (peer, to): (&Mailbox, u32), bytes: Vec<u8>) -> Option<Outcome> {
        let (len, is_reliable) = (bytes.len(), cell.attribute().is_reliable());
        if (is_reliable || peer.len() < MOST_FRAMES) && peer.push(Frame::Message { to, bytes }) {
            cell.counters.on_sent();
            core.counters().on_sent(len);
            // The receiver answers when the message is in a slot. The end of an unreliable one
            // promises nothing about the receiver.
            return (!is_reliable).then_some(Ok(()));
        }
        if is_reliable {
            return Some(Err(Failure::Disconnected));
        }
        cell.counters.on_dropped();
        core.counters().on_dropped();
        Some(Ok(()))
    }

    /// Ends operations in order, as far as they are over.
    fn finish(&mut self, core: &mut Core) {
        while let Some(outcome) = self.operations.front().and_then(|operation| operation.outcome) {
            let Some(operation) = self.operations.pop_front() else { return };
            self.started = self.started.saturating_sub(1);
            if let (Some(rma), Ok(())) = (&operation.rma, outcome) {
                self.cell.counters.on_rma(rma.len);
                core.counters().on_rma(rma.len);
            }
            core.end_operation(operation.slot, self.cell, operation.posted, outcome);
        }
    }

    /// The peer has delivered the oldest message that it has not acknowledged.
    pub(crate) fn on_delivered(&mut self, core: &mut Core) {
        self.is_refused = false;
        let sent = self.operations.iter_mut().take(self.started).find(|operation| operation.outcome.is_none());
        if let Some(operation) = sent {
            operation.outcome = Some(Ok(()));
        }
        self.finish(core);
    }

    /// The peer has no receive slot.
    pub(crate) fn on_not_ready(&mut self, core: &Core) {
        self.is_refused = true;
        self.cell.counters.on_rnr();
        core.counters().on_not_ready();
    }

    /// Fails all operations: the first for this cause, the others because the connection has ended.
    pub(crate) fn fail(&mut self, core: &mut Core, mut cause: Failure) {
        for operation in &mut self.operations {
            operation.outcome =
                operation.outcome.or_else(|| Some(Err(std::mem::replace(&mut cause, Failure::Disconnected))));
        }
        self.finish(core);
        self.cell.set_state(ConnectionState::Broken);
    }

    /// Why the oldest operation has failed, if its time is over.
    pub(crate) fn late(&self, now: Time) -> Option<Failure> {
        self.operations.front()?.deadline.filter(|deadline| *deadline <= now)?;
        Some(if self.is_refused { Failure::NotReady } else { Failure::TimedOut })
    }

    /// The program has changed a timeout: its time begins now.
    pub(crate) fn restart_timeouts(&mut self) {
        self.alive = monotonic();
        let deadline = self.cell.send_deadline(|| self.alive);
        self.operations.iter_mut().for_each(|operation| operation.deadline = deadline);
    }

    /// The keepalive time, and when it began: when the peer made progress last.
    fn keepalive(&self) -> Option<(Duration, Time)> {
        let micros = self.cell.keepalive.load(Ordering::Relaxed);
        let (peer, _) = self.peer.as_ref().filter(|_| micros > 0 && !self.is_closed)?;
        Some((Duration::from_micros(micros.into()), self.alive.max(Time(peer.polled.load(Ordering::Relaxed)))))
    }

    /// Wakes the program of a peer that was silent for half of the keepalive time: one that sleeps
    /// on its handle is alive. Returns whether the peer was silent for the whole time.
    pub(crate) fn check_keepalive(&self, now: Time) -> bool {
        let Some((time, since)) = self.keepalive() else { return false };
        if now >= since + time / 2 {
            self.peer.iter().for_each(|(peer, _)| peer.handle.write_waker());
        }
        now >= since + time
    }

    /// When the program must call again though nothing arrives.
    pub(crate) fn deadline(&self, now: Time) -> Option<Time> {
        let pending = self.pending.as_ref().and_then(|pending| pending.deadline);
        let operation = self.operations.front().and_then(|operation| operation.deadline);
        let half = |time: Duration, since: Time| Some(since + time / 2).filter(|half| now < *half);
        let keepalive = self.keepalive().map(|(time, since)| half(time, since).unwrap_or(since + time));
        [pending, operation, keepalive].into_iter().flatten().min()
    }
}
