//! Memory of a peer as one's own, on `sm`: what is seen, who may, and how each side learns of the
//! end.

use cci::{
    Attribute, Connection, Endpoint, EventKind, Import, ImportError, Registration, Rights, RmaHandle, SharedMemory,
    wait_any,
};
use cci_conformance::{LIMIT, World, open, pattern, sm_device};
use std::sync::Arc;

const RO: Attribute = Attribute::ReliableOrdered;
const LEN: usize = 10_000;

fn shared() -> Arc<SharedMemory> {
    Arc::new(SharedMemory::new(LEN).expect("memory"))
}

fn register(endpoint: &Endpoint, memory: &Arc<SharedMemory>, rights: Rights) -> Registration<Arc<SharedMemory>> {
    endpoint.register(Arc::clone(memory), rights).expect("a registration")
}

/// Lets both sides handle what the other has said until the import has ended.
fn until_ended(world: &World<'_>, import: &Import) {
    world.until("the import has ended", || !import.is_current());
}

/// Both sides read what the other writes, without a call.
#[test]
fn memory_is_one() {
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (_world, connection, _) = World::joined([&a, &b], RO);
    let memory = shared();
    let registered = register(&b, &memory, Rights::READ_WRITE);
    let import = a.import(connection, registered.handle()).expect("it is mapped");
    assert_eq!((import.len(), import.rights()), (LEN as u64, Rights::READ_WRITE));
    memory.write(0, &pattern(1, LEN));
    let mut bytes = vec![0; LEN];
    assert!(import.read(0, &mut bytes) && bytes == pattern(1, LEN));
    assert!(import.write(5000, &pattern(2, 5000)));
    assert_eq!(memory.to_vec(5000, 5000), pattern(2, 5000));
    assert!(!import.write(5001, &bytes[..5000]) && !import.read(5001, &mut bytes[..5000]), "beyond the end");
    assert!(import.is_current());
}

/// Only registrations that this connection may read, with the right that they give.
#[test]
fn handle_rights_and_connection_are_checked() {
    let (a, b, c) = (open(&sm_device()), open(&sm_device()), open(&sm_device()));
    let world = World::new([&a, &b, &c]);
    let (connection, at_b) = world.connect(0, 1, RO);
    let (other, _) = world.connect(2, 1, RO);
    let memory = shared();
    let refused = |handle: &RmaHandle| a.import(connection, handle).err();
    for rights in [Rights::NONE, Rights::WRITE] {
        assert_eq!(refused(register(&b, &memory, rights).handle()), Some(ImportError::Handle), "{rights:?}");
    }
    let read_only = register(&b, &memory, Rights::READ);
    let import = a.import(connection, read_only.handle()).expect("it may be read");
    assert!(!import.write(0, b"x") && memory.to_vec(0, 1) == [0]);
    let [first, secret, ..] = read_only.handle().words();
    assert_eq!(refused(&RmaHandle::from_words([first, secret ^ 1, 0, 0])), Some(ImportError::Handle));
    let private = b.register_for(at_b, Arc::clone(&memory), Rights::READ).expect("a registration");
    assert!(a.import(connection, private.handle()).is_ok());
    assert_eq!(c.import(other, private.handle()).err(), Some(ImportError::Handle), "another connection's");
    let own = b.register(vec![0; 64], Rights::READ).expect("a registration");
    assert_eq!(refused(own.handle()), Some(ImportError::NotMapped), "memory of the program");
    a.disconnect(connection).expect("open");
    assert_eq!(refused(read_only.handle()), Some(ImportError::Disconnected));
}

/// How the owner, or the end of the connection, ends an import.
fn ends(end: impl FnOnce(Registration<Arc<SharedMemory>>, &Endpoint, Connection)) {
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    let memory = shared();
    // Another registration keeps the memory announced.
    let other = register(&b, &memory, Rights::READ);
    let registered = register(&b, &memory, Rights::READ_WRITE);
    let handle = *registered.handle();
    memory.write(0, b"last words");
    let (import, second) = [(); 2].map(|()| a.import(connection, &handle).expect("it is mapped")).into();
    // The import is known to the owner, who handles what came before this message.
    a.send(connection, b"imported", 3).expect("a send");
    assert_eq!((world.message(1), world.sent(0)), (b"imported".to_vec(), 3));
    drop(second);
    end(registered, &b, at_b);
    // Asleep: the event wakes, and is the one that a program which dropped the other import gets.
    let event = wait_any(&[&a], Some(LIMIT)).expect("usable").expect("an event").1;
    assert_eq!((event.kind(), event.connection()), (EventKind::ImportEnded, Some(connection)));
    drop(event);
    assert!(!import.is_current() && world.waiting(0, EventKind::ImportEnded) == 0);
    let mut bytes = [0; 10];
    assert!(import.read(0, &mut bytes) && bytes == *b"last words", "the owner has it still");
    // What is mapped stays; the owner gives the memory behind it back to the system.
    drop((memory, other));
    drop(world);
    drop(b);
    assert!(import.read(0, &mut bytes) && bytes == [0; 10]);
    assert!(matches!(a.import(connection, &handle), Err(ImportError::Handle | ImportError::Disconnected)));
}

#[test]
fn deregistration_wakes_a_sleeper() {
    ends(|registered, _, _| drop(registered.deregister().expect("nobody copies")));
}

#[test]
fn dropped_registration_wakes_a_sleeper() {
    ends(|registered, _, _| drop(registered));
}

#[test]
fn disconnect_wakes_a_sleeper() {
    ends(|_, b, at_b| b.disconnect(at_b).expect("open"));
}

/// A peer whose endpoint closes, as one whose process dies, ends what was imported from it.
#[test]
fn closed_owner_wakes_a_sleeper() {
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let memory = shared();
    let registered = register(&b, &memory, Rights::READ);
    let connection = World::new([&a, &b]).connect(0, 1, RO).0;
    let import = a.import(connection, registered.handle()).expect("it is mapped");
    drop(b);
    let event = wait_any(&[&a], Some(LIMIT)).expect("usable").expect("an event").1;
    assert_eq!((event.kind(), event.connection()), (EventKind::ImportEnded, Some(connection)));
    assert!(!import.is_current());
}

/// A registration that ends before its owner hears of the import.
#[test]
fn an_end_that_crosses_the_import_is_told() {
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let memory = shared();
    let _other = register(&b, &memory, Rights::READ);
    let registered = register(&b, &memory, Rights::READ);
    let import = a.import(connection, registered.handle()).expect("it is mapped");
    // No call of `b` has taken the frame yet; its first one does both.
    drop(registered.deregister().expect("nobody copies"));
    until_ended(&world, &import);
    assert_eq!(world.next(0, EventKind::ImportEnded).connection(), Some(connection));
}

/// An import needs neither its connection nor its endpoint to be let go.
#[test]
fn an_import_outlives_its_endpoint() {
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let memory = shared();
    let registered = register(&b, &memory, Rights::READ);
    let [closed, disconnected] = [(); 2].map(|()| a.import(connection, registered.handle()).expect("it is mapped"));
    a.disconnect(connection).expect("open");
    assert!(!disconnected.is_current(), "the program has closed the connection");
    assert_eq!(world.waiting(0, EventKind::ImportEnded), 0, "no event of what it has done itself");
    drop(world);
    drop(a);
    memory.write(0, b"still");
    let mut bytes = [0; 5];
    assert!(closed.read(0, &mut bytes) && bytes == *b"still" && !closed.is_current());
}
