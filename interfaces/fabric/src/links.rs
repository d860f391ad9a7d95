//! Links to partners: introductions, credits, and what waits to be sent.

use crate::code::Code;
use crate::partner::{Control, Partner};
use crate::record::Record;
use crate::requests::{Multi, Stage};
use crate::state::{OWN, State};
use crate::wire::{self, ASK, CREDIT, DONE, GIVEN, HEADER, IS_REFUSED, LONGEST, MOST_DONE, MOST_WINDOW};
use cci::{Connection, Endpoint, Failure, Notify};
use cci_peers::{Change, Lost, Name, Peer, Unreached};
use cci_rendezvous::{Credit, Flood, Header, Link, MOST_KEPT, longest_of_half};
use std::time::Instant;

/// What has become of a message for a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    Gone,
    /// There is no room now.
    Blocked,
}

impl State {
    #[inline]
    pub(crate) fn partner(&mut self, number: u32) -> Option<&mut Partner> {
        self.partners.get_mut(number as usize)?.as_mut()
    }

    /// The partner at a number of the address vector, or [`OWN`].
    ///
    /// # Errors
    ///
    /// [`Code::Invalid`]: there is none; [`Code::NoMemory`]: there are too many.
    #[inline]
    pub(crate) fn partner_at(&mut self, address: u64) -> Result<u32, Code> {
        let epoch = self.setup.vector.epoch();
        if epoch == self.epoch
            && let Some(Some(number)) = self.by_address.get(address as usize)
            && address <= usize::MAX as u64
        {
            return Ok(*number);
        }
        self.find_partner(address, epoch)
    }

    #[inline(never)]
    fn find_partner(&mut self, address: u64, epoch: u64) -> Result<u32, Code> {
        if epoch != self.epoch {
            self.by_address.clear();
            self.epoch = epoch;
        }
        let record = self.setup.vector.record(address).ok_or(Code::Invalid)?;
        let number = if record.name() == self.own.name() {
            OWN
        } else {
            let peer = self.peers.peer(&record.name()).map_err(|_| Code::NoMemory)?;
            self.enter_partner(peer, record)
        };
        let at = address as usize;
        if self.by_address.len() <= at {
            self.by_address.try_reserve(at + 1 - self.by_address.len()).map_err(|_| Code::NoMemory)?;
            self.by_address.resize(at + 1, None);
        }
        self.by_address[at] = Some(number);
        Ok(number)
    }

    fn enter_partner(&mut self, peer: Peer, record: Record) -> u32 {
        let index = peer.index();
        if self.partners.len() <= index {
            self.partners.resize_with(index + 1, || None);
        }
        self.partners[index].get_or_insert_with(|| Partner::new(peer, record));
        index as u32
    }

    /// What has become of links.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_changes(&mut self, endpoint: &Endpoint) {
        while let Some(change) = self.peers.poll_change() {
            match change {
                Change::Up { peer, connection, .. } => {
                    let record = self.peers.name(peer).and_then(|name: &Name| Record::of_name(name));
                    let Some(record) = record else {
                        // It calls itself what leads nowhere.
                        self.peers.hang_up(endpoint, peer);
                        continue;
                    };
                    let number = self.enter_partner(peer, record);
                    self.on_up(endpoint, number, connection);
                }
                Change::Down { peer, why } => {
                    let code = if why == Lost::Silent { Code::TimedOut } else { Code::ConnectionReset };
                    self.on_down(endpoint, peer.index() as u32, code);
                }
                Change::Failed { peer, why, .. } => {
                    let code = match why {
                        Unreached::Closed | Unreached::Went { .. } => Code::ConnectionReset,
                        _ => Code::HostUnreachable,
                    };
                    self.end_waiting(peer.index() as u32, code);
                }
                _ => {}
            }
        }
    }

    fn on_up(&mut self, endpoint: &Endpoint, number: u32, connection: Connection) {
        let window = self.windows.half().min(MOST_WINDOW);
        let window = self.windows.open(window);
        let Some(partner) = self.partner(number) else { return };
        (partner.connection, partner.link) = (Some(connection), partner.link.wrapping_add(1));
        (partner.is_known, partner.has_introduced) = (false, false);
        partner.window = window;
        self.pump(endpoint, number);
    }

    /// Ends the link to a partner that has broken the rules.
    pub(crate) fn break_link(&mut self, endpoint: &Endpoint, number: u32) {
        let Some(peer) = self.partner(number).map(|partner| partner.peer) else { return };
        self.peers.hang_up(endpoint, peer);
        self.on_down(endpoint, number, Code::ConnectionReset);
    }

    /// The link to a partner is no more: what was under way on it has failed, and what is for it
    /// alone.
    pub(crate) fn on_down(&mut self, endpoint: &Endpoint, number: u32, code: Code) {
        let Self { partners, windows, .. } = self;
        let Some(Some(partner)) = partners.get_mut(number as usize) else { return };
        (partner.connection, partner.is_known, partner.has_introduced) = (None, false, false);
        windows.close(&mut partner.window);
        partner.outbox.clear_controls();
        partner.done.clear();
        partner.told.clear();
        partner.keys.clear();
        let link = partner.link;
        self.drop_offers(number, link);
        // What has not begun goes by the next link.
        let later: Vec<Control> = self
            .requests
            .all()
            .filter_map(|(_, slot)| match &slot.stage {
                Stage::Remote(access) if access.to == number && !access.has_begun() => Some(access.again()),
                _ => None,
            })
            .collect();
        for control in &later {
            // What was registered for the link is gone with it.
            if let Control::Access(index, _) = control
                && let Some(Stage::Remote(access)) = self.requests.get(*index).map(|slot| &mut slot.stage)
            {
                access.registered.clear();
            }
        }
        let is_its = |stage: &Stage| match stage {
            // CCI tells the end of the others, whose numbers are theirs until then.
            Stage::Taken { to } | Stage::Offered { to, .. } => *to == number,
            Stage::Remote(access) => access.to == number && access.has_begun(),
            Stage::Posted { source, .. } | Stage::Multi(Multi { source, .. }) => *source == Some(number),
            _ => false,
        };
        let ended: Vec<u32> =
            self.requests.all().filter(|(_, slot)| is_its(&slot.stage)).map(|(index, _)| index).collect();
        for index in ended {
            match self.requests.get(index).map(|slot| &slot.stage) {
                Some(Stage::Remote(_)) => self.break_access(endpoint, index, code),
                _ => self.end(index, code),
            }
        }
        let why = if code == Code::TimedOut { Failure::TimedOut } else { Failure::Disconnected };
        for ended in self.reads.end_link(Link { peer: number, life: link }, why) {
            self.end_read(endpoint, ended);
        }
        if let Some(partner) = self.partner(number) {
            for control in later {
                partner.outbox.post(control);
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
            partner.keys.clear();
        }
        let waits = |stage: &Stage| match stage {
            Stage::Queued { to, .. } => *to == number,
            Stage::Remote(access) => access.to == number && !access.has_begun(),
            // It would come from nobody else.
            Stage::Posted { source, .. } | Stage::Multi(Multi { source, .. }) => *source == Some(number),
            _ => false,
        };
        let ended: Vec<u32> =
            self.requests.all().filter(|(_, slot)| waits(&slot.stage)).map(|(index, _)| index).collect();
        ended.into_iter().for_each(|index| self.end(index, code));
    }

    /// Takes the introduction of a partner; false: it has introduced itself before.
    pub(crate) fn on_ident(&mut self, endpoint: &Endpoint, number: u32, window: u32) -> bool {
        let Some(partner) = self.partner(number) else { return false };
        let most = partner.connection.and_then(|connection| connection.max_send_size()).unwrap_or(0) as usize;
        if std::mem::replace(&mut partner.is_known, true) {
            return false;
        }
        partner.credit = Credit::new(window, window);
        partner.most_eager = most.saturating_sub(LONGEST).min(MOST_KEPT).min(longest_of_half(window));
        self.pump(endpoint, number);
        true
    }

    /// A message that was charged holds nothing any more: its credit goes back.
    #[inline]
    pub(crate) fn owe(&mut self, endpoint: &Endpoint, number: u32, cost: u32) {
        if cost > 0
            && let Some(partner) = self.partner(number)
            && partner.window.owe(cost)
        {
            self.pump(endpoint, number);
        }
    }

    /// An unexpected message that was charged has been taken.
    pub(crate) fn let_go(&mut self, endpoint: &Endpoint, (number, link): (u32, u32), cost: u32) {
        if cost == 0 {
            return;
        }
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

    /// Tells a partner that a message of it is there; soon, with others.
    #[inline]
    pub(crate) fn tell_done(&mut self, (from, link): (u32, u32), number: u32) {
        if let Some(Some(partner)) = self.partners.get_mut(from as usize)
            && partner.link == link
            && partner.connection.is_some()
        {
            partner.done.push(number);
            if partner.done.len() == 1 {
                self.owing.push(from);
            }
        }
    }

    /// Has something sent that needs no credit.
    pub(crate) fn post(&mut self, endpoint: &Endpoint, number: u32, control: Control) {
        let Some(partner) = self.partner(number) else { return };
        let is_answer = matches!(control, Control::Refuse(_) | Control::Give(_));
        // What answers is for the link that it came by.
        if partner.connection.is_none() && is_answer {
            return;
        }
        let posted = if is_answer { partner.outbox.answer(control) } else { Ok(partner.outbox.post(control)) };
        match posted {
            Ok(true) => self.pump(endpoint, number),
            Ok(false) => {}
            Err(Flood) => self.break_link(endpoint, number),
        }
    }

    /// Opens the link to a partner whose end is of interest.
    pub(crate) fn watch(&mut self, endpoint: &Endpoint, number: u32) {
        if let Some(partner) = self.partner(number)
            && partner.connection.is_none()
        {
            let peer = partner.peer;
            self.peers.open(endpoint, peer, Instant::now());
        }
    }

    fn block(&mut self, number: u32) {
        if let Some(partner) = self.partner(number)
            && partner.outbox.block()
        {
            self.blocked.push(number);
        }
    }

    /// Sends what waits for a partner, as far as there is room.
    #[inline(never)]
    pub(crate) fn pump(&mut self, endpoint: &Endpoint, number: u32) {
        let Some(partner) = self.partner(number) else { return };
        let Some(connection) = partner.connection else {
            let (peer, is_idle) = (partner.peer, partner.outbox.is_empty());
            if !is_idle && !self.is_closed {
                self.peers.open(endpoint, peer, Instant::now());
            }
            return;
        };
        if !partner.has_introduced {
            let ident = wire::ident(partner.window.size());
            // A link that is lost reports its end.
            if endpoint.send(connection, &ident.emit(), Notify::OnFailure(0)).is_err() {
                return self.block(number);
            }
            partner.has_introduced = true;
        }
        if !partner.is_known {
            return;
        }
        if self.pump_done(endpoint, (number, connection)) == Sending::Blocked
            || self.pump_controls(endpoint, (number, connection)) == Sending::Blocked
            || self.pump_sends(endpoint, (number, connection)) == Sending::Blocked
        {
            self.block(number);
        }
    }

    fn pump_done(&mut self, endpoint: &Endpoint, (number, connection): (u32, Connection)) -> Sending {
        let Self { partners, scratch, .. } = self;
        let Some(Some(partner)) = partners.get_mut(number as usize) else { return Sending::Gone };
        while !partner.done.is_empty() || partner.window.owes_much() {
            let count = partner.done.len().min(MOST_DONE);
            let credit = partner.window.due();
            scratch.clear();
            if count == 0 {
                scratch.extend(Header { credit, ..Header::new(CREDIT, 0, 0, 0) }.emit());
            } else {
                let header = Header { credit, ..Header::new(DONE, 0, 0, 0) };
                wire::emit_done(header, &partner.done[..count], scratch);
            }
            if endpoint.send(connection, scratch, Notify::OnFailure(0)).is_err() {
                return Sending::Blocked;
            }
            partner.window.has_given(credit);
            partner.done.drain(..count);
        }
        Sending::Gone
    }

    fn pump_controls(&mut self, endpoint: &Endpoint, (number, connection): (u32, Connection)) -> Sending {
        while let Some(control) = self.partner(number).and_then(|partner| partner.outbox.control()) {
            let sent = match control {
                Control::Refuse(of) => self.send_scratch(endpoint, connection, |scratch| {
                    wire::emit_done(Header::new(DONE, IS_REFUSED, 0, 0), &[of], scratch);
                }),
                Control::Ask(key) => self.send_scratch(endpoint, connection, |scratch| {
                    scratch.extend(Header::new(ASK, 0, 0, key).emit());
                }),
                Control::Give(key) => {
                    let given = self.give(endpoint, key);
                    self.send_scratch(endpoint, connection, |scratch| {
                        wire::emit_given(Header::new(GIVEN, 0, 0, key), given.as_ref(), scratch);
                    })
                }
                Control::Reads(read) => self.begin_reads(endpoint, (number, connection), read),
                Control::Access(index, life) => self.begin_access(endpoint, connection, (index, life)),
            };
            let Some(partner) = self.partner(number).filter(|partner| partner.connection == Some(connection)) else {
                return Sending::Gone;
            };
            if sent == Sending::Blocked {
                return Sending::Blocked;
            }
            partner.outbox.pop_control();
        }
        Sending::Gone
    }

    fn send_scratch(
        &mut self,
        endpoint: &Endpoint,
        connection: Connection,
        emit: impl FnOnce(&mut Vec<u8>),
    ) -> Sending {
        self.scratch.clear();
        emit(&mut self.scratch);
        debug_assert!(self.scratch.len() >= HEADER);
        match endpoint.send(connection, &self.scratch, Notify::OnFailure(0)) {
            Ok(()) => Sending::Gone,
            // A link that is lost reports its end.
            Err(_) => Sending::Blocked,
        }
    }

    fn pump_sends(&mut self, endpoint: &Endpoint, (number, connection): (u32, Connection)) -> Sending {
        while let Some(index) = self.partner(number).and_then(|partner| partner.outbox.send()) {
            if self.send_queued(endpoint, (number, connection), index) == Sending::Blocked {
                return Sending::Blocked;
            }
            if let Some(partner) = self.partner(number) {
                partner.outbox.pop_send(index);
            }
        }
        Sending::Gone
    }
}
