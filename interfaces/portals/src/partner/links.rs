//! Links to partners: who they are, and what waits to be sent to them.

use super::{Out, Partner};
use crate::operations::{Operation, Phase, Whom};
use crate::state::{Sending, State, name_of};
use crate::types::ProcessId;
use crate::wire;
use cci::{Endpoint, Notify};
use cci_peers::{Change, Name, Peer};
use std::time::Instant;

/// Answers that may wait for a peer.
const MOST_ANSWERS: usize = 65_536;

impl State {
    /// The partner of this name. `None`: there are too many.
    pub(crate) fn whom(&mut self, id: ProcessId) -> Option<Whom> {
        if id == self.own {
            return Some(Whom::Own);
        }
        // Programs go on with the partner that they were with.
        if let Some((last, peer)) = self.last
            && last == id
        {
            return Some(Whom::Peer(peer));
        }
        let peer = self.peers.peer(&name_of(id)).ok()?;
        self.partner(peer)?;
        self.last = Some((id, peer));
        Some(Whom::Peer(peer))
    }

    pub(crate) fn partner(&mut self, peer: Peer) -> Option<&mut Partner> {
        let Name::Number(word) = self.peers.name(peer)? else { return None };
        let id = ProcessId::of_word(*word);
        Some(self.partners.get_or_insert(peer, id))
    }

    #[cold]
    pub(crate) fn break_link(&mut self, endpoint: &Endpoint, whom: Whom) {
        if let Whom::Peer(peer) = whom {
            self.malformed += 1;
            self.peers.hang_up(endpoint, peer);
            self.on_down(endpoint, peer);
        }
    }

    /// What has become of links.
    #[inline]
    pub(crate) fn take_changes(&mut self, endpoint: &Endpoint) {
        if self.peers.has_changes() {
            self.take_all_changes(endpoint);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_all_changes(&mut self, endpoint: &Endpoint) {
        while let Some(change) = self.peers.poll_change() {
            match change {
                Change::Up { peer, connection, .. } => {
                    if let Some(partner) = self.partner(peer) {
                        (partner.connection, partner.identity) = (Some(connection), None);
                        partner.link = partner.link.wrapping_add(1);
                        partner.outbox.push_front(Out::Ident);
                    }
                    self.pump(endpoint, peer);
                }
                Change::Down { peer, .. } => self.on_down(endpoint, peer),
                Change::Failed { peer, .. } => self.on_failed(peer),
                _ => {}
            }
        }
    }

    /// The link to a partner is no more: what was under way on it has failed.
    fn on_down(&mut self, endpoint: &Endpoint, peer: Peer) {
        let Some(partner) = self.partners.get_mut(peer) else { return };
        partner.connection = None;
        let mut outbox = std::mem::take(&mut partner.outbox);
        for number in self.operations.with(Whom::Peer(peer)) {
            let is_queued = |of: &Operation| of.phase == Phase::Queued && of.kind.is_initiator();
            if !self.operations.get(number).is_some_and(is_queued) {
                self.fail(number);
            }
        }
        outbox.retain(|out| matches!(out, Out::Operation(number) if self.operations.get(*number).is_some()));
        let has_more = !outbox.is_empty();
        if let Some(partner) = self.partners.get_mut(peer) {
            // What has failed names it.
            partner.identity = None;
            partner.outbox = outbox;
        }
        if has_more {
            self.peers.open(endpoint, peer, Instant::now());
        }
    }

    /// The partner cannot be reached: nothing for it will be sent.
    fn on_failed(&mut self, peer: Peer) {
        if let Some(partner) = self.partners.get_mut(peer) {
            partner.outbox.clear();
        }
        for number in self.operations.with(Whom::Peer(peer)) {
            self.fail(number);
        }
    }

    /// Has something sent, now or when there is a link and room.
    pub(crate) fn post(&mut self, endpoint: &Endpoint, whom: Whom, out: Out) {
        match whom {
            Whom::Own => self.send_to_self(endpoint, out),
            Whom::Peer(peer) => {
                let Some(partner) = self.partners.get_mut(peer) else { return };
                // What answers is for the link that it came by.
                if partner.connection.is_none() && !matches!(out, Out::Operation(_)) {
                    return;
                }
                if partner.outbox.len() >= MOST_ANSWERS && matches!(out, Out::Answer(_)) {
                    return self.break_link(endpoint, whom);
                }
                partner.outbox.push_back(out);
                if partner.outbox.len() == 1 {
                    self.pump(endpoint, peer);
                }
            }
        }
    }

    /// Sends what waits for a partner, as far as there is room.
    fn pump(&mut self, endpoint: &Endpoint, peer: Peer) {
        let Some(partner) = self.partners.get_mut(peer) else { return };
        let Some(connection) = partner.connection else {
            if !partner.outbox.is_empty() {
                self.peers.open(endpoint, peer, Instant::now());
            }
            return;
        };
        while let Some(out) = self.partners.get_mut(peer).and_then(|partner| partner.outbox.pop_front()) {
            let sending = match out {
                Out::Ident => {
                    let ident = wire::ident(self.uid, self.jid);
                    Sending::of(endpoint.send(connection, &ident, Notify::OnFailure(0)))
                }
                Out::Operation(number) => self.send_operation(endpoint, connection, number),
                Out::Reads(number) => self.begin_reads(endpoint, connection, number),
                Out::Answer(answer) => {
                    self.scratch.clear();
                    answer.emit(&mut self.scratch);
                    Sending::of(endpoint.send(connection, &self.scratch, Notify::OnFailure(0)))
                }
            };
            if matches!(sending, Sending::Gone) {
                continue;
            }
            if let Some(partner) = self.partners.get_mut(peer) {
                partner.outbox.push_front(out);
            }
            return self.blocked.push(peer);
        }
    }

    /// Sends what found no room before.
    pub(crate) fn pump_blocked(&mut self, endpoint: &Endpoint) {
        for peer in std::mem::take(&mut self.blocked) {
            self.pump(endpoint, peer);
        }
    }

    /// User and job of a partner that has introduced itself, and who it is.
    pub(crate) fn identity(&self, whom: Whom) -> Option<(ProcessId, u32, u32)> {
        match whom {
            Whom::Own => Some((self.own, self.uid, self.jid)),
            Whom::Peer(peer) => {
                let partner = self.partners.get(peer)?;
                partner.identity.map(|(uid, jid)| (partner.id, uid, jid))
            }
        }
    }

    /// The number of the link to a partner; `None`: there is none now.
    pub(crate) fn link(&self, whom: Whom) -> Option<u32> {
        match whom {
            Whom::Own => Some(0),
            Whom::Peer(peer) => {
                self.partners.get(peer).filter(|partner| partner.connection.is_some()).map(|partner| partner.link)
            }
        }
    }
}
