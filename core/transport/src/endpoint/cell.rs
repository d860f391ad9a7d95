//! An endpoint: a cell in a slab that is never unmapped, with everything else behind its lock.

use super::Core;
use super::runs::Runs;
use crate::wakers::Wakers;
use crate::{Connection, Message, Posted, Slot, Transport};
use cci_mem::barrier::{Pairing, prepare};
use cci_mem::fork::{Mark, MarkPlace, PerProcess};
use cci_mem::guarded::{self, Guard, Guarded, SomeGuard, Threading};
use cci_mem::region::Regions;
use cci_mem::slab::Slab;
use cci_mem::source::Source;
use cci_mem::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use cci_proto::{Flags, PollError, SendError, Unusable};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// What is behind the lock.
pub struct Body {
    /// The device. Dropped first: it may still touch slots.
    pub transport: Box<dyn Transport>,
    /// Slots, events, options.
    pub core: Core,
}

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
    /// Opens a cell for a body. Without one the cell stays closed, and the caller recycles it.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn open(
        threading: Threading,
        make: impl FnOnce(&'static Self) -> Option<Body>,
    ) -> rustix::io::Result<&'static Self> {
        let (mark, globals) = globals()?;
        let endpoint = globals.endpoints.take();
        endpoint.mark.set(*mark);
        endpoint.holders.store(1, Ordering::Relaxed);
        endpoint.starving.store(false, Ordering::Relaxed);
        endpoint.failed.store(false, Ordering::Relaxed);
        if let Some(body) = make(endpoint) {
            endpoint.wakers.open(body.transport.waker());
            // A cell in the slab is for many threads (see `close`), so that nobody can be refused
            // here.
            if let Ok(mut place) = endpoint.body.enter() {
                *place = Some(body);
                place.hand_over(threading);
            }
        }
        Ok(endpoint)
    }

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

    /// Gives a closed cell back to the slab.
    pub fn recycle(&'static self) {
        if let Ok((_, globals)) = globals() {
            globals.endpoints.give(self);
        }
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

    /// The next event. Makes progress when none waits, and now and then although one does.
    ///
    /// # Errors
    ///
    /// No event waits and every receive buffer is held by the program, or the endpoint cannot be
    /// used here.
    #[inline]
    pub fn next_event(&self) -> Result<Option<&'static Slot>, PollError> {
        let mut entered = match self.enter_at_once() {
            Ok(entered) => entered,
            Err(outside) => return self.enter_for_event(outside),
        };
        match entered.pop() {
            Popped::Event(slot) => Ok(Some(slot)),
            Popped::Nothing => Self::poll(entered),
            Popped::Unknown => Self::look_for_event(entered),
        }
    }

    /// Apart from [`Endpoint::next_event`], which needs fewer registers without it.
    #[inline(never)]
    fn poll(entered: Entered<'_>) -> Result<Option<&'static Slot>, PollError> {
        entered.poll()
    }

    /// Likewise.
    #[inline(never)]
    fn look_for_event(entered: Entered<'_>) -> Result<Option<&'static Slot>, PollError> {
        entered.look_for_event()
    }

    /// As [`Endpoint::next_event`], by the lock.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::next_event`].
    #[inline(never)]
    pub fn enter_for_event(&self, outside: Outside<'_>) -> Result<Option<&'static Slot>, PollError> {
        drop(outside);
        self.enter_by_lock()?.look_for_event()
    }

    /// The endpoint for a thread that may need the lock.
    pub(crate) fn enter_by_lock(&self) -> Result<Entered<'_>, Unusable> {
        let body = self.enter_place()?.some().ok_or_else(|| self.why_closed())?;
        Ok(Entered { body })
    }

    /// Runs `act` with the endpoint to itself, which must not come back here.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    #[inline(always)]
    pub fn with<T>(&self, act: impl FnOnce(&mut Core, &mut dyn Transport) -> T) -> Result<T, Unusable> {
        let mut place = self.enter_place()?;
        let Some(body) = place.as_mut() else { return Err(self.why_closed()) };
        let result = act(&mut body.core, &mut *body.transport);
        if body.core.is_armed() {
            body.transport.settle(&mut body.core);
        }
        Ok(result)
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

impl Body {
    /// Ends a call that has looked for events. `is_empty`: it found none; `told`: the handle was
    /// readable because there is room.
    #[inline(always)]
    pub(crate) fn end_look(&mut self, is_empty: bool, told: bool) {
        let Self { transport, core } = self;
        if is_empty {
            if told {
                core.forget_room();
            }
            if core.is_handle_in_use() {
                if core.is_armed() {
                    core.on_empty_call();
                } else {
                    transport.leave_edge(core);
                }
            }
        }
        if core.is_armed() {
            transport.settle(core);
        }
    }
}

impl<'a> Entered<'a> {
    /// Leaves the endpoint, when the result is dropped.
    #[inline(always)]
    pub fn outside(self) -> Outside<'a> {
        self.body.outside()
    }

    pub(crate) fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }
}

impl Entered<'_> {
    /// The oldest event, if one waits and progress is not due.
    #[inline(always)]
    pub fn pop(&mut self) -> Popped {
        let core = &mut self.body.core;
        if core.is_armed() {
            return Popped::Unknown;
        }
        if core.has_event() {
            return core.pop_at_once().map_or(Popped::Unknown, Popped::Event);
        }
        if core.is_handle_in_use() { Popped::Unknown } else { Popped::Nothing }
    }

    /// The next event, after [`Popped::Nothing`].
    ///
    /// # Errors
    ///
    /// No event waits and every receive buffer is held by the program.
    #[inline(always)]
    pub fn poll(mut self) -> Result<Option<&'static Slot>, PollError> {
        let Body { transport, core } = &mut *self.body;
        match transport.poll(core) {
            None if core.holds_all_recv() => self.refuse_poll(),
            found => Ok(found),
        }
    }

    /// Apart from [`Entered::poll`], which needs fewer registers without it.
    #[cold]
    #[inline(never)]
    fn refuse_poll(self) -> Result<Option<&'static Slot>, PollError> {
        Err(PollError::NoBuffers)
    }

    /// The oldest event, after progress if none waits or progress is due.
    ///
    /// # Errors
    ///
    /// No event waits and every receive buffer is held by the program.
    #[inline(always)]
    pub fn look_for_event(mut self) -> Result<Option<&'static Slot>, PollError> {
        let Body { transport, core } = &mut *self.body;
        let told = core.tells_room();
        if core.wants_progress() {
            transport.progress(core);
        }
        let found = core.pop();
        self.body.end_look(found.is_none(), told);
        match found {
            None if self.body.core.holds_all_recv() => Err(PollError::NoBuffers),
            found => Ok(found),
        }
    }

    /// Sends a message on an open connection of this endpoint, of at most its largest size.
    /// `flags`: SILENT, or none.
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent.
    #[inline(always)]
    pub fn post(
        mut self,
        connection: &'static Connection,
        message: Source<'_>,
        context: u64,
        flags: Flags,
    ) -> Result<(), SendError> {
        let Body { transport, core } = &mut *self.body;
        let sent = transport.post(message, context, connection, core, flags);
        if core.is_armed() || sent.is_err() {
            return self.end_post(sent);
        }
        Ok(())
    }

    /// As [`Entered::post`], of a message in pieces; `posted`: not waited for.
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent.
    #[inline]
    pub fn post_gathered(
        mut self,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<(), SendError> {
        let Body { transport, core } = &mut *self.body;
        let sent = transport.send(core, connection, message, posted).map(drop);
        if core.is_armed() || sent.is_err() {
            return self.end_post(sent);
        }
        Ok(())
    }

    /// Apart from [`Entered::post`], which needs fewer registers without it.
    #[cold]
    #[inline(never)]
    fn end_post(mut self, sent: Result<(), SendError>) -> Result<(), SendError> {
        let Body { transport, core } = &mut *self.body;
        if core.is_armed() {
            transport.settle(core);
        }
        sent
    }
}

/// What endpoints of this process share.
pub struct Globals {
    /// Endpoints.
    pub endpoints: Slab<Endpoint>,
    /// Connections, by runs.
    pub(super) connections: Runs,
    /// Slots.
    pub slots: Regions<Slot>,
    /// How this process fences.
    pub pairing: Pairing,
}

static GLOBALS: PerProcess<Globals> = PerProcess::new();

/// This process's globals and fork mark.
///
/// # Errors
///
/// No memory.
pub fn globals() -> rustix::io::Result<&'static (Mark, Globals)> {
    GLOBALS.get(|| Globals {
        endpoints: Slab::new(),
        connections: Slab::new(),
        slots: Regions::new(),
        pairing: prepare(),
    })
}
