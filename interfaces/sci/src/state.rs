//! What a host knows: its objects, its connections, and what waits. Changed under the lock of the
//! host (`crate::shared`).

use crate::broadcast::Group;
use crate::callbacks::Callbacks;
use crate::device_memory::DeviceMemory;
use crate::errors::Error;
use crate::links::{Links, MOST_WAITING, put};
use crate::mirror::{Mirrors, Shadow};
use crate::notices::{Source, retire};
use crate::objects::{Attachment, OwnInterrupt, OwnSegment, Pending, Remote, Request, Target};
use crate::operation::{PROBE, context};
use crate::partner::{Key, Partner};
use crate::queue::Queue;
use crate::types::{Reason, SegmentEvent};
use crate::waits::Waits;
use crate::wire::Message;
use cci::{Connection, Endpoint, Notify};
use cci_mem::fork::Mark;
use cci_peers::{Deferred, Peer};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often peers over a network are sent something while all is quiet: the end of one that was
/// killed is noticed by what is sent.
const PROBES: Duration = Duration::from_secs(3);

/// What the lock of a host guards.
pub(crate) struct State {
    pub(crate) links: Links,
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
    /// What mirrors of peers have of segments of this host.
    pub(crate) shadows: BTreeMap<Key, Shadow>,
    pub(crate) callbacks: Callbacks,
    pub(crate) waits: Waits,
    pub(crate) is_closed: bool,
    pub(crate) has_failed: bool,
    last: u64,
}

impl State {
    pub(crate) fn new(links: Links, mark: Mark) -> Self {
        Self {
            links,
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
            shadows: BTreeMap::new(),
            callbacks: Callbacks::default(),
            waits: Waits::default(),
            is_closed: false,
            has_failed: false,
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
            self.links.to_self.push_back(message);
            return Ok(());
        };
        match self.links.peers.defer(endpoint, peer, message, Instant::now()) {
            Ok(Deferred::Now(connection, message)) => self.transmit(endpoint, peer, connection, message),
            Ok(Deferred::Waits) => {}
            Err(_) => return Err(Error::NoSpace),
        }
        Ok(())
    }

    /// Sends a message over the link that is up; without a link nobody needs it any more.
    pub(crate) fn send(&mut self, endpoint: &Endpoint, partner: Partner, message: Message) {
        let Some(peer) = partner else { return self.links.to_self.push_back(message) };
        // By these its program learns of what this one has stored.
        if matches!(message, Message::Trigger { .. } | Message::Data { .. } | Message::Patch { .. }) {
            self.tell_changes(endpoint, peer);
        }
        if let Some(connection) = self.links.peers.connection(peer) {
            self.transmit(endpoint, peer, connection, message);
        }
    }

    pub(crate) fn transmit(&mut self, endpoint: &Endpoint, peer: Peer, connection: Connection, message: Message) {
        if let Some(waiting) = self.links.outbox.get_mut(&peer) {
            if waiting.len() < MOST_WAITING {
                return waiting.push_back(message);
            }
            return self.break_link(endpoint, peer);
        }
        if !put(endpoint, connection, &message) {
            self.links.outbox.entry(peer).or_default().push_back(message);
        }
    }

    /// Probes peers over a network that are due; when that is next.
    pub(crate) fn probe(&mut self, endpoint: &Endpoint) -> Option<Instant> {
        if self.links.far.is_empty() {
            self.links.probe_at = None;
            return None;
        }
        let now = Instant::now();
        let due = *self.links.probe_at.get_or_insert(now + PROBES);
        if due > now {
            return Some(due);
        }
        // Those that have nothing in common with this host any more are left alone.
        let mut far = std::mem::take(&mut self.links.far);
        far.retain(|peer, _| self.is_connected(*peer));
        self.links.far = far;
        for (peer, is_open) in self.links.far.iter_mut().filter(|(_, is_open)| !**is_open) {
            let Some(connection) = self.links.peers.connection(*peer) else { continue };
            // Of no interrupt: it is ignored. One that finds no room waits for the next time.
            let nothing = Message::Taken { token: 0 }.emit();
            let number = peer.index() as u64;
            *is_open = endpoint.send(connection, &nothing, Notify::Always(context(PROBE, number))).is_ok();
        }
        self.links.probe_at = Some(now + PROBES);
        self.links.probe_at
    }

    /// Whether there is a connection to a peer, or from it.
    fn is_connected(&self, peer: Peer) -> bool {
        let partner = Some(peer);
        self.connectors.range((partner, 0)..=(partner, u64::MAX)).next().is_some()
            || self.remotes.values().any(|remote| remote.partner == partner && !remote.is_lost)
            || self.attachments.values().any(|of| of.partner == partner && !of.is_lost)
    }

    /// Ends the link to a peer that breaks the rules.
    pub(crate) fn break_link(&mut self, endpoint: &Endpoint, peer: Peer) {
        self.links.peers.hang_up(endpoint, peer);
        self.on_down(endpoint, peer);
    }

    /// Takes an event for a segment.
    pub(crate) fn note_segment(&mut self, id: u32, reason: Reason, node: u32) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.notices.push(SegmentEvent { reason, node });
            self.callbacks.ready.push_back(Source::Segment(id, segment.life));
            self.waits.has_changed = true;
        }
    }

    pub(crate) fn note_remote(&mut self, token: u64, reason: Reason) {
        if let Some(remote) = self.remotes.get_mut(&token) {
            remote.notices.push(reason);
            self.callbacks.ready.push_back(Source::Remote(token));
            self.waits.has_changed = true;
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
        self.waits.has_changed = true;
        self.links.outbox.remove(&peer);
        self.links.far.remove(&peer);
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
            self.waits.has_changed = true;
        }
    }

    /// A connection of a peer ends.
    pub(crate) fn forget_connector(&mut self, endpoint: &Endpoint, key: Key, reason: Reason) {
        self.shadows.remove(&key);
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
                    self.waits.has_changed = true;
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
            self.shadows.remove(&key);
            let notice = Message::Notice { token: key.1, reason: Reason::Lost as u32 };
            self.send(endpoint, key.0, notice);
        }
    }

    /// Takes a segment from its number, and keeps it for its connections.
    pub(crate) fn release_segment(&mut self, id: u32) {
        let Some(mut segment) = self.segments.remove(&id) else { return };
        segment.is_available = false;
        retire(&mut self.callbacks.retired, &mut segment.notices);
        for key in &segment.connectors {
            self.connectors.insert(*key, Target::Released(segment.life));
        }
        self.released.insert(segment.life, segment);
    }

    /// Ends all objects, in this process and for others.
    pub(crate) fn close(&mut self, endpoint: &Endpoint) {
        self.is_closed = true;
        let ids: Vec<_> = self.segments.keys().copied().collect();
        ids.into_iter().for_each(|id| self.disconnect_all(endpoint, id));
        let released = std::mem::take(&mut self.released);
        released.into_values().for_each(|segment| self.end_connectors(endpoint, segment.connectors));
        self.links.peers.close(endpoint);
        self.segments.values().for_each(|segment| segment.mapped.lose());
        self.remotes.values().for_each(|remote| remote.mapped.lose());
        let keys: Vec<_> = self.connecting.keys().copied().collect();
        for key in keys {
            self.forget_connect(key);
        }
        let retired = &mut self.callbacks.retired;
        self.segments.values_mut().for_each(|of| retire(retired, &mut of.notices));
        self.remotes.values_mut().for_each(|of| retire(retired, &mut of.notices));
        self.interrupts.values_mut().for_each(|of| retire(retired, &mut of.notices));
        self.queues.values_mut().for_each(|of| retire(retired, &mut of.notices));
        self.segments.clear();
        self.shadows.clear();
        self.groups.clear();
        self.remotes.clear();
        self.interrupts.clear();
        self.attachments.clear();
        self.queues.clear();
        self.claims.clear();
        self.callbacks.close();
    }
}
