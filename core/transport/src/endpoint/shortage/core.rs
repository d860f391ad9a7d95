//! The methods of [`Core`] for shortages.

use super::{OTHER, set_bit};
use crate::Core;

impl Core {
    /// The transport refuses a call for lack of something of its own; [`Core::end_shortage`] is to
    /// follow once it has it.
    pub fn begin_shortage(&mut self) {
        self.begin_shortage_of(OTHER);
    }

    /// What the transport lacked at [`Core::begin_shortage`] may be there again.
    pub fn end_shortage(&mut self) {
        self.shortage.end_other(self.endpoint);
    }

    /// Records a shortage. A program that only polls needs no wake-up.
    #[cold]
    pub(in crate::endpoint) fn begin_shortage_of(&mut self, what: u8) {
        if self.handle.may_be_used() || self.ways.as_ref().is_some_and(|ways| ways.may_use_handle()) {
            self.shortage.note(what);
        }
    }

    /// Whether the handle is to be readable because a call that was refused for lack of buffers
    /// can succeed now. Stays so until [`Core::forget_room`]. Within a way it is not: the
    /// transport over the ways says so, at the end of the call.
    #[inline]
    pub fn has_room_again(&mut self) -> bool {
        self.shortage.is_on() && !self.is_within_way() && self.look_for_room()
    }

    /// Whether [`Core::has_room_again`] would say so, without recording that the program was told:
    /// for the end of a call after which the program looks for events before it sleeps.
    #[inline]
    pub fn would_have_room(&mut self) -> bool {
        let Self { shortage, endpoint, slots, .. } = self;
        shortage.is_on() && shortage.would_be_over(endpoint, |lacks| slots.has_free(lacks))
    }

    #[cold]
    fn look_for_room(&mut self) -> bool {
        let Self { shortage, endpoint, slots, .. } = self;
        shortage.is_over(endpoint, |lacks| slots.has_free(lacks))
    }

    /// Whether [`Core::has_room_again`] has said so.
    #[inline(always)]
    #[must_use]
    pub fn tells_room(&self) -> bool {
        self.shortage.is_told()
    }

    /// The program, which the handle has told of room, has found no further event: what it was
    /// refused it tries again now.
    pub fn forget_room(&mut self) {
        self.shortage.forget();
    }

    /// The program holds every receive slot and a peer waits: returning an event must call
    /// `refill`.
    pub fn set_starving(&mut self, starving: bool) {
        let way = self.way();
        self.shortage.set_starving(self.endpoint, way, starving);
    }

    /// [`Core::set_starving`], because no receive slot was free: the program's return of an event
    /// is one store, and calls nobody otherwise. True: the endpoint did not starve before, so that
    /// a return may have come just before, and the slots are to be looked at once more.
    #[cold]
    pub fn starve(&mut self) -> bool {
        if self.is_starving() {
            return false;
        }
        self.set_starving(true);
        // Pairs with the light fence in the return of an event: either the return calls `refill`,
        // or the next look finds its slot.
        self.endpoint.pairing.heavy_here();
        true
    }

    /// Records whether large messages wait for memory that the program has, so that returning an
    /// event must call `refill`. True: they do, and did not before.
    pub(crate) fn set_landings_short(&mut self, is_short: bool) -> bool {
        let way = self.way();
        let has_changed = set_bit(&mut self.shortage.landings, way, is_short);
        if has_changed {
            self.shortage.publish(self.endpoint);
        }
        is_short && has_changed
    }

    /// Whether [`Core::set_starving`] was called, for the current way.
    #[must_use]
    pub fn is_starving(&self) -> bool {
        self.shortage.starving & 1 << self.way() != 0
    }
}
