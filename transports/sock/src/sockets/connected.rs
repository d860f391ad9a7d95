//! The connected socket: bound to the name of the endpoint's own socket, and connected to the peer
//! that frames go to. The system then looks up no route for each datagram sent, and no socket for
//! each datagram received (`docs/design/sock.md`).

use super::bound::{Bound, ERRORS_AT_ONCE};
use super::receive::{Receiver, Stream};
use super::reports::Reports;
use super::transmit::{BurstOutcome, Transmitter, is_want_of_room};
use crate::address;
use crate::ready::Ready;
use crate::socket::{self, How};
use crate::sys;
use cci_mem::cancellation::Uncancelled;
use cci_proto::Address;
use cci_reliable::{Incoming, Outgoing};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{bind, connect, getsockname, sockopt};
use std::net::{SocketAddr, SocketAddrV6};

/// Datagrams to one peer, with none to another in between, after which the peer gets the connected
/// socket.
const STREAK: u32 = 256;
/// The longest streak that is required, after failures.
const LONGEST_STREAK: u32 = STREAK << 12;
/// Most calls that drain a retired socket: more than it holds. A bound in case it could not be
/// retired.
const MOST_LEFT: u32 = 1 << 14;
/// A port from which no endpoint sends. A retired socket is connected to it.
const NOBODY: u16 = 1;

struct Open {
    socket: OwnedFd,
    to: Address,
    stream: Stream,
    is_watched: bool,
}

/// What the connected socket has taken of a burst.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendOutcome {
    pub(super) count: usize,
    /// The socket has no room. The rest must wait, because it would overtake by another socket.
    pub(super) is_full: bool,
}

/// The connected socket, if there is one, and the streak that earns it.
pub(super) struct Connected {
    open: Option<Open>,
    /// The peer of the current streak on the endpoint's own socket, and its datagrams.
    to: Address,
    streak: u32,
    /// The streak that earns the socket: longer after each failure.
    needed: u32,
    /// Datagrams sent by the open connected socket.
    served: u32,
    /// The socket reported an error, and must be closed.
    has_failed: bool,
    /// The socket may have an error: its queue must be read.
    may_have_failed: bool,
}

impl Default for Connected {
    fn default() -> Self {
        Self {
            open: None,
            to: Address::default(),
            streak: 0,
            needed: STREAK,
            served: 0,
            has_failed: false,
            may_have_failed: false,
        }
    }
}

impl Connected {
    /// The socket.
    #[inline]
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.open.as_ref().map(|open| open.socket.as_fd())
    }

    /// Whose it is.
    pub(super) fn peer(&self) -> Option<Address> {
        self.open.as_ref().map(|open| open.to)
    }

    /// Whether it is connected to this address.
    #[inline]
    pub(super) fn is_to(&self, to: &Address) -> bool {
        self.open.as_ref().is_some_and(|open| open.to == *to)
    }

    /// Sends frames if all go to the peer and none is a probe. The endpoint's own socket sends what
    /// is left, and finds why a frame cannot be sent. Probes go there too, because one that is too
    /// long must not close this socket.
    #[inline]
    pub(super) fn send(&mut self, frames: &[Outgoing<'_>], transmitter: &mut Transmitter) -> SendOutcome {
        let is_for = |open: &&Open| frames.iter().all(|frame| frame.to == open.to && !frame.probe);
        let Some(open) = self.open.as_ref().filter(is_for) else { return SendOutcome::default() };
        let before = transmitter.sent.datagrams;
        let passed = match frames {
            [Outgoing { head, piece: None, .. }] => {
                let met = sys::send_connected(open.socket.as_fd(), head);
                let taken = usize::from(met.is_ok());
                transmitter.sent.calls += 1;
                transmitter.sent.frames += taken as u64;
                transmitter.sent.datagrams += taken as u64;
                BurstOutcome { taken, is_cut_short: false, met }
            }
            frames => transmitter.send_connected(open.socket.as_fd(), frames),
        };
        if passed.taken > 0 {
            let datagrams = transmitter.sent.datagrams - before;
            self.served = self.served.saturating_add(u32::try_from(datagrams).unwrap_or(u32::MAX));
            transmitter.sent.connected += passed.taken as u64;
            self.streak = 0;
        }
        self.may_have_failed |= passed.is_cut_short;
        let is_full = passed.met.is_err_and(is_want_of_room);
        if is_full {
            transmitter.pause();
        }
        self.has_failed |= passed.met.is_err_and(|error| !is_passing(error));
        SendOutcome { count: passed.taken, is_full }
    }

    /// Whether the next receive must read its errors, open it, or close it.
    #[inline]
    pub(super) fn is_unsettled(&self) -> bool {
        self.has_pending() || self.is_wanted()
    }

    /// Whether it has an error, or may have one, that is to be read.
    #[inline]
    pub(super) fn has_pending(&self) -> bool {
        self.has_failed || self.may_have_failed
    }

    /// Whether the next receive must open it, or close it.
    #[inline]
    pub(super) fn is_to_change(&self) -> bool {
        self.has_failed || self.is_wanted()
    }

    /// The handle tells of an error of this socket.
    pub(super) fn on_report(&mut self) {
        self.has_failed |= self.open.is_some();
    }

    /// Reads the error that may have cut a call short. It concerns the peer.
    #[cold]
    pub(super) fn clear_up(&mut self, sink: &mut dyn FnMut(Incoming<'_>), reports: &mut Reports) -> usize {
        let Some(open) = self.open.as_ref().filter(|_| std::mem::take(&mut self.may_have_failed)) else { return 0 };
        let shown = reports.show_beside(open.socket.as_fd(), sink);
        self.has_failed |= shown > 0;
        shown
    }

    /// Passes on what is left in a retired socket, and its error queue.
    #[cold]
    pub(super) fn drain(
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

    /// Receives datagrams. An error concerns the peer: it must be read, and the socket closed.
    pub(super) fn take(&mut self, receiver: &mut Receiver, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let Some(Open { socket, to, stream, .. }) = &mut self.open else { return 0 };
        match receiver.take(socket.as_fd(), stream, budget, sink) {
            Ok(count) => count,
            Err(error) => {
                if error == Errno::AGAIN {
                    // All datagrams from before the connect have been received.
                    stream.only = Some(*to);
                }
                self.has_failed |= !is_passing(error);
                0
            }
        }
    }

    /// Records frames that the endpoint's own socket has sent, in this many datagrams. If all go to
    /// one peer they continue or begin a streak, otherwise they end it. Probes and frames to groups
    /// change nothing.
    #[inline]
    pub(super) fn on_sent_by_own(&mut self, frames: &[Outgoing<'_>], datagrams: u64) {
        let mut to = None;
        for frame in frames {
            if frame.probe || to == Some(frame.to) || address::way(&frame.to).is_some() {
                continue;
            }
            if to.is_some() {
                self.streak = 0;
                return;
            }
            to = Some(frame.to);
        }
        let Some(to) = to.filter(|to| !self.is_to(to)) else { return };
        if self.to != to {
            (self.to, self.streak) = (to, 0);
        }
        self.streak = self.streak.saturating_add(u32::try_from(datagrams).unwrap_or(u32::MAX));
    }

    /// Whether the peer of the last frames has earned the socket.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.streak >= self.needed
    }

    /// The peer of the last frames.
    pub(super) fn wanted_peer(&self) -> Address {
        self.to
    }

    /// Opens the socket for the peer of the last frames, which the socket `bound` has been used
    /// for. No other one may be open.
    #[cold]
    pub(super) fn open(&mut self, bound: &Bound, ready: &Ready) {
        let _uncancelled = Uncancelled::new();
        self.streak = 0;
        let to = self.to;
        let opened = open_connected(&bound.socket, bound.how, &to).and_then(|socket| {
            if ready.watches_frames() {
                ready.watch_connected(&socket, true)?;
            }
            Ok(Open { socket, to, stream: Stream::of(bound.how), is_watched: ready.watches_frames() })
        });
        match opened {
            Ok(open) => {
                self.open = Some(open);
                self.served = 0;
            }
            Err(_) => self.needed = longer(self.needed),
        }
    }

    /// Makes the peer's datagrams arrive at the endpoint's own socket from now on. Closing at once
    /// would lose datagrams that arrive meanwhile, and all later ones where a forked child still
    /// has the descriptor.
    #[cold]
    pub(super) fn retire(&mut self) {
        let _uncancelled = Uncancelled::new();
        if let Some(open) = &self.open
            && let Ok(name) = getsockname(&open.socket).and_then(SocketAddr::try_from)
        {
            let nobody = match name {
                SocketAddr::V4(name) => SocketAddr::from((*name.ip(), NOBODY)),
                SocketAddr::V6(name) => SocketAddrV6::new(*name.ip(), NOBODY, 0, name.scope_id()).into(),
            };
            // If this fails, no frame can arrive either.
            let _ = connect(&open.socket, &nobody);
        }
    }

    /// Closes the socket. Datagrams that it still holds are lost.
    #[cold]
    pub(super) fn close(&mut self, ready: &Ready) {
        let _uncancelled = Uncancelled::new();
        if std::mem::take(&mut self.has_failed) {
            self.streak = 0;
        }
        // An error after long service is the end of a peer, or an error of the path. A socket that
        // is closed soon, for an error or for another peer, was not worth opening.
        self.needed = if self.served >= STREAK { STREAK } else { longer(self.needed) };
        self.may_have_failed = false;
        if let Some(open) = self.open.take()
            && open.is_watched
        {
            // Closing does not suffice where a forked child still has the descriptor.
            let _ = ready.watch_connected(&open.socket, false);
        }
    }

    /// Chooses whether arrivals make the handle readable. A socket for which that fails is closed.
    pub(super) fn watch(&mut self, ready: &Ready, on: bool) {
        let Some(open) = self.open.as_mut().filter(|open| open.is_watched != on) else { return };
        match ready.watch_connected(&open.socket, on) {
            Ok(()) => open.is_watched = on,
            Err(_) => self.has_failed = true,
        }
    }
}

/// The streak that is required after a failure.
fn longer(streak: u32) -> u32 {
    (streak * 2).min(LONGEST_STREAK)
}

/// Whether an error concerns neither the socket nor its peer.
fn is_passing(error: Errno) -> bool {
    is_want_of_room(error) || matches!(error, Errno::INTR | Errno::FAULT)
}

/// Opens a socket with the name of `own`, connected to `to`.
fn open_connected(own: &OwnedFd, how: How, to: &Address) -> Result<OwnedFd, Errno> {
    let socket = socket::datagram_socket(how.is_v4)?;
    // A thread that has moved to another network namespace would open it there.
    if !sys::is_same_network(own.as_fd(), socket.as_fd()) {
        return Err(Errno::XDEV);
    }
    socket::configure(&socket, how.is_v4, how.wants_marks)?;
    socket::prepare_to_receive(&socket, how)?;
    let name = getsockname(own)?;
    // Both sockets must allow the shared name, for this moment only: ports of endpoints are not
    // shared.
    sockopt::set_socket_reuseport(own, true)?;
    let bound = sockopt::set_socket_reuseport(&socket, true).and_then(|()| bind(&socket, &name));
    sockopt::set_socket_reuseport(own, false)?;
    bound?;
    sockopt::set_socket_reuseport(&socket, false)?;
    connect(&socket, &address::socket(to))?;
    Ok(socket)
}
