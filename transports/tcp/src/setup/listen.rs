//! Streams that others dial, and the limits for strangers.

use super::dial::configure;
use super::hello::own_hello;
use crate::endpoint::{LISTENER, Tcp};
use crate::frame::Refusal;
use crate::lane::shared::{Cause, Shared};
use crate::lane::{Lane, Phase};
use crate::sys;
use cci_mem::cancellation::Uncancelled;
use cci_mem::descriptors;
use cci_proto::Time;
use cci_transport::Core;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{Shutdown, getpeername, shutdown};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Streams accepted in one call.
const ACCEPTED: usize = 64;
/// Strangers at most, and of one address (IPv6: of one /64). Loop-back addresses are exempt from
/// the second limit.
pub(crate) const STRANGERS: usize = 256;
const OF_ONE_ADDRESS: usize = 32;
/// How long nothing is accepted after the system has refused to.
const REST: Duration = Duration::from_secs(1);

/// What strangers are counted by; `None`: an address of this host.
fn counted(ip: IpAddr) -> Option<u64> {
    match ip {
        _ if ip.is_loopback() => None,
        IpAddr::V4(ip) => Some(u32::from(ip).into()),
        IpAddr::V6(ip) => Some((u128::from(ip) >> 64) as u64),
    }
}

/// Whether no connection of this lane was ever accepted.
fn is_stranger(lane: &Lane) -> bool {
    !lane.dialed && lane.phase != Phase::Over && lane.table.is_empty()
}

impl Tcp {
    /// Accepts streams.
    pub(crate) fn accept_streams(&mut self, core: &mut Core) {
        self.has_streams = false;
        for _ in 0..ACCEPTED {
            let Some(listener) = &self.listener else { return };
            match descriptors::accept(listener) {
                Ok(socket) => self.on_stream(core, socket),
                Err(Errno::MFILE | Errno::NFILE) => return self.turn_one_away(),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => return self.rest(),
            }
        }
        self.has_streams = true;
    }

    /// The system refuses to accept: a listener that stays readable would keep the program awake.
    #[cold]
    fn rest(&mut self) {
        let Some(listener) = &self.listener else { return };
        if self.shared.set.rewatch(listener, LISTENER, EventFlags::empty()).is_ok() {
            let at = self.shared.now + REST;
            self.listens_at = Some(at);
            self.shared.check_by(at);
        }
    }

    /// Accepts again, once a while has passed since the system refused to.
    pub(crate) fn listen_again(&mut self, now: Time) {
        let Some(at) = self.listens_at else { return };
        if at > now {
            return self.shared.check_by(at);
        }
        self.listens_at = None;
        if let Some(listener) = &self.listener {
            // Where that is refused, nobody accepts: clients see a server that does not answer.
            let _ = self.shared.set.rewatch(listener, LISTENER, EventFlags::IN);
        }
    }

    /// No descriptor is left: one stream is accepted by the spare one, and closed, so that the
    /// handle does not stay readable.
    #[cold]
    fn turn_one_away(&mut self) {
        let _uncancelled = Uncancelled::new();
        let Some(listener) = &self.listener else { return };
        drop(self.spare.take());
        let turned = descriptors::accept(listener);
        let is_readable_still = matches!(&turned, Err(error) if *error != Errno::AGAIN);
        drop(turned);
        self.spare = descriptors::duplicate(listener).ok();
        if is_readable_still {
            self.rest();
        }
    }

    fn on_stream(&mut self, core: &mut Core, socket: OwnedFd) {
        let name = getpeername(&socket).ok().and_then(|name| name.map(SocketAddr::try_from)?.ok());
        let Some(peer) = name.filter(|peer| self.admits(core, peer.ip())) else {
            return self.refuse(socket);
        };
        configure(&self.shared, &socket, peer);
        let number = self.add_lane(peer, Phase::Greeting);
        let Some((lane, shared)) = self.lane(number) else { return };
        if shared.set.watch(&socket, lane.key(), EventFlags::IN).is_err() {
            lane.socket = Some(socket);
            return lane.end(shared, Cause::Gone);
        }
        lane.socket = Some(socket);
        shared.check_by(shared.now + Duration::from_secs(5));
        // What lies ready is read at once, so that who has said HELLO is not taken for a scanner.
        lane.receive(shared, core);
    }

    /// Says that there is no room. A client of ours dials again.
    #[cold]
    fn refuse(&mut self, socket: OwnedFd) {
        let _uncancelled = Uncancelled::new();
        // Closing with unread bytes would destroy what is sent: most clients have said HELLO.
        if let Some(mut scratch) = self.shared.take_scratch() {
            let _ = sys::receive(&socket, &mut scratch);
            self.shared.put_scratch(scratch);
        }
        let hello = own_hello(&self.shared, false, Some(Refusal::Full));
        let _ = sys::send(&socket, &hello.emit());
        let _ = shutdown(&socket, Shutdown::Write);
        drop(socket);
    }

    /// Whether another stranger of this address may come. Where there are too many, the oldest that
    /// has not said HELLO goes, then the oldest that has not asked for anything.
    fn admits(&mut self, core: &mut Core, ip: IpAddr) -> bool {
        let of_address = counted(ip);
        let is_same = |lane: &Lane| of_address.is_some() && counted(lane.peer.ip()) == of_address;
        let strangers = || self.lanes.iter().flatten().filter(|lane| is_stranger(lane));
        let is_full = strangers().count() >= STRANGERS;
        if !is_full && strangers().filter(|lane| is_same(lane)).count() < OF_ONE_ADDRESS {
            return true;
        }
        let may_go = |lane: &Lane| (is_full || is_same(lane)) && !lane.has_asked;
        let oldest = |has_greeted: bool| {
            let others = strangers().filter(|lane| may_go(lane) && lane.incoming.has_greeted() == has_greeted);
            others.min_by_key(|lane| lane.idle_since).map(|lane| lane.number)
        };
        let Some(number) = oldest(false).or_else(|| oldest(true)) else { return false };
        if let Some((lane, shared)) = self.lane(number) {
            // It may have said something meanwhile.
            lane.receive(shared, core);
            if !lane.has_asked {
                lane.end(shared, Cause::Idle);
            }
        }
        self.bury_ended(core);
        true
    }
}

impl Lane {
    /// Closes its stream. Closing would not end the watch where a forked child still has it.
    pub(super) fn drop_socket(&mut self, s: &mut Shared) {
        if let Some(seal) = self.seal.take() {
            s.end_seal(*seal);
        }
        if self.further.is_some() {
            self.drop_streams(s);
        }
        if let Some(socket) = self.socket.take() {
            let _uncancelled = Uncancelled::new();
            let _ = s.set.unwatch(&socket);
            drop(socket);
        }
    }
}
