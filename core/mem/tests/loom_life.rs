//! Models of the lives of a cell: no reader takes a value of the next life for one of the life that
//! it means.
#![cfg(loom)]

use cci_mem::life::Life;
use cci_mem::sync::{AtomicU32, Ordering};
use loom::thread;
use std::sync::Arc;

#[derive(Default)]
struct Cell {
    life: Life,
    /// The number of the life that wrote it.
    value: AtomicU32,
}

/// The owner ends a life and begins the next one while a reader reads.
fn read_meanwhile(begin: fn(&Life)) {
    loom::model(move || {
        let cell = Arc::new(Cell::default());
        let owners = Arc::clone(&cell);
        let owner = thread::spawn(move || {
            owners.life.end();
            begin(&owners.life);
            owners.value.store(1, Ordering::Relaxed);
        });
        if let Some(value) = cell.life.read(0, || cell.value.load(Ordering::Relaxed)) {
            assert_eq!(value, 0, "a value of the next life");
        }
        owner.join().expect("the owner ends");
    });
}

#[test]
fn a_value_is_of_the_life_that_is_meant_or_discarded() {
    read_meanwhile(Life::begin);
}

/// The mutant: a life that begins without the fence.
#[test]
#[should_panic(expected = "a value of the next life")]
fn a_life_without_the_fence_is_caught() {
    read_meanwhile(|_| {});
}
