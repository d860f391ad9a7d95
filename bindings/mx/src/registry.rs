//! What a process has: whether it is initialised, its endpoints, and what it keeps of addresses.

use crate::answer::{ErrorHandler, MX_ERRORS_ARE_FATAL, NOT_INITIALIZED, Refusal};
use crate::layout::CSegment;
use cci_job::Job;
use cci_mem::fork::{Mark, PerProcess};
use cci_mem::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use cci_mx::{Address, Endpoint, Error, Request};
use cci_slab::Slab;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Endpoints of a process at a time.
const MOST: u32 = 255;

/// A handle as C has it: it is compared and taken apart, never followed.
pub(crate) type Handle = *mut c_void;

/// Bits of a request's handle: the place of its endpoint, the life of the request, its index.
const INDEX_BITS: u32 = 24;
const LIFE_BITS: u32 = 32;
const _: () = assert!(size_of::<usize>() == 8, "handles of requests need 64 bits");

/// An endpoint of the program.
pub(crate) struct End {
    pub(crate) endpoint: Endpoint<CSegment>,
    /// 1 and more.
    place: usize,
    pub(crate) handler: Option<ErrorHandler>,
    /// Of later sends and connects, ms; 0: none.
    pub(crate) timeout: AtomicU32,
    is_closed: AtomicBool,
}

impl End {
    pub(crate) fn new(endpoint: Endpoint<CSegment>, handler: Option<ErrorHandler>) -> Self {
        Self { endpoint, place: 0, handler, timeout: AtomicU32::new(0), is_closed: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn name(&self, request: Request) -> Handle {
        let (index, life) = (request.bits() & 0xffff_ffff, request.bits() >> 32);
        let bits = (self.place as u64) << (INDEX_BITS + LIFE_BITS) | life << INDEX_BITS | index;
        std::ptr::without_provenance_mut(bits as usize)
    }

    #[inline]
    pub(crate) fn request(&self, handle: Handle) -> Result<Request, Refusal> {
        let bits = handle.addr() as u64;
        if bits >> (INDEX_BITS + LIFE_BITS) != self.place as u64 {
            return Err(Error::BadRequest.into());
        }
        let (index, life) = (bits & ((1 << INDEX_BITS) - 1), bits >> INDEX_BITS & 0xffff_ffff);
        Ok(Request::from_bits(life << 32 | index))
    }
}

/// Bits of an endpoint's handle, less 1, that are its place; the others are its life.
const PLACE_BITS: u32 = 8;

/// The last life of an endpoint. The table of a forked child begins behind it: no handle of its
/// parent names anything there.
static LAST_LIFE: AtomicU64 = AtomicU64::new(0);

/// By handle, less 1. A handle is never given twice: a place has 2^56 lives.
struct Ends(Slab<Arc<End>, u64, PLACE_BITS, 56>);

impl Default for Ends {
    fn default() -> Self {
        // Publishes nothing.
        Self(Slab::new((LAST_LIFE.load(Ordering::Relaxed) + 1) << PLACE_BITS, MOST))
    }
}

fn handle_of(key: u64) -> Handle {
    std::ptr::without_provenance_mut(key as usize + 1)
}

#[derive(Default)]
pub(crate) struct Registry {
    is_initialised: AtomicBool,
    ends: RwLock<Ends>,
    /// The program's own, by address.
    pub(crate) contexts: RwLock<HashMap<Address, usize>>,
    /// The NIC of this host, once it is known.
    pub(crate) nic: Mutex<Option<u64>>,
    pub(crate) membership: Mutex<Membership>,
}

/// What a process has of its job.
#[derive(Default)]
pub(crate) struct Membership {
    /// Joined at most once in the life of a process.
    pub(crate) job: Option<Arc<Job>>,
    /// NIC and id of each rank, once the first endpoint is open.
    pub(crate) ranks: Vec<(u64, u32)>,
    /// The ranks have exchanged their places, and this one has no endpoint there.
    pub(crate) has_failed: bool,
}

/// The registry of this process, with the mark of the process. It is never freed: calls of other
/// threads may be in it. A child of a fork gets one of its own, since the locks of this one may be
/// held for ever there.
fn marked() -> Result<&'static (Mark, Registry), Refusal> {
    static REGISTRY: PerProcess<Registry> = PerProcess::new();
    REGISTRY.get(Registry::default).map_err(|_| Error::NoResources.into())
}

#[inline]
pub(crate) fn registry() -> Result<&'static Registry, Refusal> {
    marked().map(|(_, registry)| registry)
}

/// The program's error handler. A forked child has it too: its first call may be one that is
/// refused. Null: the default one.
static HANDLER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

pub(crate) fn error_handler() -> ErrorHandler {
    let handler = HANDLER.load(Ordering::Acquire);
    if handler.is_null() {
        return MX_ERRORS_ARE_FATAL;
    }
    // SAFETY: it is one that `set_error_handler` was given.
    unsafe { std::mem::transmute::<*mut (), ErrorHandler>(handler) }
}

pub(crate) fn set_error_handler(handler: ErrorHandler) {
    HANDLER.store(handler as *mut (), Ordering::Release);
}

/// A lock whose holder never leaves a mess.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The endpoint that this thread has used last, of which process, so that a call takes no lock
    /// of the process.
    static LAST: RefCell<Option<(Mark, Handle, Arc<End>)>> = const { RefCell::new(None) };
}

impl Registry {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        // Publishes nothing: a program initialises before its threads call.
        if self.is_initialised.load(Ordering::Relaxed) { Ok(()) } else { Err(Refusal(NOT_INITIALIZED)) }
    }

    /// Whether that was another state before.
    pub(crate) fn set_initialised(&self, is_initialised: bool) -> bool {
        // As `check`.
        self.is_initialised.swap(is_initialised, Ordering::Relaxed) != is_initialised
    }

    /// Enters an endpoint; `None`: there are 255.
    pub(crate) fn enter(&self, mut end: End) -> Option<Handle> {
        let mut ends = self.ends.write().unwrap_or_else(PoisonError::into_inner);
        ends.0.reserve()?;
        Some(handle_of(ends.0.insert_with(|key| {
            // Publishes nothing.
            LAST_LIFE.fetch_max(key >> PLACE_BITS, Ordering::Relaxed);
            end.place = (key & ((1 << PLACE_BITS) - 1)) as usize + 1;
            Arc::new(end)
        })))
    }

    fn find(&self, handle: Handle) -> Option<Arc<End>> {
        let ends = self.ends.read().unwrap_or_else(PoisonError::into_inner);
        ends.0.get(handle.addr().checked_sub(1)? as u64).map(Arc::clone)
    }

    /// The endpoint that a request's handle belongs to.
    pub(crate) fn end_of(&self, request: Handle) -> Result<Arc<End>, Refusal> {
        self.check()?;
        let place = request.addr() >> (INDEX_BITS + LIFE_BITS);
        let ends = self.ends.read().unwrap_or_else(PoisonError::into_inner);
        let found = place.checked_sub(1).and_then(|index| ends.0.at(index as u32));
        found.map(Arc::clone).ok_or(Error::BadRequest.into())
    }

    pub(crate) fn all(&self) -> Vec<Handle> {
        let ends = self.ends.read().unwrap_or_else(PoisonError::into_inner);
        ends.0.iter().map(|(key, _)| handle_of(key)).collect()
    }

    /// Closes an endpoint, and the endpoint of CCI below it: other threads may keep this value for
    /// a while.
    pub(crate) fn close(&self, handle: Handle) -> Result<(), Refusal> {
        let end = self.find(handle).ok_or(Refusal::from(Error::BadEndpoint))?;
        end.endpoint.close()?;
        // Publishes to those who keep it that the endpoint has ended.
        end.is_closed.store(true, Ordering::Release);
        self.ends.write().unwrap_or_else(PoisonError::into_inner).0.remove(handle.addr() as u64 - 1);
        keep(None);
        // A handler of another thread still holds an event; then the last one who keeps it closes.
        if !end.endpoint.is_handling() {
            // SAFETY: the engine is closed, and takes no event any more; it holds none outside of
            // its lock but while a handler runs. The cell is that of a living endpoint.
            let _ = unsafe { cci::__binding::close(cci::__binding::cell(end.endpoint.inner())) };
        }
        Ok(())
    }
}

/// Runs a call on an endpoint.
#[inline]
pub(crate) fn with_end<R>(handle: Handle, act: impl FnOnce(Result<&Arc<End>, Refusal>) -> R) -> R {
    let mut act = Some(act);
    // Borrowed for the call: a handler that calls again may borrow it as well, and only a call that
    // is in no other one changes it.
    let done = LAST.try_with(|last| {
        let last = last.try_borrow().ok()?;
        let (mark, kept, end) = last.as_ref()?;
        // Acquires what `close` has done.
        let is_it = *kept == handle && mark.is_here() && !end.is_closed.load(Ordering::Acquire);
        if !is_it {
            return None;
        }
        let result = act.take().map(|act| act(Ok(end)));
        result.map(|result| (result, end.is_closed.load(Ordering::Acquire)))
    });
    match (done, act) {
        (Ok(Some((result, is_closed))), _) => {
            // Another thread, or a handler, has closed it meanwhile: the last owner lets its
            // endpoint of CCI go.
            if is_closed {
                keep(None);
            }
            result
        }
        (_, Some(act)) => with_another_end(handle, act),
        (_, None) => unreachable!("a call that was run gives its result"),
    }
}

/// Runs a call on an endpoint that is not the one that this thread has used last, and keeps it.
#[inline(never)]
fn with_another_end<R>(handle: Handle, act: impl FnOnce(Result<&Arc<End>, Refusal>) -> R) -> R {
    let (mark, registry) = match marked() {
        Ok(marked) => marked,
        Err(why) => return act(Err(why)),
    };
    if let Err(why) = registry.check() {
        return act(Err(why));
    }
    let Some(end) = registry.find(handle) else { return act(Err(Error::BadEndpoint.into())) };
    let result = act(Ok(&end));
    // Acquires as above. A thread that is ending keeps nothing.
    if !end.is_closed.load(Ordering::Acquire) {
        keep(Some((*mark, handle, end)));
    }
    result
}

/// Has this thread keep another endpoint, or none, unless a call on the one that it keeps is under
/// way.
fn keep(new: Option<(Mark, Handle, Arc<End>)>) {
    let before = LAST.try_with(|last| last.try_borrow_mut().ok().map(|mut last| std::mem::replace(&mut *last, new)));
    // Its last owner may call the program.
    drop(before);
}
