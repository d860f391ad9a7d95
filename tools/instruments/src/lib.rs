//! What tests and measurements of every layer share. It depends on `cci-mem` alone, so that the
//! tests of each crate above can use it.

mod allocator;
mod pattern;
mod payload;

pub use allocator::{CountingAllocator, allocations, bytes_in_use, peak_of, thread_allocations};
pub use pattern::{pattern, pattern_into};
pub use payload::payload;
