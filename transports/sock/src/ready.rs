//! The OS handle: the sockets of an endpoint, beside the timer and the waker of every handle.

use cci_proto::Time;
use cci_transport::{CallError, NameCall, PollSet, monotonic};
use rustix::event::epoll::EventFlags;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};
use std::sync::Arc;

/// Keys of the descriptors.
const SOCKET: u64 = 0;
const GROUP: u64 = 1;
const CONNECTED: u64 = 2;
const OUTWARD: u64 = 3;

/// What a look at the handle found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// A datagram, an error, or room to send.
    pub(crate) any: bool,
    /// The error queue holds something.
    pub(crate) reports: bool,
    /// That of the connected socket does.
    pub(crate) connected_reports: bool,
    /// That of the outward socket does.
    pub(crate) outward_reports: bool,
}

pub(crate) struct Ready {
    set: PollSet,
    /// When the timer fires, or has fired.
    deadline: Option<Time>,
    /// That is for an edge alone, and gives way to any deadline.
    rings: bool,
    watches_frames: bool,
    watches_room: bool,
}

impl Ready {
    pub(crate) fn new(socket: &OwnedFd) -> std::result::Result<Self, CallError> {
        let set = PollSet::new()?;
        set.watch(socket, SOCKET, EventFlags::IN).by("epoll_ctl")?;
        Ok(Self { set, deadline: None, rings: false, watches_frames: true, watches_room: false })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.set.handle()
    }

    pub(crate) fn waker(&self) -> Arc<OwnedFd> {
        self.set.waker()
    }

    /// Watches a group's socket.
    pub(crate) fn watch_group(&self, socket: &OwnedFd) -> Result<()> {
        self.set.watch(socket, GROUP, EventFlags::IN)
    }

    /// Stops watching it. Closing would not suffice where a forked child still has the descriptor.
    pub(crate) fn forget_group(&self, socket: &OwnedFd) {
        let _ = self.set.unwatch(socket);
    }

    /// Watches the connected socket, or stops that.
    pub(crate) fn watch_connected(&self, socket: &OwnedFd, on: bool) -> Result<()> {
        if on { self.set.watch(socket, CONNECTED, EventFlags::IN) } else { self.set.unwatch(socket) }
    }

    /// Watches the outward socket, or stops that.
    pub(crate) fn watch_outward(&self, socket: &OwnedFd, on: bool) -> Result<()> {
        if on { self.set.watch(socket, OUTWARD, EventFlags::IN) } else { self.set.unwatch(socket) }
    }

    /// Whether frames make the handle readable.
    pub(crate) fn watches_frames(&self) -> bool {
        self.watches_frames
    }

    /// Makes the handle readable at `deadline` at the latest. One that stands and is earlier stays:
    /// an empty call when it passes costs less than a timer set anew with every message, which on a
    /// virtual machine is a trap into its host. False: the system refuses.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Time>) -> bool {
        let suffices = match (self.deadline, deadline) {
            (Some(stands), Some(wanted)) => stands <= wanted && !self.rings,
            (stands, wanted) => stands == wanted,
        };
        suffices || self.set_timer(deadline)
    }

    /// Has the timer fire at `at`, whatever stood before. False: the system refuses.
    pub(crate) fn ring(&mut self, at: Time) -> bool {
        self.rings = self.set_timer(Some(at));
        self.rings
    }

    fn set_timer(&mut self, deadline: Option<Time>) -> bool {
        let is_set = self.set.set_timer(deadline);
        if is_set {
            (self.deadline, self.rings) = (deadline, false);
        }
        is_set
    }

    /// Makes the handle readable when the socket has a datagram, or not: each that arrives then
    /// costs its sender 100 ns less. Says whether it does.
    pub(crate) fn watch_frames(&mut self, socket: &OwnedFd, on: bool) -> bool {
        if on != self.watches_frames {
            let done = if on { self.set.watch(socket, SOCKET, self.wanted()) } else { self.set.unwatch(socket) };
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
                let _ = self.set.rewatch(socket, SOCKET, self.wanted());
            }
        }
    }

    fn wanted(&self) -> EventFlags {
        if self.watches_room { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN }
    }

    /// What makes the handle readable now, but for the waker.
    pub(crate) fn poll(&self) -> Found {
        let mut events = [PollSet::NO_EVENT; 8];
        let mut found = Found::default();
        let count = match self.set.ready(&mut events) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(_) => {
                // What is ready is not reported: every queue of errors may have something.
                let any = self.set.is_readable();
                return Found { any, reports: any, connected_reports: any, outward_reports: any };
            }
        };
        for event in &events[..count] {
            let (what, flags) = (event.data.u64(), event.flags);
            found.any |= what != PollSet::WAKER;
            found.reports |= what == SOCKET && flags.contains(EventFlags::ERR);
            found.connected_reports |= what == CONNECTED && flags.contains(EventFlags::ERR);
            found.outward_reports |= what == OUTWARD && flags.contains(EventFlags::ERR);
        }
        found
    }

    /// Makes the handle readable.
    pub(crate) fn write_waker(&self) {
        self.set.write_waker();
    }

    /// Drains the waker.
    pub(crate) fn drain_waker(&self) {
        self.set.drain_waker();
    }

    /// Drains the waker, and the timer if it has fired. One that has not is left: a deadline often
    /// stands.
    pub(crate) fn drain(&mut self) {
        self.drain_waker();
        // The clock may be past it a moment before the timer fires: then it stands.
        if self.deadline.is_some_and(|deadline| monotonic() >= deadline) && self.set.drain_timer() {
            (self.deadline, self.rings) = (None, false);
        }
    }
}
