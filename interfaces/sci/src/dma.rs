//! DMA queues.

use crate::errors::Error;
use crate::notices::{Source, retire};
use crate::queue::{Queue, QueueState, Transfer};
use crate::remote::RemoteSegment;
use crate::segment::LocalSegment;
use crate::shared::Shared;
use crate::state::State;
use crate::types::{Then, deadline};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is copied within a host in a nanosecond, about.
const BYTES_PER_NS: u64 = 16;

/// Which way a transfer goes.
///
/// # Example
///
/// ```
/// assert_ne!(cci_sci::Direction::Write, cci_sci::Direction::Read);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no other")]
pub enum Direction {
    /// From the local segment to the remote one.
    Write,
    /// From the remote segment to the local one.
    Read,
}

/// The parts of a vector, at most.
///
/// # Example
///
/// ```
/// use cci_sci::{MOST_PARTS, Part};
///
/// fn fits(parts: &[Part]) -> bool {
///     parts.len() <= MOST_PARTS
/// }
/// ```
pub const MOST_PARTS: usize = 256;

/// A part of a vector of transfers between two segments ([`DmaQueue::enqueue_vector`]).
///
/// # Example
///
/// ```
/// use cci_sci::Part;
///
/// /// The rows of a matrix, packed.
/// fn rows(count: usize, len: usize, stride: usize) -> Vec<Part> {
///     let row = |row| Part { local_offset: row * stride, remote_offset: row * len, len };
///     (0..count).map(row).collect()
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "that of SISCI")]
pub struct Part {
    /// Bytes before it in the local segment.
    pub local_offset: usize,
    /// Bytes before it in the remote segment.
    pub remote_offset: usize,
    /// Its bytes.
    pub len: usize,
}

/// A queue of transfers between segments of this host and remote ones. They are made in order, by
/// the library, and end together.
///
/// # Example
///
/// ```
/// use cci_sci::{Direction, Error, Host, LocalSegment, QueueState, RemoteSegment};
///
/// fn publish(host: &Host, from: &LocalSegment, to: &RemoteSegment) -> Result<bool, Error> {
///     let queue = host.dma_queue(1)?;
///     queue.enqueue((from, 0), (to, 0), from.len(), Direction::Write)?;
///     queue.post()?;
///     Ok(queue.wait(None)? == QueueState::Done)
/// }
/// ```
pub struct DmaQueue {
    shared: Arc<Shared>,
    token: u64,
}

impl DmaQueue {
    pub(crate) fn create(shared: &Arc<Shared>, most: usize) -> Result<Self, Error> {
        if most == 0 {
            return Err(Error::IllegalParameter);
        }
        shared.with(|state| {
            let token = state.next();
            state.queues.insert(token, Queue::new(most));
            Ok(Self { shared: Arc::clone(shared), token })
        })
    }

    /// Leaves the thread asleep: to wake it for each transfer takes half as long as 1 MiB.
    fn with<R>(&self, act: impl FnOnce(&mut Queue) -> Result<R, Error>) -> Result<R, Error> {
        self.shared.with_quietly(|state| act(state.queues.get_mut(&self.token).ok_or(Error::Cancelled)?))
    }

    /// Adds a transfer of `len` bytes between these offsets.
    ///
    /// # Errors
    ///
    /// [`Error::MaxEntries`]; [`Error::IllegalOperation`]: the queue is posted, or not reset since;
    /// [`Error::IllegalParameter`]: no bytes; [`Error::OutOfRange`];
    /// [`Error::SegmentNotPrepared`]; [`Error::NoSuchSegment`], [`Error::SegmentNotConnected`]: a
    /// segment is no more; [`Error::NotImplemented`]: the remote one lies in the memory of a
    /// device; [`Error::Cancelled`], [`Error::NotInitialized`].
    pub fn enqueue(
        &self,
        (local, local_offset): (&LocalSegment, usize),
        (remote, remote_offset): (&RemoteSegment, usize),
        len: usize,
        direction: Direction,
    ) -> Result<(), Error> {
        let part = Part { local_offset, remote_offset, len };
        self.enter((local, remote), &[part], direction, |queue| queue.most)
    }

    /// Adds the parts of a vector, all or none. A vector has [`MOST_PARTS`] at most, whatever the
    /// queue was made for, and the queue is empty before.
    ///
    /// # Errors
    ///
    /// As [`DmaQueue::enqueue`]. [`Error::IllegalParameter`]: no part, or one of no bytes.
    pub fn enqueue_vector(
        &self,
        local: &LocalSegment,
        remote: &RemoteSegment,
        parts: &[Part],
        direction: Direction,
    ) -> Result<(), Error> {
        self.enter((local, remote), parts, direction, |queue| match queue.state {
            QueueState::Idle => MOST_PARTS,
            _ => 0,
        })
    }

    fn enter(
        &self,
        (local, remote): (&LocalSegment, &RemoteSegment),
        parts: &[Part],
        direction: Direction,
        most: impl FnOnce(&Queue) -> usize,
    ) -> Result<(), Error> {
        self.shared.with_quietly(|state| {
            let found = local.registered(state).and_then(|own| Ok((own, remote.registered(state)?)));
            let queue = state.queues.get_mut(&self.token).ok_or(Error::Cancelled)?;
            if !matches!(queue.state, QueueState::Idle | QueueState::Gather) {
                return Err(Error::IllegalOperation);
            }
            if queue.transfers.len() + parts.len() > most(queue) {
                return Err(Error::MaxEntries);
            }
            if parts.is_empty() || parts.iter().any(|part| part.len == 0) {
                return Err(Error::IllegalParameter);
            }
            let ((own, own_handle), (remote, end)) = found?;
            for part in parts {
                own.check(part.local_offset, part.len)?;
                remote.check(part.remote_offset, part.len)?;
            }
            queue.transfers.extend(parts.iter().map(|part| Transfer {
                own: Arc::clone(&own),
                own_handle,
                own_offset: part.local_offset as u64,
                remote: Arc::clone(&remote),
                end,
                remote_offset: part.remote_offset as u64,
                len: part.len as u64,
                is_read: direction == Direction::Read,
            }));
            queue.state = QueueState::Gather;
            Ok(())
        })
    }

    /// Starts the transfers. Never waits for them.
    ///
    /// # Errors
    ///
    /// [`Error::IllegalOperation`]: it has none, is posted, or not reset since.
    /// [`Error::Cancelled`], [`Error::NotInitialized`].
    pub fn post(&self) -> Result<(), Error> {
        self.start(None::<fn(QueueState) -> Then>)
    }

    /// Starts the transfers, and calls `callback` on the thread of the host when all have ended.
    ///
    /// # Errors
    ///
    /// As [`DmaQueue::post`].
    pub fn post_with(&self, callback: impl FnMut(QueueState) -> Then + Send + 'static) -> Result<(), Error> {
        self.start(Some(callback))
    }

    fn start(&self, callback: Option<impl FnMut(QueueState) -> Then + Send + 'static>) -> Result<(), Error> {
        // One that is refused is dropped without the lock.
        let mut callback = callback.map(|callback| Arc::new(Mutex::new(callback)) as _);
        self.shared.with_quietly(|state| {
            let queue = state.queues.get_mut(&self.token).ok_or(Error::Cancelled)?;
            if queue.state != QueueState::Gather {
                return Err(Error::IllegalOperation);
            }
            // There is none from before: a reset has taken it.
            queue.notices.callback = callback.take();
            queue.state = QueueState::Posted;
            queue.postings += 1;
            state.waits.moves += 1;
            Ok(())
        })?;
        self.advance()
    }

    /// Begins what there is room for, and takes the ends of what has ended at once.
    fn advance(&self) -> Result<(), Error> {
        let bytes = self.with(|queue| Ok(queue.transfers.iter().map(|transfer| transfer.len).sum::<u64>()))?;
        let takes = Duration::from_nanos(bytes / BYTES_PER_NS);
        let act = |state: &mut State| {
            state.advance(self.shared.endpoint(), self.token);
            Ok(())
        };
        self.shared.with_events(takes, act, |state| {
            state.queues.get(&self.token).is_none_or(|queue| queue.state != QueueState::Posted)
        })
    }

    /// Returns the state.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::NotInitialized`].
    pub fn state(&self) -> Result<QueueState, Error> {
        self.with(|queue| Ok(queue.state))
    }

    /// Waits until the queue is not posted any more, at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Cancelled`]; [`Error::IllegalOperation`]: in a callback.
    pub fn wait(&self, limit: Option<Duration>) -> Result<QueueState, Error> {
        let ended = |state: &mut State| match state.queues.get(&self.token) {
            None => Some(Err(Error::Cancelled)),
            Some(queue) if queue.state == QueueState::Posted => None,
            Some(queue) => Some(Ok(queue.state)),
        };
        let deadline = deadline(limit);
        match self.shared.poll_while_it_moves(deadline, ended)? {
            Some(found) => found,
            None => self.shared.wait_until(deadline, limit == Some(Duration::ZERO), ended),
        }
    }

    /// Begins no further transfer. Those that have begun go on; then the queue is
    /// [`QueueState::Aborted`]. One to a broadcast group may have gone in part.
    ///
    /// # Errors
    ///
    /// [`Error::IllegalOperation`]: it is not posted. [`Error::Cancelled`],
    /// [`Error::NotInitialized`].
    pub fn abort(&self) -> Result<(), Error> {
        self.with(|queue| {
            if queue.state != QueueState::Posted {
                return Err(Error::IllegalOperation);
            }
            queue.abort();
            Ok(())
        })?;
        self.advance()
    }

    /// Empties the queue.
    ///
    /// # Errors
    ///
    /// [`Error::IllegalOperation`]: it is posted. [`Error::Cancelled`], [`Error::NotInitialized`].
    pub fn reset(&self) -> Result<(), Error> {
        self.shared.with_quietly(|state| {
            let queue = state.queues.get(&self.token).ok_or(Error::Cancelled)?;
            if queue.state == QueueState::Posted {
                return Err(Error::IllegalOperation);
            }
            state.keep_calls(self.token);
            let Some(queue) = state.queues.get_mut(&self.token) else { return Ok(()) };
            retire(&mut state.callbacks.retired, &mut queue.notices);
            queue.reset();
            Ok(())
        })
    }

    /// Removes the queue.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`]: it is posted. [`Error::Cancelled`]: it was removed before.
    /// [`Error::NotInitialized`].
    pub fn remove(&self) -> Result<(), Error> {
        self.with(|queue| if queue.state == QueueState::Posted { Err(Error::Busy) } else { Ok(()) })?;
        self.end()
    }

    fn end(&self) -> Result<(), Error> {
        self.shared.with(|state| {
            state.waits.has_changed = true;
            if self.shared.is_own_thread() {
                // A callback removes it, and there is nobody else to make calls.
                state.callbacks.forget_calls(Source::Queue(self.token));
            } else {
                state.keep_calls(self.token);
            }
            state.cancel(Source::Queue(self.token));
            state.queues.remove(&self.token).map(drop).ok_or(Error::Cancelled)
        })?;
        self.shared.settle(Source::Queue(self.token));
        Ok(())
    }
}

impl Drop for DmaQueue {
    fn drop(&mut self) {
        // Refused where it was removed, or the host has ended.
        let _ = self.end();
    }
}

impl fmt::Debug for DmaQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DmaQueue({})", self.token)
    }
}
