//! Models of the ring that overwrites: no entry is torn, none is read twice, and lost ones are
//! reported.
#![cfg(loom)]

use cci_mem::overwriting::Ring;
use loom::thread;
use std::sync::Arc;

const LENGTH: usize = 2;

type Words = [u64; 2];
type Entries = Ring<2>;
type Push = fn(&Entries, &Words);
type Pop = fn(&Entries) -> Option<(Words, bool)>;

/// The entry with a number. Zeros are no entry.
fn entry(number: u64) -> Words {
    [number, !number]
}

/// Pops an entry, which is to come after the last one; the number that is the last one now.
fn pop_one(ring: &Entries, last: u64, pop: Pop) -> u64 {
    let Some((words, has_lost)) = pop(ring) else { return last };
    let number = words[0];
    assert_eq!(words, entry(number), "a torn entry");
    assert!(number > last, "an entry again");
    assert_eq!(has_lost, number != last + 1, "a lost entry that is not reported");
    number
}

/// One thread pushes `count` entries, another one pops `pops` times meanwhile, and the rest
/// afterwards.
fn overtake(count: u64, pops: usize, preemptions: Option<usize>, push: Push, pop: Pop) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        let ring = Arc::new(Entries::new(LENGTH).expect("memory"));
        let writers = Arc::clone(&ring);
        let writer = thread::spawn(move || (1..=count).for_each(|number| push(&writers, &entry(number))));
        let mut last = (0..pops).fold(0, |last, _| pop_one(&ring, last, pop));
        writer.join().expect("the writer ends");
        while !ring.is_empty() {
            last = pop_one(&ring, last, Ring::pop);
        }
        assert_eq!(last, count, "the last entry stays");
    });
}

/// The reader's copy of the first entry meets each step of the third one, which overwrites it.
#[test]
fn no_entry_is_torn_by_the_one_that_overwrites_it() {
    overtake(3, 1, None, Ring::push, Ring::pop);
}

/// The reader is overtaken between two entries, and within one.
#[test]
fn each_entry_is_read_once_or_reported_as_lost() {
    overtake(4, 2, Some(2), Ring::push, Ring::pop);
}

/// The mutant: a word of the third entry may be seen before its count.
#[test]
#[should_panic(expected = "a torn entry")]
fn a_push_without_the_fence_is_caught() {
    overtake(3, 1, Some(3), Ring::push_without_fence, Ring::pop);
}

/// The mutant: an entry whose count may be seen before its words.
#[test]
#[should_panic(expected = "a torn entry")]
fn a_push_that_publishes_without_release_is_caught() {
    overtake(1, 1, Some(3), Ring::push_relaxed, Ring::pop);
}

/// The mutant: the count may be read before the words are copied.
#[test]
#[should_panic(expected = "a torn entry")]
fn a_pop_without_the_fence_is_caught() {
    overtake(3, 1, Some(3), Ring::push, Ring::pop_without_fence);
}
