//! Objects of a host as its state has them.

use crate::device_memory::Piece;
use crate::errors::Error;
use crate::mapped::Mapped;
use crate::notices::{Call, Notices};
use crate::partner::{Key, Partner};
use crate::types::{Reason, SegmentEvent};
use cci::{Memory, Registration, RmaHandle};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A segment of this host.
pub(crate) struct OwnSegment {
    /// Which of those that have had the id.
    pub(crate) life: u64,
    pub(crate) mapped: Arc<Mapped>,
    /// Where it lies in the memory of a device.
    pub(crate) piece: Option<Arc<Piece>>,
    /// Once it is prepared: a registration without rights, beside which others come and go without
    /// a notice to peers that the memory is gone.
    pub(crate) anchor: Option<Registration<Memory>>,
    /// That of peers.
    pub(crate) registration: Option<Registration<Memory>>,
    pub(crate) is_available: bool,
    /// It is one of a broadcast group.
    pub(crate) is_broadcast: bool,
    pub(crate) connectors: BTreeSet<Key>,
    pub(crate) notices: Notices<SegmentEvent>,
}

/// A connection to a segment.
pub(crate) struct Remote {
    pub(crate) partner: Partner,
    pub(crate) node: u32,
    pub(crate) segment: u32,
    pub(crate) mapped: Arc<Mapped>,
    /// For RMA; none of a segment that was found in the memory of a device.
    pub(crate) handle: Option<RmaHandle>,
    pub(crate) is_lost: bool,
    pub(crate) notices: Notices<Reason>,
}

/// An interrupt of this host.
pub(crate) struct OwnInterrupt {
    pub(crate) life: u64,
    pub(crate) has_bytes: bool,
    /// How many events of each connection wait.
    pub(crate) connectors: BTreeMap<Key, u32>,
    pub(crate) notices: Notices<(Key, Vec<u8>)>,
}

/// A connection to an interrupt.
pub(crate) struct Attachment {
    pub(crate) partner: Partner,
    /// A trigger has not ended; there was another one meanwhile.
    pub(crate) is_in_flight: bool,
    pub(crate) is_due: bool,
    /// Events that the owner has not taken.
    pub(crate) outstanding: u32,
    pub(crate) is_lost: bool,
}

/// A connect that waits for its answer.
pub(crate) struct Request {
    pub(crate) partner: Partner,
    pub(crate) node: u32,
    /// `None`: it is to an interrupt.
    pub(crate) segment: Option<u32>,
    pub(crate) outcome: Option<Result<(), Error>>,
}

/// A connect that goes on by itself.
#[derive(Default)]
pub(crate) struct Pending {
    /// It has ended, and nobody has taken the outcome.
    pub(crate) has_outcome: bool,
    pub(crate) callback: Option<Call>,
    /// Also once the callback has been taken to be called.
    pub(crate) has_callback: bool,
}

/// What a connection of a peer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// With the node of the connecting side.
    Segment(u32, u32),
    /// A segment that its program has released: its life.
    Released(u64),
    Interrupt(u32),
    /// A member of a broadcast group.
    Member(u32),
}
