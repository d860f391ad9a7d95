//! Sending, receiving and returning allocate nothing.

#![forbid(unsafe_code)]

use cci::__binding::{Contract, Flags};
use cci::{Attribute, Endpoint, EventKind, Notify, Rights, Rma};
use cci_instruments::{CountingAllocator, allocations};
use cci_testkit::memory::Origin;
use cci_testkit::{LIMIT, World, most, open, sm_device};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Polls until an event of this kind has come and been returned.
fn reap(endpoint: &Endpoint, kind: EventKind) {
    let begun = Instant::now();
    loop {
        if let Some(event) = endpoint.get_event().expect("usable") {
            assert_eq!((event.kind(), event.outcome()), (kind, Ok(())));
            return;
        }
        assert!(begun.elapsed() < LIMIT, "no event {kind:?}");
    }
}

/// One test only, since the allocator counts for the whole process: messages of each size class and
/// both kinds of completion, then RMA of either origin.
#[test]
fn no_allocation_in_100_000_messages_and_rma() {
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, Attribute::ReliableOrdered);
    let message = vec![7; most(connection)];
    for len in [8, 56, 57, 1000, message.len()] {
        let round = |count: u64| {
            for number in 0..count {
                a.send(connection, &message[..len], number).expect("a send");
                reap(&b, EventKind::Recv);
                reap(&a, EventKind::Send);
                a.send(connection, &message[..len], Notify::OnFailure(number)).expect("a send");
                reap(&b, EventKind::Recv);
            }
        };
        round(5_000);
        let before = allocations();
        round(10_000);
        assert_eq!(allocations() - before, 0, "allocations in 20,000 messages of {len} bytes");
    }
    for origin in Origin::ALL {
        let (source, target) = (origin.allocate(70_000), origin.allocate(70_000));
        let local = a.register_memory(source.memory(), Rights::NONE).expect("a registration");
        let remote = b.register_memory(target.memory(), Rights::READ_WRITE).expect("a registration");
        // Registering belongs to the control path; what it has peers do is over before the count
        // begins.
        for _ in 0..10_000 {
            assert!(a.get_event().expect("usable").is_none() && b.get_event().expect("usable").is_none());
        }
        let round = |count: u64| {
            for number in 0..count {
                let len = if number % 2 == 0 { 64 } else { 70_000 };
                let rma = Rma::new(&local, &remote, len).message(&b"m"[..]);
                let flags = if number % 3 == 0 { Flags::READ } else { Flags::WRITE };
                a.rma(connection, &rma, number, flags).expect("an RMA");
                reap(&b, EventKind::Recv);
                reap(&a, EventKind::Send);
            }
        };
        round(500);
        let before = allocations();
        round(2_000);
        assert_eq!(allocations() - before, 0, "allocations in 2,000 RMAs, {origin:?}");
    }
}
