//! Sends.

use crate::arrivals::Arrival;
use crate::bits::{DELIVERY_COMPLETE, INJECT, MSG, SEND, TAGGED, TRANSMIT_COMPLETE};
use crate::code::Code;
use crate::links::Sending;
use crate::operations::{Send, What};
use crate::requests::{Outgoing, Slot, Space, Stage};
use crate::segments::Segments;
use crate::state::{NO_ENTRY, OWN, State};
use crate::wire::{EAGER, Front, IS_INLINE, IS_TAGGED, LONGEST, MOST_INLINE};
use cci::__binding::{Source, send_gathered};
use cci::{Connection, Endpoint, Notify};
use cci_matching::Envelope;
use cci_rendezvous::{Body, Header, MOST_KEPT, cost_of_bytes};

/// The contexts of operations of CCI whose end is an operation's here: the upper half says which
/// kind, the lower one which.
pub(crate) const TOLD: u64 = 1 << 32;
pub(crate) const ACCESS: u64 = 2 << 32;
pub(crate) const FLUSH: u64 = 3 << 32;
/// The longest data that are gathered on the stack, bytes.
const SHORT: usize = 64;

pub(crate) const fn what(space: Space) -> u64 {
    match space {
        Space::Message => SEND | MSG,
        Space::Tagged => SEND | TAGGED,
    }
}

const fn of_space(space: Space) -> u8 {
    match space {
        Space::Message => 0,
        Space::Tagged => IS_TAGGED,
    }
}

/// Sends an eager message; false: there is no room, or the link is lost, which reports its end.
fn emit(
    endpoint: &Endpoint,
    connection: Connection,
    front: &Front,
    body: &Outgoing,
    notify: Notify,
    scratch: &mut Vec<u8>,
) -> bool {
    let len = body.len() as usize;
    let from = front.len;
    if len <= SHORT {
        let mut message = [0; LONGEST + SHORT];
        message[..from].copy_from_slice(front.as_bytes());
        let room = &mut message[from..from + len];
        let is_in = match body {
            Outgoing::Copied(bytes, len) => {
                room.copy_from_slice(&bytes[..*len]);
                true
            }
            Outgoing::Memory(segments) => segments.copy_out(0, room),
        };
        debug_assert!(is_in, "its length is its own");
        return endpoint.send(connection, &message[..from + len], notify).is_ok();
    }
    let Outgoing::Memory(segments) = body else { return false };
    if let Some(bytes) = segments.source() {
        let parts: [Source<'_>; 2] = [front.as_bytes().into(), bytes];
        return send_gathered(endpoint, connection, &parts, notify).is_ok();
    }
    // It only grows, so that no bytes are cleared that are written anyway.
    if scratch.len() < from + len {
        scratch.resize(from + len, 0);
    }
    let message = &mut scratch[..from + len];
    message[..from].copy_from_slice(front.as_bytes());
    segments.copy_out(0, &mut message[from..]) && endpoint.send(connection, message, notify).is_ok()
}

impl State {
    pub(crate) fn send(&mut self, endpoint: &Endpoint, send: Send<'_>) -> Result<(), Code> {
        if let Some(code) = self.failed {
            return Err(code);
        }
        let Send { what: of, to, space, tag, data, context, flags } = send;
        let number = self.partner_at(to)?;
        let is_injected = flags & INJECT != 0;
        let (body, flags) = match of {
            What::Bytes(bytes) => (copied(bytes).ok_or(Code::MessageSize)?, flags | NO_ENTRY),
            What::Memory(segments) if !segments.are_right() => return Err(Code::Invalid),
            What::Memory(segments) if is_injected => (copy_of(&segments)?, flags),
            What::Memory(segments) => (Outgoing::Memory(segments), flags),
        };
        self.requests.reserve().ok_or(Code::NoMemory)?;
        if let Some(bound) = &mut self.setup.transmit {
            bound.reserve()?;
        } else if flags & NO_ENTRY == 0 {
            return Err(Code::NoQueue);
        }
        let (flags, tag) = if space == Space::Tagged { (flags | TAGGED, tag) } else { (flags & !TAGGED, 0) };
        let slot = Slot { context, flags, tag, data, stage: Stage::Queued { to: number, body } };
        if number == OWN {
            self.send_own(slot);
            return Ok(());
        }
        if self.send_at_once(endpoint, number, &slot, space) {
            return Ok(());
        }
        let index = self.requests.insert(slot);
        if self.partner(number).is_some_and(|partner| partner.outbox.push_send(index)) {
            self.pump(endpoint, number);
        }
        Ok(())
    }

    /// The usual work in one pass: an eager message to a partner for whom nothing waits, and whose
    /// end nobody tells. False: it is another one, and nothing has been done.
    #[inline]
    fn send_at_once(&mut self, endpoint: &Endpoint, number: u32, slot: &Slot, space: Space) -> bool {
        let Some(Some(partner)) = self.partners.get_mut(number as usize) else { return false };
        let Some(connection) = partner.ready().filter(|_| partner.outbox.is_empty()) else { return false };
        let Stage::Queued { body, .. } = &slot.stage else { return false };
        let len = body.len();
        if slot.flags & (DELIVERY_COMPLETE | TRANSMIT_COMPLETE) != 0 && slot.flags & NO_ENTRY == 0
            || len > partner.most_eager as u64
        {
            return false;
        }
        let cost = cost_of_bytes(len as usize);
        if !partner.credit.covers(cost) {
            return false;
        }
        let credit = partner.window.due();
        let header = Header { credit, ..Header::new(EAGER, of_space(space), len as u32, slot.tag) };
        let front = Front::eager(header, None, slot.data);
        if !emit(endpoint, connection, &front, body, Notify::OnFailure(0), &mut self.scratch) {
            return false;
        }
        partner.window.has_given(credit);
        partner.credit.spend(cost);
        self.complete_slot(slot, what(space));
        true
    }

    /// Sends what has waited, or what is too long for one pass.
    pub(crate) fn send_queued(
        &mut self,
        endpoint: &Endpoint,
        (number, connection): (u32, Connection),
        index: u32,
    ) -> Sending {
        let Self { requests, partners, scratch, .. } = self;
        let Some(Some(partner)) = partners.get_mut(number as usize) else { return Sending::Gone };
        let Some(slot) = requests.get(index) else { return Sending::Gone };
        let Stage::Queued { body, .. } = &slot.stage else { return Sending::Gone };
        let len = body.len();
        let space = Space::of(slot.flags & TAGGED != 0);
        let cost = if len <= partner.most_eager as u64 { cost_of_bytes(len as usize) } else { u32::MAX };
        let is_charged = partner.credit.covers(cost);
        if !is_charged && len > MOST_INLINE as u64 {
            return self.offer(endpoint, (number, connection), index);
        }
        let is_silent = slot.flags & NO_ENTRY != 0;
        let is_wanted = slot.flags & DELIVERY_COMPLETE != 0 && !is_silent;
        let is_told = slot.flags & TRANSMIT_COMPLETE != 0 && !is_silent && !is_wanted;
        let credit = partner.window.due();
        let flags = of_space(space) | if is_charged { 0 } else { IS_INLINE };
        let header = Header { credit, ..Header::new(EAGER, flags, len as u32, slot.tag) };
        let front = Front::eager(header, is_wanted.then_some(index), slot.data);
        let notify = if is_told { Notify::Always(TOLD | u64::from(index)) } else { Notify::OnFailure(0) };
        if !emit(endpoint, connection, &front, body, notify, scratch) {
            return Sending::Blocked;
        }
        partner.window.has_given(credit);
        if is_charged {
            partner.credit.spend(cost);
        }
        if is_wanted {
            slot.stage = Stage::Taken { to: number };
        } else if is_told {
            slot.stage = Stage::Told;
        } else {
            self.complete(index, what(space));
        }
        Sending::Gone
    }

    /// The partner has the message of this number, or could not read it. False: there is none.
    pub(crate) fn on_done(&mut self, from: u32, number: u32, is_refused: bool) -> bool {
        let Some(slot) = self.requests.get(number) else { return false };
        let space = Space::of(slot.flags & TAGGED != 0);
        let offer = match slot.stage {
            Stage::Taken { to } if to == from => None,
            Stage::Offered { to, offer } if to == from => Some(offer),
            _ => return false,
        };
        if is_refused {
            self.end(number, Code::Other);
            return true;
        }
        offer.map(|offer| self.offers.withdraw(offer));
        self.complete(number, what(space));
        true
    }

    /// CCI has done its part of a send.
    pub(crate) fn on_told(&mut self, index: u32, is_well: bool) {
        let Some(slot) = self.requests.get(index) else { return };
        if !matches!(slot.stage, Stage::Told) {
            return;
        }
        let space = Space::of(slot.flags & TAGGED != 0);
        if is_well { self.complete(index, what(space)) } else { self.end(index, Code::ConnectionReset) }
    }

    /// A send of this endpoint to itself.
    fn send_own(&mut self, slot: Slot) {
        let space = Space::of(slot.flags & TAGGED != 0);
        let (tag, data) = (slot.tag, slot.data);
        let envelope = Envelope { source: OWN.into(), bits: tag };
        let Stage::Queued { body, .. } = &slot.stage else { return };
        let length = body.len();
        if let Some(matched) = self.match_posted(space, &envelope, length) {
            let copied = match body {
                Outgoing::Copied(bytes, len) => self.deliver_bytes(matched, OWN, (length, tag, data), &bytes[..*len]),
                Outgoing::Memory(segments) => self.deliver_segments(matched, (length, tag, data), segments),
            };
            if copied {
                self.complete_slot(&slot, what(space));
            } else {
                self.fail_slot(&slot, what(space), Code::Other);
            }
            return;
        }
        let mut kept = None;
        if length <= MOST_KEPT as u64 {
            kept = self.buffers.keep(length as usize, |room| match body {
                Outgoing::Copied(bytes, len) => room.copy_from_slice(&bytes[..*len]),
                Outgoing::Memory(segments) => {
                    segments.copy_out(0, room);
                }
            });
        }
        let Slot { stage, .. } = slot;
        let Stage::Queued { body, .. } = stage else { return };
        let slot = Slot { stage: Stage::Taken { to: OWN }, ..slot };
        let mut number = 0;
        let body = match kept {
            Some(kept) => {
                self.complete_slot(&slot, what(space));
                kept
            }
            None => {
                let Outgoing::Memory(segments) = body else {
                    return self.fail_slot(&slot, what(space), Code::NoMemory);
                };
                number = self.requests.insert(Slot { stage: Stage::Own { segments }, ..slot });
                Body::Own
            }
        };
        let arrival = Arrival { partner: OWN, link: 0, length, cost: 0, number, data, body };
        self.keep(space, envelope, arrival);
    }

    /// A send to this endpoint itself was received, or dropped.
    pub(crate) fn finish_own(&mut self, index: u32) {
        if let Some(slot) = self.requests.get(index) {
            let space = Space::of(slot.flags & TAGGED != 0);
            self.complete(index, what(space));
        }
    }
}

fn copied(bytes: &[u8]) -> Option<Outgoing> {
    let mut copy = [0; MOST_INLINE];
    copy.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(Outgoing::Copied(copy, bytes.len()))
}

fn copy_of(segments: &Segments) -> Result<Outgoing, Code> {
    let len = usize::try_from(segments.len()).unwrap_or(usize::MAX);
    let mut copy = [0; MOST_INLINE];
    let room = copy.get_mut(..len).ok_or(Code::MessageSize)?;
    if segments.copy_out(0, room) { Ok(Outgoing::Copied(copy, len)) } else { Err(Code::Invalid) }
}
