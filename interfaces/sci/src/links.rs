//! Links to peers, and what goes over them.

use crate::operation::{TRIGGER, context};
use crate::partner::Partner;
use crate::wire::Message;
use cci::{Connection, Endpoint, Notify, Scope, SendError};
use cci_peers::{Directory, Found, Name, Peer, Peers, Table};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Messages that wait for room in CCI, for each peer at most.
pub(crate) const MOST_WAITING: usize = 65_536;

/// URIs of other hosts by their numbers.
#[derive(Clone, Default)]
pub(crate) struct Hosts(Arc<Mutex<Table>>);

impl Hosts {
    pub(crate) fn insert(&self, number: u64, uri: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(Name::Number(number), uri);
    }
}

impl Directory for Hosts {
    fn find(&mut self, name: &Name) -> Found {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).find(name)
    }
}

/// The links of a host.
pub(crate) struct Links {
    pub(crate) peers: Peers<Message>,
    hosts: Hosts,
    /// Messages of this host to itself.
    pub(crate) to_self: VecDeque<Message>,
    /// Messages that wait for room in CCI.
    pub(crate) outbox: BTreeMap<Peer, VecDeque<Message>>,
    /// Peers over a network, and whether a probe of one has not ended; when the next ones are due.
    pub(crate) far: BTreeMap<Peer, bool>,
    pub(crate) probe_at: Option<Instant>,
}

impl Links {
    pub(crate) fn new(peers: Peers<Message>, hosts: Hosts) -> Self {
        let (to_self, outbox, far) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        Self { peers, hosts, to_self, outbox, far, probe_at: None }
    }

    /// The peer of a name; `None`: there are too many.
    pub(crate) fn peer_of(&mut self, number: u64, uri: &str) -> Option<Peer> {
        self.hosts.insert(number, uri);
        self.peers.peer(&Name::Number(number)).ok()
    }

    /// Sends what waited for room. False: there is still none.
    pub(crate) fn pump(&mut self, endpoint: &Endpoint) -> bool {
        let outbox = std::mem::take(&mut self.outbox);
        for (peer, mut waiting) in outbox {
            let Some(connection) = self.peers.connection(peer) else { continue };
            while waiting.front().is_some_and(|message| put(endpoint, connection, message)) {
                waiting.pop_front();
            }
            if !waiting.is_empty() {
                self.outbox.insert(peer, waiting);
            }
        }
        self.outbox.is_empty()
    }

    /// A peer is over a network, which does not report its end by itself.
    pub(crate) fn enter_far(&mut self, peer: Peer) {
        self.far.entry(peer).or_insert(false);
    }

    /// The same, if the link to the peer is over a network.
    pub(crate) fn enter_if_far(&mut self, endpoint: &Endpoint, partner: Partner) {
        let Some(peer) = partner else { return };
        let report = self.peers.connection(peer).and_then(|connection| endpoint.report(connection).ok());
        let driver = report.and_then(|report| cci::driver(report.transport));
        if driver.is_some_and(|driver| driver.scope == Scope::Network) {
            self.enter_far(peer);
        }
    }

    /// Whether somebody is probed.
    #[cfg(test)]
    pub(crate) fn has_probes(&self) -> bool {
        !self.far.is_empty()
    }

    /// A probe has ended.
    pub(crate) fn on_probed(&mut self, number: u64) {
        let found = self.far.iter_mut().find(|(peer, _)| peer.index() as u64 == number);
        found.into_iter().for_each(|(_, is_open)| *is_open = false);
    }

    /// Whether messages to this peer wait for room.
    pub(crate) fn is_backed_up(&self, peer: Peer) -> bool {
        self.outbox.contains_key(&peer)
    }

    /// Whether messages to anybody wait for room.
    pub(crate) fn is_backlogged(&self) -> bool {
        !self.outbox.is_empty()
    }
}

/// Sends a message. False: there is no room.
pub(crate) fn put(endpoint: &Endpoint, connection: Connection, message: &Message) -> bool {
    let notify = match message {
        Message::Trigger { token } => Notify::Always(context(TRIGGER, *token)),
        _ => Notify::OnFailure(0),
    };
    // A link that is lost reports its end.
    !matches!(endpoint.send(connection, &message.emit(), notify), Err(SendError::NoBuffers))
}
