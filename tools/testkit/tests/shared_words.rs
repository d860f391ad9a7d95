//! One word of memory that atomic operations reach by several ways.

#![forbid(unsafe_code)]

use cci::{Atomic, Attribute, Endpoint, EventKind, Registration, Rights, Rma, SharedMemory};
use cci_conformance::{World, device_of, open, sm_device};
use std::sync::Arc;

const COUNT: u64 = 400;

/// Adds to the peer's word until all have ended; the old values.
fn add(world: &World<'_>, client: &Endpoint, target: &Registration<Arc<SharedMemory>>) -> Vec<u64> {
    let (connection, _) = world.connect(0, 1, Attribute::ReliableOrdered);
    let len = 8 * COUNT as usize;
    let local = client.register(vec![0; len], Rights::NONE).expect("a registration");
    let (mut begun, mut ended) = (0, 0);
    world.until("all operations", || {
        let rma = Rma::new(local.handle(), target.handle(), 8).local_offset(8 * begun).remote_offset(16);
        if begun < COUNT && client.atomic(connection, &rma.atomic(Atomic::FetchAdd(1)), 0).is_ok() {
            begun += 1;
        }
        while world.waiting(0, EventKind::Send) > 0 {
            assert_eq!(world.next(0, EventKind::Send).outcome(), Ok(()));
            ended += 1;
        }
        ended == COUNT
    });
    let bytes = local.deregister().expect("nobody uses it");
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

/// A word in a mapped segment, which `sm` changes itself, and which the owner changes for a client
/// over `sock`, at the same time: every operation counts, and no two bring the same value.
#[test]
fn a_mapped_word_agrees_with_one_that_its_owner_changes() {
    let memory = Arc::new(SharedMemory::new(4096).expect("memory"));
    let devices = [sm_device(), device_of("sock", &[("ip", "127.0.0.1")])];
    let mut values: Vec<u64> = std::thread::scope(|scope| {
        let clients = devices.map(|device| {
            let memory = Arc::clone(&memory);
            scope.spawn(move || {
                let (client, owner) = (open(&device), open(&device));
                let target = owner.register(memory, Rights::READ_WRITE).expect("a registration");
                add(&World::new([&client, &owner]), &client, &target)
            })
        });
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    });
    values.sort_unstable();
    assert_eq!(values, (0..2 * COUNT).collect::<Vec<_>>());
    assert_eq!(memory.to_vec(16, 8), (2 * COUNT).to_ne_bytes());
}
