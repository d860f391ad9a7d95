//! Messages of other hosts, and of this one to itself.

use crate::errors::Error;
use crate::mapped::Mapped;
use crate::mirror::apply_watched;
use crate::notices::{Notices, Source};
use crate::objects::{Attachment, Remote, Target};
use crate::operation::Operation;
use crate::partner::{Key, Partner};
use crate::state::State;
use crate::types::Reason;
use crate::wire::{Answer, MOST_DATA, Message, Patch};
use cci::{Endpoint, Event, ImportError, Received};
use cci_peers::Change;
use std::sync::Arc;
use std::time::Instant;

/// Connections of one peer, at most.
const MOST_CONNECTORS: usize = 65_536;
impl State {
    /// Takes an event of the endpoint.
    pub(crate) fn take(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        match self.links.peers.handle_event(endpoint, event, Instant::now()) {
            Some(Event::Received(message)) => {
                let peer = message.connection().and_then(|connection| self.links.peers.peer_of(connection));
                self.receive(endpoint, peer, message);
            }
            Some(Event::Completed(ended)) => match Operation::of(ended.context()) {
                Operation::Trigger(token) => self.on_trigger_sent(endpoint, token),
                Operation::Transfer(token) => self.on_transfer_ended(endpoint, token, ended.outcome().is_ok()),
                Operation::Mirror(token) => self.on_mirror_ended(endpoint, token, ended.outcome().is_ok()),
                Operation::Probe(number) => self.links.on_probed(number),
                Operation::Other => {}
            },
            Some(Event::EndpointFailed(_)) => {
                self.has_failed = true;
                self.waits.has_changed = true;
            }
            // A request that is no host's is rejected by its drop.
            _ => {}
        }
        self.take_changes(endpoint);
    }

    /// Takes a message of a peer. A patch is applied where it lies.
    fn receive(&mut self, endpoint: &Endpoint, peer: Partner, message: Received<'_>) {
        let Some(peer) = peer else { return };
        if let Some(patch) = message.bytes().and_then(Patch::parse) {
            return self.on_patch(endpoint, (Some(peer), patch.token), &patch);
        }
        let parsed = Message::parse(&message.to_vec());
        drop(message);
        match parsed {
            Some(message) => self.handle(endpoint, Some(peer), message),
            None => self.break_link(endpoint, peer),
        }
    }

    /// What has become of links.
    pub(crate) fn take_changes(&mut self, endpoint: &Endpoint) {
        while let Some(change) = self.links.peers.poll_change() {
            match change {
                Change::Up { peer, connection, waiting, .. } => {
                    for message in waiting {
                        self.transmit(endpoint, peer, connection, message);
                    }
                }
                Change::Down { peer, .. } => self.on_down(endpoint, peer),
                Change::Failed { peer, .. } => {
                    self.fail_requests(Some(peer), Error::NodeNotResponding);
                    self.give_up_members(peer);
                }
                _ => {}
            }
        }
    }

    /// Handles messages of this host to itself.
    pub(crate) fn serve_self(&mut self, endpoint: &Endpoint) {
        while let Some(message) = self.links.to_self.pop_front() {
            self.handle(endpoint, None, message);
        }
    }

    /// Handles a message, or keeps it back until mirrors are read.
    pub(crate) fn handle(&mut self, endpoint: &Endpoint, from: Partner, message: Message) {
        let message = match from {
            Some(peer) => self.hold(endpoint, peer, message),
            None => Some(message),
        };
        if let Some(message) = message {
            self.handle_now(endpoint, from, message);
        }
    }

    pub(crate) fn handle_now(&mut self, endpoint: &Endpoint, from: Partner, message: Message) {
        match message {
            Message::Connect { token, segment, node } => self.on_connect(endpoint, (from, token), segment, node),
            Message::Attach { token, interrupt, has_bytes } => {
                self.on_attach(endpoint, (from, token), interrupt, has_bytes);
            }
            Message::Answer { token, answer } => self.on_answer(endpoint, from, token, answer),
            Message::Disconnect { token } => self.forget_connector(endpoint, (from, token), Reason::Disconnect),
            Message::Notice { token, reason } => self.on_notice(from, token, reason),
            Message::Trigger { token } => self.on_trigger(endpoint, (from, token), None),
            Message::Data { token, bytes } => self.on_trigger(endpoint, (from, token), Some(bytes)),
            Message::Taken { token } => {
                if let Some(of) = self.attachments.get_mut(&token).filter(|of| of.partner == from) {
                    of.outstanding = of.outstanding.saturating_sub(1);
                    self.waits.has_changed = true;
                }
            }
            Message::Patch { token, number, is_asking, groups } => {
                let (first, groups) = (groups.first, &groups.bytes[..]);
                self.on_patch(endpoint, (from, token), &Patch { token, number, is_asking, first, groups });
            }
            Message::Applied { token, number } => {
                if !self.on_cast_applied(endpoint, from, token, number) {
                    self.on_applied(from, token, number);
                }
            }
            Message::Watch { token, block, sums } => self.on_watch(endpoint, (from, token), block, sums),
            Message::Unwatch { token, block } => self.on_unwatch((from, token), block),
            Message::Changed { token, number, groups } => self.on_changed(endpoint, (from, token), number, &groups),
            Message::Watched { token, block } => self.on_watched(endpoint, (from, token), block),
            Message::Join { token, group, len, memory, is_answer, is_published } => {
                self.on_join(endpoint, (from, token), (group, len, memory), (is_answer, is_published));
            }
        }
    }

    /// Whether a peer may have another connection; one that may not loses its link.
    pub(crate) fn admits(&mut self, endpoint: &Endpoint, key: Key) -> bool {
        let Some(peer) = key.0 else { return true };
        let count = self.connectors.range((key.0, 0)..=(key.0, u64::MAX)).count();
        if count < MOST_CONNECTORS && !self.connectors.contains_key(&key) {
            return true;
        }
        self.break_link(endpoint, peer);
        false
    }

    fn on_connect(&mut self, endpoint: &Endpoint, key: Key, id: u32, node: u32) {
        if !self.admits(endpoint, key) {
            return;
        }
        let found = self.segments.get_mut(&id).filter(|segment| segment.is_available && !segment.is_broadcast);
        let registered = found.and_then(|segment| {
            let registration = segment.registration.as_ref()?;
            segment.connectors.insert(key);
            Some((*registration.handle(), registration.len()))
        });
        let answer = match registered {
            Some((handle, len)) => {
                self.connectors.insert(key, Target::Segment(id, node));
                self.links.enter_if_far(endpoint, key.0);
                self.note_segment(id, Reason::Connect, node);
                Answer::Segment(handle, len)
            }
            None => Answer::Refused(Error::NoSuchSegment.code()),
        };
        self.send(endpoint, key.0, Message::Answer { token: key.1, answer });
    }

    fn on_attach(&mut self, endpoint: &Endpoint, key: Key, number: u32, has_bytes: bool) {
        if !self.admits(endpoint, key) {
            return;
        }
        let found = self.interrupts.get_mut(&number).filter(|interrupt| interrupt.has_bytes == has_bytes);
        let answer = match found {
            Some(interrupt) => {
                interrupt.connectors.insert(key, 0);
                self.connectors.insert(key, Target::Interrupt(number));
                self.links.enter_if_far(endpoint, key.0);
                Answer::Interrupt
            }
            None => Answer::Refused(Error::NoSuchSegment.code()),
        };
        self.send(endpoint, key.0, Message::Answer { token: key.1, answer });
    }

    /// What a connect has been answered. Who has given up waiting disconnects.
    fn on_answer(&mut self, endpoint: &Endpoint, from: Partner, token: u64, answer: Answer) {
        let request = self.requests.get(&token).filter(|of| of.partner == from && of.outcome.is_none());
        let Some((node, segment)) = request.map(|of| (of.node, of.segment)) else {
            if !matches!(answer, Answer::Refused(_)) {
                self.send(endpoint, from, Message::Disconnect { token });
            }
            return;
        };
        let outcome = match (answer, segment) {
            (Answer::Refused(code), _) => Err(Error::from_code(code).unwrap_or(Error::ConnectionRefused)),
            (Answer::Segment(handle, len), Some(segment)) => {
                self.map(endpoint, (from, token), (node, segment), (&handle, len)).map(|mapped| {
                    let (handle, is_lost, notices) = (Some(handle), false, Notices::new());
                    let remote = Remote { partner: from, node, segment, mapped, handle, is_lost, notices };
                    self.remotes.insert(token, remote);
                })
            }
            (Answer::Interrupt, None) => {
                let attachment =
                    Attachment { partner: from, is_in_flight: false, is_due: false, outstanding: 0, is_lost: false };
                self.attachments.insert(token, attachment);
                self.links.enter_if_far(endpoint, from);
                Ok(())
            }
            (Answer::Segment(..), None) | (Answer::Interrupt, Some(_)) => {
                if let Some(peer) = from {
                    self.break_link(endpoint, peer);
                }
                return;
            }
        };
        if let Err(why) = outcome
            && !matches!(why, Error::NoSuchSegment)
        {
            self.send(endpoint, from, Message::Disconnect { token });
        }
        if let Some(request) = self.requests.get_mut(&token) {
            request.outcome = Some(outcome);
            self.waits.has_changed = true;
        }
    }

    fn map(
        &mut self,
        endpoint: &Endpoint,
        (from, token): Key,
        (node, segment): (u32, u32),
        (handle, len): (&cci::RmaHandle, u64),
    ) -> Result<Arc<Mapped>, Error> {
        let Some(peer) = from else {
            let mapped = self.segments.get(&segment).and_then(|of| of.mapped.again());
            return mapped.map(Arc::new).ok_or(Error::NoSuchSegment);
        };
        if let Some(found) = self.device.as_ref().and_then(|device| device.find(node, segment)) {
            return Ok(Arc::new(Mapped::found(&found, self.mark)));
        }
        let connection = self.links.peers.connection(peer).ok_or(Error::NodeNotResponding)?;
        let imported = endpoint.import(connection, handle);
        if matches!(imported, Err(ImportError::NotImplemented)) {
            self.links.enter_far(peer);
            let mirror = self.mirrors.enter(endpoint, (from, token), (*handle, len))?;
            return Ok(Arc::new(Mapped::mirror(mirror, self.mark)));
        }
        let import = imported.map_err(|why| match why {
            ImportError::Disconnected => Error::NodeNotResponding,
            // It was withdrawn meanwhile. Memory of the library that is not mapped is no more.
            _ => Error::NoSuchSegment,
        })?;
        if import.len() != len {
            return Err(Error::ConnectionRefused);
        }
        Mapped::peer(import, self.mark).map(Arc::new).ok_or(Error::NoSpace)
    }

    /// Bytes that another host has changed in a segment of this one.
    fn on_patch(&mut self, endpoint: &Endpoint, key: Key, patch: &Patch<'_>) {
        // One that was withdrawn has no connections any more.
        let is_applied = match self.connectors.get(&key) {
            Some(Target::Segment(..) | Target::Released(_)) => {
                let Some(memory) = self.memory_of(key) else { return };
                let shadow = self.shadows.entry(key).or_default();
                shadow.applied = patch.number;
                apply_watched(&memory, shadow, patch.first, patch.groups)
            }
            Some(Target::Member(id)) => self.on_cast(*id, patch),
            Some(Target::Interrupt(_)) | None => return,
        };
        match key.0 {
            Some(peer) if !is_applied => self.break_link(endpoint, peer),
            _ if patch.is_asking => {
                self.send(endpoint, key.0, Message::Applied { token: key.1, number: patch.number });
            }
            _ => {}
        }
    }

    fn on_notice(&mut self, from: Partner, token: u64, reason: u32) {
        if let Some(of) = self.attachments.get_mut(&token).filter(|of| of.partner == from) {
            of.is_lost = true;
            return;
        }
        if self.remotes.get(&token).is_none_or(|remote| remote.partner != from) {
            return;
        }
        match Reason::from_code(reason) {
            Some(Reason::Lost) => self.lose_remote(token),
            Some(reason) => self.note_remote(token, reason),
            None => {}
        }
    }

    /// An interrupt, with bytes or without.
    fn on_trigger(&mut self, endpoint: &Endpoint, key: Key, bytes: Option<Vec<u8>>) {
        // One that is removed has no connections any more.
        let Some(Target::Interrupt(number)) = self.connectors.get(&key) else { return };
        let Some(interrupt) = self.interrupts.get_mut(number) else { return };
        let source = Source::Interrupt(*number, interrupt.life);
        let waiting = interrupt.connectors.entry(key).or_default();
        match bytes {
            Some(bytes) if interrupt.has_bytes && *waiting < MOST_DATA => {
                *waiting += 1;
                interrupt.notices.events.push_back((key, bytes));
            }
            // Interrupts are not counted.
            None if !interrupt.has_bytes => {
                if interrupt.notices.events.is_empty() {
                    interrupt.notices.events.push_back((key, Vec::new()));
                }
            }
            _ => {
                if let Some(peer) = key.0 {
                    self.break_link(endpoint, peer);
                }
                return;
            }
        }
        self.callbacks.ready.push_back(source);
        self.waits.has_changed = true;
    }

    /// The program has taken an event of an interrupt with bytes.
    pub(crate) fn on_taken(&mut self, endpoint: &Endpoint, number: u32, key: Key) {
        let waiting = self.interrupts.get_mut(&number).and_then(|of| of.connectors.get_mut(&key));
        if let Some(waiting) = waiting {
            *waiting = waiting.saturating_sub(1);
            self.send(endpoint, key.0, Message::Taken { token: key.1 });
        }
    }

    /// A trigger has ended: what came meanwhile is one more.
    pub(crate) fn on_trigger_sent(&mut self, endpoint: &Endpoint, token: u64) {
        let Some(of) = self.attachments.get_mut(&token) else { return };
        of.is_in_flight = false;
        if std::mem::take(&mut of.is_due) && !of.is_lost {
            self.send_trigger(endpoint, token);
        }
    }

    pub(crate) fn send_trigger(&mut self, endpoint: &Endpoint, token: u64) {
        let Some(of) = self.attachments.get_mut(&token) else { return };
        if of.is_in_flight {
            of.is_due = true;
            return;
        }
        let partner = of.partner;
        // To this host itself it ends at once.
        of.is_in_flight = partner.is_some();
        self.send(endpoint, partner, Message::Trigger { token });
    }
}
