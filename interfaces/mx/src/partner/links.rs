//! Links to partners: introductions, credits, and what waits to be sent.

use super::{Control, Partner};
use crate::errors::Code;
use crate::requests::Stage;
use crate::state::{Sending, State};
use crate::types::Buffer;
use crate::wire::{self, CONNECT, CONNECTED, CREDIT, DONE, IDENT, LONGEST, MOST_WINDOW};
use cci::{Connection, Endpoint, Failure, Notify, SendError};
use cci_peers::{Change, Lost, Name, Peer, Unreached};
use cci_rendezvous::{Credit, Flood, Header, Link, MOST_KEPT, longest_of_half};
use std::time::Instant;

/// Granules that a link gets when there are no more to give away. MX has them, and refuses links
/// once it has gone far beyond the total, because its offers cost credit too: a partner without any
/// would wait for ever.
const FLOOR: u32 = 64;

impl<B: Buffer> State<B> {
    pub(crate) fn partner(&mut self, number: u32) -> Option<&mut Partner> {
        self.partners.get_mut(number as usize)?.as_mut()
    }

    /// The partner of a name; `None`: there are too many.
    #[inline]
    pub(crate) fn partner_of(&mut self, name: u64) -> Option<u32> {
        // Programs go on with the partner that they were with.
        match self.last {
            Some((last, number)) if last == name => Some(number),
            _ => self.another_partner_of(name),
        }
    }

    #[inline(never)]
    fn another_partner_of(&mut self, name: u64) -> Option<u32> {
        let peer = self.peers.peer(&Name::Number(name)).ok()?;
        let number = self.enter_partner(peer, name);
        self.last = Some((name, number));
        Some(number)
    }

    fn enter_partner(&mut self, peer: Peer, name: u64) -> u32 {
        let index = peer.index();
        if self.partners.len() <= index {
            self.partners.resize_with(index + 1, || None);
        }
        self.partners[index].get_or_insert_with(|| Partner::new(peer, name));
        index as u32
    }

    /// What has become of links.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_changes(&mut self, endpoint: &Endpoint) {
        while let Some(change) = self.peers.poll_change() {
            self.requests.changes += 1;
            match change {
                Change::Up { peer, connection, .. } => {
                    let Some(Name::Number(name)) = self.peers.name(peer) else { continue };
                    let number = self.enter_partner(peer, *name);
                    self.on_up(endpoint, number, connection);
                }
                Change::Down { peer, why } => {
                    let why = match why {
                        Lost::Silent => Failure::TimedOut,
                        _ => Failure::Disconnected,
                    };
                    self.on_down(endpoint, peer.index() as u32, why);
                }
                Change::Failed { peer, why, .. } => {
                    let code = match why {
                        Unreached::Unknown(_) | Unreached::Refused { .. } => Code::EndpointUnknown,
                        _ => Code::EndpointUnreachable,
                    };
                    self.end_waiting(peer.index() as u32, code);
                }
                _ => {}
            }
        }
    }

    fn on_up(&mut self, endpoint: &Endpoint, number: u32, connection: Connection) {
        let Self { partners, windows, .. } = self;
        let Some(partner) = partners.get_mut(number as usize).and_then(Option::as_mut) else { return };
        (partner.connection, partner.link) = (Some(connection), partner.link.wrapping_add(1));
        (partner.is_known, partner.has_introduced) = (false, false);
        windows.close(&mut partner.window);
        if windows.granted() >= 2 * u64::from(windows.total()) {
            return self.break_link(endpoint, number);
        }
        partner.window = windows.open(windows.half().clamp(FLOOR, MOST_WINDOW));
        self.pump(endpoint, number);
    }

    /// Ends the link to a partner that has broken the rules, or for which there is no room.
    pub(crate) fn break_link(&mut self, endpoint: &Endpoint, number: u32) {
        let Some(peer) = self.partner(number).map(|partner| partner.peer) else { return };
        self.counts.broken += 1;
        self.peers.hang_up(endpoint, peer);
        self.on_down(endpoint, number, Failure::Disconnected);
    }

    /// The link to a partner is no more: what was under way on it has failed.
    pub(crate) fn on_down(&mut self, endpoint: &Endpoint, number: u32, why: Failure) {
        let Self { partners, windows, .. } = self;
        let Some(partner) = partners.get_mut(number as usize).and_then(Option::as_mut) else { return };
        (partner.connection, partner.is_known, partner.has_introduced) = (None, false, false);
        let link = partner.link;
        windows.close(&mut partner.window);
        partner.outbox.clear_controls();
        self.drop_offers(number, link);
        let (mut ended, mut asking) = (Vec::new(), Vec::new());
        for (request, slot) in self.requests.all() {
            match slot.stage {
                Stage::Sent { peer, .. } | Stage::Offered { peer, .. } if peer == number => ended.push(request),
                Stage::Connecting { peer, .. } if peer == number => asking.push(request),
                _ => {}
            }
        }
        ended.into_iter().for_each(|request| self.end(request.index(), Code::of(why)));
        // Those that CCI has begun end by themselves; the memory is theirs until then.
        let over = self.reads.end_link(Link { peer: number, life: link }, why);
        over.into_iter().for_each(|ended| self.finish_reads(endpoint, ended));
        if let Some(partner) = self.partner(number) {
            for request in asking {
                partner.outbox.post(Control::Connect(request));
            }
            let (peer, has_more) = (partner.peer, !partner.outbox.is_empty());
            if has_more && !self.is_closed {
                self.peers.open(endpoint, peer, Instant::now());
            }
        }
    }

    /// Nothing that waits for a partner will be sent.
    pub(crate) fn end_waiting(&mut self, number: u32, code: Code) {
        if let Some(partner) = self.partner(number) {
            partner.outbox.clear();
        }
        let waits = |stage: &Stage<B>| match stage {
            Stage::Queued { peer, .. } | Stage::Connecting { peer, .. } => *peer == number,
            _ => false,
        };
        let ended: Vec<_> =
            self.requests.all().filter(|(_, slot)| waits(&slot.stage)).map(|(request, _)| request).collect();
        ended.into_iter().for_each(|request| self.end(request.index(), code));
    }

    /// Takes the introduction of a partner; false: it has introduced itself before.
    pub(crate) fn on_ident(&mut self, endpoint: &Endpoint, number: u32, header: &Header) -> bool {
        let Some(partner) = self.partner(number) else { return false };
        let most = partner.connection.and_then(|connection| connection.max_send_size()).unwrap_or(0) as usize;
        if std::mem::replace(&mut partner.is_known, true) {
            return false;
        }
        let window = header.long as u32;
        (partner.session, partner.credit) = (header.word, Credit::new(window, window));
        partner.most_eager = most.saturating_sub(LONGEST).min(MOST_KEPT).min(longest_of_half(window));
        self.pump(endpoint, number);
        true
    }

    /// A partner has used credit; false: more than it had.
    #[inline]
    pub(crate) fn charge(&mut self, number: u32, cost: u32) -> bool {
        self.partner(number).is_some_and(|partner| partner.window.charge(cost))
    }

    /// A message that was charged holds nothing any more: its credit goes back.
    #[inline]
    pub(crate) fn release(&mut self, endpoint: &Endpoint, number: u32, cost: u32) {
        let Some(partner) = self.partner(number) else { return };
        if partner.window.owe(cost) {
            self.pump(endpoint, number);
        }
    }

    /// A message that was charged becomes unexpected.
    pub(crate) fn hold(&mut self, number: u32, cost: u32) {
        if let Some(partner) = self.partner(number) {
            partner.window.hold(cost);
        }
    }

    /// An unexpected message has been taken.
    pub(crate) fn release_held(&mut self, endpoint: &Endpoint, (number, link): (u32, u32), cost: u32) {
        match self.partner(number) {
            Some(partner) if partner.link == link && partner.connection.is_some() => {
                if partner.window.let_go(cost) {
                    self.pump(endpoint, number);
                }
            }
            // Its link is no more.
            _ => self.windows.release(cost),
        }
    }

    /// Takes credit back; false: more than this side has used.
    #[inline]
    pub(crate) fn on_credit(&mut self, endpoint: &Endpoint, number: u32, credit: u16) -> bool {
        if credit == 0 {
            return true;
        }
        let Some(partner) = self.partner(number) else { return false };
        let is_right = partner.credit.give(credit);
        if partner.outbox.has_sends() {
            self.pump(endpoint, number);
        }
        is_right
    }

    /// Has something sent that needs no credit.
    pub(crate) fn post(&mut self, endpoint: &Endpoint, number: u32, control: Control) {
        let Some(partner) = self.partner(number) else { return };
        // What answers is for the link that it came by.
        if partner.connection.is_none() && !matches!(control, Control::Connect(_)) {
            return;
        }
        // A partner connects as often as it likes; DONE is for messages that it had credit for.
        let posted = match control {
            Control::Answer(CONNECTED, ..) => partner.outbox.answer(control),
            _ => Ok(partner.outbox.post(control)),
        };
        match posted {
            Ok(true) => self.pump(endpoint, number),
            Ok(false) => {}
            Err(Flood) => self.break_link(endpoint, number),
        }
    }

    pub(crate) fn block(&mut self, number: u32) {
        if let Some(partner) = self.partner(number)
            && partner.outbox.block()
        {
            self.blocked.push(number);
        }
    }

    /// Sends what waits for a partner, as far as there is room and credit.
    #[inline(never)]
    pub(crate) fn pump(&mut self, endpoint: &Endpoint, number: u32) {
        let own = self.session;
        let Some(partner) = self.partner(number) else { return };
        let Some(connection) = partner.connection else {
            let peer = partner.peer;
            if !partner.outbox.is_empty() {
                self.peers.open(endpoint, peer, Instant::now());
            }
            return;
        };
        if !partner.has_introduced {
            let ident = wire::ident(own, partner.window.size());
            debug_assert_eq!(ident.kind, IDENT);
            match endpoint.send(connection, &ident.emit(), Notify::OnFailure(0)) {
                Ok(()) => partner.has_introduced = true,
                // A link that is lost reports its end.
                Err(_) => return self.block(number),
            }
        }
        if !partner.is_known {
            return;
        }
        if !self.pump_controls(endpoint, number, connection) {
            return self.block(number);
        }
        while let Some(request) = self.partner(number).and_then(|partner| partner.outbox.send()) {
            match self.send_queued(endpoint, (number, connection), request) {
                Sending::Gone => {}
                Sending::Starved => return,
                Sending::Blocked => return self.block(number),
            }
            if let Some(partner) = self.partner(number) {
                partner.outbox.pop_send(request);
            }
        }
    }

    /// False: there is no room.
    fn pump_controls(&mut self, endpoint: &Endpoint, number: u32, connection: Connection) -> bool {
        loop {
            let Some(partner) = self.partner(number) else { return true };
            let Some(control) = partner.outbox.control() else {
                if !partner.window.owes_much() {
                    return true;
                }
                if !self.send_header(endpoint, (number, connection), Header::new(CREDIT, 0, 0, 0)) {
                    return false;
                }
                continue;
            };
            let is_sent = match control {
                Control::Answer(kind, flags, long) => {
                    debug_assert!(kind == DONE || kind == CONNECTED);
                    let header = Header::new(kind, flags, 0, long);
                    self.send_header(endpoint, (number, connection), header)
                }
                Control::Connect(request) => match self.requests.get(request).map(|slot| &slot.stage) {
                    Some(Stage::Connecting { key, .. }) => {
                        let header = Header::new(CONNECT, 0, *key, request.bits());
                        self.send_header(endpoint, (number, connection), header)
                    }
                    // Its time is over.
                    _ => true,
                },
                Control::Reads(reads) => self.begin_reads(endpoint, (number, connection), reads),
            };
            if !is_sent {
                return false;
            }
            if let Some(partner) = self.partner(number) {
                partner.outbox.pop_control();
            }
        }
    }

    /// False: there is no room.
    fn send_header(&mut self, endpoint: &Endpoint, (number, connection): (u32, Connection), header: Header) -> bool {
        let Some(partner) = self.partner(number) else { return true };
        let credit = partner.window.due();
        match endpoint.send(connection, &Header { credit, ..header }.emit(), Notify::OnFailure(0)) {
            Ok(()) => {
                partner.window.has_given(credit);
                true
            }
            Err(SendError::NoBuffers) => false,
            // A link that is lost reports its end.
            Err(_) => false,
        }
    }

    /// Sends what found no room before.
    pub(crate) fn pump_blocked(&mut self, endpoint: &Endpoint) {
        for number in std::mem::take(&mut self.blocked) {
            if let Some(partner) = self.partner(number) {
                partner.outbox.unblock();
            }
            self.pump(endpoint, number);
        }
    }
}
