//! The lives of segments, connections and hosts.

use crate::world::{connect, host, id, published, refused, two, until_lost};
use cci_conformance::LIMIT;
use cci_sci::{Access, Error, NotOpened, Reason, SequenceStatus, Withdraw};
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);

#[test]
fn a_segment_is_created_prepared_published_withdrawn_and_removed() {
    let [owner, other] = two();
    assert_eq!(refused(owner.create(id(), 0)), Error::IllegalParameter);
    assert_eq!(refused(owner.create(id(), 1 << 50)), Error::NoSpace);
    let id = id();
    let segment = owner.create(id, 100).expect("memory");
    assert_eq!((segment.id(), segment.len()), (id, 100));
    // Of one node each number has one owner, whichever host that is.
    assert_eq!(refused(owner.create(id, 100)), Error::SegmentIdUsed);
    assert_eq!(refused(host(4).create(id, 100)), Error::SegmentIdUsed);
    let twin = other.create(id, 200).expect("another node");

    let connect = || other.connect(4, id, Some(LIMIT));
    assert_eq!(refused(connect()), Error::NoSuchSegment);
    assert_eq!(segment.publish(), Err(Error::SegmentNotPrepared));
    segment.prepare().expect("room");
    assert_eq!(segment.prepare(), Err(Error::IllegalOperation));
    assert_eq!(refused(connect()), Error::NoSuchSegment);
    segment.publish().expect("prepared");
    let connection = connect().expect("published");
    assert_eq!((connection.node(), connection.id(), connection.len()), (4, id, 100));

    segment.withdraw(Withdraw::Quiet).expect("there");
    assert_eq!(refused(connect()), Error::NoSuchSegment);
    assert_eq!(segment.remove(), Err(Error::Busy), "a connection");
    let window = connection.map(0..100, Access::ReadWrite).expect("it lives on");
    assert_eq!(connection.disconnect(), Err(Error::Busy), "a window");
    let sequence = window.sequence();
    drop(window);
    assert_eq!(connection.disconnect(), Err(Error::Busy), "a sequence");
    assert_eq!(sequence.start(), SequenceStatus::Ok);
    drop(sequence);
    connection.disconnect().expect("no window");
    assert_eq!(connection.disconnect(), Err(Error::SegmentNotConnected));
    assert_eq!(refused(connection.map(0..1, Access::Read)), Error::SegmentNotConnected);
    assert_eq!(refused(connection.wait(NOW)), Error::Cancelled);
    assert_eq!(refused(connection.on_event(|_| cci_sci::Then::Continue)), Error::SegmentNotConnected);

    let reasons = [(); 2].map(|()| segment.wait(Some(LIMIT)).expect("two events"));
    assert_eq!(reasons.map(|event| (event.reason, event.node)), [(Reason::Connect, 8), (Reason::Disconnect, 8)]);
    assert_eq!(refused(segment.wait(NOW)), Error::Timeout);
    let window = segment.map(0..100, Access::ReadWrite).expect("there");
    assert_eq!(segment.remove(), Err(Error::Busy), "a window");
    drop(window);
    segment.remove().expect("not in use");
    assert_eq!(segment.remove(), Err(Error::NoSuchSegment));
    assert_eq!(
        [segment.prepare(), segment.publish(), segment.withdraw(Withdraw::Quiet)],
        [Err(Error::NoSuchSegment); 3]
    );
    assert_eq!(refused(segment.map(0..1, Access::Read)), Error::NoSuchSegment);
    assert_eq!(refused(segment.wait(None)), Error::Cancelled);
    assert_eq!(refused(connect()), Error::NoSuchSegment);
    drop(twin);
    drop(owner.create(id, 100).expect("the number is free"));
}

#[test]
fn nodes_are_those_of_the_table() {
    let own = host(8);
    assert_eq!(own.node(), 8);
    for (node, answer) in [
        (4, Ok(())),
        (12, Ok(())),
        (16, Err(Error::NotImplemented)),
        (20, Err(Error::NoSuchNode)),
        (0, Err(Error::IllegalNode)),
        (65_536, Err(Error::IllegalNode)),
    ] {
        assert_eq!(own.probe(node), answer, "{node}");
        let refusals = (answer.err().unwrap_or(Error::NoSuchSegment), answer.err().unwrap_or(Error::NoSuchSegment));
        assert_eq!(refused(own.connect(node, id(), Some(LIMIT))), refusals.0);
        assert_eq!(refused(own.connect_interrupt(node, id(), Some(LIMIT))), refusals.1);
    }
}

/// A host reaches its own segments as others do.
#[test]
fn a_host_connects_to_itself() {
    let own = host(4);
    let segment = published(&own, 64);
    let connection = connect(&own, &own, &segment);
    assert_eq!(segment.wait(NOW).map(|event| event.reason), Ok(Reason::Connect));
    connection.map(0..8, Access::ReadWrite).and_then(|window| window.store(0, 5_u64)).expect("mapped");
    assert_eq!(segment.map(0..8, Access::Read).and_then(|window| window.load(0)), Ok(5_u64));
    assert_eq!(segment.remove(), Err(Error::Busy));
    let sequence = connection.map(0..8, Access::Read).expect("mapped").sequence();
    segment.withdraw(Withdraw::Force).expect("there");
    assert_eq!((sequence.check(), connection.wait(NOW)), (SequenceStatus::NotRetriable, Ok(Reason::Lost)));
    segment.remove().expect("no connection");
}

#[test]
fn a_withdrawal_with_notice_asks_and_one_by_force_ends() {
    let [owner, other] = two();
    let segment = published(&owner, 64);
    let connection = connect(&other, &owner, &segment);
    let window = connection.map(0..64, Access::ReadWrite).expect("mapped");
    let sequence = window.sequence();
    segment.withdraw(Withdraw::Notify).expect("there");
    assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Disconnect));
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    drop(connection.map(0..64, Access::Read).expect("it lives on"));

    segment.publish().expect("prepared");
    segment.withdraw(Withdraw::Force).expect("there");
    assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Lost));
    until_lost(&sequence);
    assert_eq!(refused(connection.map(0..64, Access::Read)), Error::SegmentNotConnected);
    // Stores fault no more than before; later connections see the segment as it is.
    window.store(0, 1_u32).expect("mapped");
    segment.publish().expect("prepared");
    let again = connect(&other, &owner, &segment);
    assert_eq!(again.map(0..64, Access::Read).expect("mapped").sequence().check(), SequenceStatus::Ok);
    assert_eq!(sequence.start(), SequenceStatus::NotRetriable);
    drop((window, sequence));
    connection.disconnect().expect("no window");
}

#[test]
fn the_end_of_a_host_ends_its_objects_for_others() {
    let [owner, other] = two();
    let segment = published(&owner, 4096);
    let own_window = segment.map(0..4096, Access::ReadWrite).expect("mapped");
    let connection = connect(&other, &owner, &segment);
    let back = published(&other, 64);
    let to_back = connect(&owner, &other, &back);
    assert_eq!(back.wait(Some(LIMIT)).map(|event| event.reason), Ok(Reason::Connect));
    let window = connection.map(0..4096, Access::ReadWrite).expect("mapped");
    let sequence = window.sequence();
    assert_eq!(owner.close(), Err(Error::Busy));
    window.store(0, 1_u64).expect("mapped");
    drop(owner);
    assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Lost));
    until_lost(&sequence);
    assert_eq!(back.wait(Some(LIMIT)).map(|event| event.reason), Ok(Reason::Lost));
    back.remove().expect("nobody is connected");
    assert_eq!(refused(segment.publish()), Error::NotInitialized);
    assert_eq!(refused(to_back.wait(NOW)), Error::NotInitialized);
    // The windows of both live on, and share pages, until they are dropped.
    assert_eq!(own_window.load(0), Ok(1_u64));
    drop((segment, own_window));
    window.store(8, 1_u64).expect("mapped");
    assert_eq!(refused(other.connect(4, connection.id(), Some(LIMIT))), Error::NoSuchSegment);
    drop((window, sequence));
    connection.disconnect().expect("no window");
    drop((connection, back));
    other.close().expect("no objects");
    assert_eq!((other.close(), refused(other.create(id(), 1))), (Err(Error::NotInitialized), Error::NotInitialized));
}

#[test]
fn a_wait_ends_when_its_object_is_removed_or_its_host_ends() {
    let own = host(4);
    let (first, second) = (published(&own, 1), published(&own, 1));
    std::thread::scope(|scope| {
        let waits = [&first, &second].map(|segment| scope.spawn(|| segment.wait(None)));
        first.remove().expect("not in use");
        let [of_first, of_second] = waits;
        assert_eq!(refused(of_first.join().expect("no panic")), Error::Cancelled);
        assert_eq!(own.close(), Err(Error::Busy), "the second one lives");
        drop(own);
        // The wait may begin after the end.
        let why = refused(of_second.join().expect("no panic"));
        assert!(matches!(why, Error::Cancelled | Error::NotInitialized), "{why}");
    });
}

#[test]
fn what_keeps_a_host_from_opening_is_said() {
    let why: NotOpened = cci_sci::Nodes::parse("4 192.0.2.1").expect_err("elsewhere");
    assert_eq!(why.code(), Error::NoSuchNode);
    assert!(why.to_string().ends_with("add a line NODE localhost"), "{why}");
}

/// Its memory stays for who is connected, until that one has disconnected.
#[test]
fn a_segment_that_is_released_stays_for_its_connections() {
    let [owner, other] = two();
    let segment = published(&owner, 4096);
    let (number, far) = (segment.id(), connect(&other, &owner, &segment));
    let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
    let own = segment.map(0..4096, Access::ReadWrite).expect("mapped");
    own.store(0, 6_u64).expect("inside");
    assert_eq!(segment.release(), Err(Error::Busy), "a window");
    drop(own);
    assert_eq!(segment.release(), Ok(()));
    assert_eq!(segment.release(), Err(Error::NoSuchSegment));
    drop(segment);
    let next = owner.create(number, 64).expect("the number is free");
    assert_eq!((window.load(0), window.sequence().check()), (Ok(6_u64), SequenceStatus::Ok));
    assert_eq!(far.wait(NOW), Err(Error::Timeout), "no event");
    let second = far.map(0..8, Access::Read).expect("it is connected");
    drop((window, second));
    assert_eq!(far.disconnect(), Ok(()));
    drop(next);
    assert_eq!(owner.close(), Ok(()));
}

/// Who is connected still is told of the owner's end.
#[test]
fn the_end_of_an_owner_ends_connections_to_what_it_has_released() {
    let [owner, other] = two();
    let segment = published(&owner, 64);
    let far = connect(&other, &owner, &segment);
    segment.release().expect("no window");
    drop(segment);
    owner.close().expect("no object");
    assert_eq!(far.wait(Some(LIMIT)), Ok(Reason::Lost));
}
