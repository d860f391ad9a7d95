//! Roles that look names up.

use crate::{hear, say};
use cci::{Connect, EventKind, Failure};
use cci_conformance::{LIMIT, device_of, open};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// How long the connect may take.
const TIMEOUT: Duration = Duration::from_millis(300);

/// What a call returned, and how long it took.
fn timed<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let value = call();
    (value, begun.elapsed())
}

/// Connects to a name that the server at 127.0.0.53 does not answer for; says how long the longest
/// call took, microseconds. The lookup goes on when the connect has ended.
pub(crate) fn silent_server() {
    let server = UdpSocket::bind("127.0.0.53:53").expect("the port of name servers");
    server.set_read_timeout(Some(LIMIT)).expect("a socket");
    let endpoint = open(&device_of("sock", &[("interface", "lo")]));
    let uri = "sock://silent.example:5000";
    let ((), mut longest) =
        timed(|| endpoint.connect(&Connect::to(uri).context(1).timeout(TIMEOUT)).expect("a connect"));
    let begin = Instant::now();
    let mut query = [0; 512];
    server.recv(&mut query).expect("a query");
    loop {
        let (event, took) = timed(|| endpoint.get_event().expect("usable"));
        longest = longest.max(took);
        if let Some(event) = event {
            assert_eq!((event.kind(), event.outcome()), (EventKind::Connect, Err(Failure::TimedOut)));
            break;
        }
        assert!(begin.elapsed() < LIMIT, "the connect does not end");
        std::thread::yield_now();
    }
    let ((), took) = timed(|| endpoint.close().expect("a close"));
    say(&longest.max(took).as_micros().to_string());
    hear();
}
