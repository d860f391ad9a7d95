//! The shortage that made a call fail for lack of buffers, and its end.
//!
//! A program that is refused takes its events and sleeps on its handle. A silent operation has no
//! event, and neither has a buffer that another thread returns. So the handle becomes readable when
//! a send can succeed again.

mod core;

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
