//! A rank's view of its job.

use crate::error::JobError;
use crate::joining::{self, Joined};
use crate::place::Local;
use crate::secret::Secret;
use crate::source::{self, Environment, LONGEST_VALUE, cannot};
use cci_mem::fork::{Mark, PerProcess};
use cci_mem::mutex::lock;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a call waits for other ranks unless [`Join::limit`] changes it.
const LIMIT: Duration = Duration::from_secs(60);

/// The longest limit, which the protocol can carry.
const LONGEST_LIMIT: Duration = Duration::from_millis(u32::MAX as u64);

/// Tells a forked child from the process that has joined.
static PROCESS: PerProcess<()> = PerProcess::new();

fn mark() -> Result<Mark, JobError> {
    let process = PROCESS.get(|| ());
    process.map(|(mark, ())| *mark).map_err(|why| cannot(format!("no memory for the mark of a process: {why}")))
}

/// How to join a job.
///
/// ```no_run
/// use std::time::Duration;
///
/// let job = cci_job::Join::new().limit(Duration::from_secs(5)).join()?;
/// # Ok::<(), cci_job::JobError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Join {
    limit: Duration,
}

impl Default for Join {
    fn default() -> Self {
        Self::new()
    }
}

impl Join {
    /// With a limit of 60 s.
    pub const fn new() -> Self {
        Self { limit: LIMIT }
    }

    /// Sets how long joining, and each later call, waits for other ranks, to the millisecond; 49
    /// days at most. A store that is stopped ends a later call 5 s after that. Calls that wait for
    /// no other rank have limits of their own, 10 s at most.
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit: limit.min(LONGEST_LIMIT) }
    }

    /// Joins the job that the environment names. Blocks until the store answers; under launchers
    /// other than `cci run` until all ranks have joined. Where this host has more ranks than
    /// processors, waits of this process no longer spin from here on (`cci::set_oversubscribed`).
    ///
    /// # Errors
    ///
    /// The process belongs to no job, the job cannot be joined, or ranks did not come.
    pub fn join(self) -> Result<Job, JobError> {
        let mark = mark()?;
        let environment = Environment(&|name| std::env::var_os(name));
        let job = Job::of(joining::join(&environment, self.limit)?, self.limit, mark);
        #[cfg(feature = "cci")]
        if job.place.local.ranks_per_core() > 1.0 {
            cci::set_oversubscribed(true);
        }
        Ok(job)
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    rank: u32,
    size: u32,
    local: Local,
}

impl Place {
    fn of(joined: &Joined) -> Self {
        Self { rank: joined.rank, size: joined.size, local: joined.local }
    }
}

/// A job that this process has joined. Its calls may come from any thread; one waits for another.
/// In a forked child they fail with [`JobError::Forked`], and neither they nor a drop reach the
/// store.
///
/// A process joins once: the store takes no rank twice. Rank 0 of a job without a launcher's store
/// serves it, and goes on for at most 5 s after it has dropped its `Job`.
///
/// ```no_run
/// # fn main() -> Result<(), cci_job::JobError> {
/// let job = cci_job::Job::join()?;
/// job.publish("uri", b"sm://1/2")?;
/// let next = job.look_up((job.rank() + 1) % job.size(), "uri")?;
/// # Ok(())
/// # }
/// ```
pub struct Job {
    limit: Duration,
    name: &'static str,
    place: Place,
    secret: Option<Secret>,
    is_plain: bool,
    /// `None` while a forked child drops it.
    source: Mutex<Option<Box<dyn source::Source>>>,
    mark: Mark,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("source", &self.name).field("place", &self.place).finish_non_exhaustive()
    }
}

impl Job {
    fn of(joined: Joined, limit: Duration, mark: Mark) -> Self {
        let place = Place::of(&joined);
        let Joined { name, secret, is_plain, source, .. } = joined;
        Self { limit, name, place, secret, is_plain, source: Mutex::new(Some(source)), mark }
    }

    /// As [`Join::join`] makes one.
    #[cfg(test)]
    pub(crate) fn joined(joined: Joined, limit: Duration) -> Self {
        Self::of(joined, limit, mark().expect("a page"))
    }

    /// Whether a call holds the lock.
    #[cfg(test)]
    pub(crate) fn is_in_a_call(&self) -> bool {
        self.source.try_lock().is_err()
    }

    /// A rank of a store in this process.
    #[cfg(all(test, feature = "cci"))]
    pub(crate) fn over(client: crate::store_client::Client, welcome: crate::wire::Welcome, limit: Duration) -> Self {
        let crate::wire::Welcome { rank, size, local, key } = welcome;
        let is_plain = key.is_plain();
        let place = Place { rank, size, local };
        let mark = mark().expect("a page");
        Self {
            limit,
            name: "a test",
            place,
            secret: key.secret(),
            is_plain,
            source: Mutex::new(Some(Box::new(client))),
            mark,
        }
    }

    /// Joins with the limits of [`Join::new`].
    ///
    /// # Errors
    ///
    /// Those of [`Join::join`].
    pub fn join() -> Result<Self, JobError> {
        Join::new().join()
    }

    /// Whether the environment of this process names a job, so that [`Job::join`] does not fail
    /// with [`JobError::NoJob`].
    #[must_use]
    pub fn is_named() -> bool {
        joining::is_named(&Environment(&|name| std::env::var_os(name)))
    }

    /// The number of this process among all of the job, from 0.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.place.rank
    }

    /// How many processes the job has.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.place.size
    }

    /// This rank among those of its host, and the host's processors.
    #[must_use]
    pub fn local(&self) -> Local {
        self.place.local
    }

    /// Where the job comes from, such as `cci run`.
    #[must_use]
    pub fn source(&self) -> &'static str {
        self.name
    }

    /// The secret that all ranks of the job share, if the job has one.
    #[must_use]
    pub fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// Whether ranks prove to each other that they belong to the job.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.secret.is_some()
    }

    /// Whether the job was started by `cci run --security off`: ranks prove the secret, and what
    /// follows over a network is neither encrypted nor authenticated. Devices with the key
    /// `security` do as that states ([`Job::device`]).
    ///
    /// ```no_run
    /// let job = cci_job::Job::join()?;
    /// if job.is_plain() {
    ///     eprintln!("whoever is on the path can read what ranks send");
    /// }
    /// # Ok::<(), cci_job::JobError>(())
    /// ```
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Publishes a value of this rank under a key of 1 to 255 bytes. Other ranks find it by
    /// [`Job::look_up`]; over PMI after the next exchange of this rank.
    ///
    /// # Errors
    ///
    /// The key or the value has a wrong length, this rank has published the key before, or the
    /// store is gone.
    pub fn publish(&self, key: &str, value: &[u8]) -> Result<(), JobError> {
        check_key(key)?;
        check_value(value)?;
        self.with_source(|source| source.publish(key, value))?
    }

    /// The value that a rank has published under a key. Blocks until it has, at most the limit.
    ///
    /// # Errors
    ///
    /// An argument is wrong, the limit is over, the rank has gone without it, or the store is gone.
    pub fn look_up(&self, rank: u32, key: &str) -> Result<Vec<u8>, JobError> {
        check_key(key)?;
        if rank >= self.size() {
            return Err(JobError::Refused("the rank is not below the size of the job; look up one that is"));
        }
        self.with_source(|source| source.look_up(rank, key, self.limit))?
    }

    /// Gives a value to all ranks and takes theirs, in the order of ranks. Blocks until all ranks
    /// have come to this exchange, at most the limit.
    ///
    /// # Errors
    ///
    /// The value is longer than [`LONGEST_VALUE`], ranks did not come or cannot come any more, or
    /// the store is gone. An exchange that fails at one rank fails at all that wait for it or come
    /// later.
    pub fn exchange(&self, value: &[u8]) -> Result<Vec<Vec<u8>>, JobError> {
        check_value(value)?;
        self.with_source(|source| source.exchange(value, self.limit))?
    }

    /// Has the launcher end the job with this status: it asks all ranks to end by SIGTERM, at once
    /// or, if the status is 0, when they have not ended by themselves within a second; soon after
    /// it kills those that are left. Returns at once. False, and nothing happens, in a forked
    /// child, and where the job has no launcher of CCI; then a status other than 0 of this process
    /// may end the job.
    pub fn end(&self, status: u8) -> bool {
        self.with_source(|source| source.end(status)).unwrap_or(false)
    }

    /// Leaves the job well, as a drop does: for a rank that ends without one. Later calls may fail.
    /// Some launchers take an end without it for a failure.
    pub fn leave(&self) {
        // A forked child has nothing to leave.
        let _ = self.with_source(|source| source.leave());
    }

    /// The status with which a rank has ended the job by [`Job::end`]. For a rank that has got
    /// SIGTERM.
    #[must_use]
    pub fn ended(&self) -> Option<u8> {
        self.with_source(|source| source.ended()).ok()?
    }

    fn with_source<T>(&self, act: impl FnOnce(&mut dyn source::Source) -> T) -> Result<T, JobError> {
        // First: a thread that a forked child lacks may hold the lock.
        if !self.mark.is_here() {
            return Err(JobError::Forked);
        }
        // What a panicking thread leaves is a connection that fails or works.
        let mut source = lock(&self.source);
        source.as_mut().map(|source| act(&mut **source)).ok_or(JobError::Forked)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.mark.is_here() {
            // Its end would leave the job for the parent, or join a thread that the child lacks.
            std::mem::forget(self.source.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

fn check_key(key: &str) -> Result<(), JobError> {
    let is_right = (1..=255).contains(&key.len());
    if is_right {
        Ok(())
    } else {
        Err(JobError::Refused("the key is empty or longer than 255 bytes; take another one"))
    }
}

fn check_value(value: &[u8]) -> Result<(), JobError> {
    let is_right = value.len() <= LONGEST_VALUE;
    if is_right { Ok(()) } else { Err(JobError::Refused("the value is longer than 65536 bytes; give less")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_fits_the_protocol() {
        assert_eq!(Join::new().limit(Duration::MAX).limit, LONGEST_LIMIT);
        assert!(check_key("").is_err() && check_key(&"k".repeat(256)).is_err() && check_key("k").is_ok());
        assert!(check_value(&vec![0; LONGEST_VALUE + 1]).is_err() && check_value(&vec![0; LONGEST_VALUE]).is_ok());
    }
}
