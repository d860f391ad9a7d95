//! BLOCKING calls of `sock` and `tcp` sleep while they wait, also while an event waits for a
//! program that does not take it meanwhile.

use cci::__binding::{Contract, Flags};
use cci::{Attribute, BlockingError, ConnectionOption, EventKind, Failure};
use cci_conformance::process::thread_time;
use cci_conformance::{World, alone, device_of, drain, open};
use std::time::{Duration, Instant};

/// Longer than the round trip, so that timers of the protocol fire meanwhile.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// The processor time of a BLOCKING send that ends after [`TIMEOUT`], beside an event that is left
/// in the queue. The program has made so many calls that found nothing before, with a handle.
fn time_of_blocked_send(transport: &str, polls: u32) -> Duration {
    let device = device_of(transport, &[("ip", "127.0.0.1")]);
    let (a, b) = (open(&device), open(&device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, Attribute::ReliableOrdered);
    let _handle = a.handle().expect("a handle");
    (0..polls).for_each(|_| assert_eq!(drain(&a), 0));
    a.send(connection, b"first", 1).expect("a send");
    while a.report(connection).expect("open").open > 0 {
        drain(&b);
    }
    a.set_option(connection, ConnectionOption::SendTimeout, Duration::from_millis(1500)).expect("an option");
    let (begun, used) = (Instant::now(), thread_time());
    let outcome = a.send_flags(connection, b"blocked", 0, Flags::BLOCKING);
    assert_eq!(outcome, Err(BlockingError::Failed(Failure::TimedOut)), "nobody takes anything at B");
    let used = thread_time() - used;
    assert!(begun.elapsed() >= TIMEOUT, "early: {:?}", begun.elapsed());
    assert_eq!(World::new([&a]).next(0, EventKind::Send).context(), 1);
    assert_eq!(drain(&a), 0);
    used
}

/// Without the fix a call spins: a timer that has fired keeps the handle readable, because the call
/// takes it for one that stands, or does not know of it: that of a handle which a program that
/// polls has.
#[test]
fn blocking_send_sleeps_though_an_event_waits() {
    let _alone = alone();
    for (transport, polls) in ["sock", "tcp"].iter().flat_map(|transport| [(transport, 0), (transport, 20_000)]) {
        let used = time_of_blocked_send(transport, polls);
        assert!(used < TIMEOUT / 5, "{transport}: {used:?} of processor time in {TIMEOUT:?} after {polls} calls");
    }
}
