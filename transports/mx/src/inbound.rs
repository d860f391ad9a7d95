//! What the unexpected handler leaves for calls of the program.

use crate::sys::Address;
use cci_mem::barrier::prepare;
use cci_mem::guarded::{Guard, Guarded};
use cci_transport::PollSet;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes that wait at most: more than all windows that are granted (`cci-over`). What may be lost
/// is dropped earlier.
const MOST: usize = 16 << 20;
const MOST_LOSSY: usize = 1 << 20;

/// A message, whose bytes lie behind those of the ones before.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) source: Address,
    pub(crate) bits: u64,
    pub(crate) len: usize,
    /// Its bytes have not come with it.
    pub(crate) is_bare: bool,
}

/// Messages in the order of their arrival. Its memory is used again.
#[derive(Default)]
pub(crate) struct Batch {
    records: VecDeque<Record>,
    bytes: Vec<u8>,
    read: usize,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes out the oldest message, with as many of its bytes as there is room for.
    #[inline]
    pub(crate) fn pop(&mut self, to: &mut [u8]) -> Option<Record> {
        let record = self.records.pop_front()?;
        let bytes = &self.bytes[self.read..self.read + record.len];
        let len = record.len.min(to.len());
        to[..len].copy_from_slice(&bytes[..len]);
        self.read += record.len;
        if self.records.is_empty() {
            self.bytes.clear();
            self.read = 0;
        }
        Some(Record { len, ..record })
    }
}

#[derive(Default)]
struct Waiting {
    batch: Batch,
    /// A program sleeps on the OS handle.
    is_watched: bool,
}

/// Messages between the handler, which any thread may run, and the endpoint.
pub(crate) struct Inbound {
    /// Biased: the thread of the program mostly is the one that runs the handler.
    waiting: Guarded<Waiting>,
    handle: Arc<PollSet>,
}

impl Inbound {
    pub(crate) fn new(handle: Arc<PollSet>) -> Self {
        Self { waiting: Guarded::new(Waiting::default(), prepare()), handle }
    }

    #[inline]
    fn lock(&self) -> Guard<'_, Waiting> {
        match self.waiting.enter() {
            Ok(guard) => guard,
            // No guard is held where anything else is called.
            Err(_) => unreachable!("a thread enters once at a time"),
        }
    }

    /// Takes a message in. True: a thread watches, and its wait is to end.
    #[inline]
    pub(crate) fn push(&self, source: Address, bits: u64, data: Option<&[u8]>, is_lossy: bool) -> bool {
        let mut waiting = self.lock();
        let batch = &mut waiting.batch;
        let len = data.map_or(0, <[u8]>::len);
        if batch.bytes.len() + len > if is_lossy { MOST_LOSSY } else { MOST } {
            return false;
        }
        batch.bytes.extend(data.unwrap_or_default());
        batch.records.push_back(Record { source, bits, len, is_bare: data.is_none() });
        let was_watched = std::mem::take(&mut waiting.is_watched);
        drop(waiting);
        if was_watched {
            self.handle.write_waker();
        }
        was_watched
    }

    /// Exchanges what has come for a batch that is empty.
    #[inline]
    pub(crate) fn take(&self, batch: &mut Batch) {
        let mut waiting = self.lock();
        if !waiting.batch.is_empty() {
            std::mem::swap(&mut waiting.batch, batch);
        }
    }

    /// Has the waker, which was drained, written with the next message. False: one is there, and it
    /// is written already.
    pub(crate) fn watch(&self) -> bool {
        let mut waiting = self.lock();
        if !waiting.batch.is_empty() {
            self.handle.write_waker();
            return false;
        }
        waiting.is_watched = true;
        true
    }

    /// The program calls again.
    pub(crate) fn unwatch(&self) {
        self.lock().is_watched = false;
    }
}
