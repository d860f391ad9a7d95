//! The handle, as poll(2) sees it.

use crate::ends::{frame, open, take, wait};
use cci_proto::Time;
use cci_reliable::{Link, Wait};
use std::time::Duration;

#[test]
fn the_handle_is_readable_while_a_frame_waits() {
    let (mut a, mut b) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let to = a.resolve(b.uri()).expect("a URI");
    assert!(b.arm(None, false));
    assert!(!wait(&b, 0));
    assert_eq!(a.send_burst(&[frame(to, b"x"), frame(to, b"yy")]), 2);
    assert!(wait(&b, 10) && wait(&b, 0), "level-triggered");
    assert!(!b.arm(None, false), "a frame has arrived");
    b.disarm();
    take(&mut b, 2);
    assert!(!wait(&b, 0));
}

#[test]
fn the_handle_is_readable_at_the_deadline() {
    let mut a = open("127.0.0.1", &[]);
    let deadline = a.now() + Duration::from_millis(30);
    assert!(a.arm(Some(deadline), false));
    assert!(wait(&a, 10));
    assert!(a.now() >= deadline);
    a.disarm();
    assert!(!wait(&a, 0), "the timer was drained");
    // One that has passed is found at once, time zero too.
    for past in [Time(0), deadline] {
        assert!(!a.arm(Some(past), false));
        assert!(wait(&a, 0));
        a.disarm();
        assert!(!wait(&a, 0));
    }
}

#[test]
fn a_deadline_can_be_taken_back_and_moved() {
    let mut a = open("127.0.0.1", &[]);
    let soon = a.now() + Duration::from_millis(20);
    assert!(a.arm(Some(soon), false));
    a.disarm();
    assert!(a.arm(None, false), "no deadline any more");
    while a.now() < soon + Duration::from_millis(1) {
        std::hint::spin_loop();
    }
    assert!(!wait(&a, 0));
    let later = a.now() + Duration::from_secs(3600);
    assert!(a.arm(Some(later), false));
    assert!(!wait(&a, 0));
    let sooner = a.now() + Duration::from_millis(5);
    assert!(a.arm(Some(sooner), false));
    assert!(wait(&a, 10));
    a.disarm();
}

#[test]
fn the_waker_wakes_from_another_thread() {
    let mut a = open("127.0.0.1", &[]);
    let waker = a.waker();
    assert!(a.arm(None, false));
    let other = std::thread::spawn(move || rustix::io::write(&*waker, &1_u64.to_ne_bytes()).expect("an eventfd"));
    assert!(wait(&a, 10));
    other.join().expect("no panic");
    // It makes the handle readable, but is not something that has arrived.
    assert!(a.arm(None, false));
    assert!(wait(&a, 0));
    a.disarm();
    assert!(!wait(&a, 0), "the waker was drained");
}

#[test]
fn room_to_send_is_something_to_do() {
    let mut a = open("127.0.0.1", &[]);
    assert!(a.is_writable());
    assert!(!a.arm(None, true), "there is room already");
    assert!(a.arm(None, false));
    assert!(!wait(&a, 0), "room is not watched any more");
    a.disarm();
}

#[test]
fn a_frame_is_told_only_while_it_is_watched_for() {
    let (mut a, mut b) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let to = a.resolve(b.uri()).expect("a URI");
    assert!(!b.watch(false));
    assert_eq!(a.send_burst(&[frame(to, b"x")]), 1);
    assert!(!wait(&b, 0));
    assert!(b.watch(true));
    assert!(wait(&b, 10), "it has arrived before");
    take(&mut b, 1);
    assert!(!wait(&b, 0));
    assert_eq!(a.send_burst(&[frame(to, b"y")]), 1);
    assert!(wait(&b, 10));
    take(&mut b, 1);
    // Room is watched for as soon as frames are.
    assert!(!b.watch(false));
    assert!(b.arm(None, true), "nobody looks");
    assert!(b.watch(true));
    assert!(wait(&b, 0));
    assert!(b.arm(None, false));
    assert!(!wait(&b, 0));
}

#[test]
fn arming_once_more_drains_the_waker_and_moves_the_deadline() {
    let (mut a, mut b) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let to = b.resolve(a.uri()).expect("a URI");
    let signal = |link: &cci_sock::Sock| rustix::io::write(&*link.waker(), &1_u64.to_ne_bytes()).expect("an eventfd");
    assert!(a.arm(None, false));
    signal(&a);
    assert!(a.rearm(None, false, false));
    assert!(wait(&a, 0), "only a waker that was written is drained");
    assert!(a.rearm(None, false, true));
    assert!(!wait(&a, 0));
    let deadline = a.now() + Duration::from_millis(5);
    assert!(a.rearm(Some(deadline), false, false));
    assert!(wait(&a, 10));
    assert!(a.now() >= deadline);
    a.disarm();
    assert!(a.arm(None, false));
    signal(&a);
    assert_eq!(b.send_burst(&[frame(to, b"x")]), 1);
    a.rearm(None, false, true);
    assert!(wait(&a, 10), "a frame is told, waker or not");
}
