//! What the unexpected handler leaves for calls of the program.

use crate::wire::Address;
use cci_mem::barrier::prepare;
use cci_mem::guarded::{Guard, Guarded};
use cci_mem::sync::{AtomicBool, Ordering};
use cci_transport::PollSet;
use std::sync::Arc;

/// Bytes that wait at most, with those of the records: more than all windows that are granted
/// (`cci-over`). What may be lost is dropped earlier.
const MOST: usize = 16 << 20;
const MOST_LOSSY: usize = 1 << 20;

/// A message, and where its bytes begin among those of all.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) source: Address,
    pub(crate) bits: u64,
    pub(crate) from: usize,
    pub(crate) len: usize,
    /// Its bytes have not come with it.
    pub(crate) is_bare: bool,
}

/// Messages in the order of their arrival, without their bytes. Its memory is used again.
#[derive(Default)]
pub(crate) struct Batch {
    records: Vec<Record>,
    read: usize,
}

impl Batch {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.read == self.records.len()
    }

    /// Takes out the oldest message.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Record> {
        let record = self.records.get(self.read).copied()?;
        self.read += 1;
        Some(record)
    }
}

#[derive(Default)]
struct Waiting {
    records: Vec<Record>,
    bytes: Vec<u8>,
    /// A program sleeps on the OS handle.
    is_watched: bool,
}

/// Messages between the handler, which any thread may run, and the endpoint.
pub(crate) struct Inbound {
    /// Biased: the thread of the program mostly is the one that runs the handler.
    waiting: Guarded<Waiting>,
    /// Some wait: a call that finds none takes no lock.
    has_some: AtomicBool,
    handle: Arc<PollSet>,
    /// Bytes that are kept of a message at most.
    most: usize,
}

impl Inbound {
    /// For messages of at most `longest` bytes. One byte more is kept, by which a message that is
    /// longer is known.
    pub(crate) fn new(handle: Arc<PollSet>, longest: usize) -> Self {
        let waiting = Guarded::new(Waiting::default(), prepare());
        Self { waiting, has_some: AtomicBool::new(false), handle, most: longest + 1 }
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
        let Waiting { records, bytes, .. } = &mut *waiting;
        let (from, len) = (bytes.len(), data.map_or(0, <[u8]>::len).min(self.most));
        if size_of::<Record>() * (records.len() + 1) + from + len > if is_lossy { MOST_LOSSY } else { MOST } {
            return false;
        }
        bytes.extend_from_slice(&data.unwrap_or_default()[..len]);
        records.push(Record { source, bits, from, len, is_bare: data.is_none() });
        // Publishes nothing: what it announces is taken under the lock.
        self.has_some.store(true, Ordering::Relaxed);
        let was_watched = std::mem::take(&mut waiting.is_watched);
        drop(waiting);
        if was_watched {
            self.handle.write_waker();
        }
        was_watched
    }

    /// Exchanges what has come for a batch that is empty, and for bytes that nobody reads any more.
    #[inline]
    pub(crate) fn take(&self, batch: &mut Batch, bytes: &mut Vec<u8>) {
        // As where it is stored. The library has run the handler before this call, or a later call
        // finds it.
        if !self.has_some.load(Ordering::Relaxed) {
            return;
        }
        batch.records.clear();
        batch.read = 0;
        bytes.clear();
        let mut waiting = self.lock();
        self.has_some.store(false, Ordering::Relaxed);
        std::mem::swap(&mut waiting.records, &mut batch.records);
        std::mem::swap(&mut waiting.bytes, bytes);
    }

    /// Has the waker, which was drained, written with the next message. False: one is there, and it
    /// is written already.
    pub(crate) fn watch(&self) -> bool {
        let mut waiting = self.lock();
        if !waiting.records.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 8;

    fn inbound() -> Inbound {
        Inbound::new(Arc::new(PollSet::new().expect("a descriptor")), LONGEST)
    }

    #[test]
    fn messages_are_exchanged_whole_and_in_order() {
        let (inbound, mut batch, mut bytes) = (inbound(), Batch::default(), vec![7; 64]);
        for round in 0..3_u64 {
            inbound.take(&mut batch, &mut bytes);
            assert!(batch.is_empty());
            let sent = [&b"one"[..], b"", b"three"];
            for (bits, data) in (round..).zip(sent) {
                assert!(!inbound.push(Address::NONE, bits, Some(data), true), "nobody watches");
            }
            inbound.push(Address::NONE, 9, None, false);
            inbound.take(&mut batch, &mut bytes);
            for (bits, data) in (round..).zip(sent) {
                let record = batch.pop().expect("a message");
                let found = &bytes[record.from..record.from + record.len];
                assert_eq!((record.bits, found, record.is_bare), (bits, data, false));
            }
            assert!(batch.pop().is_some_and(|record| record.is_bare) && batch.pop().is_none());
        }
    }

    #[test]
    fn messages_without_bytes_are_bounded_too() {
        let (inbound, mut batch, mut bytes) = (inbound(), Batch::default(), Vec::new());
        for _ in 0..=MOST_LOSSY {
            inbound.push(Address::NONE, 0, Some(b""), true);
        }
        inbound.take(&mut batch, &mut bytes);
        let count = std::iter::from_fn(|| batch.pop()).count();
        assert!(count > 0 && count * size_of::<Record>() <= MOST_LOSSY, "{count}");
    }

    #[test]
    fn a_message_that_is_too_long_is_known_and_not_kept() {
        let (inbound, mut batch, mut bytes) = (inbound(), Batch::default(), Vec::new());
        for len in [LONGEST, LONGEST + 1, 1 << 20] {
            inbound.push(Address::NONE, 0, Some(&vec![7; len]), false);
        }
        inbound.take(&mut batch, &mut bytes);
        let lens: Vec<_> = std::iter::from_fn(|| batch.pop()).map(|record| record.len).collect();
        assert_eq!((lens, bytes.len()), (vec![LONGEST, LONGEST + 1, LONGEST + 1], 3 * LONGEST + 2));
    }

    #[test]
    fn who_watches_is_woken_once_and_not_before_what_is_there() {
        let (inbound, mut batch, mut bytes) = (inbound(), Batch::default(), Vec::new());
        assert!(inbound.watch());
        assert!(inbound.push(Address::NONE, 0, Some(b"x"), true) && !inbound.push(Address::NONE, 1, Some(b"y"), true));
        assert!(!inbound.watch(), "two messages wait");
        inbound.take(&mut batch, &mut bytes);
        assert!(inbound.watch());
        inbound.unwatch();
        assert!(!inbound.push(Address::NONE, 2, None, false));
    }
}
