//! Sending, receiving and returning over `tcp` allocate nothing.

#![forbid(unsafe_code)]

use cci_instruments::CountingAllocator;
use cci_testkit::{allocations, device_of};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One test only, since the allocator counts for the whole process.
#[test]
fn no_allocation_in_100_000_messages_and_rma() {
    allocations::no_allocation_in_100_000_messages_and_rma(&device_of("tcp", &[("ip", "127.0.0.1")]));
}
