//! BLOCKING calls of `sock` sleep while they wait, also while an event waits for a program that does not take it meanwhile.

#![forbid(unsafe_code)]

use cci::{Attribute, ConnectionOption, EventKind, Flags, SendError};
use cci_testkit::process::thread_time;
use cci_testkit::{World, alone, device_of, drain, open};
use std::time::{Duration, Instant};

/// Longer than the round trip, so that timers of the protocol fire meanwhile.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// Without the fix a call spins: a timer that has fired keeps the handle readable, because the call takes it for one that stands.
#[test]
fn blocking_send_sleeps_though_an_event_waits() {
    let _alone = alone();
    let device = device_of("sock", &[("ip", "127.0.0.1")]);
    let (a, b) = (open(&device), open(&device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, Attribute::ReliableOrdered);
    a.send(connection, b"first", 1, Flags::NONE).expect("a send");
    // Its event is left in the queue.
    while a.report(connection).expect("open").open > 0 {
        drain(&b);
    }
    a.set_option(connection, ConnectionOption::SendTimeout, 1_500_000).expect("an option");
    let (begun, used) = (Instant::now(), thread_time());
    assert_eq!(
        a.send(connection, b"blocked", 0, Flags::BLOCKING),
        Err(SendError::TimedOut),
        "nobody takes anything at B"
    );
    let (elapsed, used) = (begun.elapsed(), thread_time() - used);
    assert!(elapsed >= TIMEOUT, "early: {elapsed:?}");
    assert!(used < elapsed / 5, "{used:?} of processor time in {elapsed:?}");
    assert_eq!(World::new([&a]).next(0, EventKind::Send).context(), 1);
    assert_eq!(drain(&a), 0);
}
