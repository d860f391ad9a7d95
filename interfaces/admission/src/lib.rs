//! Which connections a server keeps before they have proven anything. It makes no system call and
//! reads no clock: `now` is the time since the server began, and is the first argument. A server
//! has one [`Admission`] beside its sockets; `docs/design/admission.md` has the figure.
//!
//! A connection that has not sent a valid request is a *stranger*. Strangers have a number of
//! places, a time and a number of bytes. Where all places are taken, a stranger whose *grace* is
//! over makes room. So silent strangers keep no client out, and a client that sends its request
//! within the grace is never put out.
//!
//! ```
//! use cci_admission::{Admission, Arrival, Limits, Origin};
//! use std::time::Duration;
//!
//! let second = Duration::from_secs(1);
//! let limits = Limits { places: 1, patience: 10 * second, bytes: 4096 };
//! let mut admission = Admission::new(limits);
//! assert_eq!(admission.handle_arrival(0 * second, "silent", Origin::Here), Arrival::Admitted);
//! assert_eq!(admission.handle_arrival(1 * second, "client", Origin::Here), Arrival::Replaces("silent"));
//! // Its request is valid: it takes no place of strangers any more.
//! admission.remove(&"client");
//! assert_eq!(admission.len(), 0);
//! ```
#![forbid(unsafe_code)]

mod origin;

pub use origin::Origin;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::time::Duration;

/// How long a stranger that has sent nothing keeps its place, whoever comes: the request of a
/// client follows its connection at once, if its host is not busy.
pub const GRACE: Duration = Duration::from_millis(100);

/// The grace of a stranger that has sent a part of its request: it waits for a round trip, or for
/// bytes that the network has lost. Half of the places have it at most, so that strangers which
/// send a byte each leave the other half to newcomers.
pub const GRACE_OF_BEGUN: Duration = Duration::from_secs(1);

/// How long a server accepts nothing after it found no descriptor.
pub const PAUSE: Duration = Duration::from_millis(100);

/// How many connections a server accepts before it serves the others again.
pub const BURST: usize = 64;

/// What strangers may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "each server names all of them")]
pub struct Limits {
    /// Strangers at a time.
    pub places: usize,
    /// How long one may take to send a valid request.
    pub patience: Duration,
    /// Bytes that one may send before that.
    pub bytes: usize,
}

/// What becomes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "a server handles each")]
pub enum Arrival<N> {
    /// It has a place.
    Admitted,
    /// It has the place of this stranger, whose connection is to be closed.
    Replaces(N),
    /// It is to be closed: no stranger makes room now. A client tries again.
    Refused,
}

/// What is to be done after an accept that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "a server handles each")]
pub enum Failed<N> {
    /// Accept again at once: that connection has ended, or a signal came.
    Again,
    /// Nobody waits, or the system has no descriptor: accept again when [`Admission::may_accept`].
    Later,
    /// Close this stranger, which frees its descriptor, then accept again.
    Close(N),
}

struct Stranger<N> {
    name: N,
    origin: Origin,
    since: Duration,
    bytes: usize,
}

/// The strangers of one server, by names that the server gives them.
///
/// ```
/// use cci_admission::{Admission, Limits, Origin};
/// use std::time::Duration;
///
/// let patience = Duration::from_secs(2);
/// let mut admission = Admission::new(Limits { places: 64, patience, bytes: 100 });
/// let _ = admission.handle_arrival(Duration::ZERO, 7, Origin::Here);
/// assert!(admission.handle_bytes(&7, 100) && !admission.handle_bytes(&7, 1), "one byte too many");
/// assert_eq!(admission.poll_timeout(), Some(patience));
/// assert_eq!((admission.poll_late(patience), admission.poll_late(patience)), (Some(7), None));
/// ```
pub struct Admission<N> {
    limits: Limits,
    /// The oldest first.
    strangers: Vec<Stranger<N>>,
    paused_until: Option<Duration>,
}

impl<N: Copy + PartialEq> Admission<N> {
    /// An admission with no stranger.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, strangers: Vec::new(), paused_until: None }
    }

    /// Changes how many strangers there may be, for a server whose clients share the places with
    /// them. Those that are there stay.
    pub fn set_places(&mut self, places: usize) {
        self.limits.places = places;
    }

    /// How many strangers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.strangers.len()
    }

    /// Whether there is no stranger.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strangers.is_empty()
    }

    /// Whether this connection is a stranger.
    #[must_use]
    pub fn has(&self, name: &N) -> bool {
        self.strangers.iter().any(|stranger| stranger.name == *name)
    }

    /// Takes a new connection in, if there is a place or a stranger that makes room.
    pub fn handle_arrival(&mut self, now: Duration, name: N, origin: Origin) -> Arrival<N> {
        let arrival = if self.strangers.len() < self.limits.places {
            Arrival::Admitted
        } else {
            match self.who_makes_room(now, Some(origin)) {
                Some(at) => Arrival::Replaces(self.strangers.remove(at).name),
                None => return Arrival::Refused,
            }
        };
        self.strangers.push(Stranger { name, origin, since: now, bytes: 0 });
        arrival
    }

    /// Counts bytes that a connection has sent. False: it is a stranger that has sent too many, and
    /// is to be closed.
    #[must_use]
    pub fn handle_bytes(&mut self, name: &N, bytes: usize) -> bool {
        let Some(stranger) = self.strangers.iter_mut().find(|stranger| stranger.name == *name) else { return true };
        stranger.bytes = stranger.bytes.saturating_add(bytes);
        stranger.bytes <= self.limits.bytes
    }

    /// Forgets a stranger: its request was valid, or its connection has ended.
    pub fn remove(&mut self, name: &N) {
        self.strangers.retain(|stranger| stranger.name != *name);
    }

    /// Decides what to do after an accept that failed.
    pub fn handle_failed_accept(&mut self, now: Duration, why: &Error) -> Failed<N> {
        match why.kind() {
            ErrorKind::WouldBlock => Failed::Later,
            ErrorKind::Interrupted | ErrorKind::ConnectionAborted => Failed::Again,
            // No descriptor, no memory, or what the system does not explain: a listener stays
            // readable then, and accepting again at once would spin.
            _ => match self.who_makes_room(now, None) {
                Some(at) => Failed::Close(self.strangers.remove(at).name),
                None => {
                    self.paused_until = Some(now.saturating_add(PAUSE));
                    Failed::Later
                }
            },
        }
    }

    /// Whether the server may accept now. While it may not, it does not wait for its listener.
    #[must_use]
    pub fn may_accept(&mut self, now: Duration) -> bool {
        self.paused_until = self.paused_until.filter(|until| *until > now);
        self.paused_until.is_none()
    }

    /// The next stranger whose time is over: its connection is to be closed.
    #[must_use]
    pub fn poll_late(&mut self, now: Duration) -> Option<N> {
        let oldest = self.strangers.first()?;
        let is_late = oldest.since.saturating_add(self.limits.patience) <= now;
        is_late.then(|| self.strangers.remove(0).name)
    }

    /// When [`Admission::poll_late`] or [`Admission::may_accept`] has another answer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let late = self.strangers.first().map(|oldest| oldest.since.saturating_add(self.limits.patience));
        late.into_iter().chain(self.paused_until).min()
    }

    /// The oldest stranger of the origin that has most, among those that may be put out.
    fn who_makes_room(&self, now: Duration, newcomer: Option<Origin>) -> Option<usize> {
        let mut counts = BTreeMap::<Origin, usize>::new();
        for stranger in &self.strangers {
            *counts.entry(stranger.origin).or_default() += 1;
        }
        let count = |origin: &Origin| counts.get(origin).copied().unwrap_or(0);
        let share = newcomer.map_or(usize::MAX, |newcomer| count(&newcomer).saturating_add(1));
        let has = |stranger: &Stranger<N>, grace| stranger.since.saturating_add(grace) > now;
        let mut long = self.limits.places / 2;
        let mut may_go = |stranger: &Stranger<N>| {
            let is_over_its_share = || stranger.origin != Origin::Here && count(&stranger.origin) > share;
            let is_long = stranger.bytes > 0 && has(stranger, GRACE_OF_BEGUN) && long > 0;
            long -= usize::from(is_long);
            !(is_long || has(stranger, GRACE)) || is_over_its_share()
        };
        // Whoever comes again and again puts out nobody who comes more seldom.
        let least = newcomer.map_or(0, |newcomer| count(&newcomer));
        // The oldest have the longer grace.
        let others: Vec<_> = self.strangers.iter().enumerate().filter(|(_, stranger)| may_go(stranger)).collect();
        let others: Vec<_> = others.into_iter().filter(|(_, stranger)| count(&stranger.origin) >= least).collect();
        // Of equal counts the last one is taken: reversed, that is the oldest.
        others.iter().rev().max_by_key(|(_, stranger)| count(&stranger.origin)).map(|(at, _)| *at)
    }
}

impl<N> std::fmt::Debug for Admission<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Admission({} strangers)", self.strangers.len())
    }
}
