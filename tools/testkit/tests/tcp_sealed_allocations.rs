//! Sending, receiving and returning over sealed streams of `tcp` allocate nothing.

#![forbid(unsafe_code)]

use cci_conformance::{allocations, sealed_device_of};
use cci_instruments::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One test only, since the allocator counts for the whole process.
#[test]
fn no_allocation_in_100_000_sealed_messages_and_rma() {
    allocations::no_allocation_in_100_000_messages_and_rma(&sealed_device_of("tcp", &[("ip", "127.0.0.1")]));
}
