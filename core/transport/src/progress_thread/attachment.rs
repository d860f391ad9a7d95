//! The state that the progress thread shares with the callers of one endpoint.

use crate::{Endpoint, lock};
use cci_mem::sync::{AtomicU32, AtomicU64, Ordering};
use cci_proto::Time;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// A program that has neither sent nor received frames for this long is absent.
pub(super) const ABSENT_AFTER: Duration = Duration::from_micros(1300);
/// A program that only sends also counts as absent after this time: it does not service its peers'
/// requests. Sending a window full of bulk data takes some milliseconds.
const UNPOLLED_AFTER: Duration = Duration::from_millis(10);
/// Interval between checks of the number of calls, where the time of the last one is not known
/// (virtual time). A program that sleeps on its handle has as long to wake up and make the call
/// itself.
pub(super) const CHECK_EVERY: Duration = Duration::from_micros(700);
/// A program that polls many endpoints in turn gets this much more time for each endpoint that was
/// polled within [`ABSENT_AFTER`], at most [`MOST_EXTRA_TIME`].
const EXTRA_TIME: Duration = Duration::from_micros(150);
const MOST_EXTRA_TIME: Duration = Duration::from_millis(20);

/// State: the thread checks the count of calls by itself. A call has nothing to do for it.
pub(super) const WATCHING: u32 = 0;
/// State: the thread skips the endpoint until a call activates it.
pub(super) const PARKED: u32 = 1;
/// State: the thread acts for the program, and waits for the deadline of its last step. A call
/// notifies it.
pub(super) const ACTING: u32 = 2;

/// An endpoint that is attached to the progress thread.
pub(super) struct Attachment {
    /// Unique in the process.
    pub(super) number: u64,
    pub(super) endpoint: &'static Endpoint,
    /// The way of the endpoint that is attached.
    pub(super) way: u8,
    /// The generation of the endpoint's cell.
    pub(super) generation: u32,
    /// Counts calls of the program. Written under the endpoint's lock, read at any time for
    /// changes.
    pub(super) calls: AtomicU32,
    /// When the program last sent or received, by the clock of [`monotonic`](crate::monotonic); 0 =
    /// not known.
    pub(super) present: AtomicU64,
    /// When the program last received, by the same clock.
    pub(super) polled: AtomicU64,
    /// [`WATCHING`], [`PARKED`] or [`ACTING`]. Changed under the endpoint's lock, so that the
    /// holder of the lock can rely on it.
    pub(super) state: AtomicU32,
    /// The endpoint's OS handle; `None` once the endpoint is closed. The thread holds this mutex
    /// while it is inside the endpoint.
    handle: Mutex<Option<OwnedFd>>,
}

/// Whether a program uses its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Absent,
    /// The program is present; time until the next check.
    Present(Duration),
}

impl Attachment {
    pub(super) fn new(number: u64, (endpoint, way): (&'static Endpoint, u8), handle: OwnedFd) -> Self {
        Self {
            number,
            endpoint,
            way,
            generation: endpoint.generation(),
            calls: AtomicU32::new(0),
            present: AtomicU64::new(0),
            polled: AtomicU64::new(0),
            state: AtomicU32::new(WATCHING),
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
        lock(&self.handle)
    }

    /// Whether the program has received within [`ABSENT_AFTER`].
    pub(super) fn is_polled(&self, now: Time) -> bool {
        Duration::from_nanos(now.since(Time(self.polled.load(Ordering::Relaxed)))) < ABSENT_AFTER
    }

    /// Returns whether the program uses the endpoint. `now`: the time, by the clock of
    /// [`monotonic`](crate::monotonic), which the program's calls may pass meanwhile; `before`: its
    /// calls at the last check; `busy`: one of its threads is inside a call; `others`: endpoints of
    /// this process that were polled within [`ABSENT_AFTER`].
    pub(super) fn activity(&self, now: Time, before: u32, busy: bool, others: u32) -> Activity {
        let ago = |time: u64| Duration::from_nanos(now.since(Time(time)));
        let extra = (EXTRA_TIME * others.saturating_sub(1)).min(MOST_EXTRA_TIME);
        match self.present.load(Ordering::Relaxed) {
            0 if self.calls() == before => Activity::Absent,
            0 => Activity::Present(CHECK_EVERY),
            _ if ago(self.polled.load(Ordering::Relaxed)) >= UNPOLLED_AFTER.max(extra) => Activity::Absent,
            present => match (ABSENT_AFTER + extra).saturating_sub(ago(present)) {
                // A call that moves much data takes longer than ABSENT_AFTER. A thread that waited
                // for its end, to do the same work, would only occupy the program's processor. Of
                // many endpoints one is always inside a call: it gets the extra time as well.
                left if busy => Activity::Present(left.max(ABSENT_AFTER)),
                Duration::ZERO => Activity::Absent,
                left => Activity::Present(left),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_activity_of_a_program_is_found() {
        let endpoint: &'static Endpoint = Box::leak(Box::new(Endpoint::default()));
        let handle = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor");
        let attachment = Attachment::new(1, (endpoint, 0), handle);
        const NOW: u64 = 1_000_000_000;
        let of_all = |before, busy, others| attachment.activity(Time(NOW), before, busy, others);
        let activity = |before| of_all(before, false, 1);
        assert_eq!(activity(0), Activity::Absent, "it has made no call");
        attachment.calls.store(5, Ordering::Relaxed);
        assert_eq!(activity(4), Activity::Present(CHECK_EVERY), "it makes calls at times that are not known");
        assert_eq!(activity(5), Activity::Absent, "it makes no more calls");
        let note = |present: u64, polled: u64| {
            attachment.present.store(present, Ordering::Relaxed);
            attachment.polled.store(polled, Ordering::Relaxed);
        };
        note(NOW - 2_000_000, NOW - 2_000_000);
        assert_eq!(activity(4), Activity::Absent, "its last call was long ago");
        assert!(matches!(of_all(4, false, 100), Activity::Present(_)), "it polls others in extra");
        note(NOW - 30_000_000, NOW - 30_000_000);
        assert_eq!(of_all(4, false, 10_000), Activity::Absent, "no extra time is as long");
        note(NOW - 2_000_000, NOW);
        assert_eq!(of_all(4, true, 1), Activity::Present(ABSENT_AFTER), "the call has not ended yet");
        note(NOW, NOW);
        assert_eq!(activity(5), Activity::Present(ABSENT_AFTER), "just now");
        let extra = Activity::Present(ABSENT_AFTER + MOST_EXTRA_TIME);
        assert_eq!(of_all(5, false, 500), extra, "it polls others in extra");
        assert_eq!(of_all(5, true, 500), extra, "a busy endpoint does not shorten the time of all");
        note(NOW + 1_000_000, NOW + 1_000_000);
        assert_eq!(activity(5), Activity::Present(ABSENT_AFTER), "it calls after the time was read");
        note(NOW, NOW - 5_000_000);
        assert_eq!(activity(5), Activity::Present(ABSENT_AFTER), "it begins many operations");
        note(NOW, NOW - 20_000_000);
        assert_eq!(activity(4), Activity::Absent, "it only sends");
        assert_eq!(of_all(4, true, 1), Activity::Absent, "it only sends, also now");
    }
}
