//! The direct socket: bound as the endpoint's own, and connected to the peer that frames go to. The system then looks up
//! neither the way there for each that leaves nor the way here for each that comes (`docs/design/sock.md`).

use crate::ERRORS_AT_ONCE;
use crate::address;
use crate::open::{self, How};
use crate::ready::Ready;
use crate::receive::{Receiver, Stream};
use crate::reports::Reports;
use crate::sys;
use crate::transmit::{Passed, Transmitter, is_want_of_room};
use cci_mem::cancellation::Uncancelled;
use cci_proto::Address;
use cci_transport::{Incoming, Outgoing};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{bind, connect, getsockname, sockopt};
use std::net::{SocketAddr, SocketAddrV6};

/// Datagrams to one peer, and none to another in between, after which it gets the direct socket.
const ROW: u32 = 256;
/// The longest row that is asked for, after failures.
const LONGEST_ROW: u32 = ROW << 12;
/// Every so many calls look at the other socket first, which had nothing when this one last had: so that a busy one does not keep
/// it waiting, and an idle one costs little.
const TURN_EVERY: u32 = 16;
/// After one socket had something and then the other one, so many calls look at both.
const MIXED: u32 = 1024;
/// Calls that take what is left in a socket: more than it holds, and a bound where it could not be retired.
const MOST_LEFT: u32 = 1 << 14;
/// A port that no endpoint sends from: a socket that is being closed is connected to it.
const NOBODY: u16 = 1;

struct Open {
    socket: OwnedFd,
    to: Address,
    stream: Stream,
    is_watched: bool,
}

/// What it has taken of a burst.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) count: usize,
    /// There is no room for the rest now, which is to wait: by another socket it would overtake.
    pub(crate) is_full: bool,
}

/// The direct socket, if there is one, and who is to have it.
pub(crate) struct Direct {
    open: Option<Open>,
    /// Whom the last datagrams of the endpoint's own socket went to, and how many in a row.
    to: Address,
    row: u32,
    /// How long a row earns the socket: longer after each failure.
    needed: u32,
    /// Datagrams that have left by the one that is open.
    served: u32,
    /// An error has come: it is to be closed.
    pub(crate) is_troubled: bool,
    /// An error may have come: it is to be looked for.
    pub(crate) is_doubtful: bool,
    /// It had something when one of the sockets last had.
    leads: bool,
    calls: u32,
    /// Calls left that look at both sockets.
    mixed: u32,
}

impl Default for Direct {
    fn default() -> Self {
        Self {
            open: None,
            to: Address::default(),
            row: 0,
            needed: ROW,
            served: 0,
            is_troubled: false,
            is_doubtful: false,
            leads: false,
            calls: 0,
            mixed: 0,
        }
    }
}

impl Direct {
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

    /// Sends frames that all go to the peer. The rest, and all others, are for the endpoint's own socket, that can say why they cannot be
    /// sent. Probes are: that they are too long says nothing about the socket.
    #[inline]
    pub(crate) fn send(&mut self, frames: &[Outgoing<'_>], transmitter: &mut Transmitter) -> Taken {
        let is_for = |open: &&Open| frames.iter().all(|frame| frame.to == open.to && !frame.probe);
        let Some(open) = self.open.as_ref().filter(is_for) else { return Taken::default() };
        let before = transmitter.sent.datagrams;
        let passed = match frames {
            [Outgoing { head, piece: None, .. }] => {
                let met = sys::send_connected(open.socket.as_fd(), head);
                let taken = usize::from(met.is_ok());
                transmitter.sent.calls += 1;
                transmitter.sent.frames += taken as u64;
                transmitter.sent.datagrams += taken as u64;
                Passed { taken, is_cut_short: false, met }
            }
            frames => transmitter.send_connected(open.socket.as_fd(), frames),
        };
        if passed.taken > 0 {
            let datagrams = transmitter.sent.datagrams - before;
            self.served = self.served.saturating_add(u32::try_from(datagrams).unwrap_or(u32::MAX));
            transmitter.sent.direct += passed.taken as u64;
            self.row = 0;
        }
        self.is_doubtful |= passed.is_cut_short;
        let is_full = passed.met.is_err_and(is_want_of_room);
        if is_full {
            transmitter.rest();
        }
        self.is_troubled |= passed.met.is_err_and(|error| !is_passing(error));
        Taken { count: passed.taken, is_full }
    }

    /// Whether it is to be looked after by [`Direct::clear_up`], opened, or closed.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.is_troubled || self.is_doubtful || self.is_wanted()
    }

    /// Looks for the error that may have cut a call short. It is the peer's.
    #[cold]
    pub(crate) fn clear_up(&mut self, sink: &mut dyn FnMut(Incoming<'_>), reports: &mut Reports) -> usize {
        let Some(open) = self.open.as_ref().filter(|_| std::mem::take(&mut self.is_doubtful)) else { return 0 };
        let shown = reports.show_beside(open.socket.as_fd(), sink);
        self.is_troubled |= shown > 0;
        shown
    }

    /// Shows what is left in a socket that was retired, and its error queue.
    #[cold]
    pub(crate) fn drain(
        &mut self,
        receiver: &mut Receiver,
        sink: &mut dyn FnMut(Incoming<'_>),
        reports: &mut Reports,
    ) -> usize {
        let Some(Open { socket, stream, .. }) = &mut self.open else { return 0 };
        let socket = socket.as_fd();
        let (mut shown, mut errors) = (reports.show_beside(socket, sink), 0);
        for _ in 0..MOST_LEFT {
            match receiver.take(socket, stream, usize::MAX, sink) {
                // None of it a frame, maybe.
                Ok(count) => shown += count,
                Err(error) if error == Errno::AGAIN || errors == ERRORS_AT_ONCE => break,
                Err(_) => {
                    errors += 1;
                    shown += reports.show_beside(socket, sink);
                }
            }
        }
        shown
    }

    /// Takes datagrams. After an error, which is the peer's, it is to be looked into, and the socket closed.
    pub(crate) fn take(&mut self, receiver: &mut Receiver, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let Some(Open { socket, to, stream, .. }) = &mut self.open else { return 0 };
        match receiver.take(socket.as_fd(), stream, budget, sink) {
            Ok(count) => count,
            Err(error) => {
                if error == Errno::AGAIN {
                    // What came before the socket was connected has been taken.
                    stream.only = Some(*to);
                }
                self.is_troubled |= !is_passing(error);
                0
            }
        }
    }

    /// Notes that frames have left by the endpoint's own socket, in so many datagrams. They go on with a row, or begin one, if they all
    /// go to one peer, and end it otherwise. What could not go by this socket, or goes to a group, does neither.
    #[inline]
    pub(crate) fn note_others(&mut self, frames: &[Outgoing<'_>], datagrams: u64) {
        let mut to = None;
        for frame in frames {
            if frame.probe || to == Some(frame.to) || address::way(&frame.to).is_some() {
                continue;
            }
            if to.is_some() {
                self.row = 0;
                return;
            }
            to = Some(frame.to);
        }
        let Some(to) = to.filter(|to| !self.is_to(to)) else { return };
        if self.to != to {
            (self.to, self.row) = (to, 0);
        }
        self.row = self.row.saturating_add(u32::try_from(datagrams).unwrap_or(u32::MAX));
    }

    /// Whether the peer of the last frames is to have the socket.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.row >= self.needed
    }

    /// Opens it for the peer of the last frames; another one was closed.
    #[cold]
    pub(crate) fn open(&mut self, own: &OwnedFd, how: How, ready: &Ready) {
        let _uncancelled = Uncancelled::new();
        self.row = 0;
        let to = self.to;
        let opened = connected(own, how, &to).and_then(|socket| {
            if ready.watches_frames() {
                ready.watch_direct(&socket, true)?;
            }
            Ok(Open { socket, to, stream: Stream::default(), is_watched: ready.watches_frames() })
        });
        match opened {
            Ok(open) => {
                self.open = Some(open);
                self.served = 0;
            }
            Err(_) => self.needed = longer(self.needed),
        }
    }

    /// Has what the peer sends arrive at the endpoint's own socket from now on. Closing would lose what comes meanwhile, and all of it
    /// where a forked child still has the descriptor.
    #[cold]
    pub(crate) fn retire(&mut self) {
        let _uncancelled = Uncancelled::new();
        if let Some(open) = &self.open
            && let Ok(name) = getsockname(&open.socket).and_then(SocketAddr::try_from)
        {
            let nobody = match name {
                SocketAddr::V4(name) => SocketAddr::from((*name.ip(), NOBODY)),
                SocketAddr::V6(name) => SocketAddrV6::new(*name.ip(), NOBODY, 0, name.scope_id()).into(),
            };
            // Where it fails, no frame can come either.
            let _ = connect(&open.socket, &nobody);
        }
    }

    /// Closes it; what has arrived there and was not taken is lost.
    #[cold]
    pub(crate) fn close(&mut self, ready: &Ready) {
        let _uncancelled = Uncancelled::new();
        if std::mem::take(&mut self.is_troubled) {
            self.row = 0;
        }
        // An error after long service is the end of a peer, or a path's word. A socket that is soon closed, for an error or for another
        // peer, was not worth its while.
        self.needed = if self.served >= ROW { ROW } else { longer(self.needed) };
        self.is_doubtful = false;
        self.leads = false;
        if let Some(open) = self.open.take()
            && open.is_watched
        {
            // Closing would not suffice where a forked child still has the descriptor.
            let _ = ready.watch_direct(&open.socket, false);
        }
    }

    /// Has the handle tell what arrives there, or not. One that it cannot tell of is to be closed.
    pub(crate) fn watch(&mut self, ready: &Ready, on: bool) {
        let Some(open) = self.open.as_mut().filter(|open| open.is_watched != on) else { return };
        match ready.watch_direct(&open.socket, on) {
            Ok(()) => open.is_watched = on,
            Err(_) => self.is_troubled = true,
        }
    }

    /// Whether this call looks here first, and whether it looks at the other socket too if it finds nothing.
    #[inline]
    pub(crate) fn next_look(&mut self) -> (bool, bool) {
        self.calls = self.calls.wrapping_add(1);
        let is_turn = self.calls.is_multiple_of(TURN_EVERY);
        let is_mixed = self.mixed > 0;
        self.mixed = self.mixed.saturating_sub(1);
        (self.leads ^ is_turn, is_turn || is_mixed)
    }

    /// Notes which socket had something.
    #[inline]
    pub(crate) fn note_found(&mut self, here: bool) {
        if self.leads != here {
            (self.leads, self.mixed) = (here, MIXED);
        }
    }
}

/// The row that is asked for after a failure.
fn longer(row: u32) -> u32 {
    (row * 2).min(LONGEST_ROW)
}

/// Whether an error says nothing about the socket or its peer.
fn is_passing(error: Errno) -> bool {
    is_want_of_room(error) || matches!(error, Errno::INTR | Errno::FAULT)
}

/// A socket with the name of the endpoint's own, connected.
fn connected(own: &OwnedFd, how: How, to: &Address) -> Result<OwnedFd, Errno> {
    let socket = open::datagram_socket(how.is_v4)?;
    // A thread that has gone to another network since would make it there.
    if !sys::is_same_network(own.as_fd(), socket.as_fd()) {
        return Err(Errno::XDEV);
    }
    open::configure(&socket, how.is_v4, how.wants_marks)?;
    open::prepare_to_receive(&socket, how)?;
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
