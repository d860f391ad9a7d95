//! UDP: frames between hosts, in few system calls. `docs/design/sock.md` describes how.

#![deny(unsafe_code)]

mod address;
mod driver;
mod groups;
mod interface;
mod open;
mod proof;
mod ready;
mod resolver;
mod socket;
mod sockets;
#[allow(unsafe_code)]
mod sys;

use cci_proto::{Address, ConnectError, Time};
use cci_reliable::{Incoming, Link, Names, Outgoing, Wait};
use cci_transport::monotonic;
use groups::{GroupUri, Groups};
use interface::LocalAddress;
use ready::Ready;
use resolver::Resolver;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use socket::How;
use sockets::connected::Connected;
use sockets::receive::{Receiver, Stream};
use sockets::reports::Reports;
use sockets::transmit::{Blocked, Transmitter};
use std::fmt;
use std::sync::Arc;

pub use driver::DRIVER;

/// Largest frame, bytes: fits into a datagram of either family.
pub const MAX_FRAME: u16 = 65_000;
/// Calls that found something after which groups are looked at nevertheless.
const GROUPS_EVERY: u32 = 16;
/// Errors of other datagrams that one receive clears away.
const ERRORS_AT_ONCE: usize = 4;

/// What a [`Sock`] has done since it was opened.
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

/// A link over UDP: one socket, however many peers there are, and one for the peer that frames go
/// to. Not to be used by two threads at once; it may move.
pub struct Sock {
    socket: OwnedFd,
    uri: String,
    place: LocalAddress,
    mtu: u16,
    base_mtu: u16,
    buffer: usize,
    recv_buffer: u32,
    transmitter: Transmitter,
    receiver: Receiver,
    stream: Stream,
    connected: Connected,
    reports: Reports,
    groups: Groups,
    ready: Ready,
    resolver: Resolver,
    calls: u32,
    no_coalescing: Option<String>,
    unchecked_on_host: bool,
}

impl Sock {
    /// What was sent and received so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
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

    /// The key `check`: whether checks of payloads may be left out between two endpoints of one
    /// host. True for `remote` only.
    #[must_use]
    pub fn unchecked_on_host(&self) -> bool {
        self.unchecked_on_host
    }

    /// The address that a URI gives. None: its host is a name, which is looked up under this
    /// number, if there is one.
    fn resolve_uri(&mut self, uri: &str, number: Option<u64>) -> Result<Option<Address>, ConnectError> {
        let uri = address::Uri::parse(uri).filter(|uri| uri.interface.is_none() && uri.ttl.is_none());
        let uri = uri.ok_or(ConnectError::BadUri)?;
        if uri.literal().is_some() {
            return open::resolve(&uri, &self.place, &self.socket).map(Some).ok_or(ConnectError::BadUri);
        }
        match number {
            Some(number) if self.resolver.ask(number, uri.host, uri.port) => Ok(None),
            Some(_) => Err(ConnectError::NoThread),
            None => Ok(None),
        }
    }

    /// How its further sockets are made.
    fn how(&self) -> How {
        How {
            is_v4: self.place.ip.is_ipv4(),
            wants_marks: !self.place.loopback,
            coalesces: self.no_coalescing.is_none(),
            buffer: self.buffer,
        }
    }

    /// Takes datagrams, from the connected socket too if there is one; returns how many frames were
    /// shown.
    fn look(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        if self.connected.socket().is_none() {
            return self.look_here(budget, sink);
        }
        let (connected_first, looks_at_both) = self.connected.next_look();
        let shown = self.look_at(connected_first, budget, sink);
        if shown > 0 {
            self.connected.note_found(connected_first);
            return shown;
        }
        // Where the handle tells of frames, the one call that a program makes then has to find
        // them.
        if !looks_at_both && !self.ready.watches_frames() {
            return 0;
        }
        let shown = self.look_at(!connected_first, budget, sink);
        if shown > 0 {
            self.connected.note_found(!connected_first);
        }
        shown
    }

    fn look_at(&mut self, connected: bool, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        if connected { self.connected.take(&mut self.receiver, budget, sink) } else { self.look_here(budget, sink) }
    }

    /// Gives the connected socket to the peer that frames go to; after an error no peer has it.
    /// What has arrived there is shown first.
    #[cold]
    fn change_connected(&mut self, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        if self.connected.socket().is_some() {
            self.connected.retire();
            shown = self.connected.drain(&mut self.receiver, sink, &mut self.reports);
            self.connected.close(&self.ready);
        }
        if self.connected.is_wanted() {
            self.connected.open(&self.socket, self.how(), &self.ready);
        }
        shown
    }

    /// Takes datagrams from the endpoint's own socket, with the errors of others cleared away.
    fn look_here(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        for _ in 0..ERRORS_AT_ONCE {
            match self.receiver.take(self.socket.as_fd(), &mut self.stream, budget, sink) {
                Ok(count) => return shown + count,
                Err(rustix::io::Errno::AGAIN) => return shown,
                // The error of a datagram that was sent: what it is about stands in the queue. The
                // call is repeated.
                Err(_) => {
                    self.reports.pending = true;
                    shown += self.reports.show(self.socket.as_fd(), sink);
                }
            }
        }
        shown
    }

    /// Sets the timer, and watches for room if that is wanted. False: something waits that the
    /// handle does not tell of.
    fn prepare(&mut self, deadline: Option<Time>, wants_write: bool) -> bool {
        if self.receiver.has_rest()
            || self.reports.pending
            || self.connected.has_failed
            || self.connected.may_have_failed
        {
            return false;
        }
        let (deadline, room) = match self.transmitter.blocked.filter(|_| wants_write) {
            // No descriptor reports room in an interface's queue, so the timer wakes.
            Some(Blocked::Queue(until)) => (Some(deadline.map_or(until, |deadline| deadline.min(until))), false),
            _ => (deadline, wants_write),
        };
        // Where the system refuses the timer, the program is to call again instead of sleeping.
        let wakes = self.ready.set_deadline(deadline);
        self.ready.watch_room(&self.socket, room);
        wakes
    }
}

impl Link for Sock {
    fn name(&self) -> &'static str {
        "sock"
    }

    fn uri(&self) -> &str {
        &self.uri
    }

    fn now(&self) -> Time {
        monotonic()
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn base_mtu(&self) -> u16 {
        self.base_mtu
    }

    fn recv_buffer(&self) -> u32 {
        self.recv_buffer
    }

    fn resolve(&mut self, uri: &str) -> Result<Address, ConnectError> {
        self.resolve_uri(uri, None).and_then(|address| address.ok_or(ConnectError::BadUri))
    }

    fn send_burst(&mut self, frames: &[Outgoing<'_>]) -> usize {
        let sockets::connected::SendOutcome { count: taken, is_full } =
            self.connected.send(frames, &mut self.transmitter);
        if taken == frames.len() || is_full {
            return taken;
        }
        let (others, before) = (&frames[taken..], self.transmitter.sent.datagrams);
        let more = self.transmitter.send(self.socket.as_fd(), others, &mut self.reports);
        self.connected.note_others(&others[..more], self.transmitter.sent.datagrams - before);
        taken + more
    }

    fn recv_burst(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        if self.reports.pending {
            shown = self.reports.show(self.socket.as_fd(), sink);
        }
        if self.receiver.has_rest() {
            shown += self.receiver.show(budget, sink);
        } else {
            shown += self.look(budget, sink);
        }
        if self.connected.is_unsettled() {
            shown += self.connected.clear_up(sink, &mut self.reports);
            if self.connected.has_failed || self.connected.is_wanted() {
                shown += self.change_connected(sink);
            }
        }
        if !self.groups.is_empty() && !self.receiver.has_rest() {
            self.calls = self.calls.wrapping_add(1);
            if (shown == 0 || self.calls.is_multiple_of(GROUPS_EVERY)) && self.groups.fill(&mut self.receiver) {
                shown += self.receiver.show(budget.saturating_sub(shown), sink);
            }
        }
        shown
    }

    fn is_writable(&mut self) -> bool {
        let writable = match self.transmitter.blocked {
            None => true,
            Some(Blocked::Queue(until)) => monotonic() >= until,
            Some(Blocked::Buffer) => {
                let none = Timespec { tv_sec: 0, tv_nsec: 0 };
                matches!(poll(&mut [PollFd::new(&self.socket, PollFlags::OUT)], Some(&none)), Ok(1..))
            }
        };
        if writable {
            self.transmitter.blocked = None;
        }
        writable
    }

    fn write_name(&self, to: &Address, text: &mut dyn fmt::Write) -> fmt::Result {
        text.write_str(address::SCHEME)?;
        address::write_shown(to, text)
    }

    fn path(&self, to: &Address) -> (String, String) {
        let family = if address::is_v4(to) { "IPv4" } else { "IPv6" };
        let state = |off: bool| if off { "off" } else { "on" };
        let no_segmentation = self.transmitter.why_not(to);
        let path = format!(
            "UDP over {family} to {}, segmentation offload {}, receive coalescing {}{}",
            address::shown(to),
            state(no_segmentation.is_some()),
            state(self.no_coalescing.is_some()),
            if self.connected.is_to(to) { ", by a socket of its own" } else { "" },
        );
        let why = match (no_segmentation, &self.no_coalescing) {
            (None, None) => "both offloads passed their test when the endpoint was opened".to_owned(),
            (Some(why), None) => format!("segmentation offload is off: {why}"),
            (None, Some(why)) => format!("receive coalescing is off: {why}"),
            (Some(one), Some(other)) => {
                format!("segmentation offload is off: {one}; receive coalescing is off: {other}")
            }
        };
        (path, why)
    }

    fn names(&mut self) -> Option<&mut dyn Names> {
        Some(self)
    }

    fn groups(&mut self) -> Option<&mut dyn cci_reliable::Groups> {
        Some(self)
    }
}

impl Wait for Sock {
    fn handle(&self) -> BorrowedFd<'_> {
        self.ready.handle()
    }

    fn arm(&mut self, deadline: Option<Time>, wants_write: bool) -> bool {
        if !self.prepare(deadline, wants_write) {
            return false;
        }
        let found = self.ready.look();
        self.reports.pending |= found.reports;
        self.connected.has_failed |= found.connected_reports && self.connected.socket().is_some();
        if found.any {
            self.ready.watch_room(&self.socket, false);
        }
        !found.any
    }

    fn disarm(&mut self) {
        self.ready.drain();
        self.ready.watch_room(&self.socket, false);
    }

    fn rearm(&mut self, deadline: Option<Time>, wants_write: bool, signalled: bool) -> bool {
        if signalled {
            self.ready.drain_waker();
        }
        self.prepare(deadline, wants_write)
    }

    fn ring(&mut self, at: Time) -> bool {
        self.ready.ring(at)
    }

    fn watch(&mut self, on: bool) -> bool {
        let watched = self.ready.watch_frames(&self.socket, on);
        self.connected.watch(&self.ready, watched);
        watched
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.ready.waker()
    }
}

impl Names for Sock {
    fn begin(&mut self, uri: &str, number: u64) -> Result<Option<Address>, ConnectError> {
        self.resolve_uri(uri, Some(number))
    }

    fn next(&mut self) -> Option<(u64, Result<Address, String>)> {
        let (number, answer) = self.resolver.next_answer()?;
        Some((number, answer.address(&self.place)))
    }

    fn forget(&mut self, number: u64) {
        self.resolver.forget(number);
    }
}

impl cci_reliable::Groups for Sock {
    fn join(&mut self, uri: &str, number: u32) -> Result<(), ConnectError> {
        let named = GroupUri::parse(uri, &self.place, &self.socket)?;
        let (how, ready) = (self.how(), &self.ready);
        self.groups.join(&named, number, how, |socket| ready.watch_group(socket))
    }

    fn leave(&mut self, number: u32) {
        if let Some(socket) = self.groups.leave(number) {
            self.ready.forget_group(&socket);
        }
    }

    fn address(&mut self, uri: &str) -> Result<Address, ConnectError> {
        Ok(GroupUri::parse(uri, &self.place, &self.socket)?.address())
    }
}
