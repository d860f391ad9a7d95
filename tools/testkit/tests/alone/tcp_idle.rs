//! An endpoint of `tcp` that only waits costs nothing.

use cci::{Attribute, Notify};
use cci_conformance::idle::Idle;
use cci_conformance::process::thread_time;
use cci_conformance::{World, alone, device_of, open};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

/// A process waits on the handle of an endpoint with a connection: no processor time, and no
/// context switch but its own going to sleep and that of the progress thread.
#[test]
fn idle_endpoint_uses_no_processor_time_and_switches_no_context() {
    let _alone = alone();
    let seconds = if std::env::var_os("CCI_TEST_LONG").is_some() { "10" } else { "2" };
    let endpoint = open(&device_of("tcp", &[("ip", "127.0.0.1")]));
    let Idle { micros, switches, wakes, threads } =
        Idle::of(&endpoint, (PROGRAM, "tcp", endpoint.uri()), seconds, |_| ());
    assert!(threads <= 2, "more threads than the program's and the progress thread");
    assert!(micros < 10_000, "{micros} us of processor time");
    assert!(switches <= 7, "{switches} context switches");
    assert!(wakes <= 2, "woken {wakes} times without reason");
}

/// A peer takes no messages, so that the endpoint has some left when it closes, and waits for its
/// limit of 100 ms.
#[test]
fn an_endpoint_that_closes_sleeps_while_its_peer_takes_nothing() {
    let _alone = alone();
    let device = device_of("tcp", &[("ip", "127.0.0.1")]);
    let (sender, receiver) = (open(&device), open(&device));
    let (to_receiver, _) = World::new([&sender, &receiver]).connect(0, 1, Attribute::ReliableOrdered);
    for _ in 0..1000 {
        sender.send(to_receiver, b"left", Notify::OnFailure(0)).expect("a send");
    }
    let (begin, used) = (Instant::now(), thread_time());
    sender.close().expect("nobody copies");
    let (waited, used) = (begin.elapsed(), thread_time() - used);
    assert!(waited > Duration::from_millis(50), "{waited:?}: everything was sent");
    assert!(used < Duration::from_millis(20), "{used:?} of processor time");
}
