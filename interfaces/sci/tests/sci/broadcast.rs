//! Broadcast groups on one host: all members share pages.

use crate::owner::Owner;
use crate::world::{host, id, refused, two, until};
use cci_conformance::LIMIT;
use cci_sci::{Access, Direction, EVERY_NODE, Error, Host, Kind, LocalSegment, SequenceStatus, Withdraw};

fn member(host: &Host, id: u32, size: usize) -> LocalSegment {
    let segment = host.create_broadcast(id, size).expect("memory");
    segment.prepare().and_then(|()| segment.publish()).expect("room");
    segment
}

#[test]
fn one_store_reaches_all_segments_of_a_group() {
    let [first, second] = two();
    let third = host(12);
    let id = id();
    assert_eq!(refused(third.connect_broadcast(id, Some(LIMIT))), Error::NoSuchSegment, "no member");
    let unpublished = first.create_broadcast(id, 10_000).expect("memory");
    assert_eq!(refused(third.connect_broadcast(id, Some(LIMIT))), Error::NoSuchSegment, "none is available");
    drop(unpublished);
    let segments = [member(&first, id, 10_000), member(&second, id, 10_000)];
    let sender = third.connect_broadcast(id, Some(LIMIT)).expect("published");
    assert_eq!((sender.node(), sender.id(), sender.len()), (EVERY_NODE, id, 10_000));
    let window = sender.map(0..10_000, Access::ReadWrite).expect("mapped");
    assert_eq!(window.kind(), Kind::Shared);
    window.store(9_992, 77_u64).expect("inside");
    window.write(1, b"to all").expect("inside");
    for segment in &segments {
        let seen = segment.map(0..10_000, Access::Read).expect("mapped");
        let mut bytes = [0; 6];
        seen.read(1, &mut bytes).expect("inside");
        assert_eq!((seen.load::<u64>(9_992), bytes), (Ok(77), *b"to all"));
    }
    assert_eq!(window.sequence().check(), SequenceStatus::Ok);
    // A member that ends takes nothing from the others; a later one has what they have.
    let [left, stays] = segments;
    assert_eq!(left.remove(), Ok(()));
    drop((left, first));
    window.store(0, 5_u8).expect("inside");
    let late = host(4);
    let segment = member(&late, id, 10_000);
    let seen = segment.map(0..10_000, Access::Read).expect("mapped");
    assert_eq!((seen.load::<u64>(9_992), seen.load::<u8>(0)), (Ok(77), Ok(5)));
    drop((window, seen));
    sender.disconnect().expect("no window");
    drop((segment, stays, sender));
    // The memory has ended with the last one.
    assert_eq!(refused(third.connect_broadcast(id, Some(LIMIT))), Error::NoSuchSegment);
    let fresh = member(&third, id, 20_000);
    assert_eq!(fresh.map(9_992..20_000, Access::Read).and_then(|window| window.load(0)), Ok(0_u64));
}

#[test]
fn what_a_group_has_not_is_refused() {
    let [first, second] = two();
    let id = id();
    assert_eq!(refused(first.create_broadcast(id, 0)), Error::IllegalParameter);
    assert_eq!(refused(first.create_broadcast(id, 1 << 50)), Error::NoSpace);
    let segment = member(&first, id, 4096);
    assert_eq!(refused(first.create_broadcast(id, 4096)), Error::SegmentIdUsed, "this process has one");
    assert_eq!(refused(second.create_broadcast(id, 8192)), Error::SegmentIdUsed, "another size");
    // It is of no single node, and has no owner that a transfer could name.
    assert_eq!(refused(second.connect(4, id, Some(LIMIT))), Error::NoSuchSegment);
    let sender = second.connect_broadcast(id, Some(LIMIT)).expect("published");
    let local = second.create(id, 4096).expect("names of their own");
    local.prepare().expect("room");
    let queue = second.dma_queue(1).expect("room");
    let refusal = queue.enqueue((&local, 0), (&sender, 0), 8, Direction::Write);
    assert_eq!(refusal, Err(Error::NotImplemented));
    assert_eq!(refused(sender.map(1..4097, Access::Read)), Error::OutOfRange);
    let window = sender.map(0..4096, Access::Read).expect("mapped");
    assert_eq!(sender.disconnect(), Err(Error::Busy));
    // By force too: the group goes on.
    segment.withdraw(Withdraw::Force).expect("there");
    assert_eq!(window.sequence().check(), SequenceStatus::Ok);
    assert_eq!(refused(host(12).connect_broadcast(id, Some(LIMIT))), Error::NoSuchSegment);
    assert_eq!(refused(second.connect_broadcast(id, Some(LIMIT))), Error::NoSuchSegment, "a member already");
    segment.publish().expect("prepared");
    second.connect_broadcast(id, Some(LIMIT)).expect("published again");
    let own = first.connect_broadcast(id, Some(LIMIT)).expect("a host reaches its own segment");
    own.map(0..8, Access::ReadWrite).and_then(|window| window.store(0, 9_u64)).expect("mapped");
    assert_eq!(window.load(0), Ok(9_u64));
    assert_eq!(first.close(), Err(Error::Busy));
}

/// A member in another process is killed, is stopped, or forks.
#[test]
fn members_that_are_killed_take_nothing_with_them() {
    let own = host(8);
    let mut owner = Owner::start();
    assert_eq!(owner.tell("join"), "Some(Ok(()))");
    let group = owner.interrupt;
    let sender = own.connect_broadcast(group, Some(LIMIT)).expect("published");
    let window = sender.map(0..sender.len(), Access::ReadWrite).expect("mapped");
    window.store(0, 41_u64).expect("inside");
    assert_eq!(owner.tell("common"), "Some(41)");
    owner.stop();
    window.store(0, 42_u64).expect("inside");
    assert_eq!(window.sequence().check(), SequenceStatus::Ok);
    owner.kill();
    for at in (0..sender.len()).step_by(4096) {
        window.store(at, 43_u64).expect("inside");
    }
    assert_eq!(window.sequence().check(), SequenceStatus::Ok, "a group has no owner");
    // The name of the dead is free, and the memory is that of the living.
    let late = host(4);
    until("the system frees the name", || {
        let joined = late.create_broadcast(group, sender.len());
        joined.and_then(|segment| segment.map(0..8, Access::Read)).and_then(|window| window.load(0)) == Ok(43_u64)
    });
    assert_eq!(refused(host(12).connect_broadcast(group, Some(LIMIT))), Error::NoSuchSegment, "nobody has published");
}
