//! What the owner has is read, and merged with what the program has changed.

use crate::mirror::changes::Change;
use crate::mirror::memory::{BLOCK, Block};
use crate::mirror::reading::{Load, Reading};
use crate::mirror::state::{Transfer, Twin};
use crate::mirror::watch::Watch;
use crate::mirror::words::{WORD, mask_before};
use crate::operation::Operation;
use crate::state::State;
use cci::{Endpoint, Rma, RmaError};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A read that has begun wakes the thread at each end of an RMA. It looks as often by itself.
const LOOK: Duration = Duration::from_millis(10);

impl Twin {
    /// Begins to read blocks; the number by which the end is known.
    pub(crate) fn begin_read(&mut self, blocks: Range<usize>) -> u64 {
        self.loaded = match self.loaded.is_empty() {
            true => blocks.clone(),
            false => self.loaded.start.min(blocks.start)..self.loaded.end.max(blocks.end),
        };
        self.reading = Some(Reading { rest: blocks.collect(), open: 0, has_failed: false });
        self.reads + 1
    }

    /// The next block that is to be read at once.
    pub(super) fn next_read(&mut self) -> Option<usize> {
        let reading = self.reading.as_mut()?;
        let block = reading.rest.pop_front()?;
        reading.open += 1;
        Some(block)
    }

    /// Begins no more of a read.
    fn fail_read(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.rest.clear();
            reading.has_failed = true;
        }
    }

    fn finish_read(&mut self) {
        let Some(reading) = self.reading.take_if(|reading| reading.open == 0 && reading.rest.is_empty()) else {
            return;
        };
        self.reads += 1;
        if reading.has_failed {
            self.failed_read = self.reads;
        }
    }

    /// Whether the owner has in a range what it is known to have.
    fn is_known(&self, offset: usize, bytes: &[u8]) -> bool {
        let words = &self.words[offset / WORD..];
        bytes.chunks(WORD).zip(words).all(|(bytes, word)| word.to_ne_bytes()[..bytes.len()] == *bytes)
    }

    /// Takes words of the owner over. Bytes that the program has changed stay, and are sent.
    fn take(&mut self, watch: Option<&Watch>, offset: usize, bytes: &[u8]) {
        let change = |(place, bytes): (usize, &[u8])| {
            let mut word = [0; WORD];
            word[..bytes.len()].copy_from_slice(bytes);
            let (value, mask) = (u64::from_ne_bytes(word), mask_before(0, bytes.len()));
            Change { place: place as u64, mask, value }
        };
        let changes: Vec<_> = (offset / WORD..).zip(bytes.chunks(WORD)).map(change).collect();
        self.take_words(watch, &changes);
    }
}

impl State {
    /// Goes on with a read.
    pub(crate) fn advance_read(&mut self, endpoint: &Endpoint, twin: &mut Twin) {
        if let Some(id) = twin.group {
            self.read_commons(endpoint, id, twin);
            return twin.finish_read();
        }
        let connection = twin.partner.and_then(|peer| self.links.peers.connection(peer));
        while let Some(block) = twin.reading.as_ref().and_then(|reading| reading.rest.front().copied()) {
            if twin.is_watched(block) {
                if !self.read_watched(endpoint, twin, block) {
                    return;
                }
                twin.next_read();
                continue;
            }
            let operation = self.next();
            let Some(staging) = &mut self.mirrors.staging else { return };
            let Some(staged) = staging.find() else { return };
            let (offset, len) = twin.mirror.span(block);
            let rma = Rma::new(staging.handle(), &twin.handle, len as u64)
                .local_offset(staged as u64)
                .remote_offset(offset as u64);
            let begun = connection.map(|connection| endpoint.read(connection, &rma, Operation::mirror(operation)));
            match begun {
                Some(Ok(())) => {
                    twin.next_read();
                    staging.begin(staged);
                    let (token, is_read, last) = (twin.mirror.token, true, Vec::new());
                    let transfer = Transfer { token, is_read, staged, offset, len, last };
                    self.mirrors.transfers.insert(operation, transfer);
                }
                Some(Err(RmaError::NoBuffers)) => return,
                Some(Err(_)) | None => twin.fail_read(),
            }
        }
        twin.finish_read();
    }

    /// Reads a mirror again if that is due; the pause until it is again. `None`: it has no window.
    pub(super) fn reread(&mut self, endpoint: &Endpoint, twin: &mut Twin) -> Option<Duration> {
        let is_mapped = |token| self.remotes.get(token).is_some_and(|remote| remote.mapped.is_in_use());
        if twin.reread.open.is_none() && (twin.loaded.is_empty() || !is_mapped(&twin.mirror.token)) {
            return None;
        }
        let now = Instant::now();
        if twin.reread.open.is_none() && twin.reread.due > now {
            return Some(twin.reread.due - now);
        }
        let mut load = twin.reread.open.take().unwrap_or_else(|| Load::new(twin.loaded.clone()));
        if self.load_step(endpoint, twin, &mut load).is_none() {
            twin.reread.open = Some(load);
            return Some(LOOK);
        }
        let now = Instant::now();
        twin.reread.end(now, twin.changes, twin.loaded.len());
        Some(twin.reread.due.saturating_duration_since(now))
    }

    /// A read of a block has ended, well if there are bytes.
    pub(crate) fn on_read(
        &mut self,
        endpoint: &Endpoint,
        twin: &mut Twin,
        transfer: &Transfer,
        bytes: Option<Vec<u8>>,
    ) {
        self.note_read(endpoint, twin, transfer, bytes);
        self.advance_read(endpoint, twin);
    }

    /// Takes over what was read of a block.
    pub(super) fn note_read(
        &mut self,
        endpoint: &Endpoint,
        twin: &mut Twin,
        transfer: &Transfer,
        bytes: Option<Vec<u8>>,
    ) {
        self.mirrors.wake();
        let block = transfer.offset / BLOCK;
        match bytes {
            // A store has come meanwhile, and the owner is asked: what was read may be older.
            Some(_) if twin.is_watched(block) => {
                if !twin.is_answered(block) {
                    self.read_watched(endpoint, twin, block);
                    return;
                }
            }
            Some(bytes) => self.take_read(endpoint, twin, transfer.offset, &bytes),
            None => twin.fail_read(),
        }
        if let Some(reading) = &mut twin.reading {
            reading.open = reading.open.saturating_sub(1);
        }
    }

    fn take_read(&mut self, endpoint: &Endpoint, twin: &mut Twin, offset: usize, bytes: &[u8]) {
        let (block, watch) = (offset / BLOCK, self.mirrors.watch.clone());
        let (state, is_known) = (twin.mirror.block(block), twin.is_known(offset, bytes));
        twin.changes += u64::from(!is_known);
        // A block that has nothing new stays as it is.
        if state != Block::Absent && is_known {
            return;
        }
        twin.changed[block] = Instant::now();
        if twin.group.is_some() {
            // A store of this thread would wait for itself.
            if let Some(watch) = watch.as_ref().filter(|_| state == Block::Quiet) {
                watch.open(&twin.mirror, block);
            }
            twin.mirror.set_block(block, Block::Fresh);
        } else if !state.is_protected() {
            twin.mirror.set_block(block, Block::Fresh);
        }
        twin.take(watch.as_deref(), offset, bytes);
        if twin.group.is_some() || state != Block::Absent {
            return;
        }
        // Only pages that are there can be protected: a load makes them.
        let pages = (offset..offset + bytes.len()).step_by(rustix::param::page_size());
        pages.for_each(|at| _ = twin.mirror.region.load(at / WORD));
        let is_protected = watch.is_some_and(|watch| watch.protect_first(&twin.mirror, block));
        if !is_protected {
            self.watch_open(endpoint, twin, block);
        }
    }
}
