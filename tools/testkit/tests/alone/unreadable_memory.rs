//! Memory that the program unmaps while it is registered: the operations that need it fail, and
//! nothing else does.

use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connection, Device, Endpoint, EventKind, Failure, Memory, Rights, Rma};
use cci_conformance::sys::PrivateMemory;
use cci_conformance::{World, device_of, open, pattern, sm_device};

const LEN: usize = 1 << 20;
const PAGE: usize = 4096;

/// Frames between two endpoints of one host without checks: only the system reads the memory.
fn sock() -> Device {
    device_of("sock", &[("ip", "127.0.0.1"), ("check", "remote")])
}

/// The devices whose transfers are read by the system.
fn devices() -> Vec<Device> {
    vec![sock(), sm_device(), device_of("tcp", &[("ip", "127.0.0.1")])]
}

/// A transfer between these fails; afterwards the connection carries messages and other transfers.
fn fails(device: &Device, ranges: [Memory; 2], flags: Flags) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], Attribute::ReliableOrdered);
    let [local, remote] = ranges;
    let local = a.register_memory(local, Rights::NONE).expect("a registration");
    let remote = b.register_memory(remote, Rights::READ_WRITE).expect("a registration");
    let rma = Rma::new(&local, &remote, LEN as u64);
    a.rma(connection, &rma, 3, flags).expect("an RMA");
    let event = world.next(0, EventKind::Send);
    assert_eq!((event.context(), event.outcome()), (3, Err(Failure::Copy)));
    lives(&world, &a, &b, connection);
}

fn lives(world: &World<'_>, a: &Endpoint, b: &Endpoint, connection: Connection) {
    let (source, target) = (PrivateMemory::new(LEN), PrivateMemory::new(LEN));
    source.write(0, &pattern(1, LEN));
    let local = a.register_memory(source.memory(), Rights::NONE).expect("a registration");
    let remote = b.register_memory(target.memory(), Rights::WRITE).expect("a registration");
    let rma = Rma::new(&local, &remote, LEN as u64);
    a.rma(connection, &rma, 4, Flags::WRITE).expect("an RMA");
    assert_eq!(world.sent(0), 4);
    let mut copy = vec![0; LEN];
    target.read(0, &mut copy);
    assert!(copy == pattern(1, LEN));
    a.send(connection, b"alive", 5).expect("a send");
    assert_eq!(world.message(1), b"alive");
    // Before the memory.
    a.deregister(&local).expect("own registration");
    b.deregister(&remote).expect("own registration");
}

/// Memory whose end, or all but its first page, is unmapped.
fn holes() -> [PrivateMemory; 2] {
    [LEN - PAGE, PAGE].map(|from| {
        let mut memory = PrivateMemory::new(LEN);
        memory.unmap_from(from);
        memory
    })
}

#[test]
fn a_write_from_unmapped_memory_fails_alone() {
    for device in devices() {
        for hole in holes() {
            let whole = PrivateMemory::new(LEN);
            fails(&device, [hole.memory(), whole.memory()], Flags::WRITE);
        }
    }
}

#[test]
fn a_read_of_memory_that_the_target_unmapped_fails_alone() {
    for device in devices() {
        for hole in holes() {
            let whole = PrivateMemory::new(LEN);
            fails(&device, [whole.memory(), hole.memory()], Flags::READ);
        }
    }
}
