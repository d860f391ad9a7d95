//! After warm-up neither sending nor receiving nor returning allocates, over any link.

#[path = "reliable/memory_link.rs"]
#[allow(dead_code)]
mod memory_link;
#[path = "reliable/world.rs"]
#[allow(dead_code)]
mod world;

use cci_instruments::{CountingAllocator, assert_no_allocation};
use cci_mem::arena::SharedMemory;
use cci_proto::{Access, Attribute, EventKind, Rights};
use cci_transport::{Connection, Posted, Rma};
use world::{End, join, next, two, two_sealed, until, waiting};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Parts of the messages, which [`assert_no_allocation`] counts by themselves.
const PARTS: u32 = 3;

/// Sends, receives and returns one message of each length, one by one and in a row, and one RMA.
fn round(ends: &[&End; 2], to_b: &'static Connection, rma: &Rma<'_>) -> u32 {
    let bytes = [7; 3000];
    let mut messages = 0;
    for len in [8, 56, 57, 1000, 3000] {
        ends[0].send(to_b, &bytes[..len], 1);
        ends[1].give_back(next(ends, 1, EventKind::Recv));
        ends[0].give_back(next(ends, 0, EventKind::Send));
        messages += 1;
    }
    for _ in 0..45 {
        ends[0].post(to_b, &bytes[..20], Posted::Silent(0)).expect("a send");
        messages += 1;
    }
    for _ in 0..45 {
        ends[1].give_back(next(ends, 1, EventKind::Recv));
    }
    ends[0].rma(to_b, rma, 2).expect("started");
    ends[0].give_back(next(ends, 0, EventKind::Send));
    messages
}

/// Has as much in flight as there may be, so that every list has had its greatest length.
fn flood(ends: &[&End; 2], to_b: &'static Connection, rma: &Rma<'_>) {
    let mut posted = 0;
    while ends[0].post(to_b, &[1; 1000], Posted::Event(0)).is_ok() {
        posted += 1;
    }
    while ends[0].rma(to_b, rma, 0).is_ok() {
        posted += 1;
    }
    assert!(posted > 256, "{posted} operations at a time");
    for _ in 0..posted {
        ends[0].give_back(next(ends, 0, EventKind::Send));
        while waiting(ends[1], EventKind::Recv) > 0 {
            ends[1].give_back(next(ends, 1, EventKind::Recv));
        }
    }
}

#[test]
fn a_hundred_thousand_messages_allocate_nothing() {
    // One after the other: the allocator counts for the whole process.
    let (_hub, a, b) = two();
    run(&a, &b, 100_000);
    let (_hub, a, b) = two_sealed();
    run(&a, &b, 100_000);
}

fn run(a: &End, b: &End, count: u32) {
    let ends = [a, b];
    let (to_b, _) = join(&ends, Attribute::ReliableOrdered);
    let memory = SharedMemory::new(20_000).expect("memory");
    let local = a.register(memory.memory(), Rights::NONE);
    let remote = b.register(memory.memory(), Rights::READ_WRITE);
    let (local, remote) = (&local, &remote);
    let rma = Rma {
        local,
        local_offset: 0,
        remote,
        remote_offset: 10_000,
        len: 10_000,
        access: Access::Write,
        fence: false,
        message: None,
    };
    for _ in 0..if count < 100_000 { 5 } else { 20 } {
        flood(&ends, to_b, &rma);
    }
    until(&ends, || waiting(a, EventKind::Send) == 0);
    while waiting(b, EventKind::Recv) > 0 {
        b.give_back(next(&ends, 1, EventKind::Recv));
    }
    for _ in 0..count / 250 {
        round(&ends, to_b, &rma);
    }
    let part = || {
        let mut messages = 0;
        while messages < count / PARTS {
            messages += round(&ends, to_b, &rma);
        }
    };
    assert_no_allocation(part, &format!("{} messages", count / PARTS));
}
