//! What an endpoint of `auto` costs at rest, with every way open: no processor time, and little
//! memory.

#![forbid(unsafe_code)]

use cci::{EventKind, Notify};
use cci_testkit::process::resident_bytes;
use cci_testkit::{Peer, World, alone, device_of, drain, open};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

/// A process waits on the handle of an endpoint with a connection: no processor time, and no
/// context switch but its own going to sleep and that of the progress thread.
#[test]
fn idle_endpoint_uses_no_processor_time_and_switches_no_context() {
    let _alone = alone();
    let seconds = if std::env::var_os("CCI_TEST_LONG").is_some() { "10" } else { "2" };
    let device = device_of("auto", &[]);
    // By the best way, and by each alone.
    for way in &["", "sm", "sock", "tcp"] {
        let endpoint = open(&device);
        let part = |part: &&str| part.starts_with(&format!("{way}=")) || part == way;
        let uri = match endpoint.uri().split(',').position(|text| part(&text)) {
            // Of the same text as the way before it, where it has none.
            Some(at) => {
                let texts = endpoint.uri().split(',').take(at + 1).filter_map(|text| text.split_once('='));
                format!("{way}://{}", texts.last().expect("a text").1)
            }
            None => endpoint.uri().to_owned(),
        };
        let world = World::new([&endpoint]);
        let mut peer = Peer::spawn(PROGRAM, "idle", &["auto", &uri, seconds]);
        let request = world.next(0, EventKind::ConnectRequest);
        request.into_request().expect("a request").accept(1).expect("an accept");
        let connection = world.next(0, EventKind::Accept).connection().expect("one");
        let path = endpoint.report(connection).expect("open").path;
        assert!(path.starts_with(way), "{way}: {path}");
        assert_eq!(world.message(0), b"hello");
        endpoint.send(connection, b"hello", Notify::OnFailure(0)).expect("a send");
        let line = peer.line_while(|| {
            drain(&endpoint);
            std::thread::yield_now();
        });
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
        let [micros, switches, wakes, threads] = numbers[..] else { panic!("{line}") };
        assert!(threads <= 2, "more threads than the program's and the progress thread");
        assert!(micros < 10_000, "{way}: {micros} us of processor time");
        assert!(switches <= 7, "{way}: {switches} context switches");
        assert!(wakes <= 2, "{way}: woken {wakes} times without reason");
    }
}

/// What endpoints have left to the allocator is not held a second time by those that come after
/// them.
#[test]
fn a_fresh_endpoint_holds_little_memory() {
    const COUNT: usize = 20;
    const LIMIT: usize = 5 << 19;
    let (_alone, device) = (alone(), device_of("auto", &[]));
    for round in 0..3 {
        let before = resident_bytes(None);
        let endpoints: Vec<_> = (0..COUNT).map(|_| open(&device)).collect();
        let each = resident_bytes(None).saturating_sub(before) / COUNT;
        assert!(each <= LIMIT, "{each} bytes each in round {round}");
        drop(endpoints);
    }
}
