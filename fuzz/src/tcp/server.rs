//! The endpoint under test, and its program.

use super::client::Client;
use super::stream::Names;
use cci::{Attribute, Context, Device, EndpointOptions, Event, LocalEndpoint, Registration, Rights};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::OnceLock;

/// Connections of a client, each with another attribute: as many as the program accepts.
pub(super) const CONNECTIONS: usize = 3;
/// Bytes of a registration: more than the transport reads into its buffer at once.
pub(super) const MEMORY: usize = 96 << 10;

/// An event, as far as it does not depend on time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Request(Attribute, Vec<u8>),
    Message(Vec<u8>),
    Disconnected,
    Other(String),
}

/// An endpoint whose program accepts the first connections of each client and rejects the others.
pub(super) struct Server {
    endpoint: LocalEndpoint,
    written: Registration<Vec<u8>>,
    read: Registration<Vec<u8>>,
    /// Connections that are still to be accepted.
    to_accept: usize,
    /// By the connection's context; `None`: of requests.
    seen: BTreeMap<Option<u64>, Vec<Seen>>,
}

/// A device at the loop-back address, of one stream or two, whatever the environment says.
fn device(takes_parts: bool) -> &'static Device {
    static DEVICES: [OnceLock<Device>; 2] = [OnceLock::new(), OnceLock::new()];
    let streams = 1 + usize::from(takes_parts);
    DEVICES[streams - 1].get_or_init(|| {
        let path = std::env::temp_dir().join(format!("cci-fuzz-{}-{streams}.ini", std::process::id()));
        let keys = format!("[tcp]\ntransport = tcp\nip = 127.0.0.1\nstreams = {streams}\n");
        std::fs::write(&path, keys).expect("a file");
        let context = Context::from_file(&path);
        std::fs::remove_file(&path).expect("just written");
        context.expect("a configuration").devices()[0].clone()
    })
}

impl Server {
    pub(super) fn open(takes_parts: bool) -> Self {
        let options = EndpointOptions::new().disconnect_events(true).recv_buffers(256).send_buffers(16);
        let endpoint = LocalEndpoint::open(device(takes_parts), &options).expect("an endpoint");
        let written = endpoint.register(vec![0; MEMORY], Rights::READ_WRITE).expect("a registration");
        let read = endpoint.register(pattern(), Rights::READ).expect("a registration");
        Self { endpoint, written, read, to_accept: 0, seen: BTreeMap::new() }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.endpoint.uri().strip_prefix("tcp://").and_then(|address| address.parse().ok()).expect("an address")
    }

    /// A client is about to ask.
    pub(super) fn expect_client(&mut self) {
        self.to_accept = CONNECTIONS;
    }

    /// By what a client names its connections and the memory.
    pub(super) fn names(&self, client: &Client) -> Names {
        let handles = [&self.written, &self.read].map(|memory| memory.handle().name());
        Names { connections: client.connections(), written: handles[0], read: handles[1] }
    }

    /// Takes all events that there are.
    pub(super) fn poll(&mut self) {
        while let Some(event) = self.endpoint.get_event().expect("an endpoint that lives") {
            let connection = event.connection().map(|connection| connection.context().unwrap_or(u64::MAX));
            let seen = match event {
                Event::Request(request) if self.to_accept > 0 => {
                    self.to_accept -= 1;
                    request.accept(self.to_accept as u64).expect("a request");
                    continue;
                }
                Event::Accepted(_) => continue,
                Event::Request(request) => {
                    let seen = Seen::Request(request.attribute(), request.payload());
                    // The client may have withdrawn it.
                    let _ = request.reject();
                    seen
                }
                Event::Received(message) => Seen::Message(message.to_vec()),
                Event::Disconnected(_) => Seen::Disconnected,
                other => Seen::Other(format!("{other:?}")),
            };
            self.seen.entry(connection).or_default().push(seen);
        }
    }

    pub(super) fn events(&mut self) -> BTreeMap<Option<u64>, Vec<Seen>> {
        self.poll();
        std::mem::take(&mut self.seen)
    }

    /// The memory that clients may write.
    pub(super) fn memory(&self) -> Vec<u8> {
        assert_eq!(self.read.to_vec(0, MEMORY), Some(pattern()), "memory without the right to write was written");
        self.written.to_vec(0, MEMORY).expect("all of it")
    }
}

/// What clients may read.
fn pattern() -> Vec<u8> {
    (0..MEMORY).map(|at| (at % 251) as u8).collect()
}
