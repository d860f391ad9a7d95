//! A socket that is bound to a name, with what belongs to it alone.

use super::receive::{Receiver, Stream};
use super::refusals::{Refusals, is_of_receive};
use super::reports::{Reports, down};
use super::transmit::Transmitter;
use crate::socket::How;
use cci_reliable::{Incoming, Outgoing};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

/// Errors of other datagrams that one receive clears away.
pub(super) const ERRORS_AT_ONCE: usize = 4;

/// A bound socket that any peer of its kind uses.
pub(super) struct Bound {
    pub(super) socket: OwnedFd,
    /// How it was made, and how a socket for one of its peers is made.
    pub(super) how: How,
    /// How datagrams come.
    pub(super) stream: Stream,
    pub(super) reports: Reports,
    /// Receives that the system has refused.
    pub(super) refusals: Refusals,
}

impl Bound {
    /// Takes over a socket that was made as `how` says. `mtu`: the largest frame that leaves there
    /// for certain, bytes.
    pub(super) fn new(socket: OwnedFd, how: How, mtu: u16) -> Self {
        let (stream, reports) = (Stream::of(how), Reports::new(mtu, how));
        Self { socket, how, stream, reports, refusals: Refusals::default() }
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
        let (mut shown, mut last) = (0, None);
        for _ in 0..ERRORS_AT_ONCE {
            match receiver.take(self.socket.as_fd(), &mut self.stream, budget, sink) {
                Ok(count) => return shown + count,
                Err(Errno::AGAIN) => {
                    self.refusals.end();
                    return shown;
                }
                // The error of a datagram that was sent: what it is about stands in the queue. The
                // call is repeated.
                Err(error) => {
                    last = Some(error);
                    self.reports.pending = true;
                    shown += self.show_reports(sink);
                }
            }
        }
        if let Some(error) = last.filter(|error| shown == 0 && is_of_receive(*error)) {
            self.on_refused(error, receiver, sink);
        }
        shown
    }

    /// The system refuses to give datagrams, time after time. Who sleeps next stops watching the
    /// socket.
    #[cold]
    fn on_refused(&mut self, error: Errno, receiver: &Receiver, sink: &mut dyn FnMut(Incoming<'_>)) {
        let passed = receiver.received.datagrams;
        if self.refusals.record_receive(self.stream.call(), error, passed) {
            sink(down(self.how.is_outward));
        }
    }
}
