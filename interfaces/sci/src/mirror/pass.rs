//! Passes: what has changed is found and sent (`docs/design/sci-mirror.md`, A pass).

use crate::mirror::changes::{Change, Found, compare};
use crate::mirror::memory::{BLOCK, Block};
use crate::mirror::patch::emit_behind;
use crate::mirror::state::{Pass, SHORT, Transfer, Twin};
use crate::mirror::sys::bytes;
use crate::mirror::words::{WORD, Words, mask_before};
use crate::operation::Operation;
use crate::state::State;
use crate::wire::{HEADER, Message};
use cci::{Connection, Endpoint, Rma, RmaError};
use cci_peers::Peer;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

/// Blocks that are compared before others may have the lock.
pub(super) const BUDGET: u32 = 16;
/// Bytes of the groups of a patch, at most.
pub(crate) const MOST_BYTES: usize = 8192;

/// How far a pass has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Ended,
    /// There is more to do at once.
    More,
    /// For room, or for writes.
    Waits,
}

impl Twin {
    pub(crate) fn begin_pass(&mut self, is_asking: bool) {
        let begun = Instant::now();
        self.passes += 1;
        self.next = begun + self.pause;
        let (is_comparing, rest) = (false, self.loaded.end);
        let (last, runs, waiting) = (Vec::new(), Vec::new(), VecDeque::new());
        self.pass = Some(Pass { begun, is_comparing, rest, last, runs, waiting, is_asking });
    }

    pub(super) fn is_compared(&self, block: usize) -> bool {
        match self.mirror.block(block) {
            Block::Absent => false,
            Block::Quiet | Block::Watched => self.unsure.contains(&block) || !self.failed.is_empty(),
            Block::Open | Block::Fresh => true,
        }
    }

    /// Adds what has changed in a block.
    pub(super) fn find(&mut self, block: usize, found: &mut Found) {
        if self.mirror.block(block) == Block::Fresh {
            self.mirror.set_block(block, Block::Open);
            self.changed[block] = Instant::now();
        }
        self.unsure.remove(&block);
        let (offset, len) = self.mirror.span(block);
        let (first, count) = (offset / WORD, len.div_ceil(WORD));
        let own = Words(self.mirror.region.span(first..first + count));
        compare(&own, &mut self.words[first..first + count], first as u64, found);
        let (words, end) = (&self.words, (first + count) as u64);
        let word = |place: u64| words[place as usize];
        if !self.failed.is_empty() {
            let again: Vec<_> = self.failed.range(first as u64..end).map(|(place, mask)| (*place, *mask)).collect();
            self.failed.retain(|place, _| !(first as u64..end).contains(place));
            found.add_again(&again, word);
        }
        // Behind the end of the segment nothing is sent.
        let mask = mask_before((first + count - 1) * WORD, self.mirror.len);
        if mask != u8::MAX {
            found.cut_last(end - 1, mask, word);
        }
    }
}

impl State {
    /// Runs something on a twin, which is not entered meanwhile.
    pub(crate) fn with_twin<R>(&mut self, token: u64, act: impl FnOnce(&mut Self, &mut Twin) -> R) -> Option<R> {
        let mut twin = self.mirrors.all.remove(&token)?;
        let result = act(self, &mut twin);
        // The link may have ended meanwhile.
        if self.remotes.get(&token).is_none_or(|remote| !remote.is_lost) && !self.is_closed {
            self.mirrors.all.insert(token, twin);
        }
        Some(result)
    }

    /// Compares what is due, on a thread of the program that drives the endpoint.
    pub(crate) fn compare_due(&mut self, endpoint: &Endpoint, now: Instant) {
        while let Some(token) = self.mirrors.all.values().find(|twin| twin.next <= now).map(|twin| twin.mirror.token) {
            let Some(watch) = self.mirrors.watch.clone() else { return };
            self.with_twin(token, |state, twin| {
                state.tend(endpoint, twin, &watch);
                twin.next = twin.next.max(now + twin.pause);
            });
        }
    }

    /// Goes on with a pass.
    pub(crate) fn advance_pass(&mut self, endpoint: &Endpoint, twin: &mut Twin) -> Step {
        let Some(mut pass) = twin.pass.take() else { return Step::Ended };
        if let Some(id) = twin.group {
            let step = self.cast_steps(endpoint, id, twin, &mut pass);
            if step != Step::Ended {
                twin.pass = Some(pass);
            }
            return step;
        }
        let link = twin.partner.and_then(|peer| Some((peer, self.links.peers.connection(peer)?)));
        let Some(link) = link else { return Step::Ended };
        let step = self.steps(endpoint, link, twin, &mut pass);
        if step != Step::Ended {
            twin.pass = Some(pass);
        }
        step
    }

    /// Whether a pass has ended that began for its caller, whose number the caller keeps.
    pub(crate) fn own_pass(
        &mut self,
        endpoint: &Endpoint,
        twin: &mut Twin,
        (own, is_asking): (&mut Option<u64>, bool),
    ) -> bool {
        if own.is_none() {
            self.advance_read(endpoint, twin);
            if twin.reading.is_some() || twin.pass.is_some() && self.advance_pass(endpoint, twin) != Step::Ended {
                return false;
            }
            twin.begin_pass(is_asking);
            *own = Some(twin.passes);
        }
        // One that began later began after the end of this one.
        Some(twin.passes) != *own || self.advance_pass(endpoint, twin) == Step::Ended
    }

    fn steps(&mut self, endpoint: &Endpoint, link: (Peer, Connection), twin: &mut Twin, pass: &mut Pass) -> Step {
        // What is on its way could overwrite what is newer.
        if !pass.is_comparing && twin.writes > 0 {
            return Step::Waits;
        }
        pass.is_comparing = true;
        if !self.write_waiting(endpoint, link.1, twin, pass) {
            return Step::Waits;
        }
        let mut budget = BUDGET;
        while pass.rest > twin.loaded.start {
            let block = pass.rest - 1;
            if !twin.is_compared(block) {
                pass.rest = block;
                continue;
            }
            if budget == 0 {
                return Step::More;
            }
            let staged = self.mirrors.staging.as_ref().and_then(|staging| staging.find());
            let has_room = !self.links.is_backed_up(link.0) && !twin.patches.are_many();
            let Some(staged) = staged.filter(|_| has_room) else { return Step::Waits };
            (pass.rest, budget) = (block, budget - 1);
            // Kept, because its pages would be made anew for each block.
            let mut found = std::mem::take(&mut twin.found);
            twin.find(block, &mut found);
            self.send_found(endpoint, (link.1, staged), twin, (pass, &mut found));
            found.clear();
            twin.found = found;
            if !self.write_waiting(endpoint, link.1, twin, pass) {
                return Step::Waits;
            }
        }
        // What the program has stored to its own segments before the last line goes before it.
        if !pass.waiting.is_empty() {
            self.tell_changes(endpoint, link.0);
        }
        if self.links.is_backed_up(link.0) || !self.write_last(endpoint, link.1, twin, pass) {
            return Step::Waits;
        }
        if !pass.last.is_empty() {
            if twin.writes > 0 {
                return Step::Waits;
            }
            let (last, runs) = (std::mem::take(&mut pass.last), std::mem::take(&mut pass.runs));
            self.send_patches(endpoint, link.1, twin, (&runs, &last, pass.is_asking));
        }
        Step::Ended
    }

    /// Something was found in the block that the pass has come to: it is compared soon again. The
    /// last line of the pass is kept apart.
    pub(super) fn note_found(&mut self, twin: &mut Twin, (pass, found): (&mut Pass, &mut Found)) {
        let now = Instant::now();
        twin.changed[pass.rest] = now;
        if twin.pause > SHORT {
            (twin.pause, twin.next) = (SHORT, now + SHORT);
            self.mirrors.wake();
        }
        if twin.reread.note_store(now, twin.loaded.len()) {
            self.mirrors.wake();
        }
        if pass.last.is_empty() {
            let words = &twin.words;
            pass.last = found.take_last_line(|place| words[place as usize]);
        }
    }

    /// Sends what was found in a block, but for the last line of the pass.
    fn send_found(
        &mut self,
        endpoint: &Endpoint,
        (connection, staged): (Connection, usize),
        twin: &mut Twin,
        (pass, found): (&mut Pass, &mut Found),
    ) {
        if found.is_empty() {
            return;
        }
        self.note_found(twin, (pass, found));
        // The twin has what was found.
        let words = &twin.words;
        let word = |place: u64| words[place as usize];
        // An RMA could overtake a patch that was not confirmed.
        let (runs, others) = found.plan(twin.patches.places(), word);
        for places in runs {
            let words = &words[places.start as usize..places.end as usize];
            let offset = places.start as usize * WORD;
            let transfer = Transfer {
                token: twin.mirror.token,
                is_read: false,
                staged: staged + offset % BLOCK,
                offset,
                len: size_of_val(words),
                last: Vec::new(),
            };
            let operation = self.next();
            let Some(staging) = &mut self.mirrors.staging else { return };
            staging.memory.write(transfer.staged, bytes(words));
            staging.begin(transfer.staged);
            self.mirrors.transfers.insert(operation, transfer);
            pass.waiting.push_back(operation);
            pass.runs.push(places);
            twin.writes += 1;
        }
        self.send_patches(endpoint, connection, twin, (&[], &others, false));
    }

    /// Begins writes, but for the last one. False: there is no room for all.
    fn write_waiting(&mut self, endpoint: &Endpoint, connection: Connection, twin: &mut Twin, pass: &mut Pass) -> bool {
        while pass.waiting.len() > 1 {
            if !self.write(endpoint, connection, twin, (pass, None)) {
                return false;
            }
        }
        true
    }

    /// Begins the last write of a pass, with the last line as its message: the owner receives it
    /// once all bytes are in place. False: there is no room.
    fn write_last(&mut self, endpoint: &Endpoint, connection: Connection, twin: &mut Twin, pass: &mut Pass) -> bool {
        let Some(operation) = pass.waiting.front() else { return true };
        let Some(most) = connection.max_send_size() else { return true };
        let mut parts = emit_behind(&pass.runs, &pass.last, (most as usize).saturating_sub(HEADER));
        // More than one do not follow by themselves: they are sent once the write has ended.
        let Some((groups, places)) = parts.pop().filter(|_| parts.is_empty()) else {
            return self.write(endpoint, connection, twin, (pass, None));
        };
        if let Some(transfer) = self.mirrors.transfers.get_mut(operation) {
            transfer.last = pass.last.iter().map(|change| (change.place, change.mask)).collect();
        }
        let is_asking = pass.is_asking || twin.patches.are_unasked();
        let (token, number) = (twin.mirror.token, (twin.patches.sent + 1) as u32);
        let message = Message::Patch { token, number, is_asking, groups: groups.clone() }.emit();
        if !self.write(endpoint, connection, twin, (pass, Some(&message))) {
            return false;
        }
        pass.last.clear();
        pass.runs.clear();
        twin.patches.note(places, groups, is_asking);
        true
    }

    /// Begins the first write that waits. False: there is no room.
    fn write(
        &mut self,
        endpoint: &Endpoint,
        connection: Connection,
        twin: &mut Twin,
        (pass, message): (&mut Pass, Option<&[u8]>),
    ) -> bool {
        let Some(operation) = pass.waiting.front() else { return true };
        let found = self.mirrors.transfers.get(operation).zip(self.mirrors.staging.as_ref());
        let Some((transfer, staging)) = found else {
            pass.waiting.pop_front();
            return true;
        };
        let rma = Rma::new(staging.handle(), &twin.handle, transfer.len as u64)
            .local_offset(transfer.staged as u64)
            .remote_offset(transfer.offset as u64)
            .message(message);
        // Others are on their way: the message follows them too.
        let rma = if message.is_some() && twin.writes > 1 { rma.fence() } else { rma };
        match endpoint.write(connection, &rma, Operation::mirror(*operation)) {
            Ok(()) => {
                pass.waiting.pop_front();
            }
            Err(RmaError::NoBuffers) => return false,
            Err(_) => {
                let operation = pass.waiting.pop_front();
                let transfer = operation.and_then(|operation| self.end_transfer(operation));
                transfer.into_iter().for_each(|transfer| twin.end_write(&transfer, false));
            }
        }
        true
    }

    /// Sends changes in rising order, in order, behind runs that RMAs have written. With
    /// `is_asking` the owner confirms the last one.
    fn send_patches(
        &mut self,
        endpoint: &Endpoint,
        connection: Connection,
        twin: &mut Twin,
        (runs, changes, is_asking): (&[Range<u64>], &[Change], bool),
    ) {
        let Some(most) = connection.max_send_size() else { return };
        let room = (most as usize).saturating_sub(HEADER).min(MOST_BYTES);
        let mut parts = emit_behind(runs, changes, room).into_iter().peekable();
        while let Some((groups, places)) = parts.next() {
            let is_asking = is_asking && parts.peek().is_none() || twin.patches.are_unasked();
            twin.patches.note(places, groups.clone(), is_asking);
            self.send_patch(endpoint, twin, groups, is_asking);
        }
    }

    fn send_patch(&mut self, endpoint: &Endpoint, twin: &Twin, groups: super::Groups, is_asking: bool) {
        let (token, number) = (twin.mirror.token, twin.patches.sent as u32);
        self.send(endpoint, twin.partner, Message::Patch { token, number, is_asking, groups });
    }

    /// Asks the owner to confirm all patches; the number of the last one.
    pub(crate) fn ask(&mut self, endpoint: &Endpoint, twin: &mut Twin) -> u64 {
        if let Some(id) = twin.group {
            return self.ask_group(endpoint, id, twin);
        }
        if twin.patches.asked < twin.patches.sent {
            twin.patches.sent += 1;
            twin.patches.asked = twin.patches.sent;
            let groups = super::Groups { first: 0, bytes: Vec::new() };
            self.send_patch(endpoint, twin, groups, true);
        }
        twin.patches.sent
    }

    /// The owner has confirmed a patch.
    pub(crate) fn on_applied(&mut self, from: crate::partner::Partner, token: u64, number: u32) {
        let Some(twin) = self.mirrors.all.get_mut(&token).filter(|twin| twin.partner == from) else { return };
        twin.patches.confirm(number);
        self.mirrors.ended += 1;
        self.waits.has_changed = true;
    }

    fn end_transfer(&mut self, operation: u64) -> Option<Transfer> {
        let transfer = self.mirrors.transfers.remove(&operation)?;
        if let Some(staging) = &mut self.mirrors.staging {
            staging.end(transfer.staged);
        }
        Some(transfer)
    }

    /// An RMA of a mirror has ended.
    pub(crate) fn on_mirror_ended(&mut self, endpoint: &Endpoint, operation: u64, is_ok: bool) {
        // Read before its memory is another one's.
        let transfer = self.mirrors.transfers.get(&operation);
        let bytes = transfer.filter(|transfer| transfer.is_read && is_ok).and_then(|transfer| {
            let staging = self.mirrors.staging.as_ref()?;
            Some(staging.memory.to_vec(transfer.staged, transfer.len))
        });
        let Some(transfer) = self.end_transfer(operation) else { return };
        self.mirrors.ended += 1;
        self.waits.has_changed = true;
        self.with_twin(transfer.token, |state, twin| {
            if transfer.is_read {
                state.on_read(endpoint, twin, &transfer, bytes);
                return;
            }
            twin.end_write(&transfer, is_ok);
            if !is_ok {
                state.mirrors.wake();
            }
            state.advance_pass(endpoint, twin);
        });
    }
}

impl Twin {
    /// A write has ended, or has not begun. What has failed is sent again.
    fn end_write(&mut self, transfer: &Transfer, is_ok: bool) {
        self.writes = self.writes.saturating_sub(1);
        if is_ok {
            return;
        }
        let first = (transfer.offset / WORD) as u64;
        self.failed.extend((first..first + (transfer.len / WORD) as u64).map(|place| (place, u8::MAX)));
        for (place, mask) in &transfer.last {
            *self.failed.entry(*place).or_default() |= mask;
        }
        self.mirror.note_failure();
    }
}
