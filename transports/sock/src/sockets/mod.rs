//! The sockets that carry an endpoint's frames: the own one, the outward one, the connected one,
//! and what they report.
//!
//! [`Sockets`] owns them with their buffers. No other file chooses which of them a frame goes by,
//! or which errors are still to be read.

mod bound;
mod connected;
mod outward;
mod receive;
mod refusals;
mod reports;
mod transmit;
mod turns;

pub(crate) use receive::{Receiver, Stream};

use crate::address;
use crate::ready::{Found, Ready};
use crate::socket::How;
use crate::sys::{Home, SendBatch};
use bound::Bound;
use cci_proto::{Address, Time};
use cci_reliable::{Incoming, Outgoing};
use cci_transport::monotonic;
use connected::{Connected, SendOutcome};
use outward::Outward;
use refusals::Explained;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::net::IpAddr;
use transmit::{Blocked, Transmitter};
use turns::{Source, Turns};

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

/// The own socket of an endpoint, the other ones if there are some, and the buffers of all.
pub(crate) struct Sockets {
    own: Bound,
    outward: Option<Outward>,
    connected: Connected,
    turns: Turns,
    transmitter: Transmitter,
    receiver: Receiver,
    /// The sockets are not watched although the endpoint waits for frames.
    rests: bool,
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
            own: Bound::new(own, how, mtu),
            outward: None,
            connected: Connected::default(),
            turns: Turns::default(),
            transmitter: Transmitter::new(SendBatch::new(home), no_segmentation),
            receiver: Receiver::new(STRIDE)?,
            rests: false,
        })
    }

    /// The own socket.
    pub(crate) fn own(&self) -> &OwnedFd {
        &self.own.socket
    }

    /// The address of this host from which frames to `to` leave, as the routes say: `to` itself
    /// where it is one of this host.
    ///
    /// # Errors
    ///
    /// No route leads there, or the system has no socket.
    pub(crate) fn source_of(&self, to: &Address) -> Result<IpAddr, Errno> {
        outward::source_of(self.own.socket.as_fd(), to)
    }

    /// The address by which the outward socket reaches this one, or the address itself where the
    /// host is this one, or the routes lead there from `own`, the address of the own socket. Opens
    /// the socket when it is first needed. `mtu`: the largest frame that leaves there for certain,
    /// bytes.
    ///
    /// # Errors
    ///
    /// No route leads there, or the system has no socket.
    pub(crate) fn reach_out(&mut self, to: Address, own: IpAddr, mtu: u16, ready: &Ready) -> Result<Address, Errno> {
        let source = self.source_of(&to)?;
        if source == own || source == address::ip(&to) {
            return Ok(to);
        }
        if self.outward.is_none() {
            self.outward = Some(Outward::open(&self.own, mtu, ready)?);
        }
        Ok(address::outward(to))
    }

    /// How further sockets are made.
    pub(crate) fn how(&self) -> How {
        self.own.how
    }

    /// Sends frames in order; returns how many were taken, those among them that were lost.
    #[inline]
    pub(crate) fn send(&mut self, frames: &[Outgoing<'_>]) -> usize {
        let SendOutcome { count: taken, is_full } = self.connected.send(frames, &mut self.transmitter);
        if taken == frames.len() || is_full {
            return taken;
        }
        let (others, before) = (&frames[taken..], self.transmitter.sent.datagrams);
        let more = match self.outward {
            None => self.own.send(others, &mut self.transmitter),
            Some(_) => self.send_by_each(others),
        };
        self.connected.on_sent_by_own(&others[..more], self.transmitter.sent.datagrams - before);
        taken + more
    }

    /// Shows errors that wait, and up to about `budget` frames; opens or closes the connected
    /// socket where that is due. Returns how much was shown.
    #[inline]
    pub(crate) fn receive(&mut self, budget: usize, ready: &mut Ready, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        if self.own.reports.pending {
            shown = self.own.show_reports(sink);
            self.rest(ready);
        }
        if let Some(outward) = self.outward.as_mut().filter(|outward| outward.bound.reports.pending) {
            shown += outward.bound.show_reports(sink);
            self.rest(ready);
        }
        if self.receiver.has_rest() {
            shown += self.receiver.show(budget, sink);
        } else {
            shown += self.poll(budget, ready, sink);
        }
        if self.connected.is_unsettled() {
            shown += self.settle_connected(ready, sink);
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
        self.receiver.has_rest()
            || self.own.reports.pending
            || self.outward.as_ref().is_some_and(|outward| outward.bound.reports.pending)
            || self.connected.has_pending()
    }

    /// The handle has told of errors: their queues are to be read.
    pub(crate) fn on_found(&mut self, found: &Found) {
        self.own.reports.pending |= found.reports;
        if let Some(outward) = &mut self.outward {
            outward.bound.reports.pending |= found.outward_reports;
        }
        if found.connected_reports {
            self.connected.on_report();
        }
    }

    /// Chooses whether frames make the handle readable; returns whether they do.
    pub(crate) fn watch(&mut self, ready: &mut Ready, on: bool) -> bool {
        self.rests = false;
        let watched = ready.watch_frames(&self.own.socket, on);
        self.connected.watch(ready, watched);
        let by_outward = self.outward.as_mut().is_none_or(|outward| outward.watch(ready, watched));
        watched && by_outward
    }

    /// Whether the system has refused to give datagrams, and has given none since.
    #[inline]
    fn is_deaf(&self) -> bool {
        let passed = self.receiver.received.datagrams;
        self.own.refusals.is_current(passed)
            || self.outward.as_ref().is_some_and(|outward| outward.bound.refusals.is_current(passed))
    }

    /// Stops watching sockets that the system does not let this process read: they would stay
    /// readable, and keep whoever sleeps on the handle awake. Watches them again once it does.
    /// Returns whether they are not watched.
    #[cold]
    pub(crate) fn rest(&mut self, ready: &mut Ready) -> bool {
        let rests = self.is_deaf();
        if rests != self.rests {
            self.watch(ready, !rests);
            self.rests = rests;
        }
        rests
    }

    /// Whether [`Sockets::rest`] has something to do, or to undo.
    #[inline]
    pub(crate) fn is_to_rest(&self) -> bool {
        self.rests || self.is_deaf()
    }

    /// Which calls the system refuses for frames of this peer, so that it is silent: a sentence, if
    /// there is one.
    #[cold]
    pub(crate) fn silence(&self, to: &Address) -> Option<String> {
        self.refused(to, Explained::Silence)
    }

    /// As [`Sockets::silence`], for the end of a connection.
    #[cold]
    pub(crate) fn refusal(&self, to: &Address) -> Option<String> {
        self.refused(to, Explained::End)
    }

    fn refused(&self, to: &Address, explained: Explained) -> Option<String> {
        let (sent, received) = (self.transmitter.sent.frames, self.receiver.received.datagrams);
        let bound = match &self.outward {
            Some(outward) if address::is_outward(to) => &outward.bound,
            _ => &self.own,
        };
        let send = self.transmitter.refusals.sentence(to, sent, explained);
        let receive = || {
            let goes_on = bound.refusals.is_current(received);
            goes_on.then(|| bound.refusals.sentence(&Address::default(), received, explained)).flatten()
        };
        send.or_else(receive)
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
                matches!(poll(&mut [PollFd::new(&self.own.socket, PollFlags::OUT)], Some(&none)), Ok(1..))
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

    /// Takes datagrams, from the other sockets too if there are some; returns how many frames were
    /// shown.
    #[inline]
    fn poll(&mut self, budget: usize, ready: &Ready, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        if self.connected.socket().is_none() && self.outward.is_none() {
            return self.own.take(&mut self.receiver, budget, sink);
        }
        let (first, goes_on) = self.turns.begin();
        let shown = self.poll_one(first, budget, sink);
        // Where the handle tells of frames, the one call that a program makes then has to find
        // them.
        if shown > 0 || !goes_on && !ready.watches_frames() {
            return shown;
        }
        let second = self.poll_one(first.next(), budget, sink);
        if second > 0 { second } else { self.poll_one(first.next().next(), budget, sink) }
    }

    fn poll_one(&mut self, source: Source, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let receiver = &mut self.receiver;
        let shown = match source {
            Source::Own => self.own.take(receiver, budget, sink),
            Source::Connected => self.connected.take(receiver, budget, sink),
            Source::Outward => self.outward.as_mut().map_or(0, |outward| outward.bound.take(receiver, budget, sink)),
        };
        if shown > 0 {
            self.turns.on_received(source);
        }
        shown
    }

    /// Sends frames in order, each by the socket that its peer is behind; returns how many were
    /// taken.
    fn send_by_each(&mut self, frames: &[Outgoing<'_>]) -> usize {
        let mut taken = 0;
        for part in frames.chunk_by(|one, next| address::is_outward(&one.to) == address::is_outward(&next.to)) {
            let bound = bound_of(&mut self.own, &mut self.outward, &part[0].to);
            let sent = bound.send(part, &mut self.transmitter);
            if self.transmitter.blocked == Some(Blocked::Buffer) && bound.how.is_outward {
                // The handle reports room in the own socket only.
                self.transmitter.pause();
            }
            taken += sent;
            if sent < part.len() {
                break;
            }
        }
        taken
    }

    /// Reads the errors of the connected socket; opens or closes it where that is due.
    #[cold]
    fn settle_connected(&mut self, ready: &Ready, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        if let Some(peer) = self.connected.peer() {
            let reports = &mut bound_of(&mut self.own, &mut self.outward, &peer).reports;
            shown += self.connected.clear_up(sink, reports);
        }
        if self.connected.is_to_change() {
            shown += self.change_connected(ready, sink);
        }
        shown
    }

    /// Gives the connected socket to the peer that frames go to; after an error no peer has it.
    /// What has arrived there is shown first.
    #[cold]
    fn change_connected(&mut self, ready: &Ready, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        if let Some(peer) = self.connected.peer() {
            self.connected.retire();
            let reports = &mut bound_of(&mut self.own, &mut self.outward, &peer).reports;
            shown = self.connected.drain(&mut self.receiver, sink, reports);
            self.connected.close(ready);
            self.turns.on_closed();
        }
        if self.connected.is_wanted() {
            let peer = self.connected.wanted_peer();
            self.connected.open(bound_of(&mut self.own, &mut self.outward, &peer), ready);
        }
        shown
    }
}

/// The socket that a peer is behind.
#[inline]
fn bound_of<'a>(own: &'a mut Bound, outward: &'a mut Option<Outward>, to: &Address) -> &'a mut Bound {
    match outward {
        Some(outward) if address::is_outward(to) => &mut outward.bound,
        _ => own,
    }
}
