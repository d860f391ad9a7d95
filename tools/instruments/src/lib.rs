//! What tests and measurements of every layer share. Of the project it depends on `cci-mem`
//! alone, so that the tests of each crate above can use it.

mod allocator;
mod dump;
mod pattern;
mod payload;

pub use allocator::{
    CountingAllocator, allocations, allocations_off_main, assert_no_allocation, bytes_in_use, peak_of,
    thread_allocations,
};
pub use dump::{Dump, Mapping};
pub use pattern::{pattern, pattern_into};
pub use payload::payload;
