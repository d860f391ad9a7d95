//! Sides of one process, driven by one thread.

use cci::{Connection, Device, Endpoint, EndpointOptions, Event};
use cci_conformance::{LIMIT, device_of, sm_device};
use cci_peers::{Change, Deferred, Lost, Name, Options, Peer, Peers, Table, Unreached};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// The devices that every test runs on.
pub(crate) fn devices() -> Vec<Device> {
    vec![sm_device(), sim(), auto()]
}

/// A virtual network of its own.
pub(crate) fn sim() -> Device {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let network = format!("peers{}", LAST.fetch_add(1, Ordering::Relaxed));
    device_of("sim", &[("network", &network), ("delay", "2000"), ("bandwidth", "1250000000")])
}

pub(crate) fn auto() -> Device {
    device_of("auto", &[("listen", "local")])
}

pub(crate) fn open(device: &Device) -> Endpoint {
    Endpoint::open(device, &EndpointOptions::new().disconnect_events(true)).expect("an endpoint")
}

/// A peer with its endpoint, and what it has seen. An operation sends its number.
pub(crate) struct Side {
    pub(crate) endpoint: Endpoint,
    pub(crate) peers: Peers<u32>,
    /// Events that a connection is open.
    pub(crate) opened: usize,
    /// Names of links that came up, and whether to a process that is new.
    pub(crate) ups: Vec<(Name, bool)>,
    pub(crate) downs: Vec<(Name, Lost)>,
    /// With what has waited.
    pub(crate) failed: Vec<(Name, Unreached, Vec<u32>)>,
    pub(crate) received: Vec<(Name, u32)>,
}

impl Side {
    pub(crate) fn new(endpoint: Endpoint, name: u64, table: &Table, options: &Options) -> Self {
        let peers = Peers::new(Name::Number(name), Box::new(table.clone()), options).expect("a side");
        let (ups, downs, failed, received) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { endpoint, peers, opened: 0, ups, downs, failed, received }
    }

    pub(crate) fn peer(&mut self, name: u64) -> Peer {
        self.peers.peer(&Name::Number(name)).expect("a peer")
    }

    fn name(&self, peer: Peer) -> Name {
        self.peers.name(peer).expect("a peer of this side").clone()
    }

    fn send(&self, connection: Connection, operation: u32) {
        self.endpoint.send(connection, &operation.to_le_bytes(), 0).expect("room");
    }

    /// Sends a number now, or once the link is up.
    pub(crate) fn post(&mut self, to: u64, operation: u32) {
        let peer = self.peer(to);
        match self.peers.defer(&self.endpoint, peer, operation, Instant::now()).expect("room") {
            Deferred::Now(connection, operation) => self.send(connection, operation),
            Deferred::Waits => (),
        }
    }

    /// Takes what there is.
    pub(crate) fn step(&mut self) {
        while let Some(event) = self.endpoint.get_event().expect("usable") {
            self.opened += usize::from(matches!(event, Event::Connected(_) | Event::Accepted(_)));
            match self.peers.handle_event(&self.endpoint, event, Instant::now()) {
                Some(Event::Received(message)) => {
                    let peer = message.connection().and_then(|connection| self.peers.peer_of(connection));
                    let name = self.name(peer.expect("a message of a link"));
                    let number = message.to_vec().try_into().map(u32::from_le_bytes).expect("four bytes");
                    self.received.push((name, number));
                }
                Some(Event::Completed(_)) | None => (),
                Some(other) => panic!("{other:?} is not of a peer"),
            }
        }
        self.peers.handle_timeout(&self.endpoint, Instant::now());
        while let Some(change) = self.peers.poll_change() {
            match change {
                Change::Up { peer, connection, is_new, waiting } => {
                    self.ups.push((self.name(peer), is_new));
                    waiting.into_iter().for_each(|operation| self.send(connection, operation));
                }
                Change::Down { peer, why } => self.downs.push((self.name(peer), why)),
                Change::Failed { peer, why, waiting } => {
                    self.failed.push((self.name(peer), why, waiting.into_iter().collect()));
                }
                other => panic!("{other:?} is new"),
            }
        }
    }
}

/// Steps all of them until it is so.
pub(crate) fn until(sides: &mut [Side], what: &str, mut done: impl FnMut(&mut [Side]) -> bool) {
    let begun = Instant::now();
    while !done(sides) {
        assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
        sides.iter_mut().for_each(Side::step);
        std::thread::yield_now();
    }
}

/// Two sides, 0 and 1, that know each other.
pub(crate) fn two(device: &Device, options: &Options) -> Vec<Side> {
    let ends = [open(device), open(device)];
    let mut table = Table::new();
    (0..).zip(&ends).for_each(|(number, end)| table.insert(Name::Number(number), end.uri()));
    (0..).zip(ends).map(|(number, end)| Side::new(end, number, &table, options)).collect()
}

/// Closes all at once: the time of a virtual network stands still while its ends do not poll.
pub(crate) fn close(sides: Vec<Side>) {
    std::thread::scope(|scope| sides.into_iter().for_each(|side| drop(scope.spawn(|| drop(side)))));
}
