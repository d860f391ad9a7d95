//! The shortage that made a call fail for lack of buffers, and its end.
//!
//! A program that is refused takes its events and sleeps on its handle. A silent operation has no
//! event, and neither has a buffer that another thread returns. So the handle becomes readable when
//! a send can succeed again.

use super::Core;
use crate::Endpoint;
use cci_mem::sync::Ordering;

/// A send slot.
pub(super) const SEND: u8 = 1;
/// An RMA slot.
pub(super) const RMA: u8 = 2;
/// Something of the transport's own.
pub(super) const OTHER: u8 = 4;

/// The shortage, and whether its end was reported.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    /// [`SEND`], [`RMA`] and [`OTHER`], as refused since the last report.
    lacks: u8,
    /// There is room again, and the handle is readable.
    is_told: bool,
    /// The return of an event must call the endpoint.
    listens: bool,
    /// Peers wait for a receive slot, so that the return of an event must call the endpoint: a bit
    /// for each way.
    starving: u8,
    /// Large messages wait for memory that the program has, likewise.
    landings: u8,
}

impl Shortage {
    /// Records a refused call.
    #[cold]
    pub(super) fn note(&mut self, what: u8) {
        self.lacks |= what;
        self.is_told = false;
    }

    /// Whether there is a shortage, whose end [`Shortage::is_over`] checks.
    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        self.lacks != 0
    }

    /// Whether the handle must be readable because a refused call can succeed now. `has_room`:
    /// whether any of these classes has room.
    #[cold]
    pub(super) fn is_over(&mut self, endpoint: &Endpoint, mut has_room: impl FnMut(u8) -> bool) -> bool {
        if self.is_told {
            return true;
        }
        let found = self.would_be_over(endpoint, &mut has_room);
        if found {
            (self.is_told, self.listens) = (true, false);
            self.publish(endpoint);
        }
        found
    }

    /// As [`Shortage::is_over`], without recording it. If not, the return of an event calls.
    #[cold]
    fn would_be_over(&mut self, endpoint: &Endpoint, mut has_room: impl FnMut(u8) -> bool) -> bool {
        let mut found = self.is_told || has_room(self.lacks);
        if !found && !self.listens && self.lacks != OTHER {
            self.listens = true;
            self.publish(endpoint);
            // Pairs with the light fence in returning an event: either the return calls, or this
            // check finds its slot.
            endpoint.pairing.heavy_here();
            found = has_room(self.lacks);
        }
        found
    }

    /// Ends the shortage of the transport's own resource.
    pub(super) fn end_other(&mut self, endpoint: &Endpoint) {
        if self.lacks & OTHER != 0 {
            (self.is_told, self.listens) = (true, false);
            self.publish(endpoint);
        }
    }

    /// Whether the handle is readable because there is room.
    #[inline(always)]
    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Forgets the shortage, because the program was woken and has taken all its events.
    #[cold]
    pub(super) fn forget(&mut self) {
        (self.lacks, self.is_told) = (0, false);
    }

    pub(super) fn set_starving(&mut self, endpoint: &Endpoint, way: u8, starving: bool) {
        if set_bit(&mut self.starving, way, starving) {
            self.publish(endpoint);
        }
    }

    fn publish(&self, endpoint: &Endpoint) {
        let is_any = self.listens || self.starving | self.landings != 0;
        endpoint.starving.store(is_any, Ordering::Relaxed);
    }
}

/// Sets the bit of a way. True: it has changed.
fn set_bit(bits: &mut u8, way: u8, is_set: bool) -> bool {
    let before = *bits;
    *bits = before & !(1 << way) | u8::from(is_set) << way;
    *bits != before
}

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
    pub(super) fn begin_shortage_of(&mut self, what: u8) {
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
