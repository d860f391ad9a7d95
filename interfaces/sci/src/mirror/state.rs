//! What a host knows of its mirrors, changed under its lock.

use crate::errors::Error;
use crate::mirror::changes::{Change, Found};
use crate::mirror::memory::{BLOCK, Mirror};
use crate::mirror::patches::Patches;
use crate::mirror::reading::{Reading, Refresh, Watching};
use crate::mirror::reread::Reread;
use crate::mirror::staging::Staging;
use crate::mirror::sys::words;
use crate::mirror::watch::Watch;
use crate::partner::Partner;
use cci::{Endpoint, RmaHandle};
use cci_peers::Peer;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The pause between two comparisons while a mirror changes.
pub(crate) const SHORT: Duration = Duration::from_micros(40);

/// An RMA of a mirror.
pub(crate) struct Transfer {
    pub(super) token: u64,
    pub(crate) is_read: bool,
    /// Where its bytes lie in the staging memory, and in the segment; and how many.
    pub(super) staged: usize,
    pub(super) offset: usize,
    pub(crate) len: usize,
    /// The bytes of the last line, which follow a write as its message.
    pub(super) last: Vec<(u64, u8)>,
}

/// A pass that has begun.
pub(crate) struct Pass {
    pub(super) begun: Instant,
    /// Whether the writes of the pass before have ended.
    pub(super) is_comparing: bool,
    /// The blocks before this one are still to be compared.
    pub(super) rest: usize,
    /// Of the last changed line.
    pub(super) last: Vec<Change>,
    /// Words that its RMAs write. The last line names them.
    pub(super) runs: Vec<Range<u64>>,
    /// Writes that have not begun. The last one stays here until all is compared.
    pub(super) waiting: VecDeque<u64>,
    /// The owner is asked to confirm the last line.
    pub(super) is_asking: bool,
}

/// What the owner of a segment is known to have, and what is on its way.
pub(crate) struct Twin {
    pub(super) mirror: Arc<Mirror>,
    pub(super) partner: Partner,
    /// The broadcast group, which has no single owner.
    pub(super) group: Option<u32>,
    pub(super) handle: RmaHandle,
    pub(super) words: Box<[u64]>,
    /// Room for what a comparison finds.
    pub(super) found: Found,
    /// All blocks that windows were mapped to lie in this range.
    pub(super) loaded: Range<usize>,
    /// When each block was last seen to change.
    pub(super) changed: Vec<Instant>,
    /// Blocks that were protected since they were compared.
    pub(super) unsure: BTreeSet<usize>,
    /// Blocks that the owner was asked to watch.
    pub(super) watching: BTreeMap<usize, Watching>,
    /// Bytes of words of which a write has failed.
    pub(super) failed: BTreeMap<u64, u8>,
    /// Writes that have not ended.
    pub(super) writes: u32,
    /// The pass that has begun, and how many have.
    pub(super) pass: Option<Pass>,
    pub(super) passes: u64,
    pub(super) reading: Option<Reading>,
    /// Reads that have ended, and the last one that has failed.
    pub(super) reads: u64,
    pub(super) failed_read: u64,
    /// Reads that have found what the owner has changed; when the mirror is read again.
    pub(super) changes: u64,
    pub(super) reread: Reread,
    pub(super) patches: Patches,
    /// When the next comparison is due, and the pause after it.
    pub(super) next: Instant,
    pub(super) pause: Duration,
}

/// Starts the thread that looks after what the watch has.
pub(super) type Start = Box<dyn Fn(Arc<Watch>) -> std::io::Result<JoinHandle<()>> + Send>;

/// The mirrors of a host, by the tokens of their connections.
#[derive(Default)]
pub(crate) struct Mirrors {
    /// Starts the thread; none until the host is made.
    start: Option<Start>,
    is_protecting: bool,
    pub(super) all: BTreeMap<u64, Box<Twin>>,
    pub(super) staging: Option<Staging>,
    pub(super) transfers: BTreeMap<u64, Transfer>,
    /// Interrupts that wait until the mirrors of their peers are read.
    pub(super) refreshes: BTreeMap<Peer, Refresh>,
    /// Counts what has ended: a wait goes on as long as it grows.
    pub(crate) ended: u64,
    pub(super) watch: Option<Arc<Watch>>,
    thread: Option<JoinHandle<()>>,
}

impl Mirrors {
    pub(super) fn set_start(&mut self, start: Start, is_protecting: bool) {
        (self.start, self.is_protecting) = (Some(start), is_protecting);
    }

    /// Makes a mirror of a segment.
    pub(crate) fn enter(
        &mut self,
        endpoint: &Endpoint,
        (partner, token): (Partner, u64),
        (handle, len): (RmaHandle, u64),
    ) -> Result<Arc<Mirror>, Error> {
        let start = self.start.as_ref().ok_or(Error::NotInitialized)?;
        let len = usize::try_from(len).map_err(|_| Error::NoSpace)?;
        let mirror = Arc::new(Mirror::new(token, len).ok_or(Error::NoSpace)?);
        let words = words(mirror.region.len() / size_of::<u64>()).ok_or(Error::NoSpace)?;
        if self.staging.is_none() {
            self.staging = Some(Staging::new(endpoint).ok_or(Error::NoSpace)?);
        }
        if self.watch.is_none() {
            let watch = Arc::new(Watch::new(self.is_protecting).map_err(|_| Error::NoSpace)?);
            self.thread = Some(start(Arc::clone(&watch)).map_err(|_| Error::NoSpace)?);
            self.watch = Some(watch);
        }
        mirror.set_waiting(partner.is_some());
        if let Some(watch) = &self.watch {
            watch.enter(&mirror);
        }
        let now = Instant::now();
        let twin = Twin {
            words,
            found: Found::default(),
            loaded: 0..0,
            changed: vec![now; len.div_ceil(BLOCK)],
            unsure: BTreeSet::new(),
            watching: BTreeMap::new(),
            failed: BTreeMap::new(),
            writes: 0,
            mirror: Arc::clone(&mirror),
            partner,
            group: None,
            handle,
            pass: None,
            passes: 0,
            reading: None,
            reads: 0,
            failed_read: 0,
            changes: 0,
            reread: Reread::new(now),
            patches: Patches::default(),
            next: now,
            pause: SHORT,
        };
        self.all.insert(token, Box::new(twin));
        Ok(mirror)
    }

    /// Nobody compares a mirror any more, and all its pages are writable.
    pub(crate) fn leave(&mut self, token: u64) {
        if let Some(watch) = &self.watch {
            watch.leave(token);
        }
        self.all.remove(&token);
        self.ended += 1;
    }

    /// Ends all; the thread, which ends once it sees that the host has.
    pub(crate) fn close(&mut self) -> Option<JoinHandle<()>> {
        let tokens: Vec<_> = self.all.keys().copied().collect();
        tokens.into_iter().for_each(|token| self.leave(token));
        self.wake();
        self.thread.take()
    }

    /// Whether an RMA to these bytes of a mirror's segment has not ended.
    pub(super) fn is_written(&self, token: u64, bytes: Range<usize>) -> bool {
        self.transfers.values().any(|of| of.token == token && !of.is_read && bytes.contains(&of.offset))
    }

    /// Has the thread look when the next comparison is due.
    pub(crate) fn wake(&self) {
        if let Some(watch) = &self.watch {
            watch.wake();
        }
    }
}
