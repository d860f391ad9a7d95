//! What the progress thread and one endpoint's callers share.

use super::ABSENCE;
use crate::{Endpoint, monotonic};
use cci_mem::sync::{AtomicU32, AtomicU64, Ordering};
use cci_proto::Time;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A program that has sent, but not taken frames for so long, is away too: what peers want of this end it leaves where it is. Sending a
/// window full of bulk data takes some milliseconds.
const NEGLECT: Duration = Duration::from_millis(10);
/// Where it is not known when the program took frames, looks at the number of its calls are so far apart. One that sleeps on its handle
/// is given so long to come by itself.
pub(super) const PRESENCE: Duration = Duration::from_micros(700);
/// A program that polls many endpoints in turn is given so much longer for each that it has polled within an absence, at most
/// [`LONGEST_TURN`].
const TURN: Duration = Duration::from_micros(150);
const LONGEST_TURN: Duration = Duration::from_millis(20);

/// The thread sees by itself that the program makes calls.
pub(super) const NOTHING: u32 = 0;
/// The thread leaves the endpoint alone until a call needs it again.
pub(super) const PARKED: u32 = 1;
/// The thread waits for what it knew to be due when nobody else made calls.
pub(super) const STANDS_IN: u32 = 2;

/// What the thread and the callers of one endpoint share.
pub(super) struct Seat {
    /// Never used again for another endpoint.
    pub(super) number: u64,
    pub(super) endpoint: &'static Endpoint,
    /// Which life of the endpoint's cell this is.
    pub(super) life: u32,
    /// Calls of the program; written under the endpoint's lock, read at any time: only whether it has changed counts.
    pub(super) calls: AtomicU32,
    /// When the program last sent or took frames, by the clock of [`monotonic`]; 0 = not known.
    pub(super) present: AtomicU64,
    /// When it last took frames.
    pub(super) polled: AtomicU64,
    /// What the program's next call has to do for the thread: [`NOTHING`], [`PARKED`] or [`STANDS_IN`]. Changed under the endpoint's
    /// lock, so that whoever holds it may trust it.
    pub(super) state: AtomicU32,
    /// The endpoint's handle, and the right to enter the endpoint: none once it is closed. The thread holds it while it is inside.
    handle: Mutex<Option<OwnedFd>>,
}

/// What a look for the program finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Away,
    /// It is there; when to look again.
    Present(Duration),
}

impl Seat {
    pub(super) fn new(number: u64, endpoint: &'static Endpoint, handle: OwnedFd) -> Self {
        Self {
            number,
            endpoint,
            life: endpoint.generation(),
            calls: AtomicU32::new(0),
            present: AtomicU64::new(0),
            polled: AtomicU64::new(0),
            state: AtomicU32::new(NOTHING),
            handle: Mutex::new(Some(handle)),
        }
    }

    pub(super) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn state(&self) -> u32 {
        self.state.load(Ordering::Relaxed)
    }

    pub(super) fn handle(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program has taken frames within an absence.
    pub(super) fn is_polled(&self, now: Time) -> bool {
        Duration::from_nanos(now.since(Time(self.polled.load(Ordering::Relaxed)))) < ABSENCE
    }

    /// Looks for the program, which had made so many calls at the last look; `busy`: one of its threads is within a call; `others`:
    /// endpoints of this process that were polled within an absence.
    pub(super) fn look(&self, before: u32, busy: bool, others: u32) -> Look {
        let now = monotonic();
        let ago = |time: u64| Duration::from_nanos(now.since(Time(time)));
        let turn = (TURN * others.saturating_sub(1)).min(LONGEST_TURN);
        match self.present.load(Ordering::Relaxed) {
            0 if self.calls() == before => Look::Away,
            0 => Look::Present(PRESENCE),
            _ if ago(self.polled.load(Ordering::Relaxed)) >= NEGLECT.max(turn) => Look::Away,
            present => match (ABSENCE + turn).saturating_sub(ago(present)) {
                // Calls that move much take longer than an absence. Waiting for the end of one, only to do the same, would take the
                // processor away from the program. Of many endpoints one is always within a call: it is given its turn as well.
                left if busy => Look::Present(left.max(ABSENCE)),
                Duration::ZERO => Look::Away,
                left => Look::Present(left),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_finds_whether_the_program_is_there() {
        let endpoint: &'static Endpoint = Box::leak(Box::new(Endpoint::default()));
        let handle = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor");
        let seat = Seat::new(1, endpoint, handle);
        let look = |before| seat.look(before, false, 1);
        assert_eq!(look(0), Look::Away, "it has made no call");
        seat.calls.store(5, Ordering::Relaxed);
        assert_eq!(look(4), Look::Present(PRESENCE), "calls of which the time is not known");
        assert_eq!(look(5), Look::Away, "and no more of them");
        let note = |present: u64, polled: u64| {
            seat.present.store(present, Ordering::Relaxed);
            seat.polled.store(polled, Ordering::Relaxed);
        };
        let (now, later) = (monotonic().0, monotonic().0 + 3_600_000_000_000);
        note(now - 2_000_000, now - 2_000_000);
        assert_eq!(look(4), Look::Away, "its last call was long ago");
        assert!(matches!(seat.look(4, false, 100), Look::Present(_)), "it polls others in turn");
        note(now - 30_000_000, now - 30_000_000);
        assert_eq!(seat.look(4, false, 10_000), Look::Away, "no turn is as long");
        note(now - 2_000_000, later);
        assert_eq!(seat.look(4, true, 1), Look::Present(ABSENCE), "it is not over yet");
        // An hour from now: this thread may be kept waiting in between.
        note(later, later);
        assert_eq!(look(5), Look::Present(ABSENCE), "just now");
        let turn = Look::Present(ABSENCE + LONGEST_TURN);
        assert_eq!(seat.look(5, false, 500), turn, "it polls others in turn");
        assert_eq!(seat.look(5, true, 500), turn, "a call of one does not have the thread come sooner for all");
        note(later, now - 5_000_000);
        assert_eq!(look(5), Look::Present(ABSENCE), "it begins many operations");
        note(later, now - 20_000_000);
        assert_eq!(look(4), Look::Away, "it only sends");
        assert_eq!(seat.look(4, true, 1), Look::Away, "and does so now");
    }
}
