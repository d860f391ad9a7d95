//! The OS handle: an epoll of the waker, which arrivals write, and of a timer for deadlines.
//!
//! One descriptor stands for all reasons to call, because a program puts one into its event loop.

use cci_proto::Time;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Result;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

pub(crate) struct Handle {
    epoll: OwnedFd,
    waker: Arc<OwnedFd>,
    timer: OwnedFd,
    /// What the timer is set to: setting it costs a system call.
    deadline: Option<Time>,
}

impl Handle {
    pub(crate) fn new() -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &*waker, EventData::new_u64(0), EventFlags::IN)?;
        epoll::add(&epoll, &timer, EventData::new_u64(1), EventFlags::IN)?;
        Ok(Self { epoll, waker, timer, deadline: None })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(crate) fn waker(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.waker)
    }

    /// Makes the handle readable at a deadline, and quiet as far as the last one was the reason.
    pub(crate) fn set_timer(&mut self, deadline: Option<Time>) {
        if self.deadline == deadline {
            return;
        }
        // Zero stops the timer.
        let nanos = deadline.map_or(0, |time| time.0.max(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        if timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).is_ok() {
            self.deadline = deadline;
        }
    }
}

/// Makes a waker readable. It is non-blocking, and never full.
pub(crate) fn ring(waker: &OwnedFd) {
    let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
}

/// Makes a waker quiet.
pub(crate) fn drain(waker: &OwnedFd) {
    let _ = rustix::io::read(waker, &mut [0; 8]);
}
