//! Waiting for events, for programs and bindings.

use cci_mem::sync::{AtomicUsize, Ordering};
use cci_proto::{PollError, Unusable};
use cci_transport::{Endpoint, OpenError, Slot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where the next wait for several endpoints begins. Relaxed: it publishes nothing.
static START: AtomicUsize = AtomicUsize::new(0);

/// How long a thread pauses where the system refuses to let it sleep.
const REFUSED: Duration = Duration::from_millis(1);

/// The descriptor that [`wake`] writes.
///
/// # Errors
///
/// The endpoint cannot be used here, or no descriptor is left.
pub fn waiting(endpoint: &Endpoint) -> Result<Arc<OwnedFd>, OpenError> {
    let unusable = |why: Unusable| OpenError::new(why.status(), why.to_string());
    if !endpoint.is_here() {
        return Err(unusable(Unusable::Forked));
    }
    endpoint.waiting().map_err(|source| match source {
        Errno::BADF => unusable(Unusable::Closed),
        _ => OpenError::system("no descriptor for waking an endpoint", source),
    })
}

/// Ends a wait for this life of an endpoint, or the next one, and makes its handle readable.
///
/// # Errors
///
/// Closed, or a forked child.
pub fn wake(endpoint: &Endpoint, life: u32, waiting: &OwnedFd) -> Result<(), Unusable> {
    if !endpoint.is_here() {
        return Err(Unusable::Forked);
    }
    if endpoint.generation() != life {
        return Err(Unusable::Closed);
    }
    // An eventfd that is never full, and does not block.
    let _ = rustix::io::write(waiting, &1u64.to_ne_bytes());
    endpoint.ring();
    Ok(())
}

/// The next event of one of `count` endpoints, and which one. Sleeps until there is one, at most
/// for `limit`; none when that is over, when somebody has called [`wake`], or where there are no
/// endpoints.
///
/// # Errors
///
/// As `next_event`, of the first endpoint that has something to tell.
pub fn wait_any(
    count: usize,
    endpoint: impl Fn(usize) -> &'static Endpoint,
    limit: Option<Duration>,
) -> Result<Option<(usize, &'static Slot)>, PollError> {
    // A limit beyond the clock's range is none.
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let start = if count > 1 { START.fetch_add(1, Ordering::Relaxed) % count } else { 0 };
    let next = || {
        for at in (start..count).chain(0..start) {
            if let Some(slot) = endpoint(at).next_event()? {
                return Ok(Some((at, slot)));
            }
        }
        Ok(None)
    };
    let _begun = Begun::new(count, &endpoint)?;
    let mut sleep: Option<Sleep> = None;
    loop {
        let found: Result<_, PollError> = next();
        if !matches!(found, Ok(None)) || count == 0 {
            return found;
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(None);
        }
        let ready = match sleep.take() {
            Some(ready) => ready,
            None => Sleep::new((0..count).map(&endpoint))?,
        };
        if ready.until(left) {
            // An event that came with the wake-up need not wait for the next call.
            let found = next();
            // Whoever else waits for an endpoint that is closed is to be woken too: the wake-up
            // stays.
            if matches!(found, Err(PollError::Unusable(_))) || ready.take_wake() || !matches!(found, Ok(None)) {
                return found;
            }
        }
        sleep = Some(ready).filter(Sleep::is_whole);
    }
}

/// A wait that has begun at some endpoints, and ends with this value. In between the endpoints arm
/// their handles.
struct Begun<'a, E: Fn(usize) -> &'static Endpoint> {
    endpoint: &'a E,
    /// The life of each endpoint: another one knows nothing of this wait.
    lives: Lives,
}

/// The usual one allocates nothing.
enum Lives {
    One(u32),
    Many(Vec<u32>),
}

impl<'a, E: Fn(usize) -> &'static Endpoint> Begun<'a, E> {
    fn new(count: usize, endpoint: &'a E) -> Result<Self, Unusable> {
        let mut begun = Self { endpoint, lives: Lives::Many(Vec::new()) };
        if count == 1 {
            begun.lives = Lives::One(begin(endpoint(0))?);
            return Ok(begun);
        }
        for at in 0..count {
            let life = begin(endpoint(at))?;
            if let Lives::Many(lives) = &mut begun.lives {
                lives.push(life);
            }
        }
        Ok(begun)
    }
}

impl<E: Fn(usize) -> &'static Endpoint> Drop for Begun<'_, E> {
    fn drop(&mut self) {
        let lives = match &self.lives {
            Lives::One(life) => std::slice::from_ref(life),
            Lives::Many(lives) => lives,
        };
        for (at, life) in lives.iter().enumerate() {
            end_wait((self.endpoint)(at), *life);
        }
    }
}

/// Begins a wait at an endpoint, and returns its life.
fn begin(endpoint: &Endpoint) -> Result<u32, Unusable> {
    endpoint.with(|core, _| {
        core.begin_wait();
        endpoint.generation()
    })
}

/// Begins a wait of a program that sleeps on other descriptors too, and arms the handle for it.
/// Returns the life of the endpoint, for [`end_wait`].
///
/// # Errors
///
/// The endpoint cannot be used here.
pub fn begin_wait(endpoint: &Endpoint) -> Result<u32, Unusable> {
    endpoint.with(|core, transport| {
        core.begin_wait();
        transport.arm(core);
        endpoint.generation()
    })
}

/// Ends a wait of this life of the endpoint.
pub fn end_wait(endpoint: &Endpoint, life: u32) {
    // One that is closed has nothing to end.
    let _ = endpoint.with(|core, _| {
        if endpoint.generation() == life {
            core.end_wait();
        }
    });
}

/// What a wait sleeps on.
struct Sleep {
    handles: Vec<RawFd>,
    /// None of those for which no descriptor was left.
    wakers: Vec<Arc<OwnedFd>>,
}

impl Sleep {
    fn new(endpoints: impl Iterator<Item = &'static Endpoint>) -> Result<Self, Unusable> {
        let (mut handles, mut wakers) = (Vec::new(), Vec::new());
        for endpoint in endpoints {
            // First: a close writes it from now on, and no handle is given by an endpoint that is
            // closed.
            match endpoint.waiting() {
                Err(Errno::BADF) => return Err(Unusable::Closed),
                waker => wakers.extend(waker),
            }
            handles.push(endpoint.with(|_, transport| transport.handle().as_raw_fd())?);
        }
        Ok(Self { handles, wakers })
    }

    /// Whether every endpoint has a waker. One that had no descriptor may get it when somebody
    /// wants to wake it, which makes the handle readable too.
    fn is_whole(&self) -> bool {
        self.wakers.len() == self.handles.len()
    }

    /// Sleeps until a descriptor is readable or the time is over. True: somebody called [`wake`],
    /// and nobody has taken that yet.
    #[expect(unsafe_code, reason = "the handles belong to endpoints")]
    fn until(&self, limit: Option<Duration>) -> bool {
        let pause = limit.map_or(REFUSED, |limit| limit.min(REFUSED));
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let handles = self.handles.iter().map(|handle| {
            // SAFETY: open as long as the endpoint. One that is closed meanwhile has written its
            // waker, which ends the sleep.
            let handle = unsafe { BorrowedFd::borrow_raw(*handle) };
            PollFd::from_borrowed_fd(handle, PollFlags::IN)
        });
        let wakers = self.wakers.iter().map(|waker| PollFd::new(waker, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = wakers.chain(handles).collect();
        // A signal ends the sleep early, which the caller's loop allows. Where the system refuses
        // it, a pause keeps that loop from spinning.
        if poll(&mut all, limit.as_ref()).is_err_and(|error| error != Errno::INTR) {
            std::thread::sleep(pause);
        }
        all[..self.wakers.len()].iter().any(|polled| polled.revents().contains(PollFlags::IN))
    }

    /// Takes the wake-ups. False: other threads have taken them.
    fn take_wake(&self) -> bool {
        self.wakers.iter().filter(|waker| rustix::io::read(waker, &mut [0; 8]).is_ok()).count() > 0
    }
}
