//! Sending, receiving and returning over `sm` allocate nothing.

#![forbid(unsafe_code)]

use cci_conformance::{allocations, sm_device};
use cci_instruments::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One test only, since the allocator counts for the whole process.
#[test]
fn no_allocation_in_100_000_messages_and_rma() {
    allocations::no_allocation_in_100_000_messages_and_rma(&sm_device());
}
