//! Completion queues.

use crate::bits::{COMPLETION, SELECTIVE_COMPLETION};
use crate::code::Code;
use crate::domain::{Domain, Open};
use crate::watch::{Source, Watch};
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// Places that are made at once.
const FEW: usize = 64;

/// How a queue is opened (`fi_cq_attr`).
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the binding fills it")]
pub struct QueueOptions {
    /// Programs sleep by [`Queue::descriptor`] (`FI_WAIT_FD`).
    pub descriptor: bool,
    /// An empty read lets other threads run (`FI_WAIT_YIELD`).
    pub yields: bool,
    /// Threads may wait (anything but `FI_WAIT_NONE`).
    pub waits: bool,
    /// Entries that it has room for from the start; it grows.
    pub size: usize,
}

/// How an operation has ended well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as libfabric has it")]
pub struct Entry {
    /// The program's.
    pub context: u64,
    /// What it was: bits of [`crate::bits`].
    pub flags: u64,
    /// Bytes of a message that was received.
    pub len: usize,
    /// Where they are, in a buffer that takes several.
    pub buffer: u64,
    /// Remote data.
    pub data: u64,
    /// The tag.
    pub tag: u64,
    /// The number of the source, [`crate::NOT_AVAILABLE`] for one in no address vector.
    pub source: u64,
}

/// How an operation has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as libfabric has it")]
pub struct Failed {
    /// Which one.
    pub entry: Entry,
    /// Bytes that had no room.
    pub dropped: usize,
    /// Why.
    pub code: Code,
    /// The number that [`Queue::detail`] explains.
    pub detail: i32,
}

/// A completion queue. Serves several endpoints, and any thread; clones are the same queue. It
/// grows: an operation has reserved its place when it began.
///
/// # Example
///
/// ```
/// use cci_fabric::{Code, Domain, Queue, QueueOptions};
///
/// let queue = Queue::open(&Domain::open()?, QueueOptions::default())?;
/// assert_eq!(queue.read(1, |_| ()), Err(Code::Again));
/// # Ok::<(), Code>(())
/// ```
#[derive(Clone)]
pub struct Queue(Arc<Shared>);

struct Shared {
    watch: Watch<Ring>,
    options: QueueOptions,
    _open: Open,
}

struct Ring {
    items: VecDeque<Result<Entry, Failed>>,
    /// Places that operations have, which have not ended.
    reserved: usize,
}

impl Ring {
    fn reserve(&mut self, count: usize) -> Option<()> {
        self.items.try_reserve(self.reserved + count).ok()?;
        self.reserved += count;
        Some(())
    }

    #[inline]
    fn push(&mut self, item: Result<Entry, Failed>) {
        self.reserved = self.reserved.saturating_sub(1);
        self.items.push_back(item);
    }

    #[inline]
    fn take(&mut self, most: usize, take: &mut impl FnMut(&Entry)) -> Result<usize, Code> {
        let mut count = 0;
        while count < most {
            match self.items.front() {
                Some(Ok(entry)) => take(entry),
                Some(Err(_)) if count == 0 => return Err(Code::Available),
                _ => break,
            }
            self.items.pop_front();
            count += 1;
        }
        if count == 0 && most > 0 { Err(Code::Again) } else { Ok(count) }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} entries)", self.0.watch.enter().value.items.len())
    }
}

impl Queue {
    /// Opens an empty one.
    ///
    /// # Errors
    ///
    /// [`Code::TooManyFiles`], [`Code::NoMemory`].
    pub fn open(domain: &Domain, options: QueueOptions) -> Result<Self, Code> {
        let mut ring = Ring { items: VecDeque::new(), reserved: 0 };
        ring.items.try_reserve(options.size.clamp(FEW, 1 << 20)).map_err(|_| Code::NoMemory)?;
        let watch = Watch::new(ring, options.yields || domain.is_crowded());
        if options.descriptor {
            watch.descriptor()?;
        }
        Ok(Self(Arc::new(Shared { watch, options, _open: domain.count() })))
    }

    /// Takes up to `most` entries, after progress of its endpoints if there is none, or if `most`
    /// is 0. Never sleeps; where threads outnumber processors one that reads in vain again and
    /// again lets others run.
    ///
    /// # Errors
    ///
    /// [`Code::Again`]: there is none. [`Code::Available`]: the oldest is a failure.
    #[inline]
    pub fn read(&self, most: usize, mut take: impl FnMut(&Entry)) -> Result<usize, Code> {
        if most == 0 {
            return self.look();
        }
        let found = self.0.watch.enter().value.take(most, &mut take);
        if found != Err(Code::Again) {
            return found;
        }
        self.0.watch.progress();
        let found = self.0.watch.enter().value.take(most, &mut take);
        if found == Err(Code::Again) {
            self.0.watch.in_vain();
        }
        found
    }

    /// Makes progress, as programs want it that read no entry.
    #[cold]
    fn look(&self) -> Result<usize, Code> {
        self.0.watch.progress();
        match self.0.watch.enter().value.items.front() {
            Some(Ok(_)) => Ok(0),
            Some(Err(_)) => Err(Code::Available),
            None => Err(Code::Again),
        }
    }

    /// Takes the oldest entry, which is a failure.
    ///
    /// # Errors
    ///
    /// [`Code::Again`]: it is none.
    pub fn read_failed(&self) -> Result<Failed, Code> {
        let mut held = self.0.watch.enter();
        let Some(Err(failed)) = held.value.items.front().copied() else { return Err(Code::Again) };
        held.value.items.pop_front();
        Ok(failed)
    }

    /// As [`Queue::read`]; looks for 20 us, and then sleeps until there is an entry, at most for
    /// `limit`.
    ///
    /// # Errors
    ///
    /// [`Code::Again`]: the time is over. [`Code::Canceled`]: [`Queue::signal`].
    /// [`Code::Invalid`]: the queue was opened for no waits. [`Code::Available`].
    pub fn wait(&self, most: usize, limit: Option<Duration>, mut take: impl FnMut(&Entry)) -> Result<usize, Code> {
        if !self.0.options.waits {
            return Err(Code::Invalid);
        }
        let found = |ring: &mut Ring| Some(ring.take(most, &mut take)).filter(|found| *found != Err(Code::Again));
        self.0.watch.wait(limit, found)?
    }

    /// Ends the waits that have begun, or, where nobody waits, the next one.
    pub fn signal(&self) {
        self.0.watch.signal();
    }

    /// The descriptor of the queue: readable when [`Queue::read`] should be called, after
    /// [`Queue::try_wait`].
    ///
    /// # Errors
    ///
    /// [`Code::NoSystemCall`]: it was opened without one.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>, Code> {
        if !self.0.options.descriptor {
            return Err(Code::NoSystemCall);
        }
        self.0.watch.descriptor()
    }

    /// Prepares a sleep on the descriptor.
    ///
    /// # Errors
    ///
    /// [`Code::Again`]: there is an entry: read first.
    pub fn try_wait(&self) -> Result<(), Code> {
        self.0.watch.try_wait(|ring| !ring.items.is_empty())
    }

    /// What a [`Failed::detail`] means.
    #[must_use]
    pub fn detail(number: i32) -> &'static str {
        Code::of(number).map_or("unknown", Code::text)
    }

    /// Entries that nobody has read.
    pub(crate) fn len(&self) -> usize {
        self.0.watch.enter().value.items.len()
    }

    /// Whether an endpoint has it.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    pub(crate) fn attach(&self, core: &Arc<dyn Source>) -> Result<(), Code> {
        self.0.watch.attach(core)
    }

    /// Has those look again who sleep.
    pub(crate) fn nudge(&self) {
        self.0.watch.nudge();
    }

    pub(crate) fn detach(&self, core: &Arc<dyn Source>) {
        self.0.watch.detach(core);
    }
}

/// A queue as an endpoint has it: which operations make entries, and places that are reserved.
pub(crate) struct Bound {
    pub(crate) queue: Queue,
    /// Only those that ask for it.
    is_selective: bool,
    spare: usize,
}

impl Bound {
    pub(crate) fn new(queue: Queue, flags: u64) -> Self {
        Self { queue, is_selective: flags & SELECTIVE_COMPLETION != 0, spare: 0 }
    }

    /// Reserves a place for an operation that begins.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Result<(), Code> {
        if self.spare == 0 {
            self.queue.0.watch.enter().value.reserve(FEW).ok_or(Code::NoMemory)?;
            self.spare = FEW;
        }
        self.spare -= 1;
        Ok(())
    }

    /// An operation has ended well. `flags`: those of its call.
    #[inline]
    pub(crate) fn complete(&mut self, flags: u64, entry: Entry) {
        if self.is_selective && flags & COMPLETION == 0 {
            self.spare += 1;
            return;
        }
        self.queue.0.watch.change(|ring| ring.push(Ok(entry)));
    }

    /// Gives the place back of an operation that makes no entry.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.spare += 1;
    }

    pub(crate) fn fail(&mut self, failed: Failed) {
        self.queue.0.watch.change(|ring| ring.push(Err(failed)));
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let ring = &mut self.queue.0.watch.enter().value;
        ring.reserved = ring.reserved.saturating_sub(self.spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(context: u64) -> Entry {
        Entry { context, ..Entry::default() }
    }

    #[test]
    fn a_failure_stands_where_it_came() -> Result<(), Code> {
        let queue = Queue::open(&Domain::open()?, QueueOptions::default())?;
        let mut bound = Bound::new(queue.clone(), SELECTIVE_COMPLETION);
        let failed = Failed { entry: entry(2), dropped: 5, code: Code::Truncated, detail: 265 };
        for _ in 0..4 {
            bound.reserve()?;
        }
        bound.complete(COMPLETION, entry(1));
        bound.complete(0, entry(9));
        bound.fail(failed);
        bound.complete(COMPLETION, entry(3));
        let mut got = Vec::new();
        assert_eq!(queue.read_failed(), Err(Code::Again));
        assert_eq!(queue.read(8, |entry| got.push(entry.context)), Ok(1));
        assert_eq!(queue.read(8, |entry| got.push(entry.context)), Err(Code::Available));
        assert_eq!(queue.read_failed(), Ok(failed));
        assert_eq!(queue.read(8, |entry| got.push(entry.context)), Ok(1));
        assert_eq!((queue.read(8, |_| ()), got), (Err(Code::Again), vec![1, 3]));
        assert_eq!(Queue::detail(265), Code::Truncated.text());
        Ok(())
    }

    #[test]
    fn a_place_is_reserved_for_what_has_begun() -> Result<(), Code> {
        let queue = Queue::open(&Domain::open()?, QueueOptions::default())?;
        let mut bound = Bound::new(queue.clone(), 0);
        for _ in 0..1_000 {
            bound.reserve()?;
        }
        let before = queue.0.watch.enter().value.items.capacity();
        assert!(before >= 1_000);
        (0..1_000).for_each(|context| bound.complete(0, entry(context)));
        assert_eq!(queue.0.watch.enter().value.items.capacity(), before);
        drop(bound);
        assert_eq!(queue.0.watch.enter().value.reserved, 0);
        Ok(())
    }

    #[test]
    fn a_wait_ends_by_time_by_a_signal_and_by_an_entry() -> Result<(), Code> {
        let domain = Domain::open()?;
        let queue = Queue::open(&domain, QueueOptions { waits: true, ..QueueOptions::default() })?;
        assert_eq!(queue.wait(1, Some(Duration::from_millis(1)), |_| ()), Err(Code::Again));
        for by_entry in [false, true] {
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| queue.wait(1, None, |_| ()));
                while !queue.0.watch.has_sleeper() {
                    std::thread::yield_now();
                }
                if by_entry {
                    let mut bound = Bound::new(queue.clone(), 0);
                    bound.reserve().expect("memory");
                    bound.complete(0, entry(1));
                } else {
                    queue.signal();
                }
                let wanted = if by_entry { Ok(1) } else { Err(Code::Canceled) };
                assert_eq!(waits.join().expect("no panic"), wanted);
            });
        }
        // Nobody waits: the next wait ends, and the one after it by time.
        queue.signal();
        assert_eq!(queue.wait(1, None, |_| ()), Err(Code::Canceled));
        assert_eq!(queue.wait(1, Some(Duration::from_millis(1)), |_| ()), Err(Code::Again));
        let none = Queue::open(&domain, QueueOptions::default())?;
        assert_eq!(none.wait(1, None, |_| ()), Err(Code::Invalid));
        assert_eq!(none.descriptor().err(), Some(Code::NoSystemCall));
        Ok(())
    }
}
