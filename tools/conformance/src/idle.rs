//! What a process costs that waits on the handle of an endpoint.

use crate::{Peer, World, drain};
use cci::{Connection, Endpoint, Notify};

/// What a process has used while it waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Processor time, microseconds.
    pub micros: u64,
    /// Context switches.
    pub switches: u64,
    /// Times that the handle woke it without reason.
    pub wakes: u64,
    /// Threads of the process.
    pub threads: u64,
}

impl Idle {
    /// A process of `program`, the test kit's peer, connects to this endpoint by a device of
    /// `transport` and `uri`, and waits for so many seconds. `connected` sees the connection at
    /// this end.
    ///
    /// # Panics
    ///
    /// The other process does not connect, or ends early.
    #[must_use]
    pub fn of(
        endpoint: &Endpoint,
        (program, transport, uri): (&str, &str, &str),
        seconds: &str,
        connected: impl FnOnce(Connection),
    ) -> Self {
        let world = World::new([endpoint]);
        let mut peer = Peer::spawn(program, "idle", &[transport, uri, seconds]);
        let connection = world.accept(0);
        connected(connection);
        assert_eq!(world.message(0), b"hello");
        endpoint.send(connection, b"hello", Notify::OnFailure(0)).expect("a send");
        let line = peer.line_while(|| {
            drain(endpoint);
            std::thread::yield_now();
        });
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
        let [micros, switches, wakes, threads] = numbers[..] else { panic!("{line}") };
        Self { micros, switches, wakes, threads }
    }
}
