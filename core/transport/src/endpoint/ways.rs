//! Ways: several transports on one core, for a transport that stands over others
//! (`docs/design/auto.md`). A core without ways has way 0 for ever.
//!
//! What a transport takes for its own while it has the core is swapped in when its way is entered:
//! a pool of receive slots, the large messages, whether the handle is armed.

mod core;

use super::gauges::GaugesOfWay;
use super::landings::Landings;
use super::os_handle::OsHandle;
use super::slots::SlotPool;
use crate::{Connection, Slot};
use cci_proto::{Failure, REQUEST_HEAD};
use std::cell::Cell;

/// What a way has done that the transport over the ways decides about.
pub enum Outcome {
    /// A connect of a way has ended; its event is not queued.
    Connect {
        /// The slot of its event.
        slot: &'static Slot,
        /// The context with which the way was asked.
        context: u64,
        /// Its end.
        outcome: Result<&'static Connection, Failure>,
        /// The newest event then: messages of the connection may have come since.
        behind: Option<&'static Slot>,
    },
    /// An accept of a way has ended, or a client that it expected; its event is not queued.
    Accept {
        /// The slot of its event.
        slot: &'static Slot,
        /// The context with which the way was asked.
        context: u64,
        /// Its end.
        outcome: Result<&'static Connection, Failure>,
        /// The newest event then: messages of the connection may have come since.
        behind: Option<&'static Slot>,
    },
    /// A client asks by a way; its event is not queued.
    Request {
        /// The slot of its event.
        slot: &'static Slot,
        /// The first bytes of its payload; zeroes where that is shorter.
        head: [u8; REQUEST_HEAD],
    },
}

/// The state of a way that is not current.
struct Aside {
    recv: SlotPool,
    landings: Box<Landings>,
}

/// The ways of an endpoint.
pub(super) struct Ways {
    /// By the way's number. The entry of the current way has what an empty endpoint has.
    aside: Vec<Aside>,
    /// The handle of each way; that of the endpoint, while the core is in a way, in its place.
    handles: Vec<OsHandle>,
    /// Receive slots that all ways together may take.
    recv_limit: usize,
    gauges: Vec<GaugesOfWay>,
    outcomes: Vec<Outcome>,
}

/// The numbers of the current way, of the one that the progress thread acts for, and of the one
/// that is being opened.
#[derive(Default)]
pub(super) struct Current {
    way: u8,
    background: u8,
    opening: Cell<u8>,
    /// The core is in the current way.
    is_within: bool,
    /// [`Core::take_outcomes`](crate::Core::take_outcomes) would give something: each call of the
    /// transport over the ways asks.
    has_outcomes: bool,
}

impl Ways {
    /// Ways with these pools, of which the first is the current one, with an empty pool in place of
    /// its own.
    pub(super) fn new(pools: Vec<SlotPool>, recv_limit: usize) -> Self {
        let handles = pools.iter().map(|_| OsHandle::default()).collect();
        let gauges = vec![GaugesOfWay::default(); pools.len()];
        let aside = pools.into_iter().map(|recv| Aside { recv, landings: Box::default() }).collect();
        Self { aside, handles, recv_limit, gauges, outcomes: Vec::new() }
    }

    /// Receive slots that ways other than `way` have taken.
    fn taken_by_others(&self, way: u8) -> usize {
        let others = self.aside.iter().enumerate().filter(|(number, _)| *number != usize::from(way));
        others.map(|(_, aside)| aside.recv.in_use()).sum()
    }

    /// Whether somebody may sleep on the endpoint's handle, which is that of the core outside of
    /// its ways.
    pub(super) fn may_use_handle(&self) -> bool {
        self.handles.iter().any(OsHandle::may_be_used)
    }

    /// What a way has set last.
    pub(super) fn gauges_of(&mut self, way: u8) -> Option<&mut GaugesOfWay> {
        self.gauges.get_mut(usize::from(way))
    }

    pub(super) fn all_borrowed(&self, way: u8) -> bool {
        let mut others = self.aside.iter().enumerate().filter(|(number, _)| *number != usize::from(way));
        others.all(|(_, aside)| aside.recv.taken_are_borrowed())
    }
}
