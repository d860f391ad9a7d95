//! An endpoint and the state of an interface: the lock, who sleeps, and who wakes.

use crate::sleep::{readable, sleep_until_ready};
use cci::{Endpoint, OpenError, Sleeper};
use cci_mem::barrier::{Pairing, prepare};
use cci_mem::descriptors;
use cci_mem::guarded::{Guard, Guarded, Sleepers};
use rustix::event::PollFd;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The longest sleep while the endpoint has no descriptor: it has failed, and the next look finds
/// that.
const FAILED_PAUSE: Duration = Duration::from_millis(10);

/// A state that threads wait for changes of.
///
/// # Example
///
/// ```
/// struct Answers(u64);
/// impl cci_ground::Changing for Answers {
///     fn changes(&self) -> u64 {
///         self.0
///     }
/// }
/// ```
pub trait Changing {
    /// Whether a thread of the interface has the lock in turn with those of the program. Then it
    /// has no bias, whose ends would cost more than it saves.
    const ALTERNATES: bool = false;

    /// Returns another number once something has changed that a wait may be for.
    fn changes(&self) -> u64;

    /// Returns how long the thread that sleeps on the descriptors may sleep without an event, if
    /// something is due by the clock or is to be tried again.
    fn left(&self) -> Option<Duration> {
        None
    }

    /// Returns whether a change is for the thread that sleeps on the descriptors too.
    #[inline]
    fn wakes_sleeper(&self) -> bool {
        true
    }
}

/// What the lock protects: the state of an interface, and who sleeps.
#[derive(Debug)]
pub struct Held<S> {
    state: S,
    /// A thread sleeps on the descriptors; others sleep until it has found something.
    has_sleeper: bool,
    /// When that thread's sleep ends at the latest, if it does by the clock.
    until: Option<Instant>,
    waiters: usize,
}

impl<S: Changing> Held<S> {
    /// Whether something is due before the thread on the descriptors looks again.
    #[cold]
    #[inline(never)]
    fn is_due_earlier(&self) -> bool {
        let at = |left| Instant::now().checked_add(left);
        self.left().and_then(at).is_some_and(|at| self.until.is_none_or(|until| at < until))
    }
}

impl<S> Deref for Held<S> {
    type Target = S;

    #[inline(always)]
    fn deref(&self) -> &S {
        &self.state
    }
}

impl<S> DerefMut for Held<S> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut S {
        &mut self.state
    }
}

/// The lock, taken.
pub type Entered<'a, S> = Guard<'a, Held<S>>;

/// An endpoint, the state of an interface, and where its threads sleep. The lock is biased towards
/// the thread that uses it, as that of an endpoint of CCI. Any thread may call it.
///
/// # Example
///
/// ```
/// use cci_ground::{Changing, Driven};
///
/// struct Answers(u64);
/// impl Changing for Answers {
///     fn changes(&self) -> u64 {
///         self.0
///     }
/// }
/// let endpoint = cci::Endpoint::open(cci::Context::new()?.default_device()?, &cci::EndpointOptions::new())?;
/// let driven = Driven::new(endpoint, Answers(0))?;
/// // Wakes those who sleep, since the count is another one.
/// driven.with(|answers| answers.0 += 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Driven<S> {
    endpoint: Endpoint,
    state: Guarded<Held<S>>,
    /// Threads that sleep while another one sleeps on the descriptors.
    sleepers: Sleepers,
    /// Something has changed, for the thread that sleeps on the descriptors.
    wake: OwnedFd,
}

impl<S> fmt::Debug for Driven<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driven({})", self.endpoint.uri())
    }
}

impl<S: Changing> Driven<S> {
    /// Of an endpoint that nobody else takes events of.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn new(endpoint: Endpoint, state: S) -> Result<Self, OpenError> {
        let wake = descriptors::eventfd(0)
            .map_err(|source| OpenError::system("no descriptor for the threads of an interface", source))?;
        let pairing = if S::ALTERNATES { Pairing::Symmetric } else { prepare() };
        let state = Guarded::new(Held { state, has_sleeper: false, until: None, waiters: 0 }, pairing);
        Ok(Self { endpoint, state, sleepers: Sleepers::new(), wake })
    }

    /// Returns the endpoint.
    #[inline(always)]
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the eventfd that wakes the thread on the descriptors, for an interface whose own
    /// thread sleeps otherwise than by [`Driven::sleep`]: it reads what others write.
    #[must_use]
    pub fn waker(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Takes the lock. A thread that has it must not take it again, as memory or a token of the
    /// program would that calls its interface while it is dropped: it would wait for itself.
    ///
    /// # Panics
    ///
    /// It does, where the lock is biased towards this thread.
    #[inline(always)]
    pub fn lock(&self) -> Entered<'_, S> {
        match self.state.enter() {
            Ok(entered) => entered,
            Err(_) => entered_twice(),
        }
    }

    /// Has those look again who sleep.
    #[inline]
    pub fn wake(&self, held: &Held<S>) {
        if held.has_sleeper || held.waiters > 0 {
            self.wake_sleepers(held);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_sleepers(&self, held: &Held<S>) {
        self.wake_sleeper(held);
        if held.waiters > 0 {
            self.sleepers.wake_all();
        }
    }

    /// Has the thread look again that sleeps on the descriptors.
    fn wake_sleeper(&self, held: &Held<S>) {
        if held.has_sleeper && held.wakes_sleeper() {
            // Full means woken already.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    /// Leaves the lock and sleeps, at most for `left`, until it is woken, and takes the lock again.
    /// One thread sleeps on the descriptors, until an event comes or something is due
    /// ([`Changing::left`]). Others sleep until that one has found something. A signal ends the
    /// sleep early.
    pub fn sleep<'a>(&'a self, mut entered: Entered<'a, S>, left: Option<Duration>) -> Entered<'a, S> {
        if entered.has_sleeper {
            // That one sleeps for less then; those beside it have nothing to look for.
            if entered.is_due_earlier() {
                self.wake_sleeper(&entered);
            }
            return self.sleep_beside(entered, left, || self.lock());
        }
        entered.has_sleeper = true;
        let left = left.into_iter().chain(entered.left()).min();
        entered.until = left.and_then(|left| Instant::now().checked_add(left));
        drop(entered);
        // The descriptor is armed for this sleep only: whoever polls afterwards costs its peers no
        // system calls.
        let sleeper = self.endpoint.sleeper().ok();
        match &sleeper {
            Some(sleeper) => sleep_until_ready(&mut [readable(self.waker()), readable(sleeper.as_fd())], left),
            None => sleep_until_ready(&mut [readable(self.waker())], without_descriptor(left)),
        };
        drop(sleeper);
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        let mut entered = self.lock();
        entered.has_sleeper = false;
        entered
    }

    /// Leaves the lock, sleeps until another thread has changed something, at most for `left`, and
    /// takes the lock again by `lock`.
    pub fn sleep_beside<'a>(
        &'a self,
        mut entered: Entered<'a, S>,
        left: Option<Duration>,
        lock: impl FnOnce() -> Entered<'a, S>,
    ) -> Entered<'a, S> {
        entered.waiters += 1;
        self.sleepers.sleep(entered, left);
        let mut entered = lock();
        entered.waiters -= 1;
        entered
    }

    /// Sleeps without the lock until an event comes or one of these descriptors is ready, at most
    /// for `left`. No other thread wakes it.
    pub fn sleep_with<'a>(&self, others: impl Iterator<Item = PollFd<'a>>, left: Option<Duration>) {
        let sleeper: Option<Sleeper<'_>> = self.endpoint.sleeper().ok();
        let left = if sleeper.is_some() { left } else { without_descriptor(left) };
        let mut all: Vec<PollFd<'_>> = others.collect();
        all.extend(sleeper.as_ref().map(|sleeper| readable(sleeper.as_fd())));
        sleep_until_ready(&mut all, left);
    }

    /// Runs a call under the lock, and wakes those whom its changes may concern, which it counts;
    /// and the thread on the descriptors if something is due earlier now ([`Changing::left`]).
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut S) -> R) -> R {
        let mut entered = self.lock();
        let before = entered.changes();
        let result = act(&mut entered);
        if entered.changes() != before || entered.has_sleeper && entered.is_due_earlier() {
            self.wake(&entered);
        }
        result
    }
}

fn without_descriptor(left: Option<Duration>) -> Option<Duration> {
    Some(left.map_or(FAILED_PAUSE, |left| left.min(FAILED_PAUSE)))
}

#[cold]
#[inline(never)]
fn entered_twice() -> ! {
    panic!(
        "memory or a token called its interface as it was dropped or completed; let it only free itself, or write down how it ended"
    )
}
