//! The sockets that carry an endpoint's frames: the own one, the connected one, and what they
//! report.
//!
//! [`Sockets`] owns them with their buffers. No other file chooses which of the two a frame goes
//! by, or which errors are still to be read.

mod connected;
mod receive;
mod reports;
mod transmit;

pub(crate) use receive::{Receiver, Stream};

use crate::ready::{Found, Ready};
use crate::socket::How;
use crate::sys::{Home, SendBatch};
use cci_proto::{Address, Time};
use cci_reliable::{Incoming, Outgoing};
use cci_transport::monotonic;
use connected::{Connected, SendOutcome};
use reports::Reports;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use transmit::{Blocked, Transmitter};

/// Errors of other datagrams that one receive clears away.
const ERRORS_AT_ONCE: usize = 4;
/// Bytes of a receive buffer. No datagram is longer, put together or not.
const STRIDE: usize = 1 << 16;

/// What a [`Sock`](crate::Sock) has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that the system took.
    pub tx_frames: u64,
    /// System calls that sent.
    pub tx_calls: u64,
    /// Frames among them that left together with others, for the system to cut.
    pub tx_segmented: u64,
    /// Of the frames sent, those that left by the connected socket.
    pub tx_connected: u64,
    /// Frames that the system refused for their destination.
    pub tx_lost: u64,
    /// Frames that arrived.
    pub rx_frames: u64,
    /// Datagrams that they came in.
    pub rx_datagrams: u64,
    /// Frames among them that the system had put together with others.
    pub rx_coalesced: u64,
    /// Datagrams that were longer than a receive buffer, or empty.
    pub rx_dropped: u64,
}

/// The own socket of an endpoint, the connected one if there is one, and the buffers of both.
pub(crate) struct Sockets {
    own: OwnedFd,
    /// How datagrams come at the own socket.
    stream: Stream,
    connected: Connected,
    how: How,
    transmitter: Transmitter,
    receiver: Receiver,
    reports: Reports,
}

impl Sockets {
    /// Takes over the own socket, which is bound, and made as `how` says. `mtu`: the largest frame
    /// that its interface takes, bytes. `no_segmentation`: why datagrams are not cut by the system,
    /// if so.
    pub(crate) fn new(
        own: OwnedFd,
        how: How,
        mtu: u16,
        home: Home,
        no_segmentation: Option<String>,
    ) -> Result<Self, Errno> {
        Ok(Self {
            own,
            stream: Stream::default(),
            connected: Connected::default(),
            how,
            transmitter: Transmitter::new(SendBatch::new(home), no_segmentation),
            receiver: Receiver::new(STRIDE, how.wants_marks)?,
            reports: Reports::new(mtu, how.is_v4),
        })
    }

    /// The own socket.
    pub(crate) fn own(&self) -> &OwnedFd {
        &self.own
    }

    /// How further sockets are made.
    pub(crate) fn how(&self) -> How {
        self.how
    }

    /// Sends frames in order; returns how many were taken, those among them that were lost.
    #[inline]
    pub(crate) fn send(&mut self, frames: &[Outgoing<'_>]) -> usize {
        let SendOutcome { count: taken, is_full } = self.connected.send(frames, &mut self.transmitter);
        if taken == frames.len() || is_full {
            return taken;
        }
        let (others, before) = (&frames[taken..], self.transmitter.sent.datagrams);
        let more = self.transmitter.send(self.own.as_fd(), others, &mut self.reports);
        self.connected.on_sent_by_own(&others[..more], self.transmitter.sent.datagrams - before);
        taken + more
    }

    /// Shows errors that wait, and up to about `budget` frames; opens or closes the connected
    /// socket where that is due. Returns how much was shown.
    #[inline]
    pub(crate) fn receive(&mut self, budget: usize, ready: &Ready, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        if self.reports.pending {
            shown = self.reports.show(self.own.as_fd(), sink);
        }
        if self.receiver.has_rest() {
            shown += self.receiver.show(budget, sink);
        } else {
            shown += self.poll(budget, ready, sink);
        }
        if self.connected.is_unsettled() {
            shown += self.connected.clear_up(sink, &mut self.reports);
            if self.connected.is_to_change() {
                shown += self.change_connected(ready, sink);
            }
        }
        shown
    }

    /// Shows up to `budget` frames of datagrams that `fill` takes from other sockets. It returns
    /// whether there were any.
    pub(crate) fn receive_others(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Incoming<'_>),
        fill: impl FnOnce(&mut Receiver) -> bool,
    ) -> usize {
        if fill(&mut self.receiver) { self.receiver.show(budget, sink) } else { 0 }
    }

    /// Whether frames that have been received wait to be shown.
    #[inline]
    pub(crate) fn has_rest(&self) -> bool {
        self.receiver.has_rest()
    }

    /// Whether the next receive has something to do of which the handle does not tell.
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        self.receiver.has_rest() || self.reports.pending || self.connected.has_pending()
    }

    /// The handle has told of errors: their queues are to be read.
    pub(crate) fn on_found(&mut self, found: &Found) {
        self.reports.pending |= found.reports;
        if found.connected_reports {
            self.connected.on_report();
        }
    }

    /// Chooses whether frames make the handle readable; returns whether they do.
    pub(crate) fn watch(&mut self, ready: &mut Ready, on: bool) -> bool {
        let watched = ready.watch_frames(&self.own, on);
        self.connected.watch(ready, watched);
        watched
    }

    /// When there may be room to send again, where no descriptor reports it.
    pub(crate) fn room_at(&self) -> Option<Time> {
        match self.transmitter.blocked {
            // No descriptor reports room in an interface's queue.
            Some(Blocked::Queue(until)) => Some(until),
            _ => None,
        }
    }

    /// Whether there is room to send.
    pub(crate) fn is_writable(&mut self) -> bool {
        let writable = match self.transmitter.blocked {
            None => true,
            Some(Blocked::Queue(until)) => monotonic() >= until,
            Some(Blocked::Buffer) => {
                let none = Timespec { tv_sec: 0, tv_nsec: 0 };
                matches!(poll(&mut [PollFd::new(&self.own, PollFlags::OUT)], Some(&none)), Ok(1..))
            }
        };
        if writable {
            self.transmitter.blocked = None;
        }
        writable
    }

    /// Whether the connected socket is this peer's.
    pub(crate) fn is_connected_to(&self, to: &Address) -> bool {
        self.connected.is_to(to)
    }

    /// Why frames to this address are not cut by the system, if so.
    pub(crate) fn no_segmentation(&self, to: &Address) -> Option<String> {
        self.transmitter.why_not(to)
    }

    /// What was sent and received so far.
    pub(crate) fn counters(&self) -> Counters {
        let (sent, received) = (&self.transmitter.sent, &self.receiver.received);
        Counters {
            tx_frames: sent.frames,
            tx_calls: sent.calls,
            tx_segmented: sent.segmented,
            tx_connected: sent.connected,
            tx_lost: sent.lost,
            rx_frames: received.frames,
            rx_datagrams: received.datagrams,
            rx_coalesced: received.coalesced,
            rx_dropped: received.dropped,
        }
    }

    /// Takes datagrams, from the connected socket too if there is one; returns how many frames were
    /// shown.
    #[inline]
    fn poll(&mut self, budget: usize, ready: &Ready, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        if self.connected.socket().is_none() {
            return self.poll_own(budget, sink);
        }
        let (connected_first, polls_both) = self.connected.next_poll();
        let shown = self.poll_one(connected_first, budget, sink);
        if shown > 0 {
            self.connected.on_received(connected_first);
            return shown;
        }
        // Where the handle tells of frames, the one call that a program makes then has to find
        // them.
        if !polls_both && !ready.watches_frames() {
            return 0;
        }
        let shown = self.poll_one(!connected_first, budget, sink);
        if shown > 0 {
            self.connected.on_received(!connected_first);
        }
        shown
    }

    fn poll_one(&mut self, connected: bool, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        if connected { self.connected.take(&mut self.receiver, budget, sink) } else { self.poll_own(budget, sink) }
    }

    /// Takes datagrams from the own socket, with the errors of others cleared away.
    fn poll_own(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        for _ in 0..ERRORS_AT_ONCE {
            match self.receiver.take(self.own.as_fd(), &mut self.stream, budget, sink) {
                Ok(count) => return shown + count,
                Err(Errno::AGAIN) => return shown,
                // The error of a datagram that was sent: what it is about stands in the queue. The
                // call is repeated.
                Err(_) => {
                    self.reports.pending = true;
                    shown += self.reports.show(self.own.as_fd(), sink);
                }
            }
        }
        shown
    }

    /// Gives the connected socket to the peer that frames go to; after an error no peer has it.
    /// What has arrived there is shown first.
    #[cold]
    fn change_connected(&mut self, ready: &Ready, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        if self.connected.socket().is_some() {
            self.connected.retire();
            shown = self.connected.drain(&mut self.receiver, sink, &mut self.reports);
            self.connected.close(ready);
        }
        if self.connected.is_wanted() {
            self.connected.open(&self.own, self.how, ready);
        }
        shown
    }
}
