//! Models of the entries of a directory: a reader finds the words of the life that it names, and
//! only what its owner has offered in that life.
#![cfg(loom)]

use cci_mem::directory::Entry;
use cci_mem::sync::{AtomicU64, Ordering};
use loom::thread;
use std::sync::Arc;

struct Words([AtomicU64; 4]);

impl Words {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    fn entry(&self) -> Entry<'_, 2> {
        let [life, available, first, second] = &self.0;
        Entry { life, available, words: [first, second] }
    }
}

/// What the owner writes in a life.
fn words_of(life: u64) -> [u64; 2] {
    [life, !life]
}

type Begin = fn(&Entry<'_, 2>, [u64; 2]);
type Find = fn(&Entry<'_, 2>) -> Option<(u64, [u64; 2])>;

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

/// The use that is offered ends, and another one begins, while a reader looks so many times.
fn used_again(looks: usize, begin: Begin, find: Find) {
    model(move || {
        let words = Arc::new(Words::new());
        words.entry().begin(words_of(1));
        words.entry().set_available(true);
        let owners = Arc::clone(&words);
        let owner = thread::spawn(move || {
            let entry = owners.entry();
            entry.end();
            begin(&entry, words_of(3));
            entry.set_available(true);
        });
        for _ in 0..looks {
            if let Some((life, words)) = find(&words.entry()) {
                assert_eq!(words, words_of(life), "words of another life");
            }
        }
        owner.join().expect("the owner ends");
        assert_eq!(words.entry().find(), Some((3, words_of(3))));
    });
}

/// The owner renews an entry that it had offered.
fn renewed(renew: fn(&Entry<'_, 2>), find: Find) {
    model(move || {
        let words = Arc::new(Words::new());
        words.entry().begin(words_of(1));
        words.entry().set_available(true);
        let owners = Arc::clone(&words);
        let owner = thread::spawn(move || renew(&owners.entry()));
        if let Some((life, _)) = find(&words.entry()) {
            assert_eq!(life, 1, "a life that was not offered");
        }
        owner.join().expect("the owner ends");
        assert_eq!(words.entry().find(), None);
    });
}

#[test]
fn words_are_of_the_life_that_is_named() {
    used_again(2, |entry, words| entry.begin(words), |entry| entry.find());
}

#[test]
fn a_life_that_was_not_offered_is_not_found() {
    renewed(|entry| entry.renew(), |entry| entry.find());
}

/// What is offered again is found again, with what its owner has stored before.
#[test]
fn a_life_that_is_offered_again_is_found_with_what_came_before() {
    model(|| {
        let (words, stored) = (Arc::new(Words::new()), Arc::new(AtomicU64::new(0)));
        words.entry().begin(words_of(1));
        words.entry().set_available(true);
        let (owners, stores) = (Arc::clone(&words), Arc::clone(&stored));
        let owner = thread::spawn(move || {
            owners.entry().renew();
            stores.store(3, Ordering::Relaxed);
            owners.entry().set_available(true);
        });
        if let Some((3, _)) = words.entry().find() {
            assert_eq!(stored.load(Ordering::Relaxed), 3, "a store after the offer");
        }
        owner.join().expect("the owner ends");
        assert_eq!(words.entry().find(), Some((3, words_of(1))));
    });
}

/// The mutant: a release store of the life orders nothing behind it.
#[test]
#[should_panic(expected = "words of another life")]
fn a_begin_without_the_fence_is_caught() {
    used_again(1, |entry, words| entry.begin_without_fence(words), |entry| entry.find());
}

/// The mutant: the last look at the life may come before the copy.
#[test]
#[should_panic(expected = "words of another life")]
fn a_find_without_the_fence_is_caught() {
    used_again(1, |entry, words| entry.begin(words), |entry| entry.find_without_fence());
}

/// The mutant: a life whose words are not visible yet.
#[test]
#[should_panic(expected = "words of another life")]
fn a_find_without_acquire_is_caught() {
    used_again(1, |entry, words| entry.begin(words), |entry| entry.find_relaxed());
}

/// The mutant: the next life may be seen before the end of the offer.
#[test]
#[should_panic(expected = "a life that was not offered")]
fn a_renewal_without_release_is_caught() {
    renewed(|entry| entry.renew_relaxed(), |entry| entry.find());
}
