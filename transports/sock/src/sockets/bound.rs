//! A socket that is bound to a name, with what belongs to it alone.

use super::ERRORS_AT_ONCE;
use super::receive::{Receiver, Stream};
use super::reports::Reports;
use super::transmit::Transmitter;
use crate::socket::How;
use cci_reliable::{Incoming, Outgoing};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

/// A bound socket that any peer of its kind uses.
pub(super) struct Bound {
    pub(super) socket: OwnedFd,
    /// How it was made, and how a socket for one of its peers is made.
    pub(super) how: How,
    /// How datagrams come.
    pub(super) stream: Stream,
    pub(super) reports: Reports,
}

impl Bound {
    /// Takes over a socket that was made as `how` says. `mtu`: the largest frame that leaves there
    /// for certain, bytes.
    pub(super) fn new(socket: OwnedFd, how: How, mtu: u16) -> Self {
        Self { socket, how, stream: Stream::of(how), reports: Reports::new(mtu, how) }
    }

    /// Sends frames in order; returns how many were taken, those among them that were lost.
    #[inline]
    pub(super) fn send(&mut self, frames: &[Outgoing<'_>], transmitter: &mut Transmitter) -> usize {
        transmitter.send(self.socket.as_fd(), frames, &mut self.reports)
    }

    /// Shows errors that wait; returns how many.
    pub(super) fn show_reports(&mut self, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        self.reports.show(self.socket.as_fd(), sink)
    }

    /// Takes datagrams, with the errors of others cleared away; returns how many frames were shown.
    pub(super) fn take(&mut self, receiver: &mut Receiver, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        for _ in 0..ERRORS_AT_ONCE {
            match receiver.take(self.socket.as_fd(), &mut self.stream, budget, sink) {
                Ok(count) => return shown + count,
                Err(Errno::AGAIN) => return shown,
                // The error of a datagram that was sent: what it is about stands in the queue. The
                // call is repeated.
                Err(_) => {
                    self.reports.pending = true;
                    shown += self.show_reports(sink);
                }
            }
        }
        shown
    }
}
