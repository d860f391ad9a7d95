//! The link: what the engine asks of sockets, names and groups.

use crate::address;
use crate::groups::{GroupUri, Groups};
use crate::ready::Ready;
use crate::resolve;
use crate::sockets::{Counters, Sockets};
use cci_proto::engine::PathMtu;
use cci_proto::{Address, ConnectError, Time};
use cci_reliable::{Incoming, Link, Names, Outgoing, Wait};
use cci_transport::{LocalAddress, Resolver, monotonic};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Calls that found something after which groups are looked at nevertheless.
const GROUPS_EVERY: u32 = 16;
/// How long a program sleeps between tries where the system refuses to give datagrams.
const REST: Duration = Duration::from_millis(10);

/// A link over UDP: one socket, however many peers there are, one for the peer that frames go to,
/// and one for peers to which routes lead from another address. Not to be used by two threads at
/// once; it may move.
pub struct Sock {
    pub(crate) sockets: Sockets,
    pub(crate) uri: String,
    pub(crate) local: LocalAddress,
    pub(crate) mtu: u16,
    pub(crate) base_mtu: u16,
    pub(crate) recv_buffer: u32,
    pub(crate) groups: Groups,
    pub(crate) ready: Ready,
    pub(crate) resolver: Resolver,
    pub(crate) calls: u32,
    pub(crate) no_coalescing: Option<String>,
    pub(crate) unchecked_on_host: bool,
    /// Hosts to which routes lead from another address are reached by the outward socket, with
    /// frames that have this size at first.
    pub(crate) outward_base: Option<u16>,
    /// Connects that cannot be made, and why, by the numbers of their lookups.
    pub(crate) refusals: Vec<(u64, String)>,
}

impl Sock {
    /// What was sent and received so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.sockets.counters()
    }

    /// The key `check`: whether checks of payloads may be left out between two endpoints of one
    /// host. True for `remote` only.
    #[must_use]
    pub fn unchecked_on_host(&self) -> bool {
        self.unchecked_on_host
    }

    /// The address to which frames leave that are for `to`.
    ///
    /// # Errors
    ///
    /// No frames can be sent there: why.
    fn leave(&mut self, to: Address) -> Result<Address, String> {
        let Some(base) = self.outward_base.filter(|_| !address::ip(&to).is_loopback()) else { return Ok(to) };
        match self.sockets.reach_out(to, self.local.ip, base, &self.ready) {
            // The route may come, or frames may leave without it: the own socket can send them.
            Err(_) if !self.local.loopback => Ok(to),
            reached => reached.map_err(|error| why_not(&to, error)),
        }
    }

    /// As [`Sock::leave`], for the addresses of one host: those to which frames can be sent, at
    /// least one.
    fn leave_for_any(&mut self, found: Vec<Address>) -> Result<Vec<Address>, String> {
        let (mut reached, mut reasons) = (Vec::new(), Vec::new());
        for to in found {
            match self.leave(to) {
                Ok(to) => reached.push(to),
                Err(why) => reasons.push(why),
            }
        }
        if reached.is_empty() { Err(reasons.join("; ")) } else { Ok(reached) }
    }

    /// The address that a URI gives. None: its host is a name, which is looked up under this
    /// number, if there is one.
    fn resolve_uri(&mut self, uri: &str, number: Option<u64>) -> Result<Option<Address>, ConnectError> {
        let uri = address::Uri::parse(uri).filter(|uri| uri.interface.is_none() && uri.ttl.is_none());
        let uri = uri.ok_or(ConnectError::BadUri)?;
        if uri.at.literal().is_some() {
            let to = resolve::resolve(&uri, &self.local, self.sockets.own()).ok_or(ConnectError::BadUri)?;
            return match (self.leave(to), number) {
                (Ok(to), _) => Ok(Some(to)),
                (Err(why), Some(number)) => {
                    self.refusals.push((number, why));
                    self.ready.write_waker();
                    Ok(None)
                }
                (Err(_), None) => Err(ConnectError::BadUri),
            };
        }
        match number {
            Some(number) if self.resolver.ask(number, uri.at.host, uri.at.port) => Ok(None),
            Some(_) => Err(ConnectError::NoThread),
            None => Ok(None),
        }
    }

    /// Sets the timer, and watches for room if that is wanted. False: something waits that the
    /// handle does not tell of.
    fn prepare(&mut self, deadline: Option<Time>, wants_write: bool) -> bool {
        if self.sockets.has_pending() {
            return false;
        }
        let deadline = if self.sockets.is_to_rest() { self.rest(deadline) } else { deadline };
        let (deadline, room) = match self.sockets.room_at().filter(|_| wants_write) {
            // No descriptor reports this room, so the timer wakes.
            Some(until) => (Some(deadline.map_or(until, |deadline| deadline.min(until))), false),
            None => (deadline, wants_write),
        };
        // Where the system refuses the timer, the program is to call again instead of sleeping.
        let wakes = self.ready.set_deadline(deadline);
        self.ready.watch_room(self.sockets.own(), room);
        wakes
    }

    /// Nothing that arrives makes the handle readable while the system does not let this process
    /// take it. Returns the deadline at which to try again.
    #[cold]
    fn rest(&mut self, deadline: Option<Time>) -> Option<Time> {
        if !self.sockets.rest(&mut self.ready) {
            return deadline;
        }
        let again = monotonic() + REST;
        Some(deadline.map_or(again, |deadline| deadline.min(again)))
    }
}

/// Why frames cannot leave for an address.
#[cold]
fn why_not(to: &Address, error: Errno) -> String {
    let (ip, why) = (address::ip(to), std::io::Error::from(error));
    match error {
        Errno::XDEV => {
            format!("this thread is in another network name space than the endpoint; connect to {ip} from its own")
        }
        Errno::MFILE | Errno::NFILE => {
            format!("no descriptor is left for the socket that reaches {ip} ({why}); raise the limit (ulimit -n)")
        }
        _ => format!("the system has no way to {ip} ({why}); check the network, and the URI"),
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

    fn path_mtu(&self, to: &Address) -> PathMtu {
        let outward = self.outward_base.filter(|_| address::is_outward(to));
        PathMtu { base: outward.unwrap_or(self.base_mtu), largest: self.mtu }
    }

    fn recv_buffer(&self) -> u32 {
        self.recv_buffer
    }

    fn resolve(&mut self, uri: &str) -> Result<Address, ConnectError> {
        self.resolve_uri(uri, None).and_then(|address| address.ok_or(ConnectError::BadUri))
    }

    fn send_burst(&mut self, frames: &[Outgoing<'_>]) -> usize {
        self.sockets.send(frames)
    }

    fn recv_burst(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = self.sockets.receive(budget, &mut self.ready, sink);
        if !self.groups.is_empty() && !self.sockets.has_rest() {
            self.calls = self.calls.wrapping_add(1);
            if shown == 0 || self.calls.is_multiple_of(GROUPS_EVERY) {
                let (groups, budget) = (&mut self.groups, budget.saturating_sub(shown));
                shown += self.sockets.receive_others(budget, sink, |receiver| groups.fill(receiver));
            }
        }
        shown
    }

    fn is_writable(&mut self) -> bool {
        self.sockets.is_writable()
    }

    fn write_name(&self, to: &Address, text: &mut dyn fmt::Write) -> fmt::Result {
        text.write_str(address::SCHEME)?;
        address::write_shown(to, text)
    }

    fn path(&self, to: &Address) -> (String, String) {
        let family = if address::is_v4(to) { "IPv4" } else { "IPv6" };
        let state = |off: bool| if off { "off" } else { "on" };
        let no_segmentation = self.sockets.no_segmentation(to);
        let path = format!(
            "UDP over {family} to {}{}, segmentation offload {}, receive coalescing {}{}",
            address::shown(to),
            if address::is_outward(to) { ", from a socket that accepts no requests" } else { "" },
            state(no_segmentation.is_some()),
            state(self.no_coalescing.is_some()),
            if self.sockets.is_connected_to(to) { ", by a socket of its own" } else { "" },
        );
        let why = match (no_segmentation, &self.no_coalescing) {
            (None, None) => "both offloads passed their test when the endpoint was opened".to_owned(),
            (Some(why), None) => format!("segmentation offload is off: {why}"),
            (None, Some(why)) => format!("receive coalescing is off: {why}"),
            (Some(one), Some(other)) => {
                format!("segmentation offload is off: {one}; receive coalescing is off: {other}")
            }
        };
        match self.sockets.refusal(to) {
            Some(refusal) => (path, format!("{why}; {refusal}")),
            None => (path, why),
        }
    }

    fn refusal(&self, to: &Address) -> Option<String> {
        let refusal = self.sockets.refusal(to)?;
        Some(self.wrong_route(to).unwrap_or(refusal))
    }

    fn silence(&self, to: &Address) -> Option<String> {
        self.wrong_route(to).or_else(|| self.sockets.silence(to)).or_else(|| self.forbidden_route(to))
    }

    fn names(&mut self) -> Option<&mut dyn Names> {
        Some(self)
    }

    fn groups(&mut self) -> Option<&mut dyn cci_reliable::Groups> {
        Some(self)
    }
}

impl Sock {
    /// The address that the routes would choose for frames to a peer. None: nothing is wrong with
    /// that peer's.
    fn source_of(&self, to: &Address) -> Option<Result<IpAddr, Errno>> {
        let is_free = address::is_outward(to) || address::ip(to).is_loopback();
        (!is_free).then(|| self.sockets.source_of(to))
    }

    /// Why frames to a peer do not leave, or leave from another address than the routes would
    /// choose, if so. It says more than the call that was refused. Another error may be that of the
    /// question, and is no reason.
    fn wrong_route(&self, to: &Address) -> Option<String> {
        let (own, ip) = (self.local.ip, address::ip(to));
        match self.source_of(to)? {
            Ok(source) if source == own || source == ip => None,
            Ok(_) if self.local.loopback => Some(format!(
                "frames from {own} do not leave this host; leave out the keys ip and interface, or set connect = network"
            )),
            Ok(source) => Some(format!(
                "frames leave from {own}, but the routes lead to {ip} from {source}; leave out the keys ip and interface, \
                 or name {source}"
            )),
            Err(error @ (Errno::NETUNREACH | Errno::HOSTUNREACH)) => Some(why_not(to, error)),
            Err(_) => None,
        }
    }

    /// Which route forbids a peer's address, where no refused frame tells of it.
    fn forbidden_route(&self, to: &Address) -> Option<String> {
        match self.source_of(to)? {
            Err(error @ (Errno::ACCESS | Errno::INVAL)) => Some(why_not(to, error)),
            _ => None,
        }
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
        let found = self.ready.poll();
        self.sockets.on_found(&found);
        if found.any {
            self.ready.watch_room(self.sockets.own(), false);
        }
        !found.any
    }

    fn disarm(&mut self) {
        self.ready.drain();
        self.ready.watch_room(self.sockets.own(), false);
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
        self.sockets.watch(&mut self.ready, on)
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.ready.waker()
    }
}

impl Names for Sock {
    fn begin(&mut self, uri: &str, number: u64) -> Result<Option<Address>, ConnectError> {
        self.resolve_uri(uri, Some(number))
    }

    fn next(&mut self) -> Option<(u64, Result<Vec<Address>, String>)> {
        if let Some((number, why)) = self.refusals.pop() {
            return Some((number, Err(why)));
        }
        let (number, answer) = self.resolver.next_answer()?;
        let found = resolve::found_addresses(answer, &self.local);
        Some((number, found.and_then(|found| self.leave_for_any(found))))
    }

    fn forget(&mut self, number: u64) {
        self.resolver.forget(number);
        self.refusals.retain(|(refused, _)| *refused != number);
    }
}

impl cci_reliable::Groups for Sock {
    fn join(&mut self, uri: &str, number: u32) -> Result<(), ConnectError> {
        let named = GroupUri::parse(uri, &self.local, self.sockets.own())?;
        let (how, ready) = (self.sockets.how(), &self.ready);
        self.groups.join(&named, number, how, |socket| ready.watch_group(socket))
    }

    fn leave(&mut self, number: u32) {
        if let Some(socket) = self.groups.leave(number) {
            self.ready.forget_group(&socket);
        }
    }

    fn address(&mut self, uri: &str) -> Result<Address, ConnectError> {
        Ok(GroupUri::parse(uri, &self.local, self.sockets.own())?.address())
    }
}
