//! Broadcast groups on one host: all members share pages.

use crate::owner::Owner;
use crate::world::{host, id, refused, two, until};
use cci_conformance::LIMIT;
use cci_sci::{
    Access, Direction, EVERY_NODE, Error, Host, Kind, LocalSegment, Part, QueueState, SequenceStatus, Withdraw,
};

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
    assert_eq!(refused(first.create(id, 4096)), Error::SegmentIdUsed, "the same");
    assert_eq!(refused(second.create_broadcast(id, 8192)), Error::SegmentIdUsed, "another size");
    // It is of no single node.
    assert_eq!(refused(second.connect(4, id, Some(LIMIT))), Error::NoSuchSegment);
    let sender = second.connect_broadcast(id, Some(LIMIT)).expect("published");
    let local = second.create(id, 4096).expect("names of their own");
    local.prepare().expect("room");
    let queue = second.dma_queue(1).expect("room");
    let refusal = queue.enqueue((&local, 0), (&sender, 4090), 8, Direction::Write);
    assert_eq!(refusal, Err(Error::OutOfRange));
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

/// Writes of any offset and length, by one transfer and by a vector, and a read back.
#[test]
fn a_transfer_reaches_all_segments_of_a_group() {
    const SIZE: usize = 20_000;
    let [first, second] = two();
    let id = id();
    let segments = [member(&first, id, SIZE), member(&second, id, SIZE)];
    let sender = first.connect_broadcast(id, Some(LIMIT)).expect("published");
    let local = first.create(self::id(), SIZE).expect("memory");
    local.prepare().expect("room");
    let own = local.map(0..SIZE, Access::ReadWrite).expect("mapped");
    let bytes: Vec<u8> = (0..SIZE).map(|at| (at * 7 % 251) as u8).collect();
    own.write(0, &bytes).expect("inside");
    let queue = first.dma_queue(1).expect("room");
    let run = || (queue.post(), queue.wait(Some(LIMIT)), queue.reset());
    queue.enqueue((&local, 3), (&sender, 5), 15_001, Direction::Write).expect("room");
    assert_eq!(run(), (Ok(()), Ok(QueueState::Done), Ok(())));
    let parts = [(0, 15_010, 1), (1, 15_011, 6), (8, 15_024, 4_976)];
    let parts = parts.map(|(local_offset, remote_offset, len)| Part { local_offset, remote_offset, len });
    queue.enqueue_vector(&local, &sender, &parts, Direction::Write).expect("room");
    assert_eq!(run(), (Ok(()), Ok(QueueState::Done), Ok(())));
    let mut model = vec![0; SIZE];
    model[5..15_006].copy_from_slice(&bytes[3..15_004]);
    parts.iter().for_each(|part| {
        let from = part.local_offset..part.local_offset + part.len;
        model[part.remote_offset..part.remote_offset + part.len].copy_from_slice(&bytes[from]);
    });
    let mut seen = vec![0; SIZE];
    for segment in &segments {
        segment.map(0..SIZE, Access::Read).and_then(|window| window.read(0, &mut seen)).expect("mapped");
        assert!(seen == model);
    }
    queue.enqueue((&local, 0), (&sender, 0), SIZE, Direction::Read).expect("room");
    assert_eq!(run(), (Ok(()), Ok(QueueState::Done), Ok(())));
    own.read(0, &mut seen).expect("inside");
    assert!(seen == model);
    // One that is posted after the connection has ended has no group to go to.
    queue.enqueue((&local, 0), (&sender, 0), 8, Direction::Write).expect("room");
    sender.disconnect().expect("no window");
    assert_eq!(run(), (Ok(()), Ok(QueueState::Error), Ok(())));
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
