//! An endpoint: a cell in a slab that is never unmapped, with everything else behind its lock.

mod entered;
pub(super) mod globals;

use crate::wakers::Wakers;
use crate::{Body, Slot};
use cci_mem::barrier::{Pairing, prepare};
use cci_mem::fork::MarkPlace;
use cci_mem::guarded::{self, Guard, Guarded, SomeGuard, Threading};
use cci_mem::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use cci_proto::Unusable;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The endpoint. The first 8 bytes are `cci_endpoint_t`. No two are in lines that the processor
/// fetches together, as with their connections (`runs.rs`).
#[repr(C, align(128))]
pub struct Endpoint {
    /// The C structure of the device, if a C program opened the endpoint.
    pub device: AtomicPtr<()>,
    generation: AtomicU32,
    /// Who keeps the endpoint open: its owner, and events that outlive the owner's borrow.
    holders: AtomicU32,
    /// The program holds every receive slot and a peer waits for one: returning an event must call
    /// the endpoint.
    pub starving: AtomicBool,
    /// Closed because the library failed inside, not because the program wanted it.
    pub failed: AtomicBool,
    /// How giving an event back and `starving` are ordered.
    pub pairing: Pairing,
    mark: MarkPlace,
    wakers: Wakers,
    body: Guarded<Option<Body>>,
}

impl Default for Endpoint {
    fn default() -> Self {
        let pairing = prepare();
        Self {
            device: AtomicPtr::new(std::ptr::null_mut()),
            generation: AtomicU32::new(0),
            holders: AtomicU32::new(0),
            starving: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            pairing,
            mark: MarkPlace::new(),
            wakers: Wakers::default(),
            body: Guarded::new(None, pairing),
        }
    }
}

impl Endpoint {
    /// Takes the body out: from now on every call answers `Closed`. The cell may be reused after
    /// [`Endpoint::recycle`].
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn close(&self) -> Result<Body, Unusable> {
        self.take_body(self.enter_place()?)
    }

    /// As [`Endpoint::close`], of this life of the endpoint, from whatever thread: one that the
    /// endpoint belongs to is waited for while it is within a call. Its later calls answer
    /// `Closed`. The cell is not to be recycled: it must not belong to one thread again
    /// (`Guarded::seize`). It stays readable through stale pointers, for the price of its bytes.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn seize(&self, life: u32) -> Result<Body, Unusable> {
        if !self.is_here() {
            return Err(Unusable::Forked);
        }
        let place = self.body.seize(|body| body.is_some() && self.generation() == life).ok_or(Unusable::Closed)?;
        self.take_body(place)
    }

    /// Closes an endpoint in whose call or step a panic was caught: it sends farewell to its peers,
    /// its sleepers wake, and every later call fails with [`Unusable::Failed`]. Cannot panic.
    #[cold]
    pub fn abandon(&self) {
        let farewell = catch_unwind(AssertUnwindSafe(|| {
            self.failed.store(true, Ordering::Relaxed);
            // A program that sleeps on the OS handle makes a call, and learns of the failure.
            self.ring();
            if let Ok(mut body) = self.close() {
                let said = catch_unwind(AssertUnwindSafe(|| body.transport.close(&mut body.core, Duration::ZERO)));
                // Not dropped: its state is not to be trusted, and the program may still hold its
                // OS handle. Rung again, since the farewell may have drained it.
                let waker = catch_unwind(AssertUnwindSafe(|| body.transport.waker()));
                if let Ok(waker) = &waker {
                    let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
                }
                std::mem::forget((body, said, waker));
            }
        }));
        // The destructor of what was thrown could panic in turn.
        std::mem::forget(farewell);
    }

    fn take_body(&self, mut place: Guard<'_, Option<Body>>) -> Result<Body, Unusable> {
        let mut body = place.take().ok_or(Unusable::Closed)?;
        // Before the lock is released: a thread that waits for an operation of this life must not
        // take the next one for it.
        self.generation.store(self.generation().wrapping_add(1), Ordering::Relaxed);
        self.wakers.close();
        body.core.wake_all_sleepers();
        place.hand_over(Threading::Many);
        Ok(body)
    }

    /// Makes the handle readable, from any thread, without the endpoint's lock.
    pub fn ring(&self) {
        self.wakers.ring();
    }

    /// An eventfd for calls that wait for this endpoint. Whoever writes it ends one of them, which
    /// reads it; a close writes it too.
    ///
    /// # Errors
    ///
    /// The endpoint is closed (BADF), or no descriptor is left.
    pub fn waiting(&self) -> rustix::io::Result<Arc<OwnedFd>> {
        self.wakers.waiting()
    }

    /// One holder more: the endpoint stays open until [`Endpoint::let_go`] has been called for
    /// each.
    pub fn hold(&self) {
        // Relaxed: the caller is a holder already.
        self.holders.fetch_add(1, Ordering::Relaxed);
    }

    /// One holder less. Returns the number of those that are left; whoever gets 0 closes the
    /// endpoint.
    #[must_use]
    pub fn let_go(&self) -> u32 {
        // Release and acquire: what every holder did comes before the close.
        self.holders.fetch_sub(1, Ordering::AcqRel).wrapping_sub(1)
    }

    /// Counts lives.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// False in a forked child.
    #[inline(always)]
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.mark.is_here()
    }

    /// Whether some thread is within a call, as it seemed a moment ago.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.body.is_busy()
    }

    #[inline(always)]
    fn enter_place(&self) -> Result<Guard<'_, Option<Body>>, Unusable> {
        if !self.is_here() {
            return Err(if self.mark.is_set() { Unusable::Forked } else { Unusable::Closed });
        }
        self.body.enter().map_err(|_| Unusable::WrongThread)
    }

    #[cold]
    fn why_closed(&self) -> Unusable {
        if self.failed.load(Ordering::Relaxed) { Unusable::Failed } else { Unusable::Closed }
    }

    /// The endpoint for a thread that needs no lock.
    ///
    /// # Errors
    ///
    /// It needs one, or the endpoint cannot be used here. The result is to be dropped before the
    /// endpoint is entered otherwise.
    #[inline(always)]
    pub fn enter_at_once(&self) -> Result<Entered<'_>, Outside<'_>> {
        if !self.is_here() {
            return Err(Outside::default());
        }
        Ok(Entered { body: self.body.enter_at_once()?.some_or_outside()? })
    }

    /// The endpoint for a thread that may need the lock.
    pub(crate) fn enter_by_lock(&self) -> Result<Entered<'_>, Unusable> {
        let body = self.enter_place()?.some().ok_or_else(|| self.why_closed())?;
        Ok(Entered { body })
    }
}

/// An endpoint that its one user has to itself as long as this lives, and which it must not enter
/// again meanwhile.
pub struct Entered<'a> {
    body: SomeGuard<'a, Body>,
}

/// A thread that has not entered an endpoint.
pub type Outside<'a> = guarded::Outside<'a, Option<Body>>;

/// What [`Entered::pop`] finds.
pub enum Popped {
    /// The oldest event, now the program's.
    Event(&'static Slot),
    /// No event waits, and no thread waits on the handle: [`Entered::poll`] must follow.
    Nothing,
    /// There is more to be done: [`Entered::look_for_event`] is to follow.
    Unknown,
}
