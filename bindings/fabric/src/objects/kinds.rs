//! What is ours of each kind of object.

use super::object::Object;
use cci_fabric::AddressVector;
use cci_fabric_sys::*;
use cci_mem::mutex::lock;
use cci_mem::sync::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, OnceLock};

pub(super) type Fabric = Object<fid_fabric, OfFabric>;
pub(super) type Domain = Object<fid_domain, OfDomain>;
pub(super) type Vector = Object<fid_av, OfVector>;
pub(super) type Queue = Object<fid_cq, OfQueue>;
pub(super) type Events = Object<fid_eq, EventQueue>;
pub(super) type Counter = Object<fid_cntr, cci_fabric::Counter>;
pub(super) type Endpoint = Object<fid_ep, OfEndpoint>;

pub(super) struct OfFabric {
    /// What the program was built for.
    pub(super) version: u32,
    /// Each thing that is open has a clone.
    pub(super) open: Arc<()>,
}

pub(super) struct OfDomain {
    pub(super) domain: cci_fabric::Domain,
    /// What the program was built for.
    pub(super) version: u32,
    pub(super) _open: Arc<()>,
}

pub(super) struct OfVector {
    pub(super) vector: AddressVector,
    /// Insertions report to no queue of events.
    pub(super) is_silent: bool,
    pub(super) events: OnceLock<EventQueue>,
}

pub(super) struct OfQueue {
    pub(super) queue: cci_fabric::Queue,
    pub(super) format: fi_cq_format,
    pub(super) wait: fi_wait_obj,
    /// What the program was built for.
    pub(super) version: u32,
}

pub(super) struct OfEndpoint {
    pub(super) endpoint: cci_fabric::Endpoint,
    /// Flags of operations whose calls have none.
    pub(super) transmit: AtomicU64,
    pub(super) receive: AtomicU64,
}

impl OfEndpoint {
    /// Flags of sends and accesses whose calls have none.
    #[inline]
    pub(super) fn transmit(&self) -> u64 {
        self.transmit.load(Ordering::Relaxed)
    }

    /// Flags of receives whose calls have none.
    #[inline]
    pub(super) fn receive(&self) -> u64 {
        self.receive.load(Ordering::Relaxed)
    }
}

/// What is ours of an endpoint.
///
/// # Safety
///
/// libfabric calls it for endpoints alone.
#[inline]
pub(super) unsafe fn own<'a>(ep: *mut fid_ep) -> &'a OfEndpoint {
    // SAFETY: the caller's promise.
    unsafe { Endpoint::own(ep) }
}

/// An event.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) kind: u32,
    pub(super) entry: fi_eq_entry,
}

// SAFETY: its pointers are the program's, which are given back and never followed.
unsafe impl Send for Event {}

#[derive(Clone)]
pub(super) struct EventQueue(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) events: Mutex<VecDeque<Event>>,
    pub(super) comes: Condvar,
    pub(super) waits: bool,
    pub(super) _open: Arc<()>,
}

impl EventQueue {
    pub(super) fn push(&self, event: Event) {
        lock(&self.0.events).push_back(event);
        self.0.comes.notify_one();
    }
}
