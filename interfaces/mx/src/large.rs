//! Large messages: memory that is offered, and reads of what a partner has offered.

use crate::errors::Code;
use crate::partner::Control;
use crate::requests::{Outcome, Reading, Stage};
use crate::state::{Sending, State, received};
use crate::types::{Buffer, Segments, buffer};
use crate::wire::{self, DONE, HEADER, LARGE, LONGEST, MOST_PARTS, ONE, REFUSED};
use cci::{Connection, Endpoint, Failure, Notify, RegisterError, SendError};
use cci_rendezvous::{Body, Ended, Header, Link, NoRoom, Remote, Unread};

impl<B: Buffer> State<B> {
    /// Offers the memory of a queued send.
    pub(crate) fn offer(
        &mut self,
        endpoint: &Endpoint,
        (number, connection): (u32, Connection),
        index: u32,
    ) -> Sending {
        let Self { requests, offers, partners, scratch, .. } = self;
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
        let link = Link { peer: number, life: partner.link };
        let offered = offers.offer(endpoint, (connection, link), index, |memory| {
            if parts <= MOST_PARTS {
                segments.memory(length, memory);
            } else {
                let mut gathered = vec![0; length];
                segments.copy_out(0, &mut gathered);
                memory.push(buffer(gathered));
            }
        });
        let place = match offered {
            Ok(place) => place,
            Err(RegisterError::NoMemory | RegisterError::Disconnected) => return Sending::Blocked,
            Err(_) => {
                self.end(index, Code::NoResources);
                return Sending::Gone;
            }
        };
        let parts = offers.parts(place).map(|(len, handle)| (len as u32, handle));
        let flags = if parts.len() == 1 { ONE } else { 0 };
        let credit = partner.window.due();
        scratch.clear();
        scratch.extend(Header { credit, ..Header::new(LARGE, flags, length as u32, bits) }.emit());
        scratch.extend(request.bits().to_le_bytes());
        debug_assert_eq!((scratch.len(), HEADER + 8), (LONGEST, LONGEST));
        wire::emit_parts(parts, scratch);
        if let Err(why) = endpoint.send(connection, scratch, Notify::OnFailure(0)) {
            offers.withdraw(place);
            debug_assert!(why != SendError::TooLong);
            return Sending::Blocked;
        }
        partner.window.has_given(credit);
        partner.credit.spend(cost);
        slot.stage = Stage::Offered { peer, session, length: length as u32, offer: place };
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
        let (reading, link) = (Reading { index, session, sender, length }, Link { peer: number, life: link });
        let fill = |memory: &mut _| segments.memory(wanted, memory);
        let (place, before) = self.reads.insert((reading, link), (wanted as u64, remote), fill);
        self.buffers.give_back(Body::Offered(before));
        self.post(endpoint, number, Control::Reads(place));
    }

    /// Begins reads as far as there is room; false: there is none.
    pub(crate) fn begin_reads(
        &mut self,
        endpoint: &Endpoint,
        (number, connection): (u32, Connection),
        place: u32,
    ) -> bool {
        let Some(partner) = self.partner(number) else { return true };
        let link = Link { peer: number, life: partner.link };
        match self.reads.begin(endpoint, (connection, link), (place, u64::from(place) + 1)) {
            Ok(Some(ended)) => self.finish_reads(endpoint, ended),
            Ok(None) => {}
            Err(NoRoom) => return false,
        }
        true
    }

    /// A read has ended.
    pub(crate) fn on_read(&mut self, endpoint: &Endpoint, context: u64, outcome: Result<(), Failure>) {
        if let Some(ended) = self.reads.completed((context - 1) as u32, outcome) {
            self.finish_reads(endpoint, ended);
        }
    }

    /// All reads have ended: the bytes are in place, or will not be.
    pub(crate) fn finish_reads(&mut self, endpoint: &Endpoint, ended: Ended<Reading>) {
        let (Reading { index, session, sender, length }, link) = (ended.request, ended.link);
        let outcome = match ended.result {
            Ok(copied) => received(length, copied as usize, true),
            Err(why) => {
                let code = match why {
                    Unread::Failed(why) => Code::of(why),
                    Unread::Memory(_) => Code::NoResources,
                    _ => Code::Aborted,
                };
                Outcome { code, ..received(length, 0, false) }
            }
        };
        // First: the sender waits for it, and nobody for the end of the registration.
        if self.partner(link.peer).is_some_and(|partner| partner.link == link.life) {
            let flags = if ended.result.is_err() { REFUSED } else { 0 };
            self.post(endpoint, link.peer, Control::Answer(DONE, flags, sender));
        }
        self.finish(index, Outcome { peer: link.peer, session, ..outcome });
        self.reads.let_go(ended);
    }

    /// Copies what this endpoint sends to itself; the outcome of the receive.
    pub(crate) fn copy_own(from: &Segments<B>, to: &Segments<B>) -> Outcome {
        let (length, room) = (from.len(), to.len());
        let copied = length.min(room);
        received(length as u32, copied, from.copy_to(to, copied))
    }
}
