//! The descriptors of an OS handle: an epoll descriptor with a timer and a waker in it
//! (`docs/design/threading.md`).

use crate::{CallError, NameCall};
use cci_mem::descriptors;
use cci_proto::Time;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Result, read, write};
use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// An epoll descriptor, which is the OS handle of an endpoint, and the two descriptors that every
/// handle has in it: a timer for deadlines and edges, and an eventfd, the waker. The transport adds
/// its own descriptors.
///
/// No call blocks. All but [`PollSet::write_waker`] need the endpoint's lock; whoever has the
/// [`PollSet::waker`] may write it from any thread.
///
/// ```
/// use cci_proto::Time;
/// use cci_transport::PollSet;
/// let set = PollSet::new()?;
/// let mut events = [PollSet::NO_EVENT; 4];
/// assert_eq!(set.ready(&mut events)?, 0);
/// set.write_waker();
/// assert_eq!((set.ready(&mut events)?, events[0].data.u64()), (1, PollSet::WAKER));
/// set.drain_waker();
/// assert!(set.set_timer(Some(Time(0))), "a time that has passed");
/// assert_eq!((set.ready(&mut events)?, events[0].data.u64()), (1, PollSet::TIMER));
/// # Ok::<(), rustix::io::Errno>(())
/// ```
pub struct PollSet {
    epoll: Arc<OwnedFd>,
    timer: OwnedFd,
    waker: Arc<OwnedFd>,
}

impl PollSet {
    /// Key of the timer. A transport gives its own descriptors other keys.
    pub const TIMER: u64 = u64::MAX;
    /// Key of the waker.
    pub const WAKER: u64 = u64::MAX - 1;
    /// What a buffer for [`PollSet::ready`] is filled with before the call.
    pub const NO_EVENT: Event = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };

    /// Makes the three descriptors. The timer is off, the waker drained.
    ///
    /// # Errors
    ///
    /// No descriptor is left, or no memory.
    pub fn new() -> std::result::Result<Self, CallError> {
        let epoll = Arc::new(descriptors::epoll().by("epoll_create1")?);
        let timer = descriptors::timer().by("timerfd_create")?;
        let waker = Arc::new(descriptors::eventfd(0).by("eventfd2")?);
        let set = Self { epoll, timer, waker };
        set.watch(&set.timer, Self::TIMER, EventFlags::IN).by("epoll_ctl")?;
        set.watch(&*set.waker, Self::WAKER, EventFlags::IN).by("epoll_ctl")?;
        Ok(set)
    }

    /// The OS handle.
    #[must_use]
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// The OS handle, for a call that waits on it without the endpoint's lock.
    #[must_use]
    pub fn shared_handle(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.epoll)
    }

    /// The timer, for another epoll descriptor.
    #[must_use]
    pub fn timer(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// The waker, for threads that make the handle readable without the endpoint's lock.
    #[must_use]
    pub fn waker(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.waker)
    }

    /// Watches a descriptor for these events.
    ///
    /// # Errors
    ///
    /// Those of `epoll_ctl`.
    pub fn watch(&self, descriptor: impl AsFd, key: u64, events: EventFlags) -> Result<()> {
        epoll::add(&self.epoll, descriptor, EventData::new_u64(key), events)
    }

    /// Watches a descriptor of the set for other events.
    ///
    /// # Errors
    ///
    /// Those of `epoll_ctl`.
    pub fn rewatch(&self, descriptor: impl AsFd, key: u64, events: EventFlags) -> Result<()> {
        epoll::modify(&self.epoll, descriptor, EventData::new_u64(key), events)
    }

    /// Stops watching a descriptor. Closing it does not suffice where a forked child still has it.
    ///
    /// # Errors
    ///
    /// Those of `epoll_ctl`.
    pub fn unwatch(&self, descriptor: impl AsFd) -> Result<()> {
        epoll::delete(&self.epoll, descriptor)
    }

    /// Fills in what is ready now, and returns its number.
    ///
    /// # Errors
    ///
    /// Those of `epoll_wait`.
    pub fn ready(&self, events: &mut [Event]) -> Result<usize> {
        epoll::wait(&self.epoll, events, Some(&ZERO))
    }

    /// Whether the handle is readable, for whatever reason: where [`PollSet::ready`] fails.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&ZERO)) == Ok(1)
    }

    /// Whether the timer has fired, and was not drained.
    #[must_use]
    pub fn is_timer_readable(&self) -> bool {
        poll(&mut [PollFd::new(&self.timer, PollFlags::IN)], Some(&ZERO)) == Ok(1)
    }

    /// Sets the timer to a time of [`monotonic`](crate::monotonic); `None`: never. False: the
    /// system refuses, and the timer is as before.
    pub fn set_timer(&self, at: Option<Time>) -> bool {
        // Zero would stop the timer, and the first nanosecond of the clock has passed as well.
        let nanos = at.map_or(0, |at| at.0.max(1));
        let part = |nanos: u64| i64::try_from(nanos).unwrap_or(i64::MAX);
        let it_value = Timespec { tv_sec: part(nanos / 1_000_000_000), tv_nsec: part(nanos % 1_000_000_000) };
        let once = Itimerspec { it_interval: ZERO, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).is_ok()
    }

    /// Drains the timer. True: it had fired.
    pub fn drain_timer(&self) -> bool {
        read(&self.timer, &mut [0_u8; 8]).is_ok()
    }

    /// Makes the handle readable, with an edge also where it is readable already.
    pub fn write_waker(&self) {
        // Non-blocking, and never full.
        let _ = write(&*self.waker, &1_u64.to_ne_bytes());
    }

    /// Drains the waker, which may be drained already.
    pub fn drain_waker(&self) {
        let _ = read(&*self.waker, &mut [0_u8; 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monotonic;

    fn ready_keys(set: &PollSet) -> Vec<u64> {
        let mut events = [PollSet::NO_EVENT; 4];
        let count = set.ready(&mut events).expect("descriptors");
        events[..count].iter().map(|event| event.data.u64()).collect()
    }

    #[test]
    fn a_descriptor_makes_the_handle_readable_while_it_is_watched() {
        let set = PollSet::new().expect("descriptors");
        let event = descriptors::eventfd(1).expect("a descriptor");
        assert!(!set.is_readable());
        set.watch(&event, 7, EventFlags::IN).expect("watched");
        assert_eq!(ready_keys(&set), [7]);
        set.rewatch(&event, 7, EventFlags::empty()).expect("watched for nothing");
        assert!(!set.is_readable());
        set.rewatch(&event, 8, EventFlags::IN).expect("watched again");
        assert_eq!(ready_keys(&set), [8]);
        set.unwatch(&event).expect("watched until now");
        assert!(!set.is_readable());
    }

    #[test]
    fn the_timer_fires_at_its_time_and_is_quiet_once_drained() {
        let set = PollSet::new().expect("descriptors");
        assert!(set.set_timer(Some(Time(monotonic().0 + 3_600_000_000_000))));
        assert!(!set.is_readable() && !set.drain_timer(), "in an hour");
        for past in [Time(0), monotonic()] {
            assert!(set.set_timer(Some(past)));
            assert!(poll(&mut [PollFd::new(&set.handle(), PollFlags::IN)], None) == Ok(1));
            assert!(set.drain_timer() && !set.is_readable());
        }
        assert!(set.set_timer(Some(Time(0))) && set.set_timer(None));
        assert!(!set.is_readable(), "it is off");
    }
}
