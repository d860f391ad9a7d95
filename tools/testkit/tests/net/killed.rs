//! A peer that is killed while its host lives.

use cci::{Attribute, EventKind, Failure, Notify};
use cci_conformance::namespace::pair;
use cci_conformance::{Peer, World, device_of, open_with};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

/// The connection ends 5 s after the first "unreachable", give or take a probe: twice that for a
/// loaded machine.
const TOLD: Duration = Duration::from_secs(12);

/// Its host answers "port unreachable": the open send fails, then the disconnect is told.
pub(crate) fn elsewhere() {
    let nets = pair(1500);
    let endpoint =
        nets[0].enter(|| open_with(&device_of("sock", &[("interface", "v0")]), |it| it.disconnect_events = true));
    // The peer dies with the thread that starts it.
    nets[1].enter(|| {
        let world = World::new([&endpoint]);
        let mut peer = Peer::spawn(PROGRAM, "echo-over-sock", &["v1"]);
        let uri = peer.line_while(|| world.step());
        let connection = world.connect_to(0, &uri, Attribute::ReliableOrdered);
        endpoint.send(connection, b"hello", Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(0), b"hello");
        peer.kill();
        assert!(peer.wait().code().is_none(), "it was killed");
        let begun = Instant::now();
        endpoint.send(connection, b"late", 7).expect("nobody has told yet");
        let first = world.first(0);
        assert_eq!((first.kind(), first.context(), first.outcome()), (EventKind::Send, 7, Err(Failure::Disconnected)));
        assert_eq!(world.next(0, EventKind::Disconnect).connection(), Some(connection));
        let took = begun.elapsed();
        assert!(took < TOLD, "told after {took:?}");
        say!("told after {took:?}");
    });
}
