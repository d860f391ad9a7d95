//! Waiting for one endpoint or several, and ending the wait from another thread.

use crate::binding::{self, EndpointCell};
use crate::endpoint::EndpointFor;
use crate::event::Event;
use cci_proto::{PollError, Unusable};
use cci_transport::OpenError;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Ends a wait for an endpoint, from any thread: [`EndpointFor::waker`] makes it. It does not keep
/// the endpoint open.
///
/// # Example
///
/// ```
/// use cci::{Context, Endpoint, EndpointOptions};
///
/// let endpoint = Endpoint::open(Context::new()?.default_device()?, &EndpointOptions::new())?;
/// let waker = endpoint.waker()?;
/// let other = std::thread::spawn(move || waker.wake());
/// // No event comes. The wake-up ends the wait, also if it was first.
/// assert!(endpoint.wait(None)?.is_none());
/// assert_eq!(other.join().ok(), Some(Ok(())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Waker {
    cell: &'static EndpointCell,
    life: u32,
    waiting: Arc<OwnedFd>,
}

impl Waker {
    /// Ends one call of [`EndpointFor::wait`] or [`wait_any`] for the endpoint, or the next one if
    /// none waits now: it returns without event. Wake-ups that no call has taken yet count as one.
    /// Also makes the endpoint's descriptor readable once, for a program that sleeps on that. Two
    /// system calls, and no lock that a call of the endpoint holds.
    ///
    /// # Errors
    ///
    /// The endpoint is closed, or this is a forked child.
    pub fn wake(&self) -> Result<(), Unusable> {
        binding::wake(self.cell, self.life, &self.waiting)
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waker({:p})", self.cell)
    }
}

impl<T> EndpointFor<T> {
    /// Returns what ends a wait for this endpoint from another thread, also of a
    /// [`crate::LocalEndpoint`].
    ///
    /// # Errors
    ///
    /// The first one needs a descriptor, and none is left.
    pub fn waker(&self) -> Result<Waker, OpenError> {
        let waiting = binding::waiting(self.cell)?;
        Ok(Waker { cell: self.cell, life: self.life(), waiting })
    }

    /// Returns the next event, and sleeps until there is one, at most for `limit`. `None`: the time
    /// is over, or a [`Waker`] has ended the wait.
    ///
    /// The endpoint is prepared for sleepers until the call returns. A program that then polls for
    /// long costs no more than one that never waits.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::get_event`].
    pub fn wait(&self, limit: Option<Duration>) -> Result<Option<Event<'_>>, PollError> {
        let found = binding::wait_any(1, |_| self.cell, limit)?;
        Ok(found.map(|(_, slot)| Event::of(slot)))
    }

    /// Arms the endpoint's descriptor for one sleep of a program that waits for other descriptors
    /// too: it is readable at once if there is an event now, and soon when one comes. After the
    /// sleep the program drops the result, and polls.
    ///
    /// As with [`EndpointFor::wait`], a program that then polls for long costs no more than one
    /// that never waits; the descriptor of [`AsFd::as_fd`] is prepared for sleepers for ever. A
    /// system call or two; never blocks.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn sleeper(&self) -> Result<Sleeper<'_>, Unusable> {
        let life = binding::begin_wait(self.cell)?;
        Ok(Sleeper { cell: self.cell, life, handle: self.borrow_handle() })
    }
}

/// An endpoint's descriptor for one sleep among other descriptors: [`EndpointFor::sleeper`] makes
/// it.
///
/// # Example
///
/// ```
/// use cci::{Context, Endpoint, EndpointOptions};
/// use rustix::event::{PollFd, PollFlags, Timespec, poll};
///
/// let endpoint = Endpoint::open(Context::new()?.default_device()?, &EndpointOptions::new())?;
/// if endpoint.get_event()?.is_none() {
///     let (sleeper, limit) = (endpoint.sleeper()?, Timespec { tv_sec: 0, tv_nsec: 1_000_000 });
///     // Other descriptors stand beside it.
///     poll(&mut [PollFd::new(&sleeper, PollFlags::IN)], Some(&limit))?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sleeper<'e> {
    cell: &'static EndpointCell,
    life: u32,
    handle: BorrowedFd<'e>,
}

impl AsFd for Sleeper<'_> {
    /// The descriptor: readable, level-triggered, when [`EndpointFor::get_event`] should be called.
    /// Spurious readiness is possible.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        binding::end_wait(self.cell, self.life);
    }
}

impl fmt::Debug for Sleeper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sleeper({:p})", self.cell)
    }
}

/// Returns the next event of one of several endpoints, with that endpoint's place among them, and
/// sleeps until there is one, at most for `limit`. `None`: the time is over, or the [`Waker`] of
/// one of them has ended the wait; at once where there are none.
///
/// Each call begins with another endpoint, so that one with many events does not keep the others
/// waiting.
///
/// # Errors
///
/// As [`EndpointFor::get_event`], of the first endpoint that has something to tell.
///
/// # Example
///
/// ```
/// use cci::{Connect, Context, Endpoint, EndpointOptions, Event, wait_any};
///
/// let device = Context::new()?.default_device()?.clone();
/// let [server, client] = [Endpoint::open(&device, &EndpointOptions::new())?, Endpoint::open(&device, &EndpointOptions::new())?];
/// client.connect(&Connect::to(server.uri()))?;
/// loop {
///     match wait_any(&[&server, &client], None)? {
///         Some((0, Event::Request(request))) => request.accept(0)?,
///         Some((1, Event::Connected(_))) => break,
///         other => println!("{other:?}"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn wait_any<'e, T>(
    endpoints: &[&'e EndpointFor<T>],
    limit: Option<Duration>,
) -> Result<Option<(usize, Event<'e>)>, PollError> {
    let found = binding::wait_any(endpoints.len(), |at| endpoints[at].cell, limit)?;
    Ok(found.map(|(at, slot)| (at, Event::of(slot))))
}
