//! The OS handle: the socket, beside the timer for deadlines and the waker by which other threads
//! end a wait.

use cci_proto::Time;
use cci_transport::PollSet;
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Result;
use std::net::UdpSocket;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Key of the socket.
const SOCKET: u64 = 0;

pub(crate) struct Ready(PollSet);

impl Ready {
    pub(crate) fn new(socket: &UdpSocket) -> Result<Self> {
        let set = PollSet::new()?;
        set.watch(socket, SOCKET, EventFlags::IN)?;
        Ok(Self(set))
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.0.handle()
    }

    pub(crate) fn waker(&self) -> Arc<OwnedFd> {
        self.0.waker()
    }

    pub(crate) fn is_writable(&self, socket: &UdpSocket) -> bool {
        has(socket, PollFlags::OUT)
    }

    /// Sets the timer, and whether room to send wakes. False: a frame has arrived already, or the
    /// system refuses; the program is to call again instead of sleeping.
    pub(crate) fn arm(&mut self, socket: &UdpSocket, deadline: Option<Time>, wants_write: bool) -> bool {
        let events = if wants_write { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        self.0.rewatch(socket, SOCKET, events).is_ok() && self.0.set_timer(deadline) && !has(socket, PollFlags::IN)
    }

    /// Makes waker and timer quiet.
    pub(crate) fn disarm(&mut self) {
        self.0.drain_waker();
        self.0.drain_timer();
    }
}

/// Whether the socket is ready for this now.
fn has(socket: &UdpSocket, what: PollFlags) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, what)], Some(&now)).is_ok_and(|count| count > 0)
}
