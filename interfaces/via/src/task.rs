//! Work as the engine has it: what a descriptor asks for, and how far it is.

use crate::errors::Status;
use crate::ring::Ring;

/// A range of local memory.
///
/// # Example
///
/// ```
/// let segment = cci_via::Segment { address: 0, handle: 0, length: 64 };
/// assert_eq!(segment.length, 64);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a data segment of VIPL")]
pub struct Segment {
    /// Where it begins: an address, or an offset in a [`crate::Region`].
    pub address: u64,
    /// The memory handle.
    pub handle: u32,
    /// Bytes.
    pub length: u32,
}

/// A place in the peer's memory.
///
/// # Example
///
/// ```
/// // The handle and the address have come in a message of the peer.
/// let remote = cci_via::Remote { address: 4_096, handle: 0x1_0001 };
/// assert_eq!(remote.address, 4_096);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an address segment of VIPL")]
pub struct Remote {
    /// Where it begins, as the peer names it.
    pub address: u64,
    /// The peer's memory handle.
    pub handle: u32,
}

/// What a descriptor of the send queue does.
///
/// # Example
///
/// ```
/// use cci_via::{Op, Remote};
///
/// assert_ne!(Op::Send, Op::Write(Remote::default()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the operations of the VI Architecture")]
pub enum Op {
    /// Takes a receive of the peer.
    #[default]
    Send,
    /// Writes into the peer's memory.
    Write(Remote),
    /// Reads from the peer's memory.
    Read(Remote),
}

/// Segments without an allocation where they are few.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    count: usize,
    few: [Segment; 4],
    many: Vec<Segment>,
}

impl Segments {
    pub(crate) fn push(&mut self, segment: Segment) {
        match self.few.get_mut(self.count) {
            Some(place) => *place = segment,
            None => {
                if self.count == self.few.len() {
                    self.many.clear();
                    self.many.extend(self.few);
                }
                self.many.push(segment);
            }
        }
        self.count += 1;
    }

    #[inline]
    pub(crate) fn all(&self) -> &[Segment] {
        if self.count > self.few.len() { &self.many } else { &self.few[..self.count] }
    }

    #[inline]
    fn clear(&mut self) {
        self.count = 0;
    }
}

/// What a descriptor asks for.
///
/// # Example
///
/// ```
/// use cci_via::{Segment, Task};
///
/// let mut task = Task::default();
/// task.push(Segment { address: 0, handle: 0x1_0000, length: 8 });
/// assert_eq!(task.segments().len(), 1);
/// ```
#[derive(Debug, Default)]
pub struct Task {
    /// What it does; of a receive, `Send`.
    pub op: Op,
    /// Goes with it. VIPL has 32 bits of it; this engine carries 64.
    pub immediate: Option<u64>,
    /// Waits for earlier RDMA reads.
    pub fence: bool,
    /// Why it cannot be worked on, found when it was read; no bit if it can.
    pub fault: Status,
    /// The memory in which the descriptor itself lies, if the program has it there.
    pub home: Option<Segment>,
    pub(crate) segments: Segments,
}

impl Task {
    /// Makes it the plain one again, with this home.
    #[inline]
    pub(crate) fn reset(&mut self, home: Option<Segment>) {
        self.op = Op::Send;
        self.immediate = None;
        self.fence = false;
        self.fault = Status::default();
        self.home = home;
        self.segments.clear();
    }

    /// Appends a segment.
    #[inline]
    pub fn push(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// Returns the segments.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        self.segments.all()
    }

    /// Bytes of all segments.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        self.segments().iter().map(|segment| u64::from(segment.length)).sum()
    }

    pub(crate) fn op_bits(&self) -> Status {
        match self.op {
            Op::Send => Status(0),
            Op::Write(_) => Status::OP_WRITE,
            Op::Read(_) => Status::OP_READ,
        }
    }
}

/// How a descriptor ended.
///
/// # Example
///
/// ```
/// fn bytes(end: &cci_via::Completion) -> Option<u32> {
///     (!end.status.is_error()).then_some(end.length)
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "what a control segment of VIPL brings back")]
pub struct Completion {
    /// How it ended.
    pub status: Status,
    /// Bytes that were transferred; 0 after an error.
    pub length: u32,
    /// What came with it.
    pub immediate: Option<u64>,
}

/// A [`Completion`] in two words. They are read as they are written: a load that reaches over two
/// stores has to wait until these have left the processor's store buffer.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// The status, and the length above it.
    head: u64,
    value: u64,
}

impl End {
    #[inline]
    fn new(status: Status, length: u32, immediate: Option<u64>) -> Self {
        let status = if immediate.is_some() { status | Status::IMMEDIATE } else { status };
        Self { head: u64::from(length) << 32 | u64::from(status.0), value: immediate.unwrap_or(0) }
    }

    #[inline(always)]
    pub(crate) fn read(&self) -> Completion {
        let (status, length) = (Status(self.head as u32), (self.head >> 32) as u32);
        Completion { status, length, immediate: status.has(Status::IMMEDIATE).then_some(self.value) }
    }
}

/// What rides with a task: the program's side of a descriptor.
pub trait Token: Send {
    /// Called once, when the descriptor completes, in order; never where its home is registered no
    /// more.
    fn complete(&mut self, end: &Completion);
}

/// One descriptor in its queue: a place there, which is filled anew for each.
pub(crate) struct Entry<T> {
    pub(crate) task: Task,
    /// There until the descriptor is taken.
    pub(crate) token: Option<T>,
    pub(crate) end: End,
    /// Why it fails as soon as the operations of CCI that are open have ended; no bit if it does
    /// not.
    pub(crate) failure: Status,
    /// It will not change any more, but those before it may not have finished.
    pub(crate) is_finished: bool,
    pub(crate) has_begun: bool,
    /// Nothing is left to be handed to CCI.
    pub(crate) is_sent: bool,
    /// The peer has to acknowledge it.
    pub(crate) awaits_reply: bool,
    /// The peer's handle was stale, now; and was asked for again, once.
    pub(crate) is_stale: bool,
    pub(crate) was_retried: bool,
    /// Bytes of a send, or segments of an RDMA operation, that have been handed to CCI.
    pub(crate) handed: u32,
    /// Operations of CCI that have not ended, and will be reported.
    pub(crate) open: u32,
}

impl<T> Default for Entry<T> {
    fn default() -> Self {
        Self {
            task: Task::default(),
            token: None,
            end: End::default(),
            failure: Status::default(),
            is_finished: false,
            has_begun: false,
            is_sent: false,
            awaits_reply: false,
            is_stale: false,
            was_retried: false,
            handed: 0,
            open: 0,
        }
    }
}

impl<T> Entry<T> {
    /// Makes the place ready for the next one.
    #[inline]
    fn reset(&mut self, home: Option<Segment>) {
        self.task.reset(home);
        self.failure = Status::default();
        (self.is_finished, self.has_begun, self.is_sent) = (false, false, false);
        (self.awaits_reply, self.is_stale, self.was_retried) = (false, false, false);
        (self.handed, self.open) = (0, 0);
    }

    /// Ends; immediate data sets its bit of the status.
    #[inline]
    pub(crate) fn finish(&mut self, status: Status, length: u32, immediate: Option<u64>) {
        if !self.is_finished {
            self.is_finished = true;
            self.is_sent = true;
            self.end = End::new(status | Status::DONE, length, immediate);
        }
    }

    /// Ends with an error.
    pub(crate) fn fail(&mut self, status: Status) {
        let op = self.task.op_bits();
        self.finish(status | op, 0, None);
    }
}

/// A work queue: entries in the order of posting, of which the first `published` have completed.
pub(crate) struct WorkQueue<T> {
    pub(crate) entries: Ring<Entry<T>>,
    /// The number of the first entry; counts up with each that is taken.
    pub(crate) first: u32,
    pub(crate) published: usize,
    /// The completion queue.
    pub(crate) queue: Option<u32>,
    /// Of the send queue: the first entry that is not sent as a whole.
    pub(crate) next: usize,
}

impl<T> WorkQueue<T> {
    pub(crate) fn new(queue: Option<u32>) -> Self {
        Self { entries: Ring::new(), first: 0, published: 0, queue, next: 0 }
    }

    /// Appends an entry: its task is read next, and its token put in.
    #[inline]
    pub(crate) fn post(&mut self, home: Option<Segment>) -> &mut Entry<T> {
        let entry = self.entries.append();
        entry.reset(home);
        entry
    }

    #[inline]
    pub(crate) fn by_number(&mut self, number: u32) -> Option<(usize, &mut Entry<T>)> {
        let at = number.wrapping_sub(self.first) as usize;
        self.entries.get_mut(at).map(|entry| (at, entry))
    }

    /// The oldest that has completed.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Completion, T)> {
        if self.published == 0 {
            return None;
        }
        self.published -= 1;
        self.next = self.next.saturating_sub(1);
        self.first = self.first.wrapping_add(1);
        let entry = self.entries.remove_first()?;
        let token = entry.token.take()?;
        Some((entry.end.read(), token))
    }
}
