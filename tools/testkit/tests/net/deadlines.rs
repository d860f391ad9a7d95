//! Connects end at their timeout, and once, whatever happened before that on the way.

use cci::{Connect, Endpoint, EventKind, Failure};
use cci_conformance::namespace::{Net, pair};
use cci_conformance::{LIMIT, World, device_of, open, readable};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(2);
/// How long nobody listens before all frames are dropped.
const CLOSED: Duration = Duration::from_millis(120);

/// An endpoint that the network reaches.
fn endpoint(net: &Net, transport: &str, interface: &str) -> Endpoint {
    let keys = if transport == "auto" { [("listen", "network")] } else { [("interface", interface)] };
    net.enter(|| open(&device_of(transport, &keys)))
}

/// How a connect ends while its first frames are answered that nobody listens, and all later ones
/// are dropped. The program sleeps, or polls.
fn how_it_ends(nets: &[Net; 2], client: &Endpoint, uri: &str, sleeps: bool) -> (Failure, Duration) {
    let world = World::new([client]);
    let (handle, begun) = (client.handle().expect("a handle"), Instant::now());
    client.connect(&Connect::to(uri).context(7).timeout(TIMEOUT)).expect("a connect");
    let mut is_closed = true;
    loop {
        let elapsed = begun.elapsed();
        assert!(elapsed < LIMIT, "{uri}: no event within {LIMIT:?}");
        if is_closed && elapsed >= CLOSED {
            nets[1].rules(
                "add table inet b; add chain inet b in { type filter hook input priority 0; }; \
                 add rule inet b in iif != lo counter drop",
            );
            is_closed = false;
        }
        if let Some(event) = client.get_event().expect("an endpoint") {
            assert_eq!((event.kind(), event.context()), (EventKind::Connect, 7));
            let failure = event.outcome().expect_err("nobody is there");
            let took = begun.elapsed();
            say!("{uri}: {failure:?} after {took:?}: {}", event.reason().unwrap_or_default());
            if !is_closed {
                nets[1].rules("delete table inet b");
            }
            assert!(!world.poll(0), "one event");
            return (failure, took);
        }
        if sleeps {
            readable(&handle, if is_closed { CLOSED.saturating_sub(elapsed) } else { LIMIT });
        }
    }
}

/// Nobody listens at first, and 0.12 s later a firewall drops everything: one CONNECT event, at the
/// timeout at the latest, on every transport of the network.
pub(crate) fn closed_then_silent() {
    let nets = pair(1500);
    for transport in ["tcp", "sock", "auto"] {
        let server = endpoint(&nets[1], transport, "v1");
        let uri = server.uri().to_owned();
        drop(server);
        for sleeps in [true, false] {
            let client = endpoint(&nets[0], transport, "v0");
            let (failure, took) = nets[0].enter(|| how_it_ends(&nets, &client, &uri, sleeps));
            assert!(took < 5 * TIMEOUT, "{uri}: {took:?}");
            // `sock` does not wait for a server that has yet to start.
            if transport != "sock" {
                assert!(failure == Failure::TimedOut && took >= TIMEOUT, "{uri}: {failure:?} after {took:?}");
            }
        }
    }
}
