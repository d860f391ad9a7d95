//! DMA queues.

use crate::world::{connect, host, published, refused, two};
use cci_conformance::LIMIT;
use cci_sci::{Access, Direction, Error, Host, LocalSegment, QueueState, Reason, RemoteSegment, Then, Withdraw};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

const SIZE: usize = 300_000;

fn pattern(segment: &LocalSegment, seed: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..SIZE).map(|at| (at * 7 + at / 251 + seed) as u8).collect();
    segment.map(0..SIZE, Access::ReadWrite).and_then(|window| window.write(0, &bytes)).expect("mapped");
    bytes
}

/// A callback, and where the states come out that it is told.
fn callback() -> (impl FnMut(QueueState) -> Then + Send + 'static, Receiver<QueueState>) {
    let (sender, receiver) = channel();
    let told = move |state| {
        sender.send(state).expect("it is waited for");
        Then::Continue
    };
    (told, receiver)
}

fn bytes(segment: &LocalSegment) -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    segment.map(0..SIZE, Access::Read).and_then(|window| window.read(0, &mut bytes)).expect("mapped");
    bytes
}

/// Segments of two hosts, the first of which is connected to that of the second.
fn between(from: &Host, to: &Host) -> (LocalSegment, LocalSegment, RemoteSegment) {
    let (own, far) = (published(from, SIZE), published(to, SIZE));
    let connection = connect(from, to, &far);
    (own, far, connection)
}

#[test]
fn transfers_go_both_ways_in_order() {
    let [first, second] = two();
    for to in [&second, &first] {
        let (own, far, connection) = between(&first, to);
        let (mut here, there) = (pattern(&own, 1), pattern(&far, 2));
        let queue = first.dma_queue(4).expect("room");
        assert_eq!(queue.state(), Ok(QueueState::Idle));
        queue.enqueue((&own, 1000), (&connection, 3), 200_000, Direction::Write).expect("room");
        queue.enqueue((&own, 0), (&connection, 250_000), 50_000, Direction::Read).expect("room");
        // What the first has written is read back by the third.
        queue.enqueue((&own, 250_001), (&connection, 3), 40_000, Direction::Read).expect("room");
        assert_eq!(queue.state(), Ok(QueueState::Gather));
        queue.post().expect("it has transfers");
        assert_eq!(queue.wait(Some(LIMIT)), Ok(QueueState::Done));
        let mut expected = there.clone();
        expected[3..200_003].copy_from_slice(&here[1000..201_000]);
        assert!(bytes(&far) == expected);
        let first_part = here[1000..41_000].to_vec();
        here[..50_000].copy_from_slice(&there[250_000..]);
        here[250_001..290_001].copy_from_slice(&first_part);
        assert!(bytes(&own) == here);
        assert_eq!((queue.remove(), queue.remove()), (Ok(()), Err(Error::Cancelled)));
    }
}

#[test]
fn a_queue_is_refused_in_the_wrong_state() {
    let [first, second] = two();
    let (own, _far, connection) = between(&first, &second);
    assert_eq!(refused(first.dma_queue(0)), Error::IllegalParameter);
    let queue = first.dma_queue(2).expect("room");
    let add = |from, to, len| queue.enqueue((&own, from), (&connection, to), len, Direction::Write);
    assert_eq!(queue.post(), Err(Error::IllegalOperation));
    assert_eq!(queue.abort(), Err(Error::IllegalOperation));
    assert_eq!(add(0, 0, 0), Err(Error::IllegalParameter));
    assert_eq!([add(1, 0, SIZE), add(0, 1, SIZE), add(usize::MAX, 0, 1)], [Err(Error::OutOfRange); 3]);
    assert_eq!([add(0, 0, 1), add(0, 0, 2), add(0, 0, 3)], [Ok(()), Ok(()), Err(Error::MaxEntries)]);
    queue.reset().expect("not posted");
    assert_eq!((queue.state(), queue.wait(None)), (Ok(QueueState::Idle), Ok(QueueState::Idle)));
    add(0, 0, SIZE).expect("room");
    queue.post().expect("it has a transfer");
    assert_eq!(queue.wait(Some(LIMIT)), Ok(QueueState::Done));
    assert_eq!([queue.post(), add(0, 0, 1)], [Err(Error::IllegalOperation); 2]);
    queue.reset().expect("not posted");
    let raw = first.create(crate::world::id(), 8).expect("memory");
    let wrong = queue.enqueue((&raw, 0), (&connection, 0), 8, Direction::Write);
    assert_eq!(wrong, Err(Error::SegmentNotPrepared));
    drop(raw);
}

#[test]
fn a_callback_is_told_the_end_once() {
    let [first, second] = two();
    let (own, _far, connection) = between(&first, &second);
    let queue = first.dma_queue(1).expect("room");
    for _ in 0..3 {
        queue.enqueue((&own, 0), (&connection, 0), SIZE, Direction::Write).expect("room");
        let (told, receiver) = callback();
        queue.post_with(told).expect("it has a transfer");
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(QueueState::Done));
        queue.reset().expect("ended");
        // The callback is gone with its sender.
        assert!(receiver.recv_timeout(LIMIT).is_err());
    }
}

/// Who waits sees the end before the callback has run, and goes on.
#[test]
fn a_callback_is_told_the_end_of_a_queue_that_is_reset_or_removed_at_once() {
    let [first, second] = two();
    let (own, _far, connection) = between(&first, &second);
    for is_removed in [false, true] {
        for _ in 0..50 {
            let queue = first.dma_queue(1).expect("room");
            queue.enqueue((&own, 0), (&connection, 0), SIZE, Direction::Write).expect("room");
            let (told, receiver) = callback();
            queue.post_with(told).expect("it has a transfer");
            assert_eq!(queue.wait(Some(LIMIT)), Ok(QueueState::Done));
            if is_removed {
                queue.remove().expect("ended");
                // It is not called afterwards.
                assert_eq!(receiver.try_recv(), Ok(QueueState::Done));
            } else {
                queue.reset().expect("ended");
                assert_eq!(receiver.recv_timeout(LIMIT), Ok(QueueState::Done));
            }
        }
    }
}

#[test]
fn transfers_to_a_segment_that_is_no_more_fail() {
    let [first, second] = two();
    let (own, far, connection) = between(&first, &second);
    let queue = first.dma_queue(8).expect("room");
    let add = || queue.enqueue((&own, 0), (&connection, 0), SIZE, Direction::Write);
    add().expect("room");
    far.withdraw(Withdraw::Force).expect("there");
    assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Lost));
    queue.post().expect("it has a transfer");
    assert_eq!(queue.wait(Some(LIMIT)), Ok(QueueState::Error));
    queue.reset().expect("ended");
    assert_eq!(add(), Err(Error::SegmentNotConnected));

    // Each posted queue ends, whatever has become of its transfers.
    far.publish().expect("prepared");
    let again = connect(&first, &second, &far);
    for _ in 0..8 {
        queue.enqueue((&own, 0), (&again, 0), SIZE, Direction::Read).expect("room");
    }
    queue.post().expect("it has transfers");
    drop(second);
    let end = queue.wait(Some(LIMIT)).expect("it ends");
    assert!(matches!(end, QueueState::Done | QueueState::Error), "{end:?}");
}

#[test]
fn a_queue_that_is_aborted_ends() {
    let [first, second] = two();
    let (own, _far, connection) = between(&first, &second);
    let queue = first.dma_queue(1000).expect("room");
    for _ in 0..1000 {
        queue.enqueue((&own, 0), (&connection, 0), SIZE, Direction::Write).expect("room");
    }
    queue.post().expect("it has transfers");
    let aborted = queue.abort();
    let end = queue.wait(Some(LIMIT)).expect("it ends");
    match aborted {
        Ok(()) => assert!(matches!(end, QueueState::Aborted | QueueState::Done), "{end:?}"),
        // It had ended before.
        Err(why) => assert_eq!((why, end), (Error::IllegalOperation, QueueState::Done)),
    }
    drop(host(4));
}

/// Its callback posts the queue again, with another callback, and wants no call any more.
#[test]
fn a_queue_that_its_callback_posts_again_has_the_new_callback() {
    let [first, second] = two();
    let (own, _far, connection) = between(&first, &second);
    let queue = Arc::new(first.dma_queue(1).expect("room"));
    let (sender, told) = channel();
    queue.enqueue((&own, 0), (&connection, 0), SIZE, Direction::Write).expect("room");
    let again = Arc::clone(&queue);
    let posted = queue.post_with(move |state| {
        let sender = sender.clone();
        again.reset().expect("ended");
        again.enqueue((&own, 0), (&connection, 0), SIZE, Direction::Write).expect("room");
        let second = move |state| {
            sender.send(state).expect("it is waited for");
            Then::Cancel
        };
        again.post_with(second).expect("it has a transfer");
        assert_eq!(state, QueueState::Done);
        Then::Cancel
    });
    posted.expect("it has a transfer");
    assert_eq!(told.recv_timeout(LIMIT), Ok(QueueState::Done));
    // Its segments stay in its callback until then.
    drop(queue);
}
