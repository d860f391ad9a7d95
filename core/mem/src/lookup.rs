//! Names of hosts, looked up within a limit.
//!
//! `getaddrinfo` may take as long as a silent name server lets it, and cannot be called back. So
//! threads of their own call it: at most [`THREADS`] a process, each started for a lookup that
//! finds none idle, and ended when no lookup waits. Nobody waits for them: a lookup that nobody
//! wants any more keeps its thread until the system answers, and no longer, and one that has not
//! begun is dropped. A program that unloads the library does not unmap it.

use crate::cancellation::Uncancelled;
use crate::fork::PerProcess;
use crate::mutex::lock;
use crate::quiet_thread;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// Threads of a process that look names up. A name whose servers are silent keeps a thread for 10 s
/// and more: there are enough that a few such names keep no other one from its answer.
pub const THREADS: usize = 32;
/// How long calls without a limit of their own wait for an answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of the stack of each thread: the system's modules for names take some.
const STACK: usize = 256 << 10;
/// How often a wait asks whether it has been cancelled.
const SLICE: Duration = Duration::from_millis(50);

/// Looks a host's name up, for a port.
pub type Lookup = fn(&str, u16) -> std::io::Result<Vec<SocketAddr>>;

/// Asks the system, without a limit. Blocks.
///
/// # Errors
///
/// The name has no address, or the system cannot tell.
pub fn by_system(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// A lookup that waits for a thread.
struct Queued {
    asked: Weak<dyn Any + Send + Sync>,
    run: Box<dyn FnOnce() + Send>,
}

/// The lookups that wait, and the threads that there are.
#[derive(Default)]
struct Pool {
    waiting: VecDeque<Queued>,
    threads: usize,
}

static POOL: PerProcess<Mutex<Pool>> = PerProcess::new();

fn pool() -> std::io::Result<MutexGuard<'static, Pool>> {
    let (_, pool) = POOL.get(Mutex::default)?;
    Ok(lock(pool))
}

/// Has a thread of the pool call `run`, unless nobody has `asked` any more at its turn. Does not
/// block.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::mpsc::channel;
///
/// let (end, ended) = channel();
/// let asked = Arc::new(());
/// cci_mem::lookup::begin(&asked, move || drop(end.send("localhost")))?;
/// assert_eq!(ended.recv(), Ok("localhost"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// No thread can be had.
pub fn begin<A: Send + Sync + 'static>(asked: &Arc<A>, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let asked: Arc<dyn Any + Send + Sync> = asked.clone();
    let queued = Queued { asked: Arc::downgrade(&asked), run: Box::new(run) };
    let mut pool = pool()?;
    // While every thread waits for the system, what nobody wants would pile up.
    pool.waiting.retain(|queued| queued.asked.strong_count() > 0);
    pool.waiting.push_back(queued);
    if pool.threads < THREADS {
        match quiet_thread::spawn("cci-resolve", STACK, serve) {
            Ok(_) => pool.threads += 1,
            Err(why) if pool.threads == 0 => {
                pool.waiting.pop_back();
                return Err(why);
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// What a thread does: runs what waits, and ends when nothing does.
fn serve() {
    loop {
        let Ok(mut pool) = pool() else { return };
        let Some(Queued { asked, run }) = pool.waiting.pop_front() else {
            pool.threads -= 1;
            return;
        };
        drop(pool);
        if asked.strong_count() > 0 {
            // The thread goes on: it is counted. Who waits learns of it by the end of its channel.
            let _ = catch_unwind(AssertUnwindSafe(run));
        }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum LookupError {
    /// No thread can be had.
    NoThread(Error),
    /// The limit is over.
    TimedOut,
    /// Nobody waits any more.
    Cancelled,
    /// The system has none: the name has no address, or a name server refuses.
    Failed(Error),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThread(why) | Self::Failed(why) => why.fmt(f),
            Self::TimedOut => f.write_str("no name server answers within the limit; check the name servers"),
            Self::Cancelled => Error::from(ErrorKind::Interrupted).fmt(f),
        }
    }
}

impl std::error::Error for LookupError {}

impl From<LookupError> for Error {
    fn from(why: LookupError) -> Self {
        match why {
            LookupError::NoThread(why) | LookupError::Failed(why) => why,
            LookupError::TimedOut => Self::new(ErrorKind::TimedOut, LookupError::TimedOut.to_string()),
            LookupError::Cancelled => ErrorKind::Interrupted.into(),
        }
    }
}

/// How long somebody waits for a lookup.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    /// How long at most. Time in which this process was stopped counts little.
    pub limit: Duration,
    /// Until when at most, if that is sooner.
    pub deadline: Option<Instant>,
    /// Whether nobody waits any more, asked 20 times a second.
    pub is_over: Option<&'a dyn Fn() -> bool>,
}

impl Default for Wait<'_> {
    /// [`PATIENCE`].
    fn default() -> Self {
        Self { limit: PATIENCE, deadline: None, is_over: None }
    }
}

impl From<Instant> for Wait<'_> {
    fn from(deadline: Instant) -> Self {
        Self { limit: Duration::MAX, deadline: Some(deadline), is_over: None }
    }
}

impl Wait<'_> {
    /// What `run`, which asks the system, finds. Blocks until then, within the limit. A
    /// thread that waits is not cancelled (`pthread_cancel`).
    ///
    /// # Errors
    ///
    /// As the variants of [`LookupError`] say; `Failed` if `run` panics.
    pub fn run<T: Send + 'static>(&self, run: impl FnOnce() -> T + Send + 'static) -> Result<T, LookupError> {
        let _uncancelled = Uncancelled::new();
        // One place: the thread never blocks on it, and who asked may have gone.
        let (end, ended) = sync_channel(1);
        let asked = Arc::new(());
        begin(&asked, move || drop(end.send(run()))).map_err(LookupError::NoThread)?;
        self.receive(&ended)
    }

    fn receive<T>(&self, ended: &Receiver<T>) -> Result<T, LookupError> {
        let mut waited = Duration::ZERO;
        loop {
            let begun = Instant::now();
            let left = self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(begun));
            let left = left.min(self.limit.saturating_sub(waited));
            match ended.recv_timeout(left.min(SLICE)) {
                Ok(found) => return Ok(found),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(LookupError::Failed(Error::other("the lookup of the name has failed")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.is_over.is_some_and(|is_over| is_over()) {
                return Err(LookupError::Cancelled);
            }
            if left <= SLICE {
                return Err(LookupError::TimedOut);
            }
            // After a stop the thread has had no time to take an answer that had come.
            waited += begun.elapsed().min(2 * SLICE);
        }
    }

    /// The addresses of a host. One that is written as an address needs no lookup, and no thread.
    ///
    /// ```
    /// use cci_mem::lookup::Wait;
    ///
    /// let found = Wait::default().addresses("127.0.0.1", 7)?;
    /// assert_eq!(found, ["127.0.0.1:7".parse().expect("an address")]);
    /// # Ok::<(), cci_mem::lookup::LookupError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Wait::run`].
    pub fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, LookupError> {
        self.addresses_by(by_system, host, port)
    }

    /// As [`Wait::addresses`], by another lookup than the system's.
    ///
    /// # Errors
    ///
    /// As [`Wait::run`].
    pub fn addresses_by(&self, lookup: Lookup, host: &str, port: u16) -> Result<Vec<SocketAddr>, LookupError> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![(address, port).into()]);
        }
        let host = host.to_owned();
        self.run(move || lookup(&host, port))?.map_err(LookupError::Failed)
    }
}

/// Threads of the pool, for tests.
#[doc(hidden)]
#[must_use]
pub fn threads() -> usize {
    pool().map_or(0, |pool| pool.threads)
}
