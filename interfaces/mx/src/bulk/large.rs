//! Large messages: memory that is offered, and reads of what a partner has offered.

use super::Bulk;
use crate::errors::Code;
use crate::partner::Control;
use crate::requests::{Outcome, Stage};
use crate::state::{Sending, State, received};
use crate::types::{Buffer, Segments};
use crate::wire::{self, DONE, HEADER, Header, LARGE, LONGEST, MOST_PARTS, ONE, REFUSED};
use cci::{
    Connection, Endpoint, Failure, Memory, Notify, RegisterError, Registration, Rights, Rma, RmaError, SendError,
};
use cci_rendezvous::{Body, Remote};
/// Registers memory for a link. Nothing is registered where it fails.
fn register(
    endpoint: &Endpoint,
    connection: Connection,
    (memory, registered): (impl Iterator<Item = Memory>, &mut Vec<Registration<Memory>>),
    rights: Rights,
) -> Result<(), RegisterError> {
    for memory in memory {
        match endpoint.register_for(connection, memory, rights) {
            Ok(registration) => registered.push(registration),
            Err(why) => {
                registered.clear();
                return Err(why);
            }
        }
    }
    Ok(())
}

/// The part in which the byte at `offset` of the whole is, the offset there, and the bytes left.
fn locate(lengths: impl Iterator<Item = u64>, mut offset: u64) -> Option<(usize, u64, u64)> {
    for (index, len) in lengths.enumerate() {
        if offset < len {
            return Some((index, offset, len - offset));
        }
        offset -= len;
    }
    None
}

/// Why a read has failed.
fn code_of(why: Failure) -> Code {
    match why {
        Failure::Disconnected => Code::EndpointClosed,
        Failure::TimedOut => Code::EndpointUnreachable,
        _ => Code::Aborted,
    }
}

impl<B: Buffer> State<B> {
    /// Offers the memory of a queued send.
    pub(crate) fn offer(
        &mut self,
        endpoint: &Endpoint,
        (number, connection): (u32, Connection),
        index: u32,
    ) -> Sending {
        let Self { requests, bulks, partners, scratch, .. } = self;
        let Some(partner) = partners.get_mut(number as usize).and_then(Option::as_mut) else { return Sending::Gone };
        let request = requests.name(index);
        let Some(slot) = requests.at(index) else { return Sending::Gone };
        let Stage::Queued { segments, peer, session, .. } = &slot.stage else { return Sending::Gone };
        let (length, bits, peer, session) = (segments.len(), slot.bits, *peer, *session);
        let parts = segments.parts().iter().filter(|part| !part.is_empty()).count();
        let cost = wire::cost_of_parts(parts.min(MOST_PARTS));
        if !partner.credit.covers(cost) {
            return Sending::Starved;
        }
        let (place, bulk) = bulks.insert();
        (bulk.request, bulk.peer, bulk.link) = (index, number, partner.link);
        if parts <= MOST_PARTS {
            segments.memory(length, &mut bulk.memory);
        } else {
            let mut gathered = vec![0; length];
            segments.copy_out(0, &mut gathered);
            bulk.memory.push(crate::types::buffer(gathered));
        }
        let Bulk { memory, registered, .. } = bulk;
        if let Err(why) = register(endpoint, connection, (memory.drain(..), registered), Rights::READ) {
            bulks.free(place);
            return match why {
                RegisterError::NoMemory | RegisterError::Disconnected => Sending::Blocked,
                _ => {
                    self.end(index, Code::NoResources);
                    Sending::Gone
                }
            };
        }
        let parts = bulk.registered.iter().map(|part| (part.len() as u32, part.handle()));
        let flags = if parts.len() == 1 { ONE } else { 0 };
        let credit = partner.window.due();
        scratch.clear();
        scratch.extend(Header { credit, flags, ..Header::new(LARGE, length as u32, bits) }.emit());
        scratch.extend(request.bits().to_le_bytes());
        debug_assert_eq!((scratch.len(), HEADER + 8), (LONGEST, LONGEST));
        wire::emit_parts(parts, scratch);
        if let Err(why) = endpoint.send(connection, scratch, Notify::OnFailure(0)) {
            bulks.free(place);
            debug_assert!(why != SendError::TooLong);
            return Sending::Blocked;
        }
        partner.window.has_given(credit);
        partner.credit.spend(cost);
        slot.stage = Stage::Offered { peer, session, length: length as u32, bulk: place };
        self.counts.large += 1;
        Sending::Gone
    }

    /// Reads what a partner has offered into the segments of the receive that it has matched.
    pub(crate) fn read(
        &mut self,
        endpoint: &Endpoint,
        index: u32,
        segments: Segments<B>,
        (number, link): (u32, u32),
        (bits, length, sender): (u64, u32, Option<u64>),
        remote: Vec<Remote>,
    ) {
        let session = self.partner(number).map_or(0, |partner| partner.session);
        let sender = sender.unwrap_or_default();
        let Some(slot) = self.requests.at(index) else { return };
        slot.bits = bits;
        let wanted = segments.len().min(length as usize);
        if wanted == 0 {
            let outcome = Outcome { peer: number, session, ..received(length, 0, true) };
            self.requests.finish(index, outcome);
            self.buffers.give_back(Body::Offered(remote));
            return self.post(endpoint, number, Control::Answer(DONE, 0, sender));
        }
        let (place, bulk) = self.bulks.insert();
        segments.memory(wanted, &mut bulk.memory);
        let before = std::mem::replace(&mut bulk.remote, remote);
        (bulk.request, bulk.is_reading, bulk.peer, bulk.link) = (index, true, number, link);
        (bulk.session, bulk.sender, bulk.length, bulk.wanted) = (session, sender, length, wanted as u64);
        (bulk.begun, bulk.open, bulk.failed) = (0, 0, None);
        slot.stage = Stage::Reading { bulk: place };
        self.buffers.give_back(Body::Offered(before));
        self.post(endpoint, number, Control::Reads(place));
    }

    /// Begins reads as far as there is room; false: there is none.
    pub(crate) fn begin_reads(&mut self, endpoint: &Endpoint, connection: Connection, place: u32) -> bool {
        let Some(bulk) = self.bulks.get_mut(place).filter(|bulk| bulk.is_reading) else { return true };
        if bulk.registered.is_empty() && bulk.failed.is_none() {
            let Bulk { memory, registered, .. } = bulk;
            // It is tried again where there is no room.
            match register(endpoint, connection, (memory.iter().cloned(), registered), Rights::NONE) {
                Ok(()) => memory.clear(),
                Err(RegisterError::NoMemory | RegisterError::Disconnected) => return false,
                Err(_) => bulk.failed = Some(Code::NoResources),
            }
        }
        while bulk.begun < bulk.wanted && bulk.failed.is_none() {
            let local = locate(bulk.registered.iter().map(Registration::len), bulk.begun);
            let remote = locate(bulk.remote.iter().map(|part| part.len), bulk.begun);
            let (Some((own, own_offset, own_left)), Some((other, other_offset, other_left))) = (local, remote) else {
                bulk.failed = Some(Code::Aborted);
                break;
            };
            let len = own_left.min(other_left).min(bulk.wanted - bulk.begun);
            let rma = Rma::new(bulk.registered[own].handle(), &bulk.remote[other].handle, len);
            let rma = rma.local_offset(own_offset).remote_offset(other_offset);
            match endpoint.read(connection, &rma, Notify::Always(u64::from(place) + 1)) {
                Ok(()) => {
                    bulk.begun += len;
                    bulk.open += 1;
                }
                // What has begun goes on meanwhile.
                Err(RmaError::NoBuffers) => return false,
                Err(_) => bulk.failed = Some(Code::Aborted),
            }
        }
        if bulk.open == 0 {
            self.finish_reads(endpoint, place);
        }
        true
    }

    /// A read has ended.
    pub(crate) fn on_read(&mut self, endpoint: &Endpoint, context: u64, outcome: Result<(), Failure>) {
        let place = (context - 1) as u32;
        let Some(bulk) = self.bulks.get_mut(place).filter(|bulk| bulk.is_reading && bulk.open > 0) else { return };
        bulk.open -= 1;
        if let Err(why) = outcome {
            bulk.failed.get_or_insert(code_of(why));
        }
        if bulk.open == 0 && (bulk.failed.is_some() || bulk.begun == bulk.wanted) {
            self.finish_reads(endpoint, place);
        }
    }

    /// All reads have ended: the bytes are in place, or will not be.
    fn finish_reads(&mut self, endpoint: &Endpoint, place: u32) {
        let Some(bulk) = self.bulks.get_mut(place).filter(|bulk| bulk.is_reading) else { return };
        // Should the link break below, it is finished once all the same.
        bulk.is_reading = false;
        let Bulk { request, peer, link, session, sender, length, wanted, failed, .. } = *bulk;
        let outcome = match failed {
            Some(code) => Outcome { code, peer, session, length, copied: 0 },
            None => Outcome { peer, session, ..received(length, wanted as usize, true) },
        };
        // First: the sender waits for it, and nobody for the end of the registration.
        if self.partner(peer).is_some_and(|partner| partner.link == link) {
            let flags = if failed.is_some() { REFUSED } else { 0 };
            self.post(endpoint, peer, Control::Answer(DONE, flags, sender));
        }
        // Lets go of the place too.
        self.finish(request, outcome);
    }

    /// The link of reads is no more. Those that CCI has begun end by themselves; the memory is
    /// theirs until then.
    pub(crate) fn break_reads(&mut self, endpoint: &Endpoint, number: u32, code: Code) {
        let mut over = Vec::new();
        for (place, bulk) in (0..).zip(&mut self.bulks.all) {
            if bulk.is_reading && bulk.peer == number {
                bulk.failed.get_or_insert(code);
                over.extend((bulk.open == 0).then_some(place));
            }
        }
        over.into_iter().for_each(|place| self.finish_reads(endpoint, place));
    }

    /// Copies what this endpoint sends to itself; the outcome of the receive.
    pub(crate) fn copy_own(from: &Segments<B>, to: &Segments<B>) -> Outcome {
        let (length, room) = (from.len(), to.len());
        let copied = length.min(room);
        received(length as u32, copied, from.copy_to(to, copied))
    }
}
