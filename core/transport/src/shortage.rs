//! The shortage that made a call fail for lack of buffers, and its end.
//!
//! A program that is refused takes its events and sleeps on its handle. A silent operation has no
//! event, and neither has a buffer that another thread returns. So the handle becomes readable when
//! a send can succeed again.

use crate::{Connection, Endpoint};
use cci_mem::pool::Pool;
use cci_mem::sync::Ordering;

/// A send slot.
pub(crate) const SEND: u8 = 1;
/// An RMA slot.
pub(crate) const RMA: u8 = 2;
/// Something of the transport's own.
pub(crate) const OTHER: u8 = 4;

/// The shortage, and whether its end was reported.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    /// [`SEND`], [`RMA`] and [`OTHER`], as refused since the last report.
    lacks: u8,
    /// There is room again, and the handle is readable.
    is_told: bool,
    /// The return of an event must call the endpoint.
    listens: bool,
    /// Peers wait for a receive slot, so that the return of an event must call the endpoint.
    starving: bool,
}

impl Shortage {
    /// Records a refused call.
    #[cold]
    pub(crate) fn note(&mut self, what: u8) {
        self.lacks |= what;
        self.is_told = false;
    }

    /// Whether there is a shortage, whose end [`Shortage::is_over`] checks.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.lacks != 0
    }

    /// Whether the handle must be readable because a refused call can succeed now. `has_room`:
    /// whether any of these classes has room.
    #[cold]
    pub(crate) fn is_over(&mut self, endpoint: &Endpoint, mut has_room: impl FnMut(u8) -> bool) -> bool {
        if self.is_told {
            return true;
        }
        let mut found = has_room(self.lacks);
        if !found && !self.listens && self.lacks != OTHER {
            self.listens = true;
            self.publish(endpoint);
            // Pairs with the light fence in returning an event: either the return calls, or this
            // check finds its slot.
            endpoint.pairing.heavy_here();
            found = has_room(self.lacks);
        }
        if found {
            (self.is_told, self.listens) = (true, false);
            self.publish(endpoint);
        }
        found
    }

    /// Ends the shortage of the transport's own resource.
    pub(crate) fn end_other(&mut self, endpoint: &Endpoint) {
        if self.lacks & OTHER != 0 {
            (self.is_told, self.listens) = (true, false);
            self.publish(endpoint);
        }
    }

    /// Whether the handle is readable because there is room.
    #[inline(always)]
    pub(crate) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Forgets the shortage, because the program was woken and has taken all its events.
    #[cold]
    pub(crate) fn forget(&mut self) {
        (self.lacks, self.is_told) = (0, false);
    }

    pub(crate) fn is_starving(&self) -> bool {
        self.starving
    }

    pub(crate) fn set_starving(&mut self, endpoint: &Endpoint, starving: bool) {
        if self.starving != starving {
            self.starving = starving;
            self.publish(endpoint);
        }
    }

    fn publish(&self, endpoint: &Endpoint) {
        endpoint.starving.store(self.starving || self.listens, Ordering::Relaxed);
    }
}

/// Whether a slot of this class can be taken.
pub(crate) fn has_free(pool: &mut Pool<Connection, Endpoint>) -> bool {
    if pool.in_use() >= pool.limit() {
        pool.sweep_all(|_| ());
    }
    pool.in_use() < pool.limit()
}
