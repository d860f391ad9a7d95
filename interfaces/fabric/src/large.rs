//! Memory that is offered, and reads of what a partner has offered.

use crate::code::Code;
use crate::links::Sending;
use crate::partner::Control;
use crate::requests::{Outgoing, Stage};
use crate::state::State;
use crate::wire::{self, IS_TAGGED, OFFER};
use cci::{Connection, Endpoint, Failure, Notify, RegisterError, RmaError};
use cci_rendezvous::{Ended, Header, Link, NoRoom, Unread};

/// Why an operation of CCI has failed.
pub(crate) const fn code_of(why: Failure) -> Code {
    match why {
        Failure::Disconnected => Code::ConnectionReset,
        Failure::TimedOut => Code::TimedOut,
        Failure::NoMemory => Code::NoMemory,
        _ => Code::Other,
    }
}

impl State {
    /// Offers the memory of a queued send.
    pub(crate) fn offer(
        &mut self,
        endpoint: &Endpoint,
        (number, connection): (u32, Connection),
        index: u32,
    ) -> Sending {
        let Self { requests, offers, partners, scratch, .. } = self;
        let Some(Some(partner)) = partners.get_mut(number as usize) else { return Sending::Gone };
        let Some(slot) = requests.get(index) else { return Sending::Gone };
        let Stage::Queued { body: Outgoing::Memory(segments), .. } = &slot.stage else { return Sending::Gone };
        let link = Link { peer: number, life: partner.link };
        let offered = offers.offer(endpoint, (connection, link), index, |memory| {
            memory.extend(segments.parts().iter().filter(|part| !part.is_empty()).cloned());
        });
        let offer = match offered {
            Ok(offer) => offer,
            // A link that is lost reports its end.
            Err(RegisterError::NoMemory | RegisterError::Disconnected) => return Sending::Blocked,
            Err(_) => {
                self.end(index, Code::Invalid);
                return Sending::Gone;
            }
        };
        let flags = if slot.flags & crate::bits::TAGGED != 0 { IS_TAGGED } else { 0 };
        let credit = partner.window.due();
        let header = Header { credit, ..Header::new(OFFER, flags, 0, slot.tag) };
        scratch.clear();
        wire::emit_offer(header, (segments.len(), index, slot.data), offers.parts(offer), scratch);
        if endpoint.send(connection, scratch, Notify::OnFailure(0)).is_err() {
            offers.withdraw(offer);
            return Sending::Blocked;
        }
        partner.window.has_given(credit);
        slot.stage = Stage::Offered { to: number, offer };
        Sending::Gone
    }

    /// Begins reads as far as there is room.
    pub(crate) fn begin_reads(
        &mut self,
        endpoint: &Endpoint,
        (number, connection): (u32, Connection),
        read: u32,
    ) -> Sending {
        let Some(life) = self.partner(number).map(|partner| partner.link) else { return Sending::Gone };
        let link = Link { peer: number, life };
        match self.reads.begin(endpoint, (connection, link), (read, u64::from(read) + 1)) {
            Ok(ended) => ended.into_iter().for_each(|ended| self.end_read(endpoint, ended)),
            Err(NoRoom) => return Sending::Blocked,
        }
        Sending::Gone
    }

    /// All reads of a message have ended: the bytes are in place, or will not be.
    pub(crate) fn end_read(&mut self, endpoint: &Endpoint, ended: Ended<u32>) {
        let (request, Link { peer, life }) = (ended.request, ended.link);
        let result = ended.result.map_err(|why| match why {
            Unread::Failed(why) => code_of(why),
            Unread::Refused(RmaError::Disconnected) | Unread::Memory(RegisterError::Disconnected) => {
                Code::ConnectionReset
            }
            Unread::Memory(_) => Code::Invalid,
            _ => Code::Other,
        });
        // First: the sender waits for it, and nobody for the end of the registrations.
        if let Some(Stage::Reading { number, .. }) = self.requests.get(request).map(|slot| &slot.stage) {
            let number = *number;
            if result.is_ok() {
                self.tell_done((peer, life), number);
            } else if self.is_current(peer, life) {
                self.post(endpoint, peer, Control::Refuse(number));
            }
        }
        self.reads.let_go(ended);
        self.finish_read(request, result);
    }

    /// Whether a link is the one that is up.
    pub(crate) fn is_current(&mut self, number: u32, link: u32) -> bool {
        self.partner(number).is_some_and(|partner| partner.link == link && partner.connection.is_some())
    }
}
