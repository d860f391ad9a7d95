//! What a program has changed: words compared with a twin, and how the changes are sent
//! (`docs/design/sci-mirror.md`, A pass). No memory and no message is known here.

use crate::mirror::words::{LINE, Line, Source, is_whole, mask_of};
use std::ops::Range;

/// Words that have changed as a whole, in a row, from which on an RMA sends them.
const BULK: u64 = 64;

/// A word in which bytes have changed. Places count words of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) place: u64,
    /// Bit i: byte i, in the order of memory.
    pub(crate) mask: u8,
    pub(crate) value: u64,
}

/// What has changed in a row of words, from the last to the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Places of words in a row that have changed in all their bytes.
    runs: Vec<Range<u64>>,
    others: Vec<Change>,
}

impl Found {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.others.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.others.clear();
    }

    /// Adds a word that has changed in these bits. All that were added before lie behind it.
    #[inline]
    fn add(&mut self, place: u64, bits: u64, value: u64) {
        if !is_whole(bits) {
            self.others.push(Change { place, mask: mask_of(bits), value });
            return;
        }
        match self.runs.last_mut() {
            Some(run) if run.start == place + 1 => run.start = place,
            _ => self.runs.push(place..place + 1),
        }
    }

    /// Adds words that have all changed in all their bytes, as `add` adds one.
    #[inline]
    fn add_run(&mut self, places: Range<u64>) {
        match self.runs.last_mut() {
            Some(run) if run.start == places.end => run.start = places.start,
            _ => self.runs.push(places),
        }
    }

    /// Adds bytes of words, by places and masks, that are to be sent though they have not changed.
    /// No place comes twice. `word` gives the value of a word, here and below.
    pub(crate) fn add_again(&mut self, again: &[(u64, u8)], word: impl Fn(u64) -> u64) {
        let count = self.others.len();
        for (place, mask) in again {
            if self.runs.iter().any(|run| run.contains(place)) {
                continue;
            }
            match self.others[..count].iter_mut().find(|change| change.place == *place) {
                Some(change) => change.mask |= mask,
                None => self.others.push(Change { place: *place, mask: *mask, value: word(*place) }),
            }
        }
        self.others.sort_by_key(|change| std::cmp::Reverse(change.place));
    }

    /// Takes out what has changed from a place on, in rising order.
    pub(crate) fn split_from(&mut self, from: u64, word: impl Fn(u64) -> u64) -> Vec<Change> {
        let count = self.others.iter().take_while(|change| change.place >= from).count();
        let mut tail: Vec<_> = self.others.drain(..count).collect();
        while let Some(run) = self.runs.first_mut().filter(|run| run.end > from) {
            let cut = run.start.max(from);
            tail.extend((cut..run.end).map(|place| Change { place, mask: u8::MAX, value: word(place) }));
            run.end = cut;
            if run.is_empty() {
                self.runs.remove(0);
            }
        }
        tail.sort_by_key(|change| change.place);
        tail
    }

    /// Takes the changes of the last changed line out, in rising order.
    pub(crate) fn take_last_line(&mut self, word: impl Fn(u64) -> u64) -> Vec<Change> {
        let of_run = self.runs.first().map(|run| run.end - 1);
        let last = self.others.first().map(|change| change.place).max(of_run);
        last.map_or(Vec::new(), |last| self.split_from(last / LINE * LINE, word))
    }

    /// Sends of a last word only what lies before the end of the segment.
    pub(crate) fn cut_last(&mut self, place: u64, mask: u8, word: impl Fn(u64) -> u64) {
        for mut change in self.split_from(place, word) {
            change.mask &= mask;
            if change.mask != 0 {
                self.others.insert(0, change);
            }
        }
    }

    /// All that was found, in rising order: the runs that are long and go by RMA, and all other
    /// changes. No RMA has words of `barred`.
    pub(crate) fn plan<'a>(
        &self,
        barred: impl Iterator<Item = &'a Range<u64>> + Clone,
        word: impl Fn(u64) -> u64,
    ) -> (Vec<Range<u64>>, Vec<Change>) {
        let (mut runs, mut others) = (Vec::new(), self.others.clone());
        for run in self.runs.iter().rev() {
            let mut from = run.start;
            while from < run.end {
                // Up to the next barred word, or behind it.
                let ends = barred.clone().filter(|barred| barred.end > from && barred.start < run.end);
                let next = ends.min_by_key(|barred| barred.start).cloned().unwrap_or(run.end..run.end);
                let free = from..next.start.max(from);
                let is_long = free.end - free.start >= BULK;
                let end = if is_long { free.end } else { next.end.max(free.end).min(run.end) };
                if is_long {
                    runs.push(free);
                } else {
                    others.extend((from..end).map(|place| Change { place, mask: u8::MAX, value: word(place) }));
                }
                from = end;
            }
        }
        others.sort_unstable_by_key(|change| change.place);
        (runs, others)
    }
}

/// Compares words with their twins, from the last to the first, and brings the twins up to date.
/// `first` is the place of the first one, which begins a line.
pub(crate) fn compare(source: &impl Source, twin: &mut [u64], first: u64, found: &mut Found) {
    let (lines, tail) = twin.as_chunks_mut::<{ LINE as usize }>();
    let behind = lines.len() * LINE as usize;
    for (at, known) in tail.iter_mut().enumerate().rev() {
        let word = source.word(behind + at);
        if word != *known {
            found.add(first + (behind + at) as u64, word ^ *known, word);
            *known = word;
        }
    }
    let mut rest = lines.len();
    while rest > 0 {
        let (top, left) = source.advance(&mut lines[..rest]);
        let place = |line: usize| first + (line as u64) * LINE;
        if left < top {
            found.add_run(place(left)..place(top));
        } else if left > 0 {
            // Some bytes of this line have changed. It is loaded again, before any below it.
            add_changed(place(left - 1), source.line(left - 1), &mut lines[left - 1], found);
        }
        rest = if left < top { left } else { left.saturating_sub(1) };
    }
}

/// Adds the words of a line that have changed.
#[inline]
fn add_changed(place: u64, words: Line, known: &mut Line, found: &mut Found) {
    for at in (0..LINE as usize).rev().filter(|at| words[*at] != known[*at]) {
        found.add(place + at as u64, words[at] ^ known[at], words[at]);
    }
    *known = words;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::words::{ONES, WORD, merge};

    impl<F: Fn(usize) -> u64> Source for F {
        fn word(&self, at: usize) -> u64 {
            self(at)
        }
    }

    fn compared(words: &[u64], twin: &mut [u64]) -> Found {
        let mut found = Found::default();
        compare(&|at: usize| words[at], twin, 0, &mut found);
        found
    }

    fn whole(place: u64) -> Change {
        Change { place, mask: u8::MAX, value: place }
    }

    /// The only run.
    fn row(places: Range<u64>) -> Vec<Range<u64>> {
        [places].into()
    }

    #[test]
    fn bytes_that_differ_are_found_from_the_top() {
        let mut words = [0_u64; 20];
        words[3] = u64::from_ne_bytes([0, 1, 0, 2, 0, 0, 0, 0]);
        (words[18], words[19]) = (u64::MAX, ONES);
        let mut twin = [0; 20];
        let found = compared(&words, &mut twin);
        let others = vec![Change { place: 3, mask: 0b1010, value: words[3] }];
        assert_eq!(found, Found { runs: row(18..20), others });
        assert!(twin == words && compared(&words, &mut twin.clone()).is_empty());
    }

    /// A store that comes while words are compared is not sent without those before it.
    #[test]
    fn the_last_word_never_comes_without_what_was_stored_before() {
        use std::cell::Cell;
        for moment in 0..24 {
            let words: [Cell<u64>; 16] = std::array::from_fn(|_| Cell::new(0));
            let looks = Cell::new(0);
            let load = |at: usize| {
                // The program stores a word, and then the flag at the end.
                match looks.replace(looks.get() + 1) {
                    look if look == moment => words[5].set(7),
                    look if look == moment + 1 => words[15].set(1),
                    _ => {}
                }
                words[at].get()
            };
            let mut found = Found::default();
            compare(&load, &mut [0; 16], 0, &mut found);
            let (_, all) = found.plan([].iter(), |_| 0);
            let has = |place| all.iter().any(|change| change.place == place);
            assert!(!has(15) || has(5), "at look {moment}: {found:?}");
        }
    }

    /// Words from 0 on that have changed, one of them not as a whole.
    fn found(count: u64, partial: u64) -> Found {
        let mut found = Found::default();
        for place in (0..count).rev() {
            found.add(place, if place == partial { 0xff } else { u64::MAX }, place);
        }
        found
    }

    #[test]
    fn the_last_line_is_taken_and_long_runs_are_told_apart() {
        let partial = Change { mask: mask_of(0xff), ..whole(70) };
        let mut all = found(200, 70);
        assert_eq!(all.take_last_line(|place| place), (192..200).map(whole).collect::<Vec<_>>());
        assert!(Found::default().take_last_line(|place| place).is_empty());
        let plan = |found: &Found, barred: &[Range<u64>]| found.plan(barred.iter(), |place| place);
        assert_eq!(plan(&all, &[]), (vec![0..70, 71..192], vec![partial]));
        let (runs, others) = plan(&all, &row(3..4));
        assert_eq!((runs, others.len(), others[4]), (vec![4..70, 71..192], 5, partial));
        // The rest of a run is too short on one side, or on both; ranges overlap.
        let (runs, others) = plan(&all, &[0..8, 100..120, 90..110]);
        assert_eq!((runs, others.len(), others[0], others[70]), (row(120..192), 120, whole(0), partial));
        assert_eq!(plan(&all, &row(0..500)).0, []);
        let mut apart = Found::default();
        [4, 3, 1].into_iter().for_each(|place| apart.add(place, u64::MAX, place));
        assert_eq!(plan(&apart, &[]), (Vec::new(), [1, 3, 4].map(whole).to_vec()));
    }

    #[test]
    fn the_end_of_a_segment_and_what_has_failed_are_kept_apart() {
        let mut all = found(100, 99);
        all.cut_last(99, 0, |place| place);
        assert_eq!(all, Found { runs: row(0..99), others: Vec::new() });
        all.cut_last(98, 0b11, |place| place);
        assert_eq!(all, Found { runs: row(0..98), others: vec![Change { mask: 0b11, ..whole(98) }] });
        all.add_again(&[(5, 1), (98, 0b110), (200, 4)], |place| place);
        let again = |place, mask| Change { mask, ..whole(place) };
        assert_eq!(all, Found { runs: row(0..98), others: vec![again(200, 4), again(98, 0b111)] });
    }

    /// Writers of random bytes of one segment: both see their own, and the segment has the bytes
    /// of a model.
    #[test]
    fn random_programs_agree_with_a_model_of_bytes() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let len = 1 + random.usize(..300);
            let words = len.div_ceil(WORD);
            let mut segment = vec![0_u8; words * WORD];
            let mut mirrors = [(); 2].map(|()| (vec![0_u8; words * WORD], vec![0_u64; words]));
            let mut model = segment.clone();
            for _ in 0..100 {
                let writer = random.usize(..2);
                let (memory, twin) = &mut mirrors[writer];
                if random.bool() {
                    // Bytes of its own: those whose number has its parity.
                    let at = random.usize(..len);
                    if at % 2 == writer {
                        memory[at] = random.u8(..);
                        model[at] = memory[at];
                    }
                    continue;
                }
                let word =
                    |bytes: &[u8], at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at * WORD + byte]));
                let mut found = Found::default();
                compare(&|at: usize| word(memory, at), twin, 0, &mut found);
                let value = |place: u64| twin[place as usize];
                let last = found.take_last_line(value);
                let (_, others) = found.plan(row(0..u64::MAX).iter(), value);
                for change in others.iter().chain(&last) {
                    let at = change.place as usize;
                    let merged = merge(word(&segment, at), change.value, change.mask);
                    segment[at * WORD..][..WORD].copy_from_slice(&merged.to_ne_bytes());
                }
                let mine = |at: &usize| at % 2 == writer;
                assert!((0..len).filter(mine).all(|at| segment[at] == model[at]), "seed {seed}");
            }
        }
    }
}
