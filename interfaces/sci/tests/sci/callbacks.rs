//! Callbacks, on the thread of their host.

use crate::world::{connect, id, published, two, until};
use cci_conformance::LIMIT;
use cci_sci::{Access, Error, Reason, Then, Withdraw};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);

#[test]
fn events_of_segments_are_told_to_both_sides() {
    let [owner, other] = two();
    let segment = published(&owner, 64);
    let (sender, told) = channel();
    let first = connect(&other, &owner, &segment);
    // The first event has waited for it.
    segment
        .on_event(move |event| {
            sender.send((event.reason, event.node)).expect("it is waited for");
            Then::Continue
        })
        .expect("there");
    assert_eq!(told.recv_timeout(LIMIT), Ok((Reason::Connect, 8)));
    assert_eq!(segment.wait(NOW), Err(Error::IllegalOperation), "a callback takes them");
    let (sender, lost) = channel();
    first
        .on_event(move |reason| {
            sender.send(reason).expect("it is waited for");
            Then::Cancel
        })
        .expect("there");
    let second = connect(&other, &owner, &segment);
    assert_eq!(told.recv_timeout(LIMIT), Ok((Reason::Connect, 8)));
    second.disconnect().expect("no window");
    assert_eq!(told.recv_timeout(LIMIT), Ok((Reason::Disconnect, 8)));
    segment.withdraw(Withdraw::Notify).expect("there");
    assert_eq!(lost.recv_timeout(LIMIT), Ok(Reason::Disconnect));
    // It was called once: the next event waits for a call.
    segment.withdraw(Withdraw::Force).expect("there");
    until("no callback any more", || first.wait(Some(LIMIT)) == Ok(Reason::Lost));
    assert!(lost.recv_timeout(LIMIT).is_err(), "its sender is gone");
}

#[test]
fn interrupts_are_told_with_their_bytes() {
    let [owner, other] = two();
    let (plain, bytes) = (owner.interrupt(None).expect("a number"), owner.data_interrupt(None).expect("a number"));
    let to_plain = other.connect_interrupt(4, plain.number(), Some(LIMIT)).expect("there");
    let to_bytes = other.connect_data_interrupt(4, bytes.number(), Some(LIMIT)).expect("there");
    let (sender, rung) = channel();
    plain
        .on_trigger(move |()| {
            sender.send(()).expect("it is waited for");
            Then::Continue
        })
        .expect("there");
    assert_eq!(plain.wait(NOW), Err(Error::IllegalOperation));
    to_plain.trigger().expect("connected");
    assert_eq!(rung.recv_timeout(LIMIT), Ok(()));

    to_bytes.trigger(b"before").expect("room");
    let (sender, told) = channel();
    bytes
        .on_data(move |bytes| {
            let then = if bytes == b"last" { Then::Cancel } else { Then::Continue };
            sender.send(bytes).expect("it is waited for");
            then
        })
        .expect("there");
    assert_eq!(told.recv_timeout(LIMIT), Ok(b"before".to_vec()));
    // Far more than the queue holds: the callback gives room back.
    for number in 0..100_u32 {
        until("room", || to_bytes.trigger(&number.to_le_bytes()).is_ok());
        assert_eq!(told.recv_timeout(LIMIT), Ok(number.to_le_bytes().to_vec()));
    }
    until("room", || to_bytes.trigger(b"last").is_ok());
    assert_eq!(told.recv_timeout(LIMIT), Ok(b"last".to_vec()));
    assert!(told.recv_timeout(LIMIT).is_err(), "the callback is gone with its sender");
    until("room", || to_bytes.trigger(b"wait").is_ok());
    assert_eq!(bytes.wait(Some(LIMIT)), Ok(b"wait".to_vec()));
}

#[test]
fn a_callback_uses_its_host_but_does_not_wait() {
    let [owner, other] = two();
    let owner = Arc::new(owner);
    let segment = Arc::new(published(&owner, 64));
    let bell = owner.interrupt(None).expect("a number");
    let echo = other.interrupt(None).expect("a number");
    let to_echo = owner.connect_interrupt(8, echo.number(), Some(LIMIT)).expect("there");
    let (sender, told) = channel();
    let (inside, of_host) = (Arc::clone(&segment), Arc::clone(&owner));
    bell.on_trigger(move |()| {
        let waits = [
            inside.wait(None).map(drop),
            of_host.connect(8, id(), None).map(drop),
            of_host.connect_interrupt(8, 1, None).map(drop),
        ];
        let works = [inside.withdraw(Withdraw::Quiet), inside.publish(), to_echo.trigger()];
        sender.send((waits, works)).expect("it is waited for");
        Then::Continue
    })
    .expect("there");
    let remote = other.connect_interrupt(4, bell.number(), Some(LIMIT)).expect("there");
    remote.trigger().expect("connected");
    assert_eq!(told.recv_timeout(LIMIT), Ok(([Err(Error::IllegalOperation); 3], [Ok(()); 3])));
    echo.wait(Some(LIMIT)).expect("the callback has triggered it");
}

/// Who has removed an object knows that its callback does not run any more.
#[test]
fn removal_waits_for_a_callback_that_runs() {
    let [owner, other] = two();
    let segment = published(&owner, 64);
    let (entered, has_entered) = channel();
    let (leave, may_leave) = channel::<()>();
    let state = Arc::new(AtomicU32::new(0));
    let inside = Arc::clone(&state);
    segment
        .on_event(move |_| {
            entered.send(()).expect("it is waited for");
            may_leave.recv().expect("it is let go");
            inside.store(1, Ordering::SeqCst);
            Then::Cancel
        })
        .expect("there");
    let connection = connect(&other, &owner, &segment);
    has_entered.recv_timeout(LIMIT).expect("the callback runs");
    std::thread::scope(|scope| {
        let removal = scope.spawn(move || {
            drop(segment);
            state.load(Ordering::SeqCst)
        });
        until("it is removed", || other.connect(4, connection.id(), NOW).is_err());
        leave.send(()).expect("it waits");
        assert_eq!(removal.join().expect("no panic"), 1);
    });
}

#[test]
fn a_callback_may_remove_its_own_object_and_one_that_panics_is_gone() {
    let [owner, other] = two();
    let bell = Arc::new(Mutex::new(Some(owner.interrupt(None).expect("a number"))));
    let number = bell.lock().expect("no panic").as_ref().map(cci_sci::Interrupt::number).expect("there");
    let remote = other.connect_interrupt(4, number, Some(LIMIT)).expect("there");
    let inside = Arc::clone(&bell);
    let set = bell.lock().expect("no panic").as_ref().map(|bell| {
        bell.on_trigger(move |()| {
            drop(inside.lock().expect("no panic").take());
            Then::Continue
        })
    });
    assert_eq!(set, Some(Ok(())));
    remote.trigger().expect("connected");
    until("it is removed", || remote.trigger() == Err(Error::NotConnected));

    let second = owner.interrupt(None).expect("a number");
    let remote = other.connect_interrupt(4, second.number(), Some(LIMIT)).expect("there");
    second.on_trigger(|()| panic!("a panic of the program, on purpose")).expect("there");
    remote.trigger().expect("connected");
    until("it has no callback", || second.wait(NOW) != Err(Error::IllegalOperation));
    remote.trigger().expect("connected");
    second.wait(Some(LIMIT)).expect("the host lives on");
}

/// It joins the group, as a program may wish that is asked for a segment by an interrupt.
#[test]
fn a_callback_creates_a_broadcast_segment() {
    let [owner, other] = two();
    let owner = Arc::new(owner);
    let bell = owner.data_interrupt(None).expect("a number");
    let ring = other.connect_data_interrupt(4, bell.number(), Some(LIMIT)).expect("there");
    let (group, (sender, made)) = (id(), channel());
    let host = Arc::downgrade(&owner);
    bell.on_data(move |_| {
        let host = host.upgrade().expect("open");
        let segment = host.create_broadcast(group, 4096);
        let made = segment.and_then(|segment| segment.prepare().and_then(|()| segment.publish()).map(|()| segment));
        // A connect may have no limit.
        let connected = host.connect_broadcast(group, Some(LIMIT)).err();
        sender.send((made, connected)).expect("it is waited for");
        Then::Continue
    })
    .expect("there");
    ring.trigger(b"one, please").expect("room");
    let (segment, connected) = made.recv_timeout(LIMIT).expect("the callback returns");
    let segment = segment.expect("memory");
    assert_eq!(connected, Some(Error::IllegalOperation));
    let sender = other.connect_broadcast(group, Some(LIMIT)).expect("published");
    let window = sender.map(0..4096, Access::ReadWrite).expect("mapped");
    window.store(8, 5_u64).expect("inside");
    assert_eq!(segment.map(0..4096, Access::Read).expect("mapped").load(8), Ok(5_u64));
}
