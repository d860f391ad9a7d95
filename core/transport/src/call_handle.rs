//! The descriptor that blocking calls sleep on ([`CallHandle`]; `docs/design/threading.md`,
//! Blocking calls).

use crate::Readiness;
use cci_mem::descriptors;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::{Errno, Result};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// How long a call sleeps where the system refuses to drain its descriptor.
const PAUSE: Duration = Duration::from_micros(200);
const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The descriptor that blocking calls of an endpoint sleep on: an edge-triggered epoll descriptor
/// over the OS handle. It reports each edge of the handle once, however long events that nobody
/// takes keep the handle readable.
///
/// | state | it is | leaves the state by |
/// |---|---|---|
/// | absent, until the first blocking call sleeps | nowhere | [`CallHandle::open`] |
/// | reported: an edge came since the last drain, or it was just opened over a readable handle | readable | [`CallHandle::drain`] |
/// | drained | readable with the next edge | an edge |
///
/// A call that is to sleep opens the descriptor, makes quiet what is stale in the handle, drains,
/// arms the handle's descriptors, checks them, and only then sleeps on it: what arrived before
/// the drain is found by the check, and what arrives after it gives an edge. Whatever the endpoint
/// itself makes readable in between needs another drain. Needs the endpoint's lock; no call blocks.
///
/// ```
/// use cci_transport::{CallHandle, PollSet, Readiness};
/// let (set, mut readiness) = (PollSet::new()?, Readiness::default());
/// let mut calls = CallHandle::default();
/// assert!(calls.shared().is_none(), "no call has slept");
/// calls.open(set.handle(), &mut readiness)?;
/// set.write_waker();
/// calls.drain();
/// // The handle stays readable, and this descriptor is not, until the next edge.
/// assert!(calls.shared().is_some() && readiness.waits_in_call());
/// # Ok::<(), rustix::io::Errno>(())
/// ```
#[derive(Debug, Default)]
pub struct CallHandle {
    epoll: Option<Arc<OwnedFd>>,
}

impl CallHandle {
    /// Makes the descriptor over this OS handle, unless it is there. From then on the handle is
    /// settled after each call ([`Readiness::on_wait_in_call`]).
    ///
    /// # Errors
    ///
    /// No descriptor is left, or no memory. It is absent still.
    pub fn open(&mut self, handle: BorrowedFd<'_>, readiness: &mut Readiness) -> Result<()> {
        if self.epoll.is_none() {
            let epoll = descriptors::epoll()?;
            epoll::add(&epoll, handle, EventData::new_u64(0), EventFlags::IN | EventFlags::ET)?;
            self.epoll = Some(Arc::new(epoll));
            readiness.on_wait_in_call();
        }
        Ok(())
    }

    /// Drains the edges that came until now.
    pub fn drain(&self) {
        if let Some(epoll) = &self.epoll {
            let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 1];
            match epoll::wait(epoll, &mut events[..], Some(&NO_TIME)) {
                Ok(_) | Err(Errno::INTR) => {}
                // What cannot be drained stays readable. A pause keeps the call from spinning.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// The descriptor for a call to sleep on, which may outlive the endpoint. `None`: it is absent.
    #[must_use]
    pub fn shared(&self) -> Option<Arc<OwnedFd>> {
        self.epoll.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PollSet;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::os::fd::AsFd;

    fn is_readable(descriptor: impl AsFd) -> bool {
        poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&NO_TIME)) == Ok(1)
    }

    #[test]
    fn each_edge_is_reported_once_while_the_handle_stays_readable() {
        let (set, mut readiness) = (PollSet::new().expect("descriptors"), Readiness::default());
        let mut calls = CallHandle::default();
        set.write_waker();
        calls.open(set.handle(), &mut readiness).expect("a descriptor");
        let shared = calls.shared().expect("a descriptor");
        assert!(is_readable(&shared), "the handle was readable before");
        calls.drain();
        assert!(!is_readable(&shared) && is_readable(set.handle()));
        set.write_waker();
        assert!(is_readable(&shared), "another edge");
        calls.drain();
        set.drain_waker();
        assert!(!is_readable(&shared));
    }

    #[test]
    fn what_a_call_sleeps_on_outlives_the_endpoint() {
        let (set, mut readiness) = (PollSet::new().expect("descriptors"), Readiness::default());
        let mut calls = CallHandle::default();
        calls.open(set.handle(), &mut readiness).expect("a descriptor");
        let shared = calls.shared().expect("a descriptor");
        drop((calls, set));
        assert!(!is_readable(&shared));
    }

    #[test]
    fn the_handle_is_told_of_blocking_calls_once_one_can_sleep() {
        let mut readiness = Readiness::default();
        let mut calls = CallHandle::default();
        calls.drain();
        assert!(calls.shared().is_none());
        let file = std::fs::File::open("/proc/self/maps").expect("a file");
        assert!(calls.open(file.as_fd(), &mut readiness).is_err(), "epoll takes no file");
        assert!(calls.shared().is_none() && !readiness.waits_in_call());
        let set = PollSet::new().expect("descriptors");
        for _ in 0..2 {
            calls.open(set.handle(), &mut readiness).expect("a descriptor");
            assert!(calls.shared().is_some() && readiness.waits_in_call());
        }
    }
}
