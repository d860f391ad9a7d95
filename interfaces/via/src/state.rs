//! The tables of a NIC, and what a VI consists of.

use crate::attributes::{Access, MAX_OBJECTS, Tag, ViAttributes};
use crate::errors::{Fault, FaultCode, Status};
use crate::pending::{EndSignal, Steps};
use crate::task::{Completion, Entry, Segment, Task, Token, WorkQueue};
use cci::{Connection, Endpoint, Memory, Registration, RmaHandle};
use std::collections::{HashMap, VecDeque};

/// The states of a VI.
///
/// # Example
///
/// ```
/// assert_eq!(cci_via::ViState::Idle as u32, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the states of VIPL")]
pub enum ViState {
    /// Not connected.
    Idle = 0,
    /// Connected.
    Connected = 1,
    /// A connect is under way.
    ConnectPending = 2,
    /// Broken: disconnect it.
    Error = 3,
}

/// Objects by number: 16 bits of index, 16 of generation. It begins with 1, so that no number is 0.
pub(crate) type Slab<V> = cci_slab::Slab<V, u32, 16, 16>;

const fn slab<V>() -> Slab<V> {
    Slab::new(1 << 16, MAX_OBJECTS as u32)
}

/// Registered memory.
pub(crate) struct Area {
    pub(crate) tag: Tag,
    pub(crate) access: Access,
    /// What programs name its first byte by.
    pub(crate) base: u64,
    pub(crate) memory: Memory,
    /// For this side's own operations: peers get one for their connection.
    pub(crate) registration: Registration<Memory>,
}

/// A registration for the peer of one VI, by the number of its area.
pub(crate) struct Grant {
    pub(crate) handle: u32,
    pub(crate) registration: Registration<Memory>,
}

/// The memory of a segment and where it begins there, unless handle, tag or range are wrong.
#[inline]
pub(crate) fn check<'a>(areas: &'a Slab<Area>, tag: Tag, segment: &Segment) -> Option<(&'a Area, u64)> {
    let area = areas.get(segment.handle).filter(|area| area.tag == tag)?;
    let offset = segment.address.checked_sub(area.base)?;
    let end = offset.checked_add(u64::from(segment.length))?;
    (end <= area.memory.len()).then_some((area, offset))
}

/// Whether all segments may be used. Empty ones need no memory.
pub(crate) fn are_usable(areas: &Slab<Area>, tag: Tag, task: &Task) -> bool {
    task.segments().iter().all(|segment| segment.length == 0 || check(areas, tag, segment).is_some())
}

/// A completion queue.
pub(crate) struct CompletionQueue {
    pub(crate) entries: VecDeque<(u32, bool)>,
    pub(crate) capacity: usize,
    /// VIs that use it, each of their queues counted.
    pub(crate) users: usize,
}

/// How handing over an entry went.
pub(crate) enum Published {
    Well,
    /// This completion queue was full.
    Overrun(u32),
    /// The descriptor lies in no registered memory any more.
    Lost,
}

impl<T: Token> WorkQueue<T> {
    /// Hands the first entry that has not been handed over to the program: it has finished.
    /// `entry` is what the completion queue gets.
    #[inline]
    pub(crate) fn publish_next(
        &mut self,
        areas: &Slab<Area>,
        tag: Tag,
        queues: &mut Slab<CompletionQueue>,
        entry: (u32, bool),
    ) -> Published {
        let mut published = Published::Well;
        if let Some(Entry { task, token: Some(token), end, .. }) = self.entries.get_mut(self.published) {
            if task.home.is_none_or(|home| check(areas, tag, &home).is_some()) {
                token.complete(&end.read());
            } else {
                published = Published::Lost;
            }
        }
        self.published += 1;
        if let Some(at) = self.queue
            && let Some(completions) = queues.get_mut(at)
        {
            if completions.entries.len() < completions.capacity {
                completions.entries.push_back(entry);
            } else {
                published = Published::Overrun(at);
            }
        }
        published
    }
}

/// What is known of a handle of the peer.
pub(crate) struct PeerMemory {
    pub(crate) handle: u32,
    pub(crate) base: u64,
    pub(crate) length: u64,
    pub(crate) flags: u8,
    /// None: nothing for this VI.
    pub(crate) rma: Option<RmaHandle>,
}

/// A message of which not all parts have come.
pub(crate) struct Incoming {
    pub(crate) length: u32,
    pub(crate) received: u32,
    pub(crate) immediate: Option<u64>,
    /// Nobody takes it.
    pub(crate) is_dropped: bool,
}

/// The invitation that a connect follows; or that a listening peer has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invitation {
    None,
    Followed,
    /// It has led to no connection: the question, or the listening, goes on.
    Failed,
}

pub(crate) struct Vi<T> {
    pub(crate) attributes: ViAttributes,
    pub(crate) state: ViState,
    pub(crate) connection: Option<Connection>,
    pub(crate) send: WorkQueue<T>,
    pub(crate) receive: WorkQueue<T>,
    pub(crate) incoming: Option<Incoming>,
    /// RDMA operations that have begun and not finished.
    pub(crate) writes_open: usize,
    pub(crate) reads_open: usize,
    /// Numbers of entries that the peer has to acknowledge, in order.
    pub(crate) unacknowledged: VecDeque<u32>,
    /// What is to be sent to the peer as soon as there is room.
    pub(crate) acks_owed: u32,
    pub(crate) answers_owed: VecDeque<u32>,
    /// What the peer may use.
    pub(crate) grants: Vec<Grant>,
    /// Handles of the peer.
    pub(crate) peer_memory: Vec<PeerMemory>,
    pub(crate) asked: Option<u32>,
    /// What a connect expects; and a connect step by step.
    pub(crate) ticket: Option<u64>,
    pub(crate) steps: Steps,
    /// While a peer is listened for: dropped when that ends.
    pub(crate) end_signal: Option<EndSignal>,
    pub(crate) peer_attributes: Option<ViAttributes>,
    pub(crate) invitation: Invitation,
    /// Counts what may end a connect, so that the end of an earlier one is told apart.
    pub(crate) attempt: u32,
    /// The count at the begin of the last connect, which tells it from earlier ones.
    pub(crate) connect: u32,
}

impl<T> Vi<T> {
    /// The context of a new connection of this VI.
    pub(crate) fn next_attempt(&mut self, number: u32) -> u64 {
        self.attempt = self.attempt.wrapping_add(1);
        u64::from(self.attempt) << 32 | u64::from(number)
    }

    /// Begins a connect. Returns its number.
    pub(crate) fn begin_connect(&mut self) -> u32 {
        self.state = ViState::ConnectPending;
        self.invitation = Invitation::None;
        self.steps = Steps::None;
        self.attempt = self.attempt.wrapping_add(1);
        self.connect = self.attempt;
        self.connect
    }

    /// Whether a context is that of the last connect.
    pub(crate) fn is_current(&self, context: u64) -> bool {
        (context >> 32) as u32 == self.attempt
    }

    pub(crate) fn new(attributes: ViAttributes, send: Option<u32>, receive: Option<u32>) -> Self {
        Self {
            attributes,
            state: ViState::Idle,
            connection: None,
            send: WorkQueue::new(send),
            receive: WorkQueue::new(receive),
            incoming: None,
            writes_open: 0,
            reads_open: 0,
            unacknowledged: VecDeque::new(),
            acks_owed: 0,
            answers_owed: VecDeque::new(),
            grants: Vec::new(),
            peer_memory: Vec::new(),
            asked: None,
            ticket: None,
            steps: Steps::None,
            end_signal: None,
            peer_attributes: None,
            invitation: Invitation::None,
            attempt: 0,
            connect: 0,
        }
    }
}

/// What the lock of a NIC protects.
pub(crate) struct State<T> {
    pub(crate) vis: Slab<Vi<T>>,
    pub(crate) queues: Slab<CompletionQueue>,
    pub(crate) areas: Slab<Area>,
    /// Tags, with the number of VIs and memories that use each.
    pub(crate) tags: Slab<usize>,
    /// Grants that have ended while a peer was copying.
    pub(crate) ending: Vec<Grant>,
    /// VIs that expect a connection.
    pub(crate) tickets: HashMap<u64, u32>,
    pub(crate) faults: VecDeque<Fault>,
    /// VIs that wait for room in CCI.
    pub(crate) blocked: Vec<u32>,
    /// One message, on its way to CCI.
    pub(crate) staging: Vec<u8>,
    /// Counts completions and changes of state, for those who sleep.
    pub(crate) changes: u64,
    pub(crate) dropped: u64,
    pub(crate) has_failed: bool,
    pub(crate) failure_is_reported: bool,
    pub(crate) is_closed: bool,
}

/// Faults that the program has not asked for, at most; later ones are dropped.
const MOST_FAULTS: usize = 1_024;
/// What the context of an operation has in place of an entry's number: a message of the library.
pub(crate) const CONTROL: u32 = u32::MAX;
/// The same for the last message on a connection: after it the connection is closed.
pub(crate) const LAST: u32 = u32::MAX - 1;

pub(crate) fn context(vi: u32, entry: u32) -> u64 {
    u64::from(vi) << 32 | u64::from(entry)
}

impl<T: Token> State<T> {
    pub(crate) fn new() -> Self {
        Self {
            vis: slab(),
            queues: slab(),
            areas: slab(),
            ending: Vec::new(),
            tags: slab(),
            tickets: HashMap::new(),
            faults: VecDeque::new(),
            blocked: Vec::new(),
            staging: Vec::new(),
            changes: 0,
            dropped: 0,
            has_failed: false,
            failure_is_reported: false,
            is_closed: false,
        }
    }

    /// One of the queues of a VI.
    #[inline]
    pub(crate) fn queue_of(&mut self, number: u32, is_receive: bool) -> Option<&mut WorkQueue<T>> {
        self.vis.get_mut(number).map(|vi| if is_receive { &mut vi.receive } else { &mut vi.send })
    }

    pub(crate) fn report(&mut self, code: FaultCode, vi: Option<u32>, queue: Option<u32>) {
        self.changes += 1;
        if self.faults.len() < MOST_FAULTS {
            self.faults.push_back(Fault { code, vi, queue });
        }
    }

    /// Hands finished entries over to the program: writes their ends and fills completion queues.
    pub(crate) fn publish(&mut self, endpoint: &Endpoint, number: u32) {
        for is_receive in [false, true] {
            self.publish_queue(endpoint, number, is_receive);
        }
    }

    /// The same for one of the queues of a VI.
    #[inline(never)]
    pub(crate) fn publish_queue(&mut self, endpoint: &Endpoint, number: u32, is_receive: bool) {
        let Self { vis, areas, queues, changes, .. } = self;
        let Some(vi) = vis.get_mut(number) else { return };
        let tag = vi.attributes.tag;
        let queue = if is_receive { &mut vi.receive } else { &mut vi.send };
        let (mut is_lost, mut overrun) = (false, None);
        while queue.entries.get(queue.published).is_some_and(|entry| entry.is_finished) {
            *changes += 1;
            match queue.publish_next(areas, tag, queues, (number, is_receive)) {
                Published::Well => {}
                Published::Overrun(at) => overrun = Some(at),
                Published::Lost => is_lost = true,
            }
        }
        if overrun.is_some() || is_lost {
            self.publish_badly(endpoint, number, overrun, is_lost);
        }
    }

    /// A completion queue was full, or a descriptor lies in no registered memory any more.
    #[cold]
    #[inline(never)]
    pub(crate) fn publish_badly(&mut self, endpoint: &Endpoint, number: u32, overrun: Option<u32>, is_lost: bool) {
        let is_connected = self.vis.get(number).is_some_and(|vi| vi.state == ViState::Connected);
        if overrun.is_some() {
            self.report(FaultCode::Overrun, Some(number), overrun);
        }
        if is_lost {
            self.report(FaultCode::CompletionProtection, Some(number), None);
            if is_connected {
                self.break_vi(endpoint, number, Status::REMOTE_DESCRIPTOR);
            }
        }
    }

    /// Ends all work of a connected VI because of a mistake on this side; the peer is told what
    /// becomes of its sends. Operations of CCI that are open keep their descriptors until the
    /// connection is closed.
    pub(crate) fn break_vi(&mut self, endpoint: &Endpoint, number: u32, told: Status) {
        let Some(vi) = self.vis.get_mut(number).filter(|vi| vi.state == ViState::Connected) else { return };
        vi.state = ViState::Error;
        self.changes += 1;
        let header = crate::wire::Header { kind: crate::wire::BROKEN, flags: 0, length: 0, value: told.0.into() };
        let sent = vi.connection.map(|at| endpoint.send(at, &header.emit(), context(number, LAST)));
        if sent.is_none_or(|sent| sent.is_err()) {
            return self.close(endpoint, number, ViState::Error, Status::TRANSPORT);
        }
        for entry in vi.send.entries.iter_mut().filter(|entry| entry.open == 0) {
            entry.fail(if entry.has_begun { Status::TRANSPORT } else { Status::FLUSHED });
        }
        flush_receives(vi);
        self.publish(endpoint, number);
    }

    /// Closes the connection and ends all work; `begun` is the status of sends that have begun.
    pub(crate) fn close(&mut self, endpoint: &Endpoint, number: u32, state: ViState, begun: Status) {
        let Some(vi) = self.vis.get_mut(number) else { return };
        if let Some(connection) = vi.connection.take() {
            // From here on CCI touches no memory of the connection's operations.
            let _ = endpoint.disconnect(connection);
        }
        vi.state = state;
        self.changes += 1;
        for entry in vi.send.entries.iter_mut() {
            entry.fail(if entry.has_begun { begun } else { Status::FLUSHED });
            entry.open = 0;
        }
        vi.send.next = vi.send.entries.len();
        flush_receives(vi);
        (vi.writes_open, vi.reads_open, vi.acks_owed, vi.asked) = (0, 0, 0, None);
        vi.unacknowledged.clear();
        vi.answers_owed.clear();
        vi.peer_memory.clear();
        let ended = std::mem::take(&mut vi.grants);
        let still = end_grants(ended);
        self.ending.extend(still);
        let Some(vi) = self.vis.get_mut(number) else { return };
        (vi.steps, vi.end_signal) = (Steps::None, None);
        if let Some(ticket) = vi.ticket.take() {
            self.tickets.remove(&ticket);
        }
        self.publish(endpoint, number);
    }
}

/// Ends grants; those that a peer copies by at this moment come back.
pub(crate) fn end_grants(grants: Vec<Grant>) -> Vec<Grant> {
    let end = |grant: Grant| {
        let still = grant.registration.deregister().err()?;
        Some(Grant { handle: grant.handle, registration: still.registration })
    };
    grants.into_iter().filter_map(end).collect()
}

impl<T> State<T> {
    /// Ends what peers have been granted of an area. False while one of them still copies.
    pub(crate) fn withdraw(&mut self, handle: u32) -> bool {
        let mut ended = Vec::new();
        let is_its = |grant: &mut Grant| grant.handle == handle;
        for vi in self.vis.values_mut() {
            ended.extend(vi.grants.extract_if(.., is_its));
        }
        ended.extend(self.ending.extract_if(.., is_its));
        let still = end_grants(ended);
        let is_over = still.is_empty();
        self.ending.extend(still);
        is_over
    }
}

fn flush_receives<T>(vi: &mut Vi<T>) {
    let is_partial = vi.incoming.take().is_some_and(|incoming| !incoming.is_dropped);
    let mut status = if is_partial { Status::PARTIAL } else { Status::FLUSHED };
    for entry in vi.receive.entries.iter_mut().filter(|entry| !entry.is_finished) {
        entry.finish(status | Status::OP_RECEIVE, 0, None);
        status = Status::FLUSHED;
    }
}

/// What taking from a queue gives.
///
/// # Example
///
/// ```
/// use cci_via::engine::Taken;
///
/// fn is_idle<T>(taken: &Taken<T>) -> bool {
///     matches!(taken, Taken::Empty)
/// }
/// ```
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is one, not yet, or never")]
pub enum Taken<T> {
    /// The oldest descriptor, which has completed.
    Done(Completion, T),
    /// The oldest descriptor has not completed.
    NotDone,
    /// Nothing is posted.
    Empty,
}
