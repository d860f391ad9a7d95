//! The direct socket: bound as the endpoint's own, and connected to the peer that lone frames go to. The system then looks up
//! neither the way there for each that leaves nor the way here for each that comes (`docs/design/sock.md`).

use crate::address;
use crate::open;
use crate::ready::Ready;
use crate::receive::Receiver;
use crate::sys::{self, Choice};
use crate::transmit::Sent;
use cci_proto::Address;
use cci_transport::{Incoming, Outgoing};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{bind, connect, getsockname, sockopt};

/// Lone frames to one peer, and none to another in between, after which it gets the direct socket.
const ROW: u32 = 256;
/// Calls that find nothing for one in which the socket is looked at too that had nothing when the other last had.
const OTHER_EVERY: u32 = 8;
/// The same among calls that find something.
const BUSY_EVERY: u32 = 16;

/// How sockets of an endpoint are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) is_v4: bool,
    pub(crate) wants_marks: bool,
    pub(crate) coalesces: bool,
    pub(crate) buffer: usize,
}

struct Open {
    socket: OwnedFd,
    to: Address,
    is_watched: bool,
}

/// The direct socket, if there is one, and who is to have it.
pub(crate) struct Direct {
    open: Option<Open>,
    pub(crate) receiver: Receiver,
    /// Whom the last lone frames of the endpoint's own socket went to, and how many in a row.
    to: Address,
    row: u32,
    /// The system does not allow it; not tried again.
    is_refused: bool,
    /// An error has come: it is to be closed.
    pub(crate) is_troubled: bool,
    /// It had something when one of the sockets last had.
    leads: bool,
    calls: u32,
}

impl Direct {
    /// None is open. `stride`, `wants_marks`: as of [`Receiver::new`].
    pub(crate) fn new(stride: usize, wants_marks: bool) -> Self {
        Self {
            open: None,
            receiver: Receiver::new(stride, wants_marks),
            to: Address::default(),
            row: 0,
            is_refused: false,
            is_troubled: false,
            leads: false,
            calls: 0,
        }
    }

    /// The socket.
    #[inline]
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.open.as_ref().map(|open| open.socket.as_fd())
    }

    /// Whether it leads there.
    #[inline]
    pub(crate) fn is_to(&self, to: &Address) -> bool {
        self.open.as_ref().is_some_and(|open| open.to == *to)
    }

    /// Sends a lone frame, if it goes to the peer. False: it is for the endpoint's own socket, that can say why it cannot be sent.
    #[inline]
    pub(crate) fn send(&mut self, frame: &Outgoing<'_>, sent: &mut Sent) -> bool {
        let Some(open) = self.open.as_ref().filter(|open| open.to == frame.to) else { return false };
        if frame.piece.is_some() || frame.probe {
            return false;
        }
        sent.calls += 1;
        match sys::send_connected(open.socket.as_fd(), frame.head) {
            Ok(()) => {
                self.row = 0;
                sent.frames += 1;
                true
            }
            Err(error) => {
                self.is_troubled |= !is_passing(error);
                false
            }
        }
    }

    /// Takes datagrams. After an error, which is the peer's, it is to be looked into, and the socket closed.
    pub(crate) fn take(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let Some(open) = &self.open else { return 0 };
        match self.receiver.take(open.socket.as_fd(), budget, sink) {
            Ok(count) => count,
            Err(error) => {
                if error == Errno::AGAIN {
                    // What came before the socket was connected has been taken.
                    self.receiver.only = Some(open.to);
                }
                self.is_troubled |= !is_passing(error);
                0
            }
        }
    }

    /// Notes that a lone frame has left by the endpoint's own socket. One to a group ends no row and makes none.
    #[inline]
    pub(crate) fn note_lone(&mut self, to: &Address) {
        if self.to == *to {
            self.row = self.row.saturating_add(1);
        } else if address::way(to).is_none() {
            (self.to, self.row) = (*to, 1);
        }
    }

    /// Whether the peer of the last lone frames is to have the socket.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.row >= ROW && !self.is_refused
    }

    /// Opens it for the peer of the last lone frames; another one was closed. What the system refuses is not asked again.
    #[cold]
    pub(crate) fn open(&mut self, own: &OwnedFd, how: How, ready: &Ready) {
        self.row = 0;
        let to = self.to;
        let opened = connected(own, how, &to).and_then(|socket| {
            if ready.watches_frames() {
                ready.watch_direct(&socket, true)?;
            }
            Ok(Open { socket, to, is_watched: ready.watches_frames() })
        });
        match opened {
            Ok(open) => {
                self.open = Some(open);
                self.receiver.only = None;
            }
            // The peer cannot be reached now; others can.
            Err(Errno::NETUNREACH | Errno::HOSTUNREACH) => {}
            Err(_) => self.is_refused = true,
        }
    }

    /// Closes it; what has arrived there and was not taken is lost.
    #[cold]
    pub(crate) fn close(&mut self, ready: &Ready) {
        (self.is_troubled, self.leads) = (false, false);
        if let Some(open) = self.open.take()
            && open.is_watched
        {
            // Closing would not suffice where a forked child still has the descriptor.
            let _ = ready.watch_direct(&open.socket, false);
        }
    }

    /// Has the handle tell what arrives there, or not. One that it cannot tell of is closed.
    pub(crate) fn watch(&mut self, ready: &Ready, on: bool) {
        let Some(open) = self.open.as_mut().filter(|open| open.is_watched != on) else { return };
        match ready.watch_direct(&open.socket, on) {
            Ok(()) => open.is_watched = on,
            Err(_) => self.close(ready),
        }
    }

    /// Whether the next look is at this socket first.
    #[inline]
    pub(crate) fn is_first(&self) -> bool {
        self.leads
    }

    /// Whether the other socket is looked at too, after the first one had something or not.
    #[inline]
    pub(crate) fn looks_at_other(&mut self, had_something: bool) -> bool {
        self.calls = self.calls.wrapping_add(1);
        self.calls.is_multiple_of(if had_something { BUSY_EVERY } else { OTHER_EVERY })
    }

    /// Notes which socket had something.
    #[inline]
    pub(crate) fn note_found(&mut self, here: bool) {
        self.leads = here;
    }
}

/// Whether an error says nothing about the socket or its peer.
fn is_passing(error: Errno) -> bool {
    matches!(error, Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM)
}

/// A socket with the name of the endpoint's own, connected.
fn connected(own: &OwnedFd, how: How, to: &Address) -> Result<OwnedFd, Errno> {
    let socket = open::datagram_socket(how.is_v4)?;
    // A thread that has gone to another network since would make it there.
    if !sys::is_same_network(own.as_fd(), socket.as_fd()) {
        return Err(Errno::XDEV);
    }
    open::configure(&socket, how.is_v4, how.wants_marks)?;
    open::set_buffers(&socket, how.buffer);
    if how.coalesces {
        sys::choose(socket.as_fd(), how.is_v4, Choice::Coalesce, 1)?;
    }
    let name = getsockname(own)?;
    // Both have to allow it, to sockets of the same user, for this moment only: ports of endpoints are not shared.
    sockopt::set_socket_reuseport(own, true)?;
    let bound = sockopt::set_socket_reuseport(&socket, true).and_then(|()| bind(&socket, &name));
    sockopt::set_socket_reuseport(own, false)?;
    bound?;
    sockopt::set_socket_reuseport(&socket, false)?;
    connect(&socket, &address::socket(to))?;
    Ok(socket)
}
