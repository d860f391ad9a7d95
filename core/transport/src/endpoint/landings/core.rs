//! The methods of [`Core`] for large messages.

use super::{Asked, Landing, Placed};
use crate::{Core, Slot, tag_event};
use cci_mem::landed::Message;
use cci_mem::memory::Memory;
use cci_mem::slot::Access;
use cci_proto::EventKind;

impl Core {
    /// Passes the large messages for which there is room to `place`, with their memory; without
    /// memory, one is to be refused. Called while some wait, in each call that makes progress and
    /// in [`Transport::refill`](crate::Transport::refill).
    #[cold]
    pub fn place_landings(&mut self, mut place: impl FnMut(&mut Self, &Asked, Option<Memory>) -> Placed) {
        loop {
            self.share_landings();
            self.place_as_far_as_it_goes(&mut place);
            let is_short = self.landings().is_waiting();
            if !self.set_landings_short(is_short) {
                return;
            }
            // Against the light fence in giving an event back: either it calls, or the next look
            // finds its memory and its slot.
            self.endpoint().pairing.heavy_here();
        }
    }

    fn place_as_far_as_it_goes(&mut self, place: &mut impl FnMut(&mut Self, &Asked, Option<Memory>) -> Placed) {
        while let Some(asked) = self.landings().next() {
            let pages = self.landings().memory(&asked);
            let len = usize::try_from(asked.len + 1).unwrap_or(0);
            let placed = place(self, &asked, pages.as_ref().map(|pages| Memory::of_pages(pages, len)));
            let landings = self.landings();
            match (placed, pages) {
                (Placed::Open(slot, handle), Some(pages)) => {
                    landings.used += asked.len;
                    landings.counts(asked.connection).open += 1;
                    landings.open.push(Landing { asked, slot, handle, pages });
                    landings.trim();
                }
                (Placed::Later, pages) => {
                    let writer = (asked.connection, asked.connection.generation());
                    landings.spare.extend(pages.map(|pages| (writer, pages)));
                    landings.put_back(asked);
                    return;
                }
                _ => {}
            }
        }
    }

    /// Delivers a large message that is written, by this slot. With [`Access::Private`] nobody can
    /// write its memory any more.
    pub fn deliver_landing(&mut self, landing: Landing, slot: &'static Slot, access: Access) {
        let Landing { asked: Asked { connection, len, .. }, pages, .. } = landing;
        let writer = (connection, connection.generation());
        // The limit of lengths has 32 bits, as the event.
        let message = Message { pages, len: u32::try_from(len).unwrap_or(u32::MAX), writer };
        if !self.landings().landed.show(slot, EventKind::Recv as u32, message, access, connection.address()) {
            return self.release(slot);
        }
        tag_event(slot, connection);
        connection.counters.on_received();
        self.counters().on_received(usize::try_from(len).unwrap_or(usize::MAX));
        self.push(slot);
    }
}
