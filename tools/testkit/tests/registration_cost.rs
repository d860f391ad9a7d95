//! A registration for one transfer allocates nothing, and costs microseconds.

#![forbid(unsafe_code)]

use cci::__binding::Contract;
use cci::{Attribute, Device, Endpoint, HeapBytes, Memory, Rights, SharedMemory};
use cci_conformance::{World, device_of, open};
use cci_instruments::{CountingAllocator, allocations_off_main};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const LEN: usize = 64 << 10;
const PAIRS: u32 = 10_000;
/// Twenty times what a pair may take on a machine that does nothing else.
const LIMIT: Duration = Duration::from_micros(40);

/// The allocations and the mean time of these pairs.
fn count(pair: &mut impl FnMut()) -> (u64, Duration) {
    let (before, begun) = (allocations_off_main(), Instant::now());
    (0..PAIRS).for_each(|_| pair());
    (allocations_off_main() - before, begun.elapsed() / PAIRS)
}

/// Asserts that pairs of registration and deregistration allocate nothing, and take no longer than
/// the limit.
fn measure(what: &str, pair: &mut impl FnMut()) {
    (0..100).for_each(|_| pair());
    // The best of three, since other threads of the process allocate at times, and the machine may
    // have other work.
    let (allocated, each) = (0..3).map(|_| count(pair)).min().expect("three");
    assert_eq!(allocated, 0, "allocations in {PAIRS} pairs: {what}");
    assert!(each < LIMIT, "{what} takes {each:?}");
}

/// Polls until what the connect left to do is done, so that nobody but the caller allocates.
fn settle(endpoints: &[&Endpoint; 2]) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(100) {
        for endpoint in endpoints {
            assert!(endpoint.get_event().expect("usable").is_none());
        }
    }
}

/// Pairs of each kind of memory, beside `beside` other registrations that stay.
fn on(device: &Device, beside: usize) {
    let (a, b) = (open(device), open(device));
    let _connected = World::new([&a, &b]).connect(0, 1, Attribute::ReliableOrdered);
    settle(&[&a, &b]);
    let heap = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; LEN])));
    let words: Arc<[AtomicU64]> = (0..LEN / 8).map(|_| AtomicU64::new(0)).collect();
    let shared = Arc::new(SharedMemory::new(LEN).expect("memory"));
    // While one registration of an allocation lives, the others send nothing to peers.
    let _staying = a.register(Arc::clone(&shared), Rights::NONE).expect("registered");
    let others: Vec<_> = (0..beside).map(|_| a.register(heap.clone(), Rights::READ).expect("registered")).collect();
    let kind = |memory: &str| format!("{} beside {beside}, {memory}", device.transport);
    measure(&kind("by address"), &mut || {
        let handle = a.register_memory(heap.clone(), Rights::READ_WRITE).expect("registered");
        a.deregister(&handle).expect("it ends");
    });
    measure(&kind("owned bytes"), &mut || {
        drop(a.register(heap.clone(), Rights::READ_WRITE).expect("registered").deregister().expect("it ends"));
    });
    measure(&kind("dropped bytes"), &mut || drop(a.register(heap.clone(), Rights::READ_WRITE).expect("registered")));
    measure(&kind("words"), &mut || {
        drop(a.register(Arc::clone(&words), Rights::READ_WRITE).expect("registered").deregister().expect("it ends"));
    });
    measure(&kind("library memory"), &mut || {
        drop(a.register(Arc::clone(&shared), Rights::READ_WRITE).expect("registered").deregister().expect("it ends"));
    });
    drop(others);
}

/// One test only, since the allocator counts for the whole process.
#[test]
fn registrations_for_one_transfer_allocate_nothing() {
    for (transport, keys) in [("sm", vec![]), ("sock", vec![("ip", "127.0.0.1")]), ("sim", vec![])] {
        let device = device_of(transport, &keys);
        for beside in [0, 11, 1000] {
            on(&device, beside);
        }
    }
}
