//! More large messages over `sm` than their receiver is asked for at a time.

use cci::{Attribute, EventKind, HeapBytes, Memory};
use cci_conformance::{World, alone, open, pattern, sm_device};
use std::sync::Arc;

/// The messages wait for the receiver's memory, and nothing else waits for them.
#[test]
fn nothing_waits_for_large_messages_that_wait_for_memory() {
    const COUNT: u64 = 100;
    const LEN: usize = 20_000;
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    b.set_large_limit(LEN as u64).expect("usable");
    let (world, first, _) = World::joined([&a, &b], Attribute::ReliableUnordered);
    let (second, _) = world.connect(0, 1, Attribute::ReliableOrdered);
    for number in 0..COUNT {
        let message = Memory::of_bytes(&Arc::new(HeapBytes::new(pattern(number, LEN))));
        a.send_large(first, &message, number).expect("a send");
    }
    let held = world.next(1, EventKind::Recv);
    for connection in [first, second] {
        a.send(connection, b"small", 1000).expect("a send");
        assert_eq!(world.message(1), b"small");
    }
    drop(held);
    (1..COUNT).for_each(|_| assert_eq!(world.message(1).len(), LEN));
    let mut ended: Vec<u64> = (0..COUNT + 2).map(|_| world.sent(0)).collect();
    ended.sort_unstable();
    assert!(ended.into_iter().eq((0..COUNT).chain([1000, 1000])), "each ends once");
}
