//! Ending a wait from another thread.

use cci::{OpenError, Unusable};
use cci_mem::sync::{AtomicBool, Ordering};
use std::sync::Arc;

/// Ends a wait for an endpoint, from any thread: [`crate::Endpoint::waker`] makes it. It does not
/// keep the endpoint open.
///
/// # Example
///
/// ```
/// use cci_am::{Endpoint, Handlers, Options};
///
/// let device = cci::Context::new()?.default_device()?.clone();
/// let mut endpoint = Endpoint::open(&device, &Options::new(), Handlers::new(), ())?;
/// let waker = endpoint.waker()?;
/// let other = std::thread::spawn(move || waker.wake());
/// // Nothing comes. The wake-up ends the wait, also if it was first.
/// assert_eq!(endpoint.wait(None)?, 0);
/// assert_eq!(other.join().ok(), Some(Ok(())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Waker {
    below: cci::Waker,
    wakes: Arc<Wakes>,
}

impl Waker {
    /// Ends one call of [`crate::Endpoint::wait`], or of [`crate::Bundle::wait`] where the endpoint
    /// is in a bundle; the next one if none waits now: it returns 0. Wake-ups that no call has
    /// taken yet count as one. Two system calls, and no lock that a call of the endpoint holds.
    ///
    /// # Errors
    ///
    /// The endpoint is closed, or this is a forked child.
    pub fn wake(&self) -> Result<(), Unusable> {
        // First: the sleep that ends now looks for it.
        self.wakes.0.store(true, Ordering::Release);
        self.below.wake()
    }
}

/// Whether somebody has woken an endpoint since it was asked last. What wakes a sleep below does
/// not tell: a request that waits for a credit sleeps too, and a sleep may end by its time just
/// then.
#[derive(Debug, Default)]
pub(crate) struct Wakes(AtomicBool);

impl Wakes {
    pub(crate) fn waker(self: &Arc<Self>, endpoint: &cci::Endpoint) -> Result<Waker, OpenError> {
        Ok(Waker { below: endpoint.waker()?, wakes: Arc::clone(self) })
    }

    pub(crate) fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Acquire)
    }
}
