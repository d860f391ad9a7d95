//! A BLOCKING call sleeps until its operation has ended, whichever thread has taken the frame that
//! ended it. A wake-up that is missed costs the limit of a sleep, 100 ms: they are counted.

use cci::__binding::{Contract, Flags, missed_wakeups};
use cci::{Attribute, Device};
use cci_conformance::suite::message::blocking_many_ways;
use cci_conformance::{World, alone, device_of, drain, open, pattern};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// BLOCKING sends to a program that takes them with pauses, which are long enough for the progress
/// thread to act on both sides.
fn send_to_a_slow_program(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, Attribute::ReliableOrdered);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(3));
                drain(&b);
            }
        });
        let outcome = (0..50).try_for_each(|round| a.send_flags(connection, &pattern(round, 500), 0, Flags::BLOCKING));
        over.store(true, Ordering::Release);
        receiver.join().expect("the receiver");
        assert_eq!(outcome, Ok(()));
    });
}

fn assert_none_is_missed(transport: &str, arguments: &[(&str, &str)]) {
    let _alone = alone();
    let device = device_of(transport, arguments);
    let before = missed_wakeups();
    send_to_a_slow_program(&device);
    blocking_many_ways(&device);
    assert_eq!(missed_wakeups() - before, 0, "{transport} {arguments:?}");
}

#[test]
fn over_sm() {
    assert_none_is_missed("sm", &[]);
}

#[test]
fn over_sock() {
    assert_none_is_missed("sock", &[("interface", "lo")]);
}

#[test]
fn over_tcp() {
    assert_none_is_missed("tcp", &[("interface", "lo")]);
}

#[test]
fn over_several_ways() {
    for ways in ["sm,sock", "sock,sm"] {
        assert_none_is_missed("auto", &[("ways", ways)]);
    }
}

#[test]
fn over_several_ways_with_tcp() {
    for ways in ["tcp", "tcp,sm,sock", "sm,sock,tcp"] {
        assert_none_is_missed("auto", &[("ways", ways)]);
    }
}
