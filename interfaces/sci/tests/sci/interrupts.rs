//! Interrupts, with bytes and without.

use crate::world::{host, id, refused, two, until};
use cci_conformance::LIMIT;
use cci_sci::Error;
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);

#[test]
fn interrupts_are_not_counted() {
    let [owner, other] = two();
    let interrupt = owner.interrupt(None).expect("a number");
    for from in [&owner, &other] {
        let remote = from.connect_interrupt(4, interrupt.number(), Some(LIMIT)).expect("it is there");
        assert_eq!(interrupt.wait(NOW), Err(Error::Timeout));
        remote.trigger().expect("connected");
        interrupt.wait(Some(LIMIT)).expect("triggered");
        // Several become one or more, and none is lost: the last one comes after its trigger.
        for _ in 0..1000 {
            remote.trigger().expect("connected");
        }
        interrupt.wait(Some(LIMIT)).expect("triggered");
        let mut more = 0;
        while interrupt.wait(Some(Duration::from_millis(20))).is_ok() {
            more += 1;
        }
        assert!(more < 1000, "{more} of 1000");
        assert_eq!(interrupt.remove(), Err(Error::Busy));
        remote.disconnect().expect("connected");
        assert_eq!((remote.disconnect(), remote.trigger()), (Err(Error::NotConnected), Err(Error::NotConnected)));
    }
    until("nobody is connected", || interrupt.remove() != Err(Error::Busy));
    assert_eq!((interrupt.remove(), interrupt.wait(None)), (Err(Error::Cancelled), Err(Error::Cancelled)));
}

#[test]
fn bytes_come_in_order_and_a_full_queue_is_refused() {
    let [owner, other] = two();
    let interrupt = owner.data_interrupt(None).expect("a number");
    for from in [&owner, &other] {
        let remote = from.connect_data_interrupt(4, interrupt.number(), Some(LIMIT)).expect("it is there");
        let second = from.connect_data_interrupt(4, interrupt.number(), Some(LIMIT)).expect("it is there");
        for number in 0..16_u8 {
            remote.trigger(&vec![number; usize::from(number)]).expect("room");
        }
        assert_eq!([remote.trigger(b"x"), remote.trigger(b"")], [Err(Error::Overflow); 2]);
        second.trigger(b"second").expect("room of its own");
        for number in 0..16_u8 {
            assert_eq!(interrupt.wait(Some(LIMIT)), Ok(vec![number; usize::from(number)]));
        }
        assert_eq!(interrupt.wait(Some(LIMIT)), Ok(b"second".to_vec()));
        until("room again", || remote.trigger(b"again") != Err(Error::Overflow));
        assert_eq!(interrupt.wait(Some(LIMIT)), Ok(b"again".to_vec()));
    }
}

/// More than any queue holds, with an owner that takes them one by one.
#[test]
fn a_stream_of_bytes_loses_none() {
    let [owner, other] = two();
    let interrupt = owner.data_interrupt(None).expect("a number");
    let remote = other.connect_data_interrupt(4, interrupt.number(), Some(LIMIT)).expect("it is there");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..2_000_u32 {
                until("room", || match remote.trigger(&number.to_le_bytes()) {
                    Ok(()) => true,
                    Err(Error::Overflow) => false,
                    Err(other) => panic!("{other}"),
                });
            }
        });
        for number in 0..2_000_u32 {
            assert_eq!(interrupt.wait(Some(LIMIT)), Ok(number.to_le_bytes().to_vec()));
        }
    });
}

#[test]
fn what_is_too_long_for_a_message_is_refused() {
    let [owner, other] = two();
    let interrupt = owner.data_interrupt(None).expect("a number");
    let remote = other.connect_data_interrupt(4, interrupt.number(), Some(LIMIT)).expect("it is there");
    assert_eq!(remote.trigger(&vec![0; 64 << 20]), Err(Error::OutOfRange));
    remote.trigger(&[7; 1000]).expect("it fits");
    assert_eq!(interrupt.wait(Some(LIMIT)), Ok(vec![7; 1000]));
}

#[test]
fn numbers_are_those_of_the_node_and_kinds_differ() {
    let [owner, other] = two();
    let number = id();
    let plain = owner.interrupt(Some(number)).expect("free");
    assert_eq!(plain.number(), number);
    assert_eq!(refused(owner.data_interrupt(Some(number))), Error::SegmentIdUsed);
    assert_eq!(refused(host(4).interrupt(Some(number))), Error::SegmentIdUsed);
    let others = other.data_interrupt(Some(number)).expect("another node");
    assert_eq!(refused(other.connect_data_interrupt(4, number, Some(LIMIT))), Error::NoSuchSegment);
    assert_eq!(refused(owner.connect_interrupt(8, number, Some(LIMIT))), Error::NoSuchSegment);
    let [first, second] = [(); 2].map(|()| owner.interrupt(None).expect("a number"));
    assert_ne!(first.number(), second.number());
    drop((plain, others));
    drop(owner.interrupt(Some(number)).expect("free again"));
}

#[test]
fn an_interrupt_that_is_dropped_is_gone_for_others() {
    let [owner, other] = two();
    let (plain, bytes) = (owner.interrupt(None).expect("a number"), owner.data_interrupt(None).expect("a number"));
    let to_plain = other.connect_interrupt(4, plain.number(), Some(LIMIT)).expect("it is there");
    let to_bytes = other.connect_data_interrupt(4, bytes.number(), Some(LIMIT)).expect("it is there");
    let number = plain.number();
    drop((plain, bytes));
    until("plain is gone", || to_plain.trigger() == Err(Error::NotConnected));
    until("bytes are gone", || to_bytes.trigger(b"") == Err(Error::NotConnected));
    assert_eq!(refused(other.connect_interrupt(4, number, Some(LIMIT))), Error::NoSuchSegment);
    let again = owner.interrupt(None).expect("a number");
    let remote = other.connect_interrupt(4, again.number(), Some(LIMIT)).expect("the link lives on");
    drop(owner);
    until("the host is gone", || remote.trigger() == Err(Error::NotConnected));
}
