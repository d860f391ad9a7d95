//! The table, of which each process has a part.

use super::stream::Stream;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// How a table is shared out, and how many updates there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layout {
    /// The table has 2^bits words.
    pub(super) bits: u32,
    /// Processes.
    pub(super) workers: u64,
    /// Updates, over all processes.
    pub(super) updates: u64,
}

impl Layout {
    /// Words of the whole table.
    pub(super) fn words(self) -> u64 {
        1 << self.bits
    }

    /// The place that an update is for.
    #[inline(always)]
    fn place(self, word: u64) -> u64 {
        word & (self.words() - 1)
    }

    /// The process whose part an update is for.
    #[inline(always)]
    pub(super) fn owner(self, word: u64) -> u64 {
        (self.place(word) * self.workers) >> self.bits
    }

    /// The first place of a process's part.
    fn first(self, worker: u64) -> u64 {
        (worker << self.bits).div_ceil(self.workers)
    }

    /// The updates that a process makes.
    pub(super) fn share(self, worker: u64) -> Stream {
        let from = |worker: u64| {
            // Without overflow whatever the number of updates.
            let (whole, rest) = (self.updates / self.workers, self.updates % self.workers);
            whole * worker + rest * worker / self.workers
        };
        Stream::new(from(worker), from(worker + 1) - from(worker))
    }
}

/// A process's part.
#[derive(Debug)]
pub(super) struct UpdateTable {
    layout: Layout,
    worker: u64,
    first: u64,
    words: Vec<u64>,
}

impl UpdateTable {
    /// Each word is its own place.
    pub(super) fn new(layout: Layout, worker: u64) -> Self {
        let (first, end) = (layout.first(worker), layout.first(worker + 1));
        Self { layout, worker, first, words: (first..end).collect() }
    }

    /// Makes an update, if it is for this part.
    #[inline(always)]
    pub(super) fn update(&mut self, word: u64) -> bool {
        let at = self.layout.place(word).wrapping_sub(self.first);
        match usize::try_from(at).ok().and_then(|at| self.words.get_mut(at)) {
            Some(place) => {
                *place ^= word;
                true
            }
            None => false,
        }
    }

    /// Makes as many updates as come to this part, bare: in this process, where no other is in the
    /// way; seconds for each.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    pub(super) fn probe(&mut self, updates: u64) -> f64 {
        let len = self.words.len() as u64;
        let begin = Instant::now();
        for word in Stream::new(0, updates) {
            // The upper half of a product is a place below `len`, without a division.
            let at = ((u128::from(word) * u128::from(len)) >> 64) as usize;
            self.words[at] ^= word;
        }
        let took = begin.elapsed().as_secs_f64();
        self.reset();
        took / updates.max(1) as f64
    }

    fn reset(&mut self) {
        for (word, place) in self.words.iter_mut().zip(self.first..) {
            *word = place;
        }
    }

    /// Makes every update of every process once more, those of this part, which takes each back;
    /// then the places that are wrong. `made` is how many updates of its share each process made.
    pub(super) fn verify(mut self, made: &[u64]) -> u64 {
        for (worker, made) in (0..).zip(made) {
            let made = usize::try_from(*made).unwrap_or(usize::MAX);
            for word in self.layout.share(worker).take(made) {
                if self.layout.owner(word) == self.worker {
                    self.update(word);
                }
            }
        }
        self.words.iter().zip(self.first..).filter(|(word, place)| *word != place).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_the_table_and_shares_the_stream() {
        for workers in 1..=7 {
            let layout = Layout { bits: 10, workers, updates: 4097 };
            let parts: Vec<_> = (0..workers).flat_map(|worker| UpdateTable::new(layout, worker).words).collect();
            assert_eq!(parts, (0..1024).collect::<Vec<_>>());
            for worker in 0..workers {
                let mut part = UpdateTable::new(layout, worker);
                for place in 0..1024 {
                    assert_eq!(part.update(place), layout.owner(place) == worker, "{place} of {worker}");
                }
            }
            let shares: Vec<_> = (0..workers).flat_map(|worker| layout.share(worker)).collect();
            assert_eq!(shares, Stream::new(0, 4097).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_table_in_which_every_update_was_made_is_right_and_a_lost_one_is_an_error() {
        let layout = Layout { bits: 8, workers: 3, updates: 1000 };
        let made = |lost: Option<usize>| -> u64 {
            let mut parts: Vec<_> = (0..3).map(|worker| UpdateTable::new(layout, worker)).collect();
            for (number, word) in Stream::new(0, 1000).enumerate() {
                if Some(number) != lost {
                    assert_eq!(parts.iter_mut().filter_map(|part| part.update(word).then_some(())).count(), 1);
                }
            }
            parts.into_iter().map(|part| part.verify(&[333, 333, 334])).sum()
        };
        assert_eq!(made(None), 0);
        assert_eq!(made(Some(500)), 1);
    }

    #[test]
    fn a_run_that_ended_early_is_verified_by_what_each_process_made() {
        let layout = Layout { bits: 8, workers: 2, updates: 1000 };
        let wrong = |told: [u64; 2]| -> u64 {
            let mut parts: Vec<_> = (0..2).map(|worker| UpdateTable::new(layout, worker)).collect();
            for (worker, made) in [(0, 100), (1, 7)] {
                for word in layout.share(worker).take(made) {
                    parts.iter_mut().for_each(|part| _ = part.update(word));
                }
            }
            parts.into_iter().map(|part| part.verify(&told)).sum()
        };
        assert_eq!((wrong([100, 7]), wrong([100, 8])), (0, 1));
    }

    #[test]
    fn the_probe_leaves_the_table_as_it_was() {
        let layout = Layout { bits: 8, workers: 2, updates: 0 };
        let mut part = UpdateTable::new(layout, 1);
        assert!(part.probe(1000) > 0.0);
        assert_eq!(part.words, UpdateTable::new(layout, 1).words);
    }
}
