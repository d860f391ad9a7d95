//! Registrations for one connection.

use crate::world::{World, open, pattern};
use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, Connection, Device, Endpoint, EventKind, Failure, Region, RegisterError, Registration, Rights, Rma,
    RmaError, SharedMemory,
};
use std::sync::Arc;

const RO: Attribute = Attribute::ReliableOrdered;
const LEN: usize = 4096;

/// Memory of the library, as everybody's or as one connection's.
fn shared() -> Arc<SharedMemory> {
    Arc::new(SharedMemory::new(LEN).expect("memory"))
}

/// An RMA of all of both registrations, both ways, and how each ended.
fn ends<L: Region, R: Region>(
    world: &World<'_>,
    from: usize,
    connection: Connection,
    (local, remote): (&Registration<L>, &Registration<R>),
) -> [Result<(), Failure>; 2] {
    [Flags::WRITE, Flags::READ].map(|flags| {
        let rma = Rma::new(local.handle(), remote.handle(), LEN as u64);
        world.endpoint(from).rma(connection, &rma, 7, flags).expect("an RMA");
        let event = world.next(from, EventKind::Send);
        assert_eq!(event.context(), 7);
        event.outcome()
    })
}

const REFUSED: [Result<(), Failure>; 2] = [Err(Failure::RemoteHandle); 2];

/// The peer of that connection uses the memory; neither another connection of the same peer nor
/// another peer does.
fn serves_one<M: Region>(device: &Device, memory: impl Fn() -> M) {
    let (a, b, c) = (open(device), open(device), open(device));
    let world = World::new([&a, &b, &c]);
    let (chosen, at_b) = world.connect(0, 1, RO);
    let (other, _) = world.connect(0, 1, RO);
    let (stranger, _) = world.connect(2, 1, RO);
    let target = b.register_for(at_b, memory(), Rights::READ_WRITE).expect("a registration");
    assert!(target.write(0, &pattern(1, LEN)));
    for round in 2..4 {
        let locals = [&a, &c].map(|end| end.register(memory(), Rights::NONE).expect("a registration"));
        locals.iter().for_each(|local| assert!(local.write(0, &pattern(9, LEN))));
        assert_eq!(ends(&world, 0, other, (&locals[0], &target)), REFUSED, "another connection");
        assert_eq!(ends(&world, 2, stranger, (&locals[1], &target)), REFUSED, "another peer");
        assert_eq!(target.to_vec(0, LEN), Some(pattern(round - 1, LEN)), "untouched");
        assert_eq!(locals.map(|local| local.to_vec(0, LEN)), [(); 2].map(|()| Some(pattern(9, LEN))), "nothing read");
        // Its peer, between others that are refused.
        let local = a.register(memory(), Rights::NONE).expect("a registration");
        assert!(local.write(0, &pattern(round, LEN)));
        assert_eq!(ends(&world, 0, chosen, (&local, &target)), [Ok(()); 2]);
        assert_eq!(target.to_vec(0, LEN), Some(pattern(round, LEN)));
    }
}

/// Memory of the library, and of the program.
pub fn serves_one_connection(device: &Device) {
    serves_one(device, shared);
    serves_one(device, || vec![0; LEN]);
}

/// It serves one connection as the local side too.
pub fn serves_one_locally(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, chosen, _) = World::joined([&a, &b], RO);
    let (other, _) = world.connect(0, 1, RO);
    let local = a.register_for(chosen, vec![0; LEN], Rights::NONE).expect("a registration");
    let remote = b.register(vec![0; LEN], Rights::READ_WRITE).expect("a registration");
    let rma = Rma::new(local.handle(), remote.handle(), 8);
    assert_eq!(a.rma(other, &rma, 1, Flags::WRITE), Err(RmaError::LocalHandle.into()));
    assert_eq!(ends(&world, 0, chosen, (&local, &remote)), [Ok(()); 2]);
}

/// It ends with its connection, whichever side ends it; the successor of that connection does not
/// inherit it.
pub fn ends_with_its_connection(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    let local = a.register(vec![5; LEN], Rights::NONE).expect("a registration");
    for peer_ends in [false, true] {
        let (chosen, at_b) = world.connect(0, 1, RO);
        let target = b.register_for(at_b, vec![0; LEN], Rights::READ_WRITE).expect("a registration");
        let end = |end: &Endpoint, connection| end.disconnect(connection).expect("a connection");
        match peer_ends {
            true => end(&a, chosen),
            false => end(&b, at_b),
        }
        // Those that come after have its place, and its number.
        for _ in 0..3 {
            let (next, _) = world.connect(0, 1, RO);
            assert_eq!(ends(&world, 0, next, (&local, &target)), REFUSED, "the peer ended: {peer_ends}");
        }
        assert_eq!(target.deregister().expect("it is still to be deregistered"), vec![0; LEN]);
    }
}

/// Only an open, reliable connection has RMA.
pub fn needs_a_connection_with_rma(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    let refused = |connection| a.register_for(connection, vec![0; 8], Rights::READ).err();
    let (unreliable, _) = world.connect(0, 1, Attribute::Unreliable);
    assert_eq!(refused(unreliable), Some(RegisterError::Unreliable));
    let (closed, of_b) = world.connect(0, 1, RO);
    assert_eq!(refused(of_b), Some(RegisterError::Disconnected), "a connection of another endpoint");
    a.disconnect(closed).expect("a connection");
    assert_eq!(refused(closed), Some(RegisterError::Disconnected));
}
