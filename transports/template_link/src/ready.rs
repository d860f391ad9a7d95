//! The OS handle: an epoll of the socket, of a timer for deadlines, and of the waker by which other
//! threads end a wait.

use cci_proto::Time;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Result, read};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::net::UdpSocket;
use std::sync::Arc;

const NOTHING: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

pub(crate) struct Ready {
    epoll: OwnedFd,
    timer: OwnedFd,
    waker: Arc<OwnedFd>,
}

impl Ready {
    pub(crate) fn new(socket: &UdpSocket) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        for fd in [socket.as_fd(), timer.as_fd(), waker.as_fd()] {
            epoll::add(&epoll, fd, EventData::new_u64(0), EventFlags::IN)?;
        }
        Ok(Self { epoll, timer, waker })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(crate) fn waker(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.waker)
    }

    pub(crate) fn is_writable(&self, socket: &UdpSocket) -> bool {
        has(socket, PollFlags::OUT)
    }

    /// Sets the timer, and whether room to send wakes. False: a frame has arrived already, or the
    /// system refuses; the program is to call again instead of sleeping.
    pub(crate) fn arm(&mut self, socket: &UdpSocket, deadline: Option<Time>, wants_write: bool) -> bool {
        let events = if wants_write { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        // Zero would stop the timer, as no deadline does.
        let nanos = deadline.map_or(0, |time| time.0.max(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
        };
        let once = Itimerspec { it_interval: NOTHING, it_value };
        epoll::modify(&self.epoll, socket, EventData::new_u64(0), events).is_ok()
            && timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).is_ok()
            && !has(socket, PollFlags::IN)
    }

    /// Makes waker and timer quiet. Both are non-blocking, and may be quiet already.
    pub(crate) fn disarm(&mut self) {
        for fd in [&*self.waker, &self.timer] {
            let _ = read(fd, &mut [0; 8]);
        }
    }
}

/// Whether the socket is ready for this now.
fn has(socket: &UdpSocket, what: PollFlags) -> bool {
    poll(&mut [PollFd::new(socket, what)], Some(&NOTHING)).is_ok_and(|count| count > 0)
}
