//! Mirrors of a broadcast group: what has changed goes to all hosts, by messages alone
//! (`docs/design/sci.md`, Broadcast).

use crate::errors::Error;
use crate::mirror::changes::Change;
use crate::mirror::memory::Mirror;
use crate::mirror::pass::{BUDGET, Step};
use crate::mirror::patch::emit;
use crate::mirror::state::{Mirrors, Pass, Transfer, Twin};
use crate::state::State;
use cci::{Endpoint, RmaHandle};
use std::ops::Range;
use std::sync::Arc;

/// The places that no RMA may write: a group has no owner whose memory one could name.
const EVERYWHERE: Range<u64> = 0..u64::MAX;

impl Mirrors {
    /// Makes a mirror of all segments of a group.
    pub(crate) fn enter_group(
        &mut self,
        endpoint: &Endpoint,
        token: u64,
        (group, len): (u32, u64),
    ) -> Result<Arc<Mirror>, Error> {
        // It has no owner whose memory an RMA could name.
        let mirror = self.enter(endpoint, (None, token), (RmaHandle::from_words([0; 4]), len))?;
        if let Some(twin) = self.all.get_mut(&token) {
            twin.group = Some(group);
        }
        Ok(mirror)
    }
}

impl State {
    /// Goes on with a pass of a group's mirror.
    pub(super) fn cast_steps(&mut self, endpoint: &Endpoint, id: u32, twin: &mut Twin, pass: &mut Pass) -> Step {
        let mut budget = BUDGET;
        while pass.rest > twin.loaded.start {
            let block = pass.rest - 1;
            if !twin.is_compared(block) {
                pass.rest = block;
                continue;
            }
            if !self.may_cast(id) {
                return Step::Waits;
            }
            if budget == 0 {
                return self.go_on_later();
            }
            (pass.rest, budget) = (block, budget - 1);
            let mut found = std::mem::take(&mut twin.found);
            twin.find(block, &mut found);
            if !found.is_empty() {
                self.note_found(twin, (pass, &mut found));
                let words = &twin.words;
                let (_, changes) = found.plan(std::iter::once(&EVERYWHERE), |place| words[place as usize]);
                self.cast_changes(endpoint, id, twin, &changes);
            }
            found.clear();
            twin.found = found;
        }
        self.cast_changes(endpoint, id, twin, &std::mem::take(&mut pass.last));
        Step::Ended
    }

    /// Others may have the lock; who drives goes on at once.
    fn go_on_later(&mut self) -> Step {
        self.mirrors.ended += 1;
        self.waits.has_changed = true;
        Step::More
    }

    fn cast_changes(&mut self, endpoint: &Endpoint, id: u32, twin: &mut Twin, changes: &[Change]) {
        for (groups, _) in emit(changes, self.most_of_cast(id)) {
            twin.patches.sent += 1;
            self.cast(endpoint, id, (twin.mirror.token, twin.patches.sent, false), groups);
        }
    }

    /// Asks all hosts of a group to confirm what they were sent.
    pub(super) fn ask_group(&mut self, endpoint: &Endpoint, id: u32, twin: &mut Twin) -> u64 {
        if twin.patches.asked < twin.patches.sent {
            twin.patches.sent += 1;
            twin.patches.asked = twin.patches.sent;
            let groups = super::Groups { first: 0, bytes: Vec::new() };
            if self.cast(endpoint, id, (twin.mirror.token, twin.patches.sent, true), groups) {
                twin.patches.confirmed = twin.patches.sent;
            }
        }
        twin.patches.sent
    }

    /// Reads some blocks from the memory of the group on this host.
    pub(super) fn read_commons(&mut self, endpoint: &Endpoint, id: u32, twin: &mut Twin) {
        let memory = self.groups.get(&id).map(|group| group.commons.memory());
        for _ in 0..BUDGET {
            let Some(block) = twin.next_read() else { return };
            let (offset, len) = twin.mirror.span(block);
            let mut bytes = vec![0; len];
            let is_read = memory.as_ref().is_some_and(|memory| memory.copy_out(offset as u64, &mut bytes));
            let transfer =
                Transfer { token: twin.mirror.token, is_read: true, staged: 0, offset, len, last: Vec::new() };
            self.note_read(endpoint, twin, &transfer, is_read.then_some(bytes));
        }
        self.go_on_later();
    }
}
