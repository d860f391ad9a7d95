//! What tests and measurements of every layer share. It depends on nothing, so that the tests of
//! each crate can use it.

mod allocator;
mod pattern;

pub use allocator::{CountingAllocator, allocations, bytes_in_use, peak_of, thread_allocations};
pub use pattern::{pattern, pattern_into};
