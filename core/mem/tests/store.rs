//! Slabs and regions: memory that is never unmapped and never handed to another type.
#![cfg(not(loom))]

use cci_mem::region::{Regions, Zeroed};
use cci_mem::slab::{AtomicRef, Slab};
use cci_mem::sync::{AtomicU64, Ordering};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// Frees that have to happen between an object's free and its next life.
const QUARANTINE: usize = 64;

fn address<T>(object: &'static T) -> usize {
    std::ptr::from_ref(object).addr()
}

proptest! {
    #[test]
    fn a_slab_lends_each_object_once_and_not_soon_again(steps in prop::collection::vec(any::<Option<prop::sample::Index>>(), 0..if cfg!(miri) { 200 } else { 800 })) {
        let slab: Slab<AtomicU64> = Slab::new();
        let mut lent: Vec<&'static AtomicU64> = Vec::new();
        let mut held = HashSet::new();
        // How many frees there had been when an object was freed.
        let mut freed_at = HashMap::new();
        let mut frees = 0;
        for step in steps {
            match step {
                Some(at) if !lent.is_empty() => {
                    let object = lent.swap_remove(at.index(lent.len()));
                    held.remove(&address(object));
                    object.store(frees as u64 + 1, Ordering::Relaxed);
                    slab.give(object);
                    frees += 1;
                    freed_at.insert(address(object), frees);
                }
                _ => {
                    let object = slab.take();
                    prop_assert!(held.insert(address(object)), "lent twice");
                    match freed_at.get(&address(object)) {
                        Some(at) => {
                            prop_assert!(frees - at >= QUARANTINE, "reused after {} frees", frees - at);
                            prop_assert_eq!(object.load(Ordering::Relaxed), *at as u64, "not in the state it was freed in");
                        }
                        None => prop_assert_eq!(object.load(Ordering::Relaxed), 0, "a fresh object in its default state"),
                    }
                    lent.push(object);
                }
            }
        }
    }
}

/// A slab that only ever has a few objects alive does not grow without end.
#[test]
fn a_slab_reuses_what_has_rested() {
    let slab: Slab<AtomicU64> = Slab::new();
    let mut seen = HashSet::new();
    for _ in 0..if cfg!(miri) { 500 } else { 10_000 } {
        let object = slab.take();
        seen.insert(address(object));
        slab.give(object);
    }
    assert!(seen.len() <= 4 * QUARANTINE, "{} objects for one alive at a time", seen.len());
}

#[test]
fn a_reference_is_what_was_set_last() {
    static OBJECTS: [AtomicU64; 2] = [AtomicU64::new(1), AtomicU64::new(2)];
    let reference = AtomicRef::none();
    assert!(reference.get().is_none());
    for object in &OBJECTS {
        reference.set(Some(object));
        assert!(reference.get().is_some_and(|found| std::ptr::eq(found, object)));
    }
    reference.set(None);
    assert!(reference.get().is_none());
    assert_eq!(size_of::<AtomicRef<AtomicU64>>(), size_of::<*const u64>());
}

/// Words of a region, at most.
const LARGEST: usize = if cfg!(miri) { 60 } else { 4000 };

/// A word that regions may hold.
struct Word(AtomicU64);

// SAFETY: zero bytes are a word, which owns nothing and changes through an atomic only.
unsafe impl Zeroed for Word {}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

    #[test]
    fn a_region_is_zero_however_often_it_is_reused(counts in prop::collection::vec(1usize..LARGEST, 1..20)) {
        let regions: Regions<Word> = Regions::new();
        for count in counts {
            let region = regions.take(count).expect("address space");
            prop_assert!(region.len() >= count);
            prop_assert!(region.iter().all(|word| word.0.load(Ordering::Relaxed) == 0), "not zero");
            region.iter().for_each(|word| word.0.store(u64::MAX, Ordering::Relaxed));
            regions.give(region);
            // The addresses stay readable, and read as zero.
            prop_assert!(region.iter().all(|word| word.0.load(Ordering::Relaxed) == 0), "pages were kept");
        }
    }
}

#[test]
fn a_region_is_reused_for_what_fits_it() {
    let regions: Regions<Word> = Regions::new();
    let large = regions.take(1000).expect("address space");
    regions.give(large);
    let small = regions.take(10).expect("address space");
    assert!(!std::ptr::eq(small.as_ptr(), large.as_ptr()), "a large region spent on a small request");
    assert!(std::ptr::eq(regions.take(600).expect("address space").as_ptr(), large.as_ptr()));
    let other = regions.take(1000).expect("address space");
    assert!(!std::ptr::eq(other.as_ptr(), large.as_ptr()), "lent twice");
}

/// Neither memory of somebody else nor the same region twice.
#[test]
fn only_what_was_taken_can_be_given_back() {
    let regions: Regions<Word> = Regions::new();
    let foreign: &'static [Word] = Box::leak((0..4096).map(|_| Word(AtomicU64::new(7))).collect());
    regions.give(foreign);
    assert!(foreign.iter().all(|word| word.0.load(Ordering::Relaxed) == 7), "wiped memory of somebody else");

    let region = regions.take(1000).expect("address space");
    region[0].0.store(7, Ordering::Relaxed);
    regions.give(&region[..500]);
    assert_eq!(region[0].0.load(Ordering::Relaxed), 7, "a part is not the region");
    regions.give(region);
    regions.give(region);
    let [first, second] = std::array::from_fn(|_| regions.take(1000).expect("address space").as_ptr());
    assert_ne!(first, second, "lent twice");
}

#[test]
#[cfg_attr(miri, ignore = "Miri ends itself where there is no address space")]
fn more_than_the_address_space_is_refused() {
    let regions: Regions<Word> = Regions::new();
    regions.give(regions.take(1).expect("address space"));
    assert_eq!(regions.take(usize::MAX).err(), Some(rustix::io::Errno::NOMEM));
    assert_eq!(regions.take(usize::MAX / 8).err(), Some(rustix::io::Errno::NOMEM));
}
