//! More registrations of one endpoint than the first chunk of published ones holds.

use cci::__binding::{Contract, Flags};
use cci::SharedMemory;
use cci::{
    Attribute, Connection, Device, Endpoint, EventKind, Failure, HeapBytes, ImportError, Rights, Rma, RmaHandle,
};
use cci_conformance::process::resident_bytes;
use cci_conformance::{World, open, sm_device};
use std::sync::Arc;

const RO: Attribute = Attribute::ReliableOrdered;
const COUNT: usize = 100_000;
/// Bytes of each registration.
const LEN: u64 = 16;

/// Registrations at these places are tried: those at the ends of chunks, and some between.
fn samples() -> impl Iterator<Item = usize> {
    [0, 1, 65_535, 65_536, 65_537, 99_999].into_iter().chain((0..COUNT).step_by(7_001))
}

/// Handles of [`COUNT`] registrations of the same memory.
fn register(endpoint: &Endpoint, memory: &Arc<HeapBytes>) -> Vec<RmaHandle> {
    let memory = cci::Memory::of_bytes(memory);
    let one = |_| endpoint.register_memory(memory.clone(), Rights::READ_WRITE).expect("a registration");
    (0..COUNT).map(one).collect()
}

/// Writes to a registration by this connection of the first endpoint: how that ends.
fn write(world: &World<'_>, connection: Connection, local: &RmaHandle, remote: &RmaHandle) -> Result<(), Failure> {
    let at = world.last();
    world.endpoint(at).rma(connection, &Rma::new(local, remote, LEN), 5, Flags::WRITE).expect("an RMA");
    world.next(at, EventKind::Send).outcome()
}

fn all_are_usable(device: &Device) {
    let owner = open(&sm_device());
    // One peer is there before them, the other comes later.
    let (early, late) = (open(device), open(device));
    let bytes = Arc::new(HeapBytes::new(vec![1; 16]));
    let target = Arc::new(HeapBytes::new(vec![0; 16]));
    let world = World::new([&owner, &early]);
    let (by_early, _) = world.connect(1, 0, RO);
    let handles = register(&owner, &target);
    let later = World::new([&owner, &late]);
    let (by_late, _) = later.connect(1, 0, RO);
    for (world, endpoint, connection) in [(&world, &early, by_early), (&later, &late, by_late)] {
        let local = endpoint.register_memory(cci::Memory::of_bytes(&bytes), Rights::NONE).expect("a registration");
        for at in samples() {
            assert_eq!(write(world, connection, &local, &handles[at]), Ok(()), "registration {at}");
        }
        let [first, secret, ..] = handles[80_000].words();
        let invented = RmaHandle::from_words([first, secret ^ 1, LEN, 0]);
        assert_eq!(write(world, connection, &local, &invented), Err(Failure::RemoteHandle));
    }
    for handle in &handles {
        owner.deregister(handle).expect("it ends");
    }
    let local = late.register_memory(cci::Memory::of_bytes(&bytes), Rights::NONE).expect("a registration");
    for at in samples() {
        assert_eq!(write(&later, by_late, &local, &handles[at]), Err(Failure::RemoteHandle), "registration {at}");
    }
}

#[test]
fn a_hundred_thousand_registrations_are_usable_by_peers_that_come_before_and_after() {
    all_are_usable(&sm_device());
}

/// The peers that copy with the owner's help.
#[test]
fn they_are_usable_without_process_vm() {
    let mut device = sm_device();
    device.arguments.push(("rma".into(), "segment".into()));
    all_are_usable(&device);
}

#[test]
fn what_they_took_is_used_again() {
    let owner = open(&sm_device());
    let target = Arc::new(HeapBytes::new(vec![0; 16]));
    let turn = || register(&owner, &target).iter().for_each(|handle| owner.deregister(handle).expect("it ends"));
    turn();
    let before = resident_bytes(None);
    (0..3).for_each(|_| turn());
    let grown = resident_bytes(None).saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes more");
}

/// Memory that is imported lies in a registration of any number.
#[test]
fn a_registration_behind_many_others_is_imported() {
    let (owner, peer) = (open(&sm_device()), open(&sm_device()));
    let (_world, connection, _) = World::joined([&peer, &owner], RO);
    let target = Arc::new(HeapBytes::new(vec![0; 16]));
    let _handles = register(&owner, &target);
    let memory = Arc::new(SharedMemory::new(4096).expect("memory"));
    let registered = owner.register(Arc::clone(&memory), Rights::READ).expect("a registration");
    let import = peer.import(connection, registered.handle()).expect("it is mapped");
    memory.write(0, b"seen");
    let mut seen = [0; 4];
    assert!(import.read(0, &mut seen) && &seen == b"seen");
    let [first, secret, ..] = registered.handle().words();
    let invented = RmaHandle::from_words([first, secret ^ 1, 4096, 0]);
    assert_eq!(peer.import(connection, &invented).err(), Some(ImportError::Handle));
}
