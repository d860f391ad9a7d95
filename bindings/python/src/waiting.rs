//! Waiting for an endpoint: looks, then sleeps, with the interpreter released; Ctrl-C ends it.

use crate::errors::Refusal;
use cci::__binding::{AtomicU64, Ordering};
use cci::{Endpoint, PollError};
use cci_mem::descriptors;
use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For how long a wait looks before it sleeps, unless the program has said otherwise.
pub(crate) const SPIN: Duration = Duration::from_micros(50);

/// How long the main thread sleeps at a time. A signal ends its sleep, but for one that comes
/// between the last look at signals and the sleep, and for one that another thread has got.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// How many looks go between two readings of the clock.
const LOOKS: u32 = 16;

/// How many looks a wait takes before it releases the interpreter, since an answer that is about to
/// come is not worth the release: about ten microseconds over a network.
const ATTACHED_LOOKS: u32 = 32;

/// Repeats a look for a while: at first with the interpreter, then without.
pub(crate) fn spin<T: Send>(
    py: Python<'_>,
    sleepers: &Sleepers,
    time: Duration,
    mut look: impl FnMut() -> Result<Option<T>, PollError> + Send,
) -> Result<Option<T>, PollError> {
    if time.is_zero() || cci::is_oversubscribed() {
        return Ok(None);
    }
    for _ in 0..ATTACHED_LOOKS {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
    }
    let _waiting = sleepers.enter();
    py.detach(|| spin_released(time, look))
}

/// Repeats a look for a while. Without the interpreter.
fn spin_released<T>(
    time: Duration,
    mut look: impl FnMut() -> Result<Option<T>, PollError>,
) -> Result<Option<T>, PollError> {
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            std::hint::spin_loop();
        }
        if start.elapsed() >= time {
            return Ok(None);
        }
    }
}

/// The threads that sleep for an endpoint, each with a descriptor that wakes it.
#[derive(Default)]
pub(crate) struct Sleepers {
    asleep: Mutex<Vec<Arc<OwnedFd>>>,
    spare: Mutex<Vec<Arc<OwnedFd>>>,
    /// Threads that wait for the endpoint without the interpreter: they look or sleep. Relaxed: a
    /// count that publishes nothing, and decides only whether another thread looks too.
    waits: AtomicU64,
}

/// A thread that waits.
pub(crate) struct Waiting<'a>(&'a AtomicU64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread that is about to sleep.
pub(crate) struct Sleeper<'a> {
    sleepers: &'a Sleepers,
    waker: Arc<OwnedFd>,
    /// Only for the time of the sleep: an endpoint whose handle a program has pays for it whenever
    /// a look finds nothing.
    wait: cci::Sleeper<'a>,
}

impl Sleepers {
    /// Announces a sleeper: from here on `wake` and events of the endpoint end its sleep, also one
    /// that has not begun. What it waits for, and the endpoint, are looked at once more after this.
    pub(crate) fn announce<'a>(&'a self, py: Python<'_>, endpoint: &'a Endpoint) -> PyResult<Sleeper<'a>> {
        let wait = endpoint.sleeper().map_err(|why| why.raise(py))?;
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let waker = match spare {
            Some(waker) => waker,
            None => Arc::new(descriptors::eventfd(0).map_err(std::io::Error::from)?),
        };
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&waker));
        Ok(Sleeper { sleepers: self, waker, wait })
    }

    /// Counts a thread that waits.
    pub(crate) fn enter(&self) -> Waiting<'_> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        Waiting(&self.waits)
    }

    /// Whether a thread waits.
    pub(crate) fn has_waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed) > 0
    }

    /// Ends all sleeps.
    pub(crate) fn wake(&self) {
        for waker in &*self.asleep.lock().unwrap_or_else(PoisonError::into_inner) {
            // Never full, and does not block.
            let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
        }
    }
}

impl Sleeper<'_> {
    /// What ends its sleep.
    fn descriptors(&self) -> [PollFd<'_>; 2] {
        [PollFd::new(&self.wait, PollFlags::IN), PollFd::new(&self.waker, PollFlags::IN)]
    }

    /// Sleeps until the endpoint, or that of one beside it, has something to do, `wake` is called,
    /// a signal comes, or the time is over. Without the interpreter.
    pub(crate) fn sleep(&self, limit: Option<Duration>, beside: &[Sleeper<'_>]) {
        let is_main = rustix::thread::gettid() == rustix::process::getpid();
        let limit = match limit {
            Some(limit) if is_main => Some(limit.min(SLICE)),
            None if is_main => Some(SLICE),
            limit => limit,
        };
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        if beside.is_empty() {
            let _ = poll(&mut self.descriptors(), limit.as_ref());
            return;
        }
        let mut all: Vec<PollFd<'_>> = self.descriptors().into();
        all.extend(beside.iter().flat_map(Sleeper::descriptors));
        let _ = poll(&mut all, limit.as_ref());
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        let mut asleep = self.sleepers.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        asleep.retain(|waker| !Arc::ptr_eq(waker, &self.waker));
        drop(asleep);
        // Nobody wakes it any more: what was written is taken before its next sleeper.
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        self.sleepers.spare.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&self.waker));
    }
}

/// When a wait ends. The clock is read when it is needed.
pub(crate) struct Deadline {
    limit: Option<Duration>,
    end: Option<Instant>,
}

impl Deadline {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit, end: None }
    }

    /// The time that is left; `None`: without end.
    pub(crate) fn left(&mut self) -> Option<Duration> {
        let limit = self.limit?;
        let now = Instant::now();
        // A limit beyond the clock's range is none.
        let end = *self.end.get_or_insert_with(|| now.checked_add(limit).unwrap_or(now + Duration::from_secs(1 << 30)));
        Some(end.saturating_duration_since(now))
    }
}
