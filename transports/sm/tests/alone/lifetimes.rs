//! Lifetimes, order and identity in `sm`: what is over is not touched again, what comes late
//! belongs to nobody else, and an event names the connection that it was about.

use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, Connect, Connection, Device, Endpoint, EventKind, Failure, Notify, Rights, Rma, RmaHandle, SharedMemory,
};
use cci_conformance::memory::{Bytes, Origin};
use cci_conformance::sm_raw::{BACK, GRANTS, RawPeer, learn, words};
use cci_conformance::{LIMIT, World, alone, open, pattern, sm_device};
use std::time::Instant;

const RO: Attribute = Attribute::ReliableOrdered;
const SHORT: usize = 4096;
/// More than the payload slots of a lane hold: a relayed RMA of this length takes several rounds.
const LONG: usize = 1 << 20;

/// A device whose RMA goes through payload slots with the target's help.
fn relaying() -> Device {
    let mut device = sm_device();
    device.arguments.push(("rma".into(), "segment".into()));
    device
}

/// Between the first bytes of two registrations.
fn rma<'a>(local: &'a RmaHandle, remote: &'a RmaHandle, len: usize) -> Rma<'a> {
    Rma::new(local, remote, len as u64)
}

/// Memory of the program, registered.
fn registered(endpoint: &Endpoint, len: usize, rights: Rights) -> (Bytes, RmaHandle) {
    let bytes = Origin::Program.allocate(len);
    let handle = endpoint.register_memory(bytes.memory(), rights).expect("a registration");
    (bytes, handle)
}

/// Polls one endpoint and no other until `done`.
fn poll_until(world: &World<'_>, at: usize, what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
        world.poll(at);
    }
}

/// The contexts and outcomes of this many SEND events of the first endpoint, by context.
fn ends(world: &World<'_>, count: usize) -> Vec<(u64, Result<(), Failure>)> {
    world.until("all operations to end", || world.waiting(0, EventKind::Send) >= count);
    let mut ends = Vec::new();
    while world.waiting(0, EventKind::Send) > 0 {
        let event = world.next(0, EventKind::Send);
        ends.push((event.context(), event.outcome()));
    }
    ends.sort_by_key(|(context, _)| *context);
    ends
}

/// Memory is its program's alone once the endpoint that registered it is closed. Close left the
/// published registrations alive, and a peer that had not noticed yet wrote on.
#[test]
fn memory_of_a_closed_endpoint_is_not_written() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let (source, local) = registered(&a, SHORT, Rights::NONE);
    let (target, remote) = registered(&b, SHORT, Rights::WRITE);
    source.write(0, &[7; SHORT]);
    b.close().expect("a close");
    let outcome = a.rma(connection, &rma(&local, &remote, SHORT), 0, Flags::WRITE | Flags::BLOCKING);
    assert!(target.to_vec(0, SHORT) == [0; SHORT], "written after close; the writer was told {outcome:?}");
    assert!(outcome.is_err(), "nobody is there to write to");
}

/// Bytes go to the allocation that is registered now, though it may lie where a freed one lay.
/// Segments were named by their address, so the peer went on writing into its mapping of the freed
/// one.
#[test]
fn memory_allocated_where_freed_memory_lay_is_written() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    const LEN: usize = 1 << 16;
    let source = Origin::Library.allocate(LEN);
    let local = a.register_memory(source.memory(), Rights::NONE).expect("a registration");
    for round in 1..40u8 {
        let target = SharedMemory::new(LEN).expect("memory of the library");
        let remote = b.register_memory(target.memory(), Rights::WRITE).expect("a registration");
        source.write(0, &[round; LEN]);
        a.rma(connection, &rma(&local, &remote, LEN), 0, Flags::WRITE | Flags::BLOCKING).expect("an RMA");
        let mut arrived = vec![0; LEN];
        target.read(0, &mut arrived);
        assert!(arrived == [round; LEN], "round {round}: the bytes went elsewhere");
        b.deregister(&remote).expect("nobody copies");
    }
}

/// The RESULT of an operation whose connection was closed ends no other operation. The next one on
/// the lane took it for its own: one of the two ended early, or never.
#[test]
fn late_result_of_a_closed_connection_ends_nothing_else() {
    let _alone = alone();
    let (a, b) = (open(&relaying()), open(&relaying()));
    let world = World::new([&a, &b]);
    let ((closed, _), (open, _)) = (world.connect(0, 1, RO), world.connect(0, 1, RO));
    let (read, local) = registered(&a, LONG, Rights::NONE);
    let (target, remote) = registered(&b, LONG, Rights::READ_WRITE);
    let bytes = pattern(1, LONG);
    // What the write carries is what stands there anyhow, so that its end does not matter to the
    // read.
    read.write(0, &bytes[..SHORT]);
    target.write(0, &bytes);
    a.rma(closed, &rma(&local, &remote, SHORT), 1, Flags::WRITE).expect("an RMA");
    a.disconnect(closed).expect("open");
    a.rma(open, &rma(&local, &remote, LONG), 2, Flags::READ).expect("an RMA");
    let ends = ends(&world, 2);
    assert_eq!((ends.len(), ends[0].0, ends[1]), (2, 1, (2, Ok(()))), "{ends:?}");
    assert!(read.to_vec(0, LONG) == bytes, "the read ended before its bytes had come");
}

/// Closing a connection ends its own operations and forgets no other's. A waiting operation that
/// was dropped made the lane forget the read that another connection had under way, which then
/// never ended.
#[test]
fn closing_a_connection_leaves_the_read_of_another_alone() {
    let _alone = alone();
    let (a, b) = (open(&relaying()), open(&relaying()));
    let world = World::new([&a, &b]);
    let ((open, _), (closed, _)) = (world.connect(0, 1, RO), world.connect(0, 1, RO));
    let (read, local) = registered(&a, LONG, Rights::NONE);
    let (target, remote) = registered(&b, LONG, Rights::READ_WRITE);
    target.write(0, &pattern(1, LONG));
    a.rma(open, &rma(&local, &remote, LONG), 1, Flags::READ).expect("an RMA");
    a.rma(closed, &rma(&local, &remote, SHORT), 2, Flags::READ).expect("an RMA");
    a.disconnect(closed).expect("open");
    assert_eq!(ends(&world, 2), [(1, Ok(())), (2, Err(Failure::Disconnected))]);
    assert!(read.to_vec(0, LONG) == pattern(1, LONG), "the read ended before its bytes had come");
}

/// A connection's first message comes after its CONNECT event. While ACCEPT waited behind the
/// answers to a read, messages were published past it, and the client dropped them.
#[test]
fn message_does_not_overtake_the_accept() {
    let _alone = alone();
    let (a, b) = (open(&relaying()), open(&relaying()));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let (_read, local) = registered(&a, LONG, Rights::NONE);
    let (_target, remote) = registered(&b, LONG, Rights::READ_WRITE);
    a.connect(&Connect::to(b.uri()).context(5)).expect("a connect");
    let request = world.next(1, EventKind::ConnectRequest);
    a.rma(connection, &rma(&local, &remote, LONG), 1, Flags::READ).expect("an RMA");
    // B alone: it takes the READ and fills the slots it was granted; the rest waits among its
    // answers.
    for _ in 0..5 {
        world.poll(1);
    }
    request.into_request().expect("a request").accept(6).expect("an accept");
    poll_until(&world, 1, "the accept", || world.waiting(1, EventKind::Accept) > 0);
    let accepted = world.next(1, EventKind::Accept).connection().expect("one");
    b.send(accepted, b"first", Notify::OnFailure(0)).expect("a send");
    let kinds = [(); 3].map(|()| world.first(0).kind());
    let at = |kind| kinds.iter().position(|other| *other == kind).expect("one of each");
    assert!(at(EventKind::Connect) < at(EventKind::Recv), "{kinds:?}");
    assert!(kinds.contains(&EventKind::Send), "{kinds:?}");
}

/// Requests that the program has not answered yet do not keep messages out. Each held one of the
/// four slots that a lane begins with, and their number did not grow for requests.
#[test]
fn unanswered_requests_do_not_use_up_the_slots_of_a_lane() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for number in 0..5 {
        a.connect(&Connect::to(b.uri()).payload(&[1; 100]).context(number)).expect("a connect");
    }
    a.send(connection, &[9; 100], Notify::OnFailure(0)).expect("a send");
    world.until("five requests", || world.waiting(1, EventKind::ConnectRequest) == 5);
    assert_eq!(world.message(1), [9; 100]);
}

/// A peer that breaks the protocol ends every operation that waits for it, once each. The one at
/// which the violation was found had been taken out of the queue, and its completion was lost.
#[test]
fn violation_ends_every_waiting_operation_once() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let hello = learn(&endpoint, 70_055);
    let world = World::new([&endpoint]);
    let mut peer = RawPeer::enter(endpoint.uri(), &hello, || world.step());
    peer.request(1);
    let connection = world.accept(0);
    for number in 0..10 {
        // Too long for an entry: they wait for slots, and the peer has granted none.
        endpoint.send(connection, &[1; 100], number).expect("room to wait");
    }
    let no_slot_of_the_lane = 1u32 << 16 | 9999;
    peer.write(BACK + GRANTS, &words([no_slot_of_the_lane]));
    let all: Vec<_> = (0..10).map(|number| (number, Err(Failure::Disconnected))).collect();
    assert_eq!(ends(&world, all.len()), all);
}

/// The SEND events of a connection name it although it is closed. They named the place as it was
/// when the event was looked at: no connection that the program knew.
#[test]
fn events_of_a_closed_connection_name_it() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], RO);
    // More than a ring has entries, so that some are done and some wait when the connection is
    // closed.
    for number in 0..300 {
        a.send(connection, b"x", number).expect("a send");
    }
    a.disconnect(connection).expect("open");
    for _ in 0..300 {
        let event = world.next(0, EventKind::Send);
        assert!(event.connection() == Some(connection), "the event with context {} names another", event.context());
    }
}

/// An event that the program keeps never names a later connection. Once the place was used again it
/// did, and a send to it reached the wrong peer.
#[test]
fn kept_event_does_not_name_a_later_connection() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    b.send(at_b, b"hi", Notify::OnFailure(0)).expect("a send");
    let kept = world.next(0, EventKind::Recv);
    let named = || -> Connection { kept.connection().expect("a message has a connection") };
    assert!(named() == connection);
    a.disconnect(connection).expect("open");
    for number in 0..400 {
        let (later, _) = world.connect(0, 1, RO);
        assert!(named() != later, "it names the connection opened {number} later");
        assert!(a.send(named(), b"wrong", Notify::OnFailure(0)).is_err(), "a send to a closed connection");
        a.disconnect(later).expect("open");
        world.step();
    }
    assert_eq!(world.waiting(1, EventKind::Recv), 0, "a message reached another connection");
}
