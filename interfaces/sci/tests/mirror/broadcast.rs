//! Broadcast groups over name spaces: hosts that reach each other by cables only.

use crate::spaces::{host_of, lose_some};
use crate::world::{bytes, id, seen, until, until_is};
use cci_conformance::LIMIT;
use cci_conformance::namespace::{Net, has, may_be_made, pair};
use cci_sci::{Access, Direction, Error, Host, Kind, LocalSegment, QueueState, RemoteSegment, SequenceStatus, Window};
use std::time::Duration;

const TABLE: &str = "4 10.0.0.1\n8 10.0.0.2:7300\n";
const SIZE: usize = 100_001;

fn hosts(nets: &[Net; 2]) -> [Host; 2] {
    [host_of(&nets[0], "v0", TABLE), host_of(&nets[1], "v1", TABLE)]
}

fn member(net: &Net, host: &Host, id: u32) -> (LocalSegment, Window) {
    let segment = net.enter(|| host.create_broadcast(id, SIZE)).expect("memory");
    segment.prepare().and_then(|()| segment.publish()).expect("room");
    let window = seen(&segment);
    (segment, window)
}

fn sender(net: &Net, host: &Host, id: u32) -> (RemoteSegment, Window) {
    let sender = net.enter(|| host.connect_broadcast(id, Some(LIMIT))).expect("published");
    let window = sender.map(0..SIZE, Access::ReadWrite).expect("mapped");
    assert_eq!((window.kind(), sender.len()), (Kind::Mirror, SIZE));
    (sender, window)
}

#[test]
fn one_store_reaches_members_of_both_hosts_through_loss() {
    if !may_be_made() {
        return;
    }
    let nets = pair(1500);
    let [first, second] = hosts(&nets);
    let third = host_of(&nets[1], "v1", TABLE);
    let id = id();
    let no_members = nets[0].enter(|| first.connect_broadcast(id, Some(LIMIT)));
    assert_eq!(no_members.err(), Some(Error::NoSuchSegment));
    let (_far, far) = member(&nets[1], &second, id);
    let refused = nets[0].enter(|| first.create_broadcast(id, SIZE + 1));
    assert_eq!(refused.err(), Some(Error::SegmentIdUsed), "another host has another size");
    // The first host has no segment yet; a late one has what was stored since its host joined.
    let (_sender, window) = sender(&nets[0], &first, id);
    window.store(0, 1_u64).expect("inside");
    let (_near, near) = member(&nets[0], &first, id);
    let (_third, by) = member(&nets[1], &third, id);
    let sequence = window.sequence();
    if has("nft") {
        nets.iter().for_each(lose_some);
    }
    let mut random = fastrand::Rng::with_seed(3);
    let mut model = vec![0; SIZE];
    model[..8].copy_from_slice(&1_u64.to_ne_bytes());
    for round in 0..30 {
        let (at, len) = (random.usize(..60_000), 1 + random.usize(..40_000) / (1 + round % 2 * 1000));
        let part: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
        model[at..at + len].copy_from_slice(&part);
        window.write(at, &part).expect("inside");
        if round % 4 == 0 {
            until_is(&sequence, SequenceStatus::Ok);
            assert!([&near, &far, &by].map(bytes).iter().all(|bytes| *bytes == model), "round {round}");
        }
    }
    for member in [&near, &far, &by] {
        until("what nobody has flushed", || bytes(member) == model);
    }
    // Another sender, of the other host: its window has what its host has.
    let (_other, back) = sender(&nets[1], &third, id);
    assert!(bytes(&back) == model);
    back.store(SIZE / 8 * 8 - 8, 5_u64).expect("inside");
    until_is(&back.sequence(), SequenceStatus::Ok);
    assert_eq!([&near, &far].map(|member| member.load(SIZE / 8 * 8 - 8)), [Ok(5_u64); 2]);
    // An interrupt comes behind what was stored before it.
    let bell = nets[1].enter(|| third.interrupt(Some(id))).expect("free");
    let ring = nets[0].enter(|| first.connect_interrupt(8, id, Some(LIMIT))).expect("there");
    window.store(16, 42_u64).expect("inside");
    ring.trigger().expect("connected");
    bell.wait(Some(LIMIT)).expect("triggered");
    assert_eq!(by.load(16), Ok(42_u64));
    window.flush_reads().expect("its own host has it");
    assert_eq!(window.load(SIZE / 8 * 8 - 8), Ok(5_u64));
}

/// One member of a host takes what comes for all of them: another one goes on in its place.
#[test]
fn a_member_goes_on_for_one_that_ends() {
    if !may_be_made() {
        return;
    }
    let nets = pair(1500);
    let [first, second] = hosts(&nets);
    let third = host_of(&nets[1], "v1", TABLE);
    let id = id();
    let (left, leaving) = member(&nets[1], &second, id);
    let (_near, near) = member(&nets[0], &first, id);
    let (_sender, window) = sender(&nets[0], &first, id);
    let sequence = window.sequence();
    let (_stays, stays) = member(&nets[1], &third, id);
    window.store(8, 1_u64).expect("inside");
    until_is(&sequence, SequenceStatus::Ok);
    assert_eq!([&near, &leaving, &stays].map(|member| member.load(8)), [Ok(1_u64); 3]);
    // Its host ends while stores are on their way.
    std::thread::scope(|scope| {
        let storing = scope.spawn(|| {
            for number in 2..2_000_u64 {
                window.store(8 + number as usize % 1_000 * 8, number).expect("inside");
                window.flush();
            }
        });
        drop((leaving, left));
        drop(second);
        storing.join().expect("no panic");
    });
    until_is(&sequence, SequenceStatus::Ok);
    let [here, there] = [&near, &stays].map(bytes);
    assert!(here == there, "nothing is lost");
    assert_eq!(stays.load(8 + 999 * 8), Ok(1_999_u64));
    // The last one of its host leaves: what is stored then reaches the own host.
    drop((stays, _stays, third));
    window.store(8, 9_u64).expect("inside");
    until_is(&sequence, SequenceStatus::Ok);
    assert_eq!(near.load(8), Ok(9_u64));
}

/// A transfer has ended once all hosts have what it wrote; and it ends, too, where they end before.
#[test]
fn a_transfer_reaches_members_of_both_hosts() {
    if !may_be_made() {
        return;
    }
    let nets = pair(1500);
    let [first, second] = hosts(&nets);
    let id = id();
    let (far_segment, far) = member(&nets[1], &second, id);
    let (_near, near) = member(&nets[0], &first, id);
    let to_all = nets[0].enter(|| first.connect_broadcast(id, Some(LIMIT))).expect("published");
    let local = first.create(crate::world::id(), SIZE).expect("memory");
    local.prepare().expect("room");
    let own = local.map(0..SIZE, Access::ReadWrite).expect("mapped");
    let queue = first.dma_queue(2).expect("room");
    if has("nft") {
        lose_some(&nets[1]);
    }
    let mut random = fastrand::Rng::with_seed(5);
    let mut model = vec![0; SIZE];
    for _ in 0..5 {
        let fresh: Vec<u8> = (0..SIZE).map(|_| random.u8(..)).collect();
        own.write(0, &fresh).expect("inside");
        for (from, to, len) in [(1, 0, SIZE - 1), (7, random.usize(..100), random.usize(1..SIZE - 200))] {
            queue.enqueue((&local, from), (&to_all, to), len, Direction::Write).expect("room");
            model[to..to + len].copy_from_slice(&fresh[from..from + len]);
        }
        queue.post().expect("gathered");
        assert_eq!((queue.wait(Some(LIMIT)), queue.reset()), (Ok(QueueState::Done), Ok(())));
        assert!([&near, &far].map(bytes).iter().all(|seen| *seen == model));
    }
    // What another host has stored is read.
    let back = nets[1].enter(|| second.connect_broadcast(id, Some(LIMIT))).expect("published");
    let window = back.map(0..SIZE, Access::ReadWrite).expect("mapped");
    window.store(24, 78_u64).expect("inside");
    until_is(&window.sequence(), SequenceStatus::Ok);
    queue.enqueue((&local, 0), (&to_all, 24), 8, Direction::Read).expect("room");
    queue.post().expect("gathered");
    assert_eq!((queue.wait(Some(LIMIT)), queue.reset()), (Ok(QueueState::Done), Ok(())));
    assert_eq!(own.load(0), Ok(78_u64));
    // The other host ends while it cannot confirm.
    if has("nft") {
        nets[0].rules(
            "add table ip u; add chain ip u in { type filter hook input priority 0; }; \
             add rule ip u in meta l4proto udp drop",
        );
    }
    queue.enqueue((&local, 0), (&to_all, 0), SIZE, Direction::Write).expect("room");
    queue.post().expect("gathered");
    if has("nft") {
        assert_eq!(queue.wait(Some(Duration::from_millis(100))), Err(Error::Timeout));
    }
    drop((window, back, far, far_segment));
    drop(second);
    if has("nft") {
        nets[0].rules("flush ruleset");
    }
    assert_eq!((queue.wait(Some(LIMIT)), queue.reset()), (Ok(QueueState::Done), Ok(())));
    assert_eq!(near.load(0), own.load::<u64>(0));
}

/// A group of many blocks is read and sent on a small stack.
#[test]
fn a_large_group_needs_no_stack() {
    const LARGE: usize = 32 << 20;
    if !may_be_made() {
        return;
    }
    let nets = pair(1500);
    let (host, id) = (host_of(&nets[0], "v0", TABLE), id());
    let segment = nets[0].enter(|| host.create_broadcast(id, LARGE)).expect("memory");
    segment.prepare().and_then(|()| segment.publish()).expect("room");
    let own = seen(&segment);
    std::thread::scope(|scope| {
        let store = || {
            let sender = nets[0].enter(|| host.connect_broadcast(id, Some(LIMIT))).expect("published");
            let window = sender.map(0..LARGE, Access::ReadWrite).expect("mapped");
            assert_eq!(window.kind(), Kind::Mirror);
            [0, LARGE - 8].into_iter().for_each(|at| window.store(at, 7_u64).expect("inside"));
            until_is(&window.sequence(), SequenceStatus::Ok);
        };
        std::thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, store).expect("a thread");
    });
    assert_eq!([0, LARGE - 8].map(|at| own.load::<u64>(at)), [Ok(7); 2]);
}
