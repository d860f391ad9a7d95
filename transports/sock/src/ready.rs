//! The descriptors of an endpoint, under one epoll descriptor that is its OS handle.

use cci_proto::Time;
use cci_transport::monotonic;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Result;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::sync::Arc;

/// What an epoll entry is for.
const SOCKET: u64 = 0;
const TIMER: u64 = 1;
const WAKER: u64 = 2;
const GROUP: u64 = 3;
const CONNECTED: u64 = 4;

/// What a look at the handle found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// A datagram, an error, or room to send.
    pub(crate) any: bool,
    /// The error queue holds something.
    pub(crate) reports: bool,
    /// That of the connected socket does.
    pub(crate) connected_reports: bool,
}

pub(crate) struct Ready {
    epoll: OwnedFd,
    timer: OwnedFd,
    waker: Arc<OwnedFd>,
    /// When the timer fires, or has fired.
    deadline: Option<Time>,
    /// That is for an edge alone, and gives way to any deadline.
    rings: bool,
    watches_frames: bool,
    watches_room: bool,
}

impl Ready {
    pub(crate) fn new(socket: &OwnedFd) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        for (fd, what) in [(socket, SOCKET), (&timer, TIMER), (&*waker, WAKER)] {
            epoll::add(&epoll, fd, EventData::new_u64(what), EventFlags::IN)?;
        }
        Ok(Self { epoll, timer, waker, deadline: None, rings: false, watches_frames: true, watches_room: false })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(crate) fn waker(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.waker)
    }

    /// Watches a group's socket.
    pub(crate) fn watch_group(&self, socket: &OwnedFd) -> Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(GROUP), EventFlags::IN)
    }

    /// Stops watching it. Closing would not suffice where a forked child still has the descriptor.
    pub(crate) fn forget_group(&self, socket: &OwnedFd) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Watches the connected socket, or stops that.
    pub(crate) fn watch_connected(&self, socket: &OwnedFd, on: bool) -> Result<()> {
        if on {
            epoll::add(&self.epoll, socket, EventData::new_u64(CONNECTED), EventFlags::IN)
        } else {
            epoll::delete(&self.epoll, socket)
        }
    }

    /// Whether frames make the handle readable.
    pub(crate) fn watches_frames(&self) -> bool {
        self.watches_frames
    }

    /// Makes the handle readable at `deadline` at the latest. One that stands and is earlier stays:
    /// an empty call when it passes costs less than a timer set anew with every message, which on a
    /// virtual machine is a trap into its host.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Time>) {
        let suffices = match (self.deadline, deadline) {
            (Some(stands), Some(wanted)) => stands <= wanted && !self.rings,
            (stands, wanted) => stands == wanted,
        };
        if !suffices {
            self.set_timer(deadline);
        }
    }

    /// Has the timer fire at `at`, whatever stood before. False: the system refuses.
    pub(crate) fn ring(&mut self, at: Time) -> bool {
        self.rings = self.set_timer(Some(at));
        self.rings
    }

    fn set_timer(&mut self, deadline: Option<Time>) -> bool {
        // Zero would stop the timer, and one nanosecond after the start of the clock is past as
        // well.
        let nanos = deadline.map_or(0, |time| time.0.max(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
        };
        let value = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        let is_set = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value).is_ok();
        if is_set {
            (self.deadline, self.rings) = (deadline, false);
        }
        is_set
    }

    /// Makes the handle readable when the socket has a datagram, or not: each that arrives then
    /// costs its sender 100 ns less. Says whether it does.
    pub(crate) fn watch_frames(&mut self, socket: &OwnedFd, on: bool) -> bool {
        if on != self.watches_frames {
            let done = if on {
                epoll::add(&self.epoll, socket, EventData::new_u64(SOCKET), self.wanted())
            } else {
                epoll::delete(&self.epoll, socket)
            };
            self.watches_frames ^= done.is_ok();
        }
        self.watches_frames
    }

    /// Makes the handle readable when the socket has room, or not; only while it is watched for
    /// frames.
    pub(crate) fn watch_room(&mut self, socket: &OwnedFd, on: bool) {
        if on != self.watches_room {
            self.watches_room = on;
            if self.watches_frames {
                let _ = epoll::modify(&self.epoll, socket, EventData::new_u64(SOCKET), self.wanted());
            }
        }
    }

    fn wanted(&self) -> EventFlags {
        if self.watches_room { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN }
    }

    /// What makes the handle readable now, but for the waker.
    pub(crate) fn look(&self) -> Found {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut events = [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 8];
        let count = epoll::wait(&self.epoll, &mut events[..], Some(&none)).unwrap_or(0);
        let mut found = Found::default();
        for event in &events[..count] {
            let (what, flags) = (event.data.u64(), event.flags);
            found.any |= what != WAKER;
            found.reports |= what == SOCKET && flags.contains(EventFlags::ERR);
            found.connected_reports |= what == CONNECTED && flags.contains(EventFlags::ERR);
        }
        found
    }

    /// Drains the waker.
    pub(crate) fn drain_waker(&self) {
        let _ = rustix::io::read(&*self.waker, &mut [0_u8; 8]);
    }

    /// Drains the waker, and the timer if it has fired. One that has not is left: a deadline often
    /// stands.
    pub(crate) fn drain(&mut self) {
        self.drain_waker();
        let mut count = [0_u8; 8];
        if self.deadline.is_some_and(|deadline| monotonic() >= deadline) {
            // The clock may be past it a moment before the timer fires: then it stands.
            if rustix::io::read(&self.timer, &mut count[..]).is_ok() {
                (self.deadline, self.rings) = (None, false);
            }
        }
    }
}
