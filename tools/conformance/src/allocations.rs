//! Sending, receiving and returning allocate nothing.

use crate::memory::Origin;
use crate::{LIMIT, World, most, open};
use cci::__binding::{Contract, Flags};
use cci::{Attribute, Device, Endpoint, EventKind, Notify, Rights, Rma};
use cci_instruments::assert_no_allocation;
use std::time::Instant;

/// Polls both endpoints until `to` has received a message, and `from` has seen so many sends end.
fn reap(from: &Endpoint, to: &Endpoint, mut sends: u32) {
    let begun = Instant::now();
    let mut received = false;
    while !received || sends > 0 {
        if let Some(event) = to.get_event().expect("usable") {
            assert_eq!(event.kind(), EventKind::Recv);
            received = true;
        }
        if let Some(event) = from.get_event().expect("usable") {
            assert_eq!((event.kind(), event.outcome()), (EventKind::Send, Ok(())));
            sends -= 1;
        }
        assert!(begun.elapsed() < LIMIT, "no message, or {sends} sends without an end");
    }
}

/// Sends messages of each size class with both kinds of completion, then RMA of either origin, and
/// counts allocations of the whole process, whose allocator counts.
///
/// # Panics
///
/// There are some.
pub fn no_allocation_in_100_000_messages_and_rma(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, Attribute::ReliableOrdered);
    let message = vec![7; most(connection)];
    for len in [8, 56, 57, 1000, message.len()] {
        let round = |count: u64| {
            for number in 0..count {
                a.send(connection, &message[..len], number).expect("a send");
                reap(&a, &b, 1);
                a.send(connection, &message[..len], Notify::OnFailure(number)).expect("a send");
                reap(&a, &b, 0);
            }
        };
        round(5_000);
        assert_no_allocation(|| round(10_000), &format!("20,000 messages of {len} bytes"));
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
                reap(&a, &b, 1);
            }
        };
        round(500);
        assert_no_allocation(|| round(2_000), &format!("2,000 RMAs, {origin:?}"));
    }
}
