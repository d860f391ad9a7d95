//! What a host knows: its objects, its connections, and what waits. Changed under the lock of the
//! host (`crate::shared`).

use crate::broadcast::Group;
use crate::device_memory::DeviceMemory;
use crate::errors::Error;
use crate::mirror::Mirrors;
use crate::notices::{Call, Source, call_of, retire};
use crate::objects::{Attachment, OwnInterrupt, OwnSegment, Pending, Remote, Request, Target};
use crate::operation::{PROBE, TRIGGER, context};
use crate::partner::{Key, Partner};
use crate::queue::Queue;
use crate::types::{Reason, SegmentEvent};
use crate::wire::Message;
use cci::{Connection, Endpoint, Notify, Scope, SendError};
use cci_mem::fork::Mark;
use cci_peers::{Deferred, Directory, Found, Name, Peer, Peers, Table};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Messages that wait for room in CCI, for each peer at most.
const MOST_WAITING: usize = 65_536;
/// How often peers over a network are sent something while all is quiet: the end of one that was
/// killed is noticed by what is sent.
const PROBES: Duration = Duration::from_secs(3);

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

pub(crate) struct State {
    pub(crate) peers: Peers<Message>,
    pub(crate) hosts: Hosts,
    pub(crate) own_node: u32,
    pub(crate) mark: Mark,
    /// Where segments lie, if not in memory of the library.
    pub(crate) device: Option<Arc<DeviceMemory>>,
    pub(crate) segments: BTreeMap<u32, OwnSegment>,
    /// Segments that the program has released, by their lives: each stays for its connections.
    pub(crate) released: BTreeMap<u64, OwnSegment>,
    pub(crate) interrupts: BTreeMap<u32, OwnInterrupt>,
    /// Broadcast groups that this process is a member of.
    pub(crate) groups: BTreeMap<u32, Group>,
    /// What peers, and this host itself, have connected to.
    pub(crate) connectors: BTreeMap<Key, Target>,
    pub(crate) remotes: BTreeMap<u64, Remote>,
    pub(crate) attachments: BTreeMap<u64, Attachment>,
    pub(crate) requests: BTreeMap<u64, Request>,
    pub(crate) queues: BTreeMap<u64, Queue>,
    /// Connects that do not wait.
    pub(crate) connecting: BTreeMap<u64, Pending>,
    pub(crate) claims: BTreeMap<u64, OwnedFd>,
    pub(crate) mirrors: Mirrors,
    /// Messages of this host to itself.
    pub(crate) to_self: VecDeque<Message>,
    /// Peers over a network, and whether a probe of one has not ended; when the next ones are due.
    far: BTreeMap<Peer, bool>,
    probe_at: Option<Instant>,
    /// Messages that wait for room in CCI.
    outbox: BTreeMap<Peer, VecDeque<Message>>,
    pub(crate) ready: VecDeque<Source>,
    /// Calls of callbacks that their objects have no more.
    due: VecDeque<(Source, Call)>,
    /// Whose callback runs.
    pub(crate) running: Option<Source>,
    /// Somebody who waits may have what it waits for; and how many threads wait.
    pub(crate) has_changed: bool,
    pub(crate) waiters: u32,
    /// Events of the endpoint so far, and queues that were posted.
    pub(crate) moves: u64,
    /// How many of them a wait has seen, and when.
    pub(crate) seen: Option<(u64, Instant)>,
    pub(crate) is_closed: bool,
    pub(crate) has_failed: bool,
    /// Callbacks that are no more: dropped without the lock, since they may own objects.
    pub(crate) retired: Vec<Box<dyn Send>>,
    last: u64,
}

impl State {
    /// When a wait has first seen the last of what moves.
    pub(crate) fn last_move(&mut self, now: Instant) -> Instant {
        let (_, at) =
            *self.seen.insert(self.seen.filter(|(moves, _)| *moves == self.moves).unwrap_or((self.moves, now)));
        at
    }

    pub(crate) fn new(peers: Peers<Message>, hosts: Hosts, own_node: u32, mark: Mark) -> Self {
        Self {
            peers,
            hosts,
            own_node,
            mark,
            device: None,
            segments: BTreeMap::new(),
            released: BTreeMap::new(),
            interrupts: BTreeMap::new(),
            groups: BTreeMap::new(),
            connectors: BTreeMap::new(),
            remotes: BTreeMap::new(),
            attachments: BTreeMap::new(),
            requests: BTreeMap::new(),
            queues: BTreeMap::new(),
            connecting: BTreeMap::new(),
            claims: BTreeMap::new(),
            mirrors: Mirrors::default(),
            to_self: VecDeque::new(),
            far: BTreeMap::new(),
            probe_at: None,
            outbox: BTreeMap::new(),
            ready: VecDeque::new(),
            due: VecDeque::new(),
            running: None,
            has_changed: false,
            waiters: 0,
            moves: 0,
            seen: None,
            is_closed: false,
            has_failed: false,
            retired: Vec::new(),
            last: 0,
        }
    }

    /// A number that was never used.
    pub(crate) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Whether the program has objects.
    pub(crate) fn is_in_use(&self) -> bool {
        let objects = [self.segments.len(), self.interrupts.len(), self.remotes.len(), self.attachments.len()];
        objects.iter().any(|count| *count > 0) || !self.queues.is_empty() || !self.connecting.is_empty()
    }

    /// Whether this host owns a segment that is of no broadcast group.
    pub(crate) fn has_segment(&self, id: u32) -> bool {
        self.segments.get(&id).is_some_and(|segment| !segment.is_broadcast)
    }

    /// Sends a message of this side's own: it waits for the link.
    pub(crate) fn begin(&mut self, endpoint: &Endpoint, partner: Partner, message: Message) -> Result<(), Error> {
        let Some(peer) = partner else {
            self.to_self.push_back(message);
            return Ok(());
        };
        match self.peers.defer(endpoint, peer, message, Instant::now()) {
            Ok(Deferred::Now(connection, message)) => self.transmit(endpoint, peer, connection, message),
            Ok(Deferred::Waits) => {}
            Err(_) => return Err(Error::NoSpace),
        }
        Ok(())
    }

    /// Sends a message over the link that is up; without a link nobody needs it any more.
    pub(crate) fn send(&mut self, endpoint: &Endpoint, partner: Partner, message: Message) {
        let Some(peer) = partner else { return self.to_self.push_back(message) };
        if let Some(connection) = self.peers.connection(peer) {
            self.transmit(endpoint, peer, connection, message);
        }
    }

    pub(crate) fn transmit(&mut self, endpoint: &Endpoint, peer: Peer, connection: Connection, message: Message) {
        if let Some(waiting) = self.outbox.get_mut(&peer) {
            if waiting.len() < MOST_WAITING {
                return waiting.push_back(message);
            }
            return self.break_link(endpoint, peer);
        }
        if !put(endpoint, connection, &message) {
            self.outbox.entry(peer).or_default().push_back(message);
        }
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

    /// Probes peers over a network that are due; when that is next.
    pub(crate) fn probe(&mut self, endpoint: &Endpoint) -> Option<Instant> {
        if self.far.is_empty() {
            self.probe_at = None;
            return None;
        }
        let now = Instant::now();
        let due = *self.probe_at.get_or_insert(now + PROBES);
        if due > now {
            return Some(due);
        }
        // Those that have nothing in common with this host any more are left alone.
        let mut far = std::mem::take(&mut self.far);
        far.retain(|peer, _| self.is_connected(*peer));
        self.far = far;
        for (peer, is_open) in self.far.iter_mut().filter(|(_, is_open)| !**is_open) {
            let Some(connection) = self.peers.connection(*peer) else { continue };
            // Of no interrupt: it is ignored. One that finds no room waits for the next time.
            let nothing = Message::Taken { token: 0 }.emit();
            let number = peer.index() as u64;
            *is_open = endpoint.send(connection, &nothing, Notify::Always(context(PROBE, number))).is_ok();
        }
        self.probe_at = Some(now + PROBES);
        self.probe_at
    }

    /// Whether there is a connection to a peer, or from it.
    fn is_connected(&self, peer: Peer) -> bool {
        let partner = Some(peer);
        self.connectors.range((partner, 0)..=(partner, u64::MAX)).next().is_some()
            || self.remotes.values().any(|remote| remote.partner == partner && !remote.is_lost)
            || self.attachments.values().any(|of| of.partner == partner && !of.is_lost)
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

    /// Ends the link to a peer that breaks the rules.
    pub(crate) fn break_link(&mut self, endpoint: &Endpoint, peer: Peer) {
        self.peers.hang_up(endpoint, peer);
        self.on_down(endpoint, peer);
    }

    /// Takes an event for a segment.
    pub(crate) fn note_segment(&mut self, id: u32, reason: Reason, node: u32) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.notices.push(SegmentEvent { reason, node });
            self.ready.push_back(Source::Segment(id, segment.life));
            self.has_changed = true;
        }
    }

    pub(crate) fn note_remote(&mut self, token: u64, reason: Reason) {
        if let Some(remote) = self.remotes.get_mut(&token) {
            remote.notices.push(reason);
            self.ready.push_back(Source::Remote(token));
            self.has_changed = true;
        }
    }

    /// The connection to a segment is no more.
    pub(crate) fn lose_remote(&mut self, token: u64) {
        let Some(remote) = self.remotes.get_mut(&token).filter(|remote| !remote.is_lost) else { return };
        remote.is_lost = true;
        remote.mapped.lose();
        self.mirrors.leave(token);
        self.note_remote(token, Reason::Lost);
    }

    /// A link is no more.
    pub(crate) fn on_down(&mut self, endpoint: &Endpoint, peer: Peer) {
        let partner = Some(peer);
        self.release(endpoint, peer);
        self.has_changed = true;
        self.outbox.remove(&peer);
        self.far.remove(&peer);
        let keys: Vec<_> = self.connectors.range((partner, 0)..=(partner, u64::MAX)).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.forget_connector(endpoint, key, Reason::Lost));
        self.give_up_members(peer);
        let lost: Vec<_> =
            self.remotes.iter().filter(|(_, remote)| remote.partner == partner).map(|(token, _)| *token).collect();
        lost.into_iter().for_each(|token| self.lose_remote(token));
        self.attachments.values_mut().filter(|of| of.partner == partner).for_each(|of| of.is_lost = true);
        self.fail_requests(partner, Error::NodeNotResponding);
        self.fail_queues(endpoint, partner);
    }

    pub(crate) fn fail_requests(&mut self, partner: Partner, why: Error) {
        for request in self.requests.values_mut().filter(|of| of.partner == partner && of.outcome.is_none()) {
            request.outcome = Some(Err(why));
            self.has_changed = true;
        }
    }

    /// A connection of a peer ends.
    pub(crate) fn forget_connector(&mut self, endpoint: &Endpoint, key: Key, reason: Reason) {
        match self.connectors.remove(&key) {
            Some(Target::Segment(id, node)) => {
                if let Some(segment) = self.segments.get_mut(&id) {
                    segment.connectors.remove(&key);
                }
                self.note_segment(id, reason, node);
            }
            Some(Target::Released(life)) => {
                if let Some(segment) = self.released.get_mut(&life) {
                    segment.connectors.remove(&key);
                    if segment.connectors.is_empty() {
                        self.released.remove(&life);
                    }
                }
            }
            Some(Target::Interrupt(number)) => {
                if let Some(interrupt) = self.interrupts.get_mut(&number) {
                    interrupt.connectors.remove(&key);
                    self.has_changed = true;
                }
            }
            Some(Target::Member(id)) => self.lose_member(endpoint, id, key),
            None => {}
        }
    }

    /// Ends all connections to a segment.
    pub(crate) fn disconnect_all(&mut self, endpoint: &Endpoint, id: u32) {
        let Some(segment) = self.segments.get_mut(&id) else { return };
        let keys = std::mem::take(&mut segment.connectors);
        self.end_connectors(endpoint, keys);
    }

    fn end_connectors(&mut self, endpoint: &Endpoint, keys: BTreeSet<Key>) {
        for key in keys {
            self.connectors.remove(&key);
            let notice = Message::Notice { token: key.1, reason: Reason::Lost as u32 };
            self.send(endpoint, key.0, notice);
        }
    }

    /// Takes a segment from its number, and keeps it for its connections.
    pub(crate) fn release_segment(&mut self, id: u32) {
        let Some(mut segment) = self.segments.remove(&id) else { return };
        segment.is_available = false;
        retire(&mut self.retired, &mut segment.notices);
        for key in &segment.connectors {
            self.connectors.insert(*key, Target::Released(segment.life));
        }
        self.released.insert(segment.life, segment);
    }

    /// The next callback that is due, with its event.
    pub(crate) fn next_call(&mut self, endpoint: &Endpoint) -> Option<(Source, Call, Option<u64>)> {
        if let Some((source, call)) = self.due.pop_front() {
            // Of a posting that is over.
            return Some((source, call, None));
        }
        while let Some(source) = self.ready.pop_front() {
            let call = match source {
                Source::Segment(id, life) => {
                    let segment = self.segments.get_mut(&id).filter(|segment| segment.life == life);
                    segment.and_then(|segment| call_of(&mut segment.notices))
                }
                Source::Remote(token) => self.remotes.get_mut(&token).and_then(|of| call_of(&mut of.notices)),
                Source::Interrupt(number, life) => {
                    let interrupt = self.interrupts.get_mut(&number).filter(|interrupt| interrupt.life == life);
                    let call = interrupt.and_then(|interrupt| {
                        let key = interrupt.notices.events.front().map(|(key, _)| *key)?;
                        let call = call_of(&mut interrupt.notices)?;
                        Some((call, interrupt.has_bytes.then_some(key)))
                    });
                    call.map(|(call, taken)| {
                        taken.into_iter().for_each(|key| self.on_taken(endpoint, number, key));
                        call
                    })
                }
                Source::Queue(token) => self.queues.get_mut(&token).and_then(|queue| call_of(&mut queue.notices)),
                Source::Connecting(key) => self.connect_call(key),
            };
            if let Some(call) = call {
                return Some((source, call, self.posting_of(source)));
            }
        }
        None
    }

    /// Which posting of a queue a callback is of; 0 of what is posted never.
    fn posting_of(&self, source: Source) -> Option<u64> {
        match source {
            Source::Queue(token) => self.queues.get(&token).map(|queue| queue.postings),
            _ => Some(0),
        }
    }

    /// A callback has returned, and is not to be called again. One that was set since is.
    pub(crate) fn cancel_call(&mut self, source: Source, posting: Option<u64>) {
        if posting.is_some() && posting == self.posting_of(source) {
            self.cancel(source);
        }
    }

    /// Ends of a queue that were not told yet: they are, whatever the program does with the queue,
    /// which it sees ended already.
    pub(crate) fn keep_calls(&mut self, token: u64) {
        let Some(queue) = self.queues.get_mut(&token) else { return };
        while let Some(call) = call_of(&mut queue.notices) {
            self.due.push_back((Source::Queue(token), call));
        }
    }

    /// Whether a callback of an object runs, or will.
    pub(crate) fn will_call(&self, source: Source) -> bool {
        self.running == Some(source) || self.due.iter().any(|(of, _)| *of == source)
    }

    /// Forgets the calls of an object: its own callback removes it.
    pub(crate) fn forget_calls(&mut self, source: Source) {
        let (gone, due) = std::mem::take(&mut self.due).into_iter().partition(|(of, _)| *of == source);
        self.due = due;
        let gone: VecDeque<_> = gone;
        self.retired.push(Box::new(gone));
    }

    /// The callback of a connect that has ended.
    fn connect_call(&mut self, key: u64) -> Option<Call> {
        let pending = self.connecting.get_mut(&key).filter(|pending| pending.has_outcome)?;
        let call = pending.callback.take()?;
        pending.has_outcome = false;
        Some(call)
    }

    /// Removes a connect. Whether it had an outcome that nobody has taken.
    pub(crate) fn forget_connect(&mut self, key: u64) -> bool {
        let Some(pending) = self.connecting.remove(&key) else { return false };
        let has_outcome = pending.has_outcome;
        // Dropped without the lock.
        self.retired.push(Box::new(pending));
        has_outcome
    }

    /// Removes a callback.
    pub(crate) fn cancel(&mut self, source: Source) {
        match source {
            Source::Segment(id, life) => {
                if let Some(segment) = self.segments.get_mut(&id).filter(|segment| segment.life == life) {
                    retire(&mut self.retired, &mut segment.notices);
                }
            }
            Source::Remote(token) => {
                if let Some(remote) = self.remotes.get_mut(&token) {
                    retire(&mut self.retired, &mut remote.notices);
                }
            }
            Source::Interrupt(number, life) => {
                if let Some(interrupt) = self.interrupts.get_mut(&number).filter(|of| of.life == life) {
                    retire(&mut self.retired, &mut interrupt.notices);
                }
            }
            Source::Queue(token) => {
                if let Some(queue) = self.queues.get_mut(&token) {
                    retire(&mut self.retired, &mut queue.notices);
                }
            }
            Source::Connecting(key) => {
                self.forget_connect(key);
            }
        }
    }

    /// Ends all objects, in this process and for others.
    pub(crate) fn close(&mut self, endpoint: &Endpoint) {
        self.is_closed = true;
        let ids: Vec<_> = self.segments.keys().copied().collect();
        ids.into_iter().for_each(|id| self.disconnect_all(endpoint, id));
        let released = std::mem::take(&mut self.released);
        released.into_values().for_each(|segment| self.end_connectors(endpoint, segment.connectors));
        self.peers.close(endpoint);
        self.segments.values().for_each(|segment| segment.mapped.lose());
        self.remotes.values().for_each(|remote| remote.mapped.lose());
        let keys: Vec<_> = self.connecting.keys().copied().collect();
        for key in keys {
            self.forget_connect(key);
        }
        let retired = &mut self.retired;
        self.segments.values_mut().for_each(|of| retire(retired, &mut of.notices));
        self.remotes.values_mut().for_each(|of| retire(retired, &mut of.notices));
        self.interrupts.values_mut().for_each(|of| retire(retired, &mut of.notices));
        self.queues.values_mut().for_each(|of| retire(retired, &mut of.notices));
        self.segments.clear();
        self.groups.clear();
        self.remotes.clear();
        self.interrupts.clear();
        self.attachments.clear();
        self.queues.clear();
        self.claims.clear();
        self.ready.clear();
    }
}

/// Sends a message. False: there is no room.
fn put(endpoint: &Endpoint, connection: Connection, message: &Message) -> bool {
    let notify = match message {
        Message::Trigger { token } => Notify::Always(context(TRIGGER, *token)),
        _ => Notify::OnFailure(0),
    };
    // A link that is lost reports its end.
    !matches!(endpoint.send(connection, &message.emit(), notify), Err(SendError::NoBuffers))
}
