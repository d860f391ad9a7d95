//! What a hub knows of its connections and operations, and what events change of it.

use super::unread::{Totals, Unread};
use crate::export::Export;
use crate::opened::{Gauge, Payload};
use crate::registration::Registration;
use cci::{Connection, DetachedEvent, Endpoint, Event, Failure, RequestError, Status, Unanswered};
use pyo3::prelude::*;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// The key of a wait for accepted connections.
pub(crate) const ACCEPTED: u64 = 0;

/// The context of a message whose success nobody waits for.
pub(crate) const POSTED: u64 = 0;

/// Connections or operations by their number.
pub(crate) type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers, which this side gives one after the other: no peer chooses them.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A status and its sentence.
pub(crate) type Ended = (Status, String);

/// One connection.
pub(crate) struct Peer {
    /// None until it is open.
    pub(crate) connection: Option<Connection>,
    pub(crate) unread: Unread,
    /// The library takes no message of it until the program has received some.
    pub(crate) is_paused: bool,
    /// The library pauses no such connection.
    pub(super) is_unpausable: bool,
    /// Why nothing comes or goes any more.
    pub(crate) lost: Option<Ended>,
    /// Why a posted message has not arrived; told once, by the next call.
    pub(crate) unsent: Option<Ended>,
}

impl Peer {
    fn new(connection: Option<Connection>) -> Self {
        Self { connection, unread: Unread::default(), is_paused: false, is_unpausable: false, lost: None, unsent: None }
    }
}

/// What an operation uses until it has ended.
pub(crate) enum Keep {
    Nothing,
    Bytes {
        _export: Export,
    },
    Local {
        _registration: Py<Registration>,
    },
    /// Where the old value of an atomic operation comes to.
    Word(cci::Registration<Vec<u8>>),
}

/// An operation from its call until somebody has taken its outcome.
pub(crate) struct Operation {
    pub(crate) keep: Keep,
    pub(crate) peer: u64,
    pub(crate) outcome: Option<Result<(), Ended>>,
    /// Whether somebody will ask for the outcome.
    pub(crate) is_awaited: bool,
}

pub(crate) struct State {
    pub(crate) peers: ByNumber<Peer>,
    /// Of the messages that wait to be received.
    pub(crate) totals: Totals,
    /// Of those that the program holds.
    gauge: Arc<Gauge>,
    pub(crate) operations: ByNumber<Operation>,
    pub(crate) accepted: VecDeque<u64>,
    /// Requests that found no send buffer for their answer.
    unanswered: VecDeque<DetachedEvent>,
    is_listening: bool,
    /// Lost connections may be among the accepted ones.
    has_lost: bool,
    /// The keys of waits that a call of another wait has changed.
    pub(crate) untold: Vec<u64>,
    /// All buffers are held, and no event waits.
    pub(crate) is_starving: bool,
    next: u64,
}

/// What an event has changed: the keys of waits, and what is dropped once the lock is free, because
/// that may run code of the program.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) keys: Vec<u64>,
    garbage: Vec<Keep>,
}

impl State {
    /// Of an endpoint that takes requests of others, or rejects them.
    pub(crate) fn new(is_listening: bool, gauge: &Arc<Gauge>) -> Self {
        Self {
            peers: HashMap::default(),
            totals: Totals::new(gauge.slots()),
            gauge: Arc::clone(gauge),
            operations: HashMap::default(),
            accepted: VecDeque::new(),
            unanswered: VecDeque::new(),
            is_listening,
            has_lost: false,
            untold: Vec::new(),
            is_starving: false,
            next: 0,
        }
    }

    /// A number for a connection or an operation, from 1.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn connecting(&mut self, peer: u64) {
        self.peers.insert(peer, Peer::new(None));
        let operation = Operation { keep: Keep::Nothing, peer, outcome: None, is_awaited: true };
        self.operations.insert(peer, operation);
    }

    /// Takes an event over.
    pub(crate) fn handle(&mut self, endpoint: &Endpoint, event: Event<'_>, changes: &mut Changes) {
        self.is_starving = false;
        match event {
            Event::Received(message) => {
                if self.totals.is_short() && self.has_lost {
                    self.forget_unseen();
                }
                let peer = message.connection().and_then(|connection| connection.context());
                if let Some((number, peer)) = peer.and_then(|number| Some((number, self.peers.get_mut(&number)?))) {
                    let held = usize::try_from(self.gauge.held()).unwrap_or(usize::MAX);
                    peer.unread.push(message, &mut self.totals, held);
                    changes.keys.push(number);
                    if peer.unread.is_over(&self.totals) && !peer.is_paused {
                        self.pause(endpoint, number);
                    }
                }
            }
            Event::Completed(completed) => {
                let outcome = completed.outcome();
                let peer = completed.connection().and_then(|connection| connection.context());
                self.ended(completed.context(), peer, outcome, changes);
            }
            Event::Connected(connected) => {
                let number = connected.context();
                match self.peers.get_mut(&number) {
                    Some(peer) => peer.connection = connected.connection(),
                    // Given up meanwhile.
                    None => {
                        let _ = connected.connection().map(|connection| endpoint.disconnect(connection));
                    }
                }
                self.settle(number, Ok(()), changes);
            }
            Event::ConnectFailed(failed) => {
                let number = failed.context();
                self.peers.remove(&number);
                self.settle(number, Err((failed.failure().status(), failed.to_string())), changes);
            }
            Event::Request(request) => self.answer(request),
            Event::Accepted(accepted) => {
                let number = accepted.context();
                self.peers.insert(number, Peer::new(accepted.connection()));
                self.accepted.push_back(number);
                changes.keys.push(ACCEPTED);
            }
            Event::Keepalive(silent) => self.lose(silent.connection(), Failure::TimedOut, changes),
            Event::Disconnected(gone) => self.lose(gone.connection(), Failure::Disconnected, changes),
            Event::EndpointFailed(_) => self.fail(changes),
            _ => {}
        }
    }

    /// Accepts a request, or keeps it until there is room for the answer.
    fn answer(&mut self, request: cci::Request<'_>) {
        if !self.is_listening {
            // Dropped, which rejects it.
            return;
        }
        let number = self.number();
        if let Err(Unanswered { request, why: RequestError::NoBuffers }) = request.accept(number) {
            self.unanswered.push_back(Event::Request(request).detach());
        }
    }

    /// Answers requests that had to wait.
    pub(crate) fn answer_waiting(&mut self, endpoint: &Endpoint) {
        for _ in 0..self.unanswered.len() {
            let request = self.unanswered.pop_front().and_then(|event| event.attach(endpoint).ok());
            if let Some(request) = request.and_then(Event::into_request) {
                self.answer(request);
            }
        }
    }

    fn ended(&mut self, operation: u64, peer: Option<u64>, outcome: Result<(), Failure>, changes: &mut Changes) {
        let failure = outcome.err().map(|why| (why.status(), why.to_string()));
        if outcome.is_err_and(|why| why.breaks_connection())
            && let Some((number, peer)) = peer.and_then(|number| Some((number, self.peers.get_mut(&number)?)))
        {
            peer.lost = peer.lost.take().or_else(|| failure.clone());
            changes.keys.push(number);
            self.settle_rest(number);
        }
        if operation != POSTED && self.operations.get(&operation).is_some_and(|operation| operation.is_awaited) {
            self.settle(operation, failure.map_or(Ok(()), Err), changes);
            return;
        }
        let posted = self.operations.remove(&operation);
        let peer = posted.as_ref().map(|operation| operation.peer).or(peer);
        changes.garbage.extend(posted.map(|operation| operation.keep));
        let known = peer.and_then(|number| Some((number, self.peers.get_mut(&number)?)));
        if let (Some(failure), Some((number, known))) = (failure, known) {
            known.unsent = Some(failure);
            changes.keys.push(number);
        }
    }

    /// Leaves the outcome of an operation to whoever waits for it.
    fn settle(&mut self, operation: u64, outcome: Result<(), Ended>, changes: &mut Changes) {
        let Some(open) = self.operations.get_mut(&operation) else { return };
        if !open.is_awaited {
            changes.garbage.extend(self.operations.remove(&operation).map(|operation| operation.keep));
            return;
        }
        if !matches!(open.keep, Keep::Word(_)) {
            changes.garbage.push(std::mem::replace(&mut open.keep, Keep::Nothing));
        }
        open.outcome = Some(outcome);
        changes.keys.push(operation);
    }

    /// Takes back the message that was taken last.
    pub(crate) fn put_back(&mut self, peer: u64, message: Payload) {
        if let Some(known) = self.peers.get_mut(&peer) {
            known.unread.put_back(message, &mut self.totals);
        }
    }

    /// Forgets a connection and its unread messages.
    pub(crate) fn forget(&mut self, peer: u64) -> Option<Connection> {
        let mut known = self.peers.remove(&peer)?;
        known.unread.clear(&mut self.totals);
        known.connection
    }

    /// Forgets all connections.
    pub(crate) fn forget_all(&mut self) {
        for (_, mut known) in self.peers.drain() {
            known.unread.clear(&mut self.totals);
        }
    }

    /// Nothing follows from a peer: gives back the buffers of what it has left.
    fn settle_rest(&mut self, number: u64) {
        let Some(peer) = self.peers.get_mut(&number) else { return };
        peer.unread.leave_buffers(&mut self.totals);
        self.has_lost = true;
    }

    /// Forgets lost connections that the program has never seen, the oldest first, as clients that
    /// never came: it reads too little of what they have left.
    #[cold]
    fn forget_unseen(&mut self) {
        self.has_lost = false;
        let Self { peers, accepted, totals, has_lost, .. } = self;
        accepted.retain(|number| {
            let is_lost = peers.get(number).is_some_and(|peer| peer.lost.is_some());
            if is_lost && !totals.is_short() {
                *has_lost = true;
                return true;
            }
            if is_lost && let Some(mut peer) = peers.remove(number) {
                peer.unread.clear(totals);
            }
            !is_lost
        });
    }

    fn lose(&mut self, connection: Option<Connection>, why: Failure, changes: &mut Changes) {
        let Some(number) = connection.and_then(|connection| connection.context()) else { return };
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.lost.get_or_insert_with(|| (why.status(), why.to_string()));
            changes.keys.push(number);
            self.settle_rest(number);
        }
    }

    /// The device has failed: nothing comes or goes any more.
    fn fail(&mut self, changes: &mut Changes) {
        let why = (Status::DeviceDead, Status::DeviceDead.sentence().to_owned());
        for (number, peer) in &mut self.peers {
            peer.lost.get_or_insert_with(|| why.clone());
            changes.keys.push(*number);
        }
        for (number, operation) in &mut self.operations {
            operation.outcome.get_or_insert_with(|| Err(why.clone()));
            changes.keys.push(*number);
        }
        changes.keys.push(ACCEPTED);
    }
}
