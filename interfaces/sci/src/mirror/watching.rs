//! The side of a mirror: a first store waits until its block is what the owner has, and the owner
//! sends what changes while the program stores (`docs/design/sci-mirror.md`, What the owner
//! stores).

use crate::mirror::changes::Change;
use crate::mirror::memory::{BLOCK, Block};
use crate::mirror::patch::{Groups, changes_of};
use crate::mirror::reading::Watching;
use crate::mirror::shadow::sums_of;
use crate::mirror::state::Twin;
use crate::mirror::watch::Watch;
use crate::mirror::words::{WORD, mask_of, merge, whole_mask};
use crate::partner::Partner;
use crate::state::State;
use crate::wire::Message;
use cci::Endpoint;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How long a first store waits for the owner, at most.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the owner watches a block behind its last change. A program that stores once in a
/// millisecond waits for nobody.
const WATCHED: Duration = Duration::from_millis(4);
/// Blocks behind one that are asked for along with it: twice as many for each block before it that
/// is stored to, this many times at most.
const DOUBLED: usize = 4;
/// Blocks of a mirror that are watched where stores cannot be waited for.
const MOST_OPEN: usize = 16;

/// What the program sees of a word that its mirror knew, and that its owner has changed.
fn seen(known: u64, own: u64, word: u64) -> u64 {
    merge(word, own, whole_mask(mask_of(known ^ own), mask_of(known ^ word)))
}

impl Twin {
    pub(super) fn is_watched(&self, block: usize) -> bool {
        self.watching.contains_key(&block)
    }

    /// Whether the owner has answered since it was asked to watch a block.
    pub(super) fn is_answered(&self, block: usize) -> bool {
        self.watching.get(&block).is_some_and(|of| of.is_answered)
    }

    /// Which bytes of a range of words are on their way to the owner, or are about to be: what it
    /// has sent of them is older.
    fn masks(&self, range: Range<u64>) -> BTreeMap<u64, u8> {
        let mut masks = BTreeMap::new();
        self.patches.add_masks(&range, &mut masks);
        for (place, mask) in self.failed.range(range.clone()) {
            *masks.entry(*place).or_default() |= mask;
        }
        if let Some(pass) = &self.pass {
            for change in pass.last.iter().filter(|change| range.contains(&change.place)) {
                *masks.entry(change.place).or_default() |= change.mask;
            }
            for place in pass.runs.iter().flat_map(|run| run.start.max(range.start)..run.end.min(range.end)) {
                masks.insert(place, u8::MAX);
            }
        }
        masks
    }

    /// Takes words of a block over, of which bytes that the program has changed stay, and are sent.
    /// False: they have nothing new.
    pub(super) fn take_words(&mut self, watch: Option<&Watch>, changes: &[Change]) -> bool {
        let Some(block) = changes.first().map(|change| change.place as usize * WORD / BLOCK) else { return false };
        match watch.filter(|_| self.mirror.block(block).is_protected()) {
            Some(watch) => self.take_quietly(watch, changes),
            None => self.take_openly(changes),
        }
    }

    fn take_openly(&mut self, changes: &[Change]) -> bool {
        changes.iter().filter(|change| self.take_word(change)).count() > 0
    }

    fn take_word(&mut self, change: &Change) -> bool {
        let (place, region) = (change.place as usize, &self.mirror.region);
        let known = &mut self.words[place];
        // Bytes behind the end of the segment stay as they are.
        let word = merge(*known, change.value, change.mask);
        if word == *known {
            return false;
        }
        loop {
            let own = region.load(place);
            if region.replace(place, own, seen(*known, own, word)) {
                break;
            }
        }
        *known = word;
        true
    }

    /// Of a block that is protected whole pages are replaced: no store of the program may come
    /// before a word is taken over, as it could not be told from none.
    fn take_quietly(&mut self, watch: &Watch, changes: &[Change]) -> bool {
        let page = rustix::param::page_size() / WORD;
        let mut any = false;
        for changes in changes.chunk_by(|one, next| one.place as usize / page == next.place as usize / page) {
            let first = changes[0].place as usize / page * page;
            let mut words: Vec<_> = (first..first + page).map(|place| self.mirror.region.load(place)).collect();
            let mut is_new = false;
            for Change { place, mask, value } in changes {
                let known = self.words[*place as usize];
                let (word, own) = (merge(known, *value, *mask), &mut words[*place as usize - first]);
                is_new |= word != known;
                *own = seen(known, *own, word);
            }
            any |= is_new;
            if is_new && !watch.replace(&self.mirror, first * WORD, &words) {
                // The first store has come, to a block that waits for nobody.
                self.take_openly(changes);
                continue;
            }
            for Change { place, mask, value } in changes {
                let known = &mut self.words[*place as usize];
                *known = merge(*known, *value, *mask);
            }
        }
        any
    }

    /// Takes what the owner has sent of blocks that it watches.
    fn take_changes(&mut self, watch: &Watch, changes: &[Change]) {
        let block_of = |change: &Change| change.place as usize * WORD / BLOCK;
        for changes in changes.chunk_by(|one, next| block_of(one) == block_of(next)) {
            let block = block_of(&changes[0]);
            let is_quiet = self.mirror.block(block) == Block::Quiet;
            match self.watching.get_mut(&block) {
                None => {}
                Some(of) if is_quiet && !of.is_answered => {
                    of.changes.extend(changes.iter().map(|change| (change.place, *change)));
                }
                Some(_) => self.take_block(watch, changes),
            }
        }
    }

    /// Takes what the owner has sent of a block.
    fn take_block(&mut self, watch: &Watch, changes: &[Change]) {
        let Some((first, last)) = changes.first().zip(changes.last()) else { return };
        let masks = self.masks(first.place.min(last.place)..first.place.max(last.place) + 1);
        let left = |change: &Change| {
            let on_way = masks.get(&change.place).copied().unwrap_or_default();
            // The owner has a store that is on its way whole, if both have changed a byte.
            Change { mask: change.mask & !whole_mask(on_way, change.mask), ..*change }
        };
        let changes: Vec<_> = changes.iter().map(left).collect();
        self.changes += u64::from(self.take_words(Some(watch), &changes));
    }
}

impl State {
    /// Asks the owner what it has in a block, and what changes there from then on. False: RMAs to
    /// the block are to end before, which it could not tell from stores of its program.
    fn ask_watch(&mut self, endpoint: &Endpoint, twin: &mut Twin, block: usize, is_read: bool) -> bool {
        let Ok(number) = u32::try_from(block) else { return false };
        let (offset, len) = twin.mirror.span(block);
        let words = (offset / WORD) as u64..(offset + len).div_ceil(WORD) as u64;
        let is_written = self.mirrors.is_written(twin.mirror.token, offset..offset + len);
        if is_written || twin.failed.range(words).next().is_some() {
            return false;
        }
        let sums = sums_of(&twin.words[offset / WORD..][..len.div_ceil(WORD)]);
        twin.watching
            .insert(block, Watching { since: Instant::now(), is_answered: false, is_read, changes: BTreeMap::new() });
        self.send(endpoint, twin.partner, Message::Watch { token: twin.mirror.token, block: number, sums });
        true
    }

    /// Reads a block that is watched: an RMA would not know what is on its way. False: later.
    pub(super) fn read_watched(&mut self, endpoint: &Endpoint, twin: &mut Twin, block: usize) -> bool {
        if let Some(of) = twin.watching.get_mut(&block).filter(|of| !of.is_answered) {
            of.is_read = true;
            return true;
        }
        self.ask_watch(endpoint, twin, block, true)
    }

    /// A block whose stores cannot be waited for is watched from its first read on.
    pub(super) fn watch_open(&mut self, endpoint: &Endpoint, twin: &mut Twin, block: usize) {
        if twin.watching.len() < MOST_OPEN {
            self.ask_watch(endpoint, twin, block, false);
        }
    }

    /// A first store waits for a block. It goes on once the owner has answered, or did not. False:
    /// the owner is not asked yet.
    pub(super) fn serve_store(
        &mut self,
        endpoint: &Endpoint,
        twin: &mut Twin,
        watch: &Watch,
        (block, since): (usize, Instant),
    ) -> bool {
        let is_late = since.elapsed() > PATIENCE;
        if is_late || twin.mirror.block(block) != Block::Quiet {
            twin.mirror.set_waiting(!is_late);
            watch.open(&twin.mirror, block);
        } else if twin.watching.get(&block).is_none_or(|of| of.is_answered) {
            if !self.ask_watch(endpoint, twin, block, false) {
                return false;
            }
            self.ask_ahead(endpoint, twin, block);
        }
        true
    }

    /// A program that stores to block after block waits for some of them: those behind are asked
    /// for before it comes to them.
    pub(super) fn ask_ahead(&mut self, endpoint: &Endpoint, twin: &mut Twin, block: usize) {
        let is_open = |back: &usize| block.checked_sub(*back).is_some_and(|at| twin.mirror.block(at).is_open());
        let before = (1..=DOUBLED + 1).take_while(is_open).count();
        let count = if before == 0 { 0 } else { 1 << (before - 1) };
        let is_backed_up = twin.partner.is_some_and(|peer| self.links.is_backed_up(peer));
        for next in block + 1..(block + 1 + count).min(twin.loaded.end) {
            let is_asked = twin.mirror.block(next) != Block::Quiet || twin.is_watched(next);
            if is_backed_up || !is_asked && !self.ask_watch(endpoint, twin, next, false) {
                return;
            }
        }
    }

    /// Reads do not wait for an owner that has not answered for long.
    pub(super) fn give_up_reads(&mut self, endpoint: &Endpoint, twin: &mut Twin, watch: &Watch) {
        let late = twin.watching.iter().filter(|(_, of)| of.is_read && of.since.elapsed() > PATIENCE);
        for block in late.map(|(block, _)| *block).collect::<Vec<_>>() {
            if let Some(reading) = &mut twin.reading {
                reading.open = reading.open.saturating_sub(1);
                reading.has_failed = true;
            }
            watch.turn(&twin.mirror, block, [Block::Watched, Block::Quiet]);
            self.unwatch(endpoint, twin, block);
        }
    }

    fn unwatch(&mut self, endpoint: &Endpoint, twin: &mut Twin, block: usize) {
        twin.watching.remove(&block);
        self.send(endpoint, twin.partner, Message::Unwatch { token: twin.mirror.token, block: block as u32 });
    }

    /// Blocks that were protected for a while, and of which all is sent, are watched no more. How
    /// long it is until the next one is not.
    pub(super) fn unwatch_quiet(&mut self, endpoint: &Endpoint, twin: &mut Twin, watch: &Watch) -> Option<Duration> {
        if twin.pass.is_some() {
            return None;
        }
        let now = Instant::now();
        let is_quiet = |block: &usize| twin.mirror.block(*block) == Block::Watched && !twin.unsure.contains(block);
        let left = |block: usize| (twin.changed[block] + WATCHED).saturating_duration_since(now);
        let of_quiet = twin.watching.iter().filter(|(block, of)| of.is_answered && !of.is_read && is_quiet(block));
        let quiet: Vec<_> = of_quiet.map(|(block, _)| (*block, left(*block))).collect();
        for (block, _) in quiet.iter().filter(|(_, left)| left.is_zero()) {
            // Unless a first store has come.
            if watch.turn(&twin.mirror, *block, [Block::Watched, Block::Quiet]) {
                self.unwatch(endpoint, twin, *block);
            }
        }
        quiet.into_iter().map(|(_, left)| left).filter(|left| !left.is_zero()).min()
    }

    /// What the program of the owner has stored, or what a block has that was asked for.
    pub(crate) fn on_changed(
        &mut self,
        endpoint: &Endpoint,
        (from, token): (Partner, u64),
        number: u32,
        groups: &Groups,
    ) {
        let Some(watch) = self.mirrors.watch.clone().filter(|_| self.has_mirror(from, token)) else { return };
        // It has applied what is behind.
        self.on_applied(from, token, number);
        let is_right = self.with_twin(token, |_, twin| {
            let changes = changes_of(groups, twin.mirror.len);
            changes.map(|changes| twin.take_changes(&watch, &changes)).is_some()
        });
        if let Some(peer) = from.filter(|_| is_right == Some(false)) {
            self.break_link(endpoint, peer);
        }
    }

    /// The owner has sent what a block has.
    pub(crate) fn on_watched(&mut self, endpoint: &Endpoint, (from, token): (Partner, u64), block: u32) {
        let Some(watch) = self.mirrors.watch.clone().filter(|_| self.has_mirror(from, token)) else { return };
        self.with_twin(token, |state, twin| {
            twin.mirror.set_waiting(true);
            let block = block as usize;
            let Some(of) = twin.watching.get_mut(&block).filter(|of| !of.is_answered) else { return };
            of.is_answered = true;
            let changes: Vec<_> = std::mem::take(&mut of.changes).into_values().collect();
            if std::mem::take(&mut of.is_read)
                && let Some(reading) = &mut twin.reading
            {
                reading.open = reading.open.saturating_sub(1);
            }
            let is_quiet = twin.mirror.block(block) == Block::Quiet;
            twin.take_block(&watch, &changes);
            if is_quiet {
                twin.changed[block] = Instant::now();
                if watch.has_store((token, block)) {
                    watch.open(&twin.mirror, block);
                } else {
                    // It was asked for ahead, or read. A store that has just come finds it so.
                    watch.turn(&twin.mirror, block, [Block::Quiet, Block::Watched]);
                }
            }
            state.advance_read(endpoint, twin);
        });
        self.mirrors.ended += 1;
        self.waits.has_changed = true;
        self.mirrors.wake();
    }

    fn has_mirror(&self, from: Partner, token: u64) -> bool {
        self.mirrors.all.get(&token).is_some_and(|twin| twin.partner == from && twin.group.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::fixture::{connected, connected_to, connected_with, until};
    use crate::{Access, Host, Options};
    use cci_conformance::LIMIT;

    /// Whether something is so of a host's only mirror.
    fn is_so(host: &Host, act: impl FnOnce(&mut Twin) -> bool) -> bool {
        host.shared.with_quietly(|state| Ok(state.mirrors.all.values_mut().next().is_some_and(|twin| act(twin))))
            == Ok(true)
    }

    /// Whether the system lets this user watch stores to the mirror of a host, which is new.
    fn watches_stores(host: &Host) -> bool {
        is_so(host, |twin| twin.mirror.block(0) == Block::Quiet)
    }

    /// Stores to the first block until it has this state, and has it stay so.
    fn bring_to(host: &Host, is_right: fn(Block) -> bool, mut store: impl FnMut()) {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < LIMIT, "the block is never so");
            store();
            let mut is_quiet = false;
            while !is_quiet {
                let is_found = is_so(host, |twin| {
                    let state = twin.mirror.block(0);
                    is_quiet = state == Block::Quiet;
                    if is_right(state) {
                        twin.changed[0] = Instant::now() + 2 * LIMIT;
                    }
                    is_right(state)
                });
                if is_found {
                    return;
                }
                std::thread::yield_now();
            }
        }
    }

    /// The owner sends what changes, but cannot answer.
    #[test]
    fn a_store_to_a_watched_block_waits_for_nobody() {
        let (owner, segment, other, far) = connected();
        let own = segment.map(0..4096, Access::ReadWrite).expect("mapped");
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        if !watches_stores(&other) {
            return;
        }
        let mut last = 0_u64;
        bring_to(
            &other,
            |state| state == Block::Watched,
            || {
                last += 1;
                window.store(64, last).expect("inside");
                until("the store", &|| own.load(64) == Ok(last));
            },
        );
        // What it changes meanwhile is seen before the message that it sends then.
        own.store(72, 5_u64).expect("inside");
        let is_stopped = owner.shared.lock().expect("open");
        window.store(64, 0_u64).expect("inside");
        assert!(is_so(&other, |twin| twin.mirror.is_waiting() && twin.mirror.block(0).is_open()), "it has waited");
        drop(is_stopped);
        until("the last store", &|| own.load(64) == Ok(0_u64));
    }

    /// It stores to one block after the other.
    #[test]
    fn blocks_behind_those_that_are_stored_to_are_asked_for() {
        let (owner, segment, other, far) = connected_to(8 * BLOCK, Options::new());
        let own = segment.map(0..8 * BLOCK, Access::ReadWrite).expect("mapped");
        let window = far.map(0..8 * BLOCK, Access::ReadWrite).expect("mapped");
        if !watches_stores(&other) {
            return;
        }
        let mut last = 0_u64;
        bring_to(
            &other,
            |state| state == Block::Open,
            || {
                last += 1;
                window.store(0, last).expect("inside");
                until("a store", &|| own.load(0) == Ok(last));
            },
        );
        std::thread::scope(|scope| {
            let is_stopped = owner.shared.lock().expect("open");
            let store = scope.spawn(|| window.store(BLOCK, 7_u64));
            until("the next one", &|| is_so(&other, |twin| twin.is_watched(1) && twin.is_watched(2)));
            assert!(is_so(&other, |twin| (3..8).all(|block| !twin.is_watched(block))), "one is enough");
            drop(is_stopped);
            assert_eq!(store.join().expect("no panic"), Ok(()));
        });
        until("the store", &|| own.load(BLOCK) == Ok(7_u64));
        assert!(is_so(&other, |twin| !twin.mirror.block(2).is_open()), "nobody has stored to it");
    }

    /// It was on its way when the owner sent what its program had stored: the owner has it whole.
    #[test]
    fn a_store_that_crosses_what_the_owner_sends_stays_whole() {
        let (_owner, _segment, other, far) = connected_with(Options::new().protect(false));
        let _window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        for (mask, expected) in [(0b11, 0x1aa_u64), (0b10, 0xaa)] {
            let is_whole = other.shared.with_quietly(|state| {
                let watch = state.mirrors.watch.clone().expect("a mirror");
                let twin = state.mirrors.all.values_mut().next().expect("a mirror");
                let value = 0x1aa_u64.to_le();
                twin.mirror.region.set(8, value);
                twin.words[8] = value;
                let groups = crate::mirror::emit(&[Change { place: 8, mask: 1, value }], 1000).remove(0).0;
                twin.patches.note(8..9, groups, false);
                twin.take_block(&watch, &[Change { place: 8, mask, value: 0 }]);
                let has = [twin.words[8], twin.mirror.region.load(8)];
                // As before: nothing of this was sent.
                twin.patches = crate::mirror::patches::Patches::default();
                twin.mirror.region.set(8, 0);
                twin.words[8] = 0;
                Ok(has == [expected.to_le(); 2])
            });
            assert_eq!(is_whole, Ok(true), "{mask:b}");
        }
    }

    /// Nothing else is sent: the first store to a quiet window waits for what the owner has.
    #[test]
    fn a_value_that_the_owner_takes_back_is_stored_again() {
        let (_owner, segment, other, far) = connected();
        let own = segment.map(0..4096, Access::ReadWrite).expect("mapped");
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        let state = || {
            other.shared.with_quietly(|state| {
                let twin = state.mirrors.all.values().next();
                Ok(twin.map(|twin| (twin.mirror.block(0), twin.watching.is_empty())))
            })
        };
        if state() != Ok(Some((Block::Quiet, true))) {
            // The system lets this user not watch stores.
            return;
        }
        // One that is the same, and one that shares bytes.
        for value in [0x154_u32, 0x154, 0x1aa, 0x154] {
            window.store(64, value).expect("inside");
            until("the store", &|| own.load(64) != Ok(0_u32));
            assert_eq!(own.load(64), Ok(value));
            until("it is quiet", &|| state() == Ok(Some((Block::Quiet, true))));
            own.store(64, 0_u32).expect("inside");
        }
    }
}
