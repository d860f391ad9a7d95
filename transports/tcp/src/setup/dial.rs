//! Dialing.

use super::hello::jitter;
use crate::endpoint::Tcp;
use crate::lane::shared::{Cause, Shared};
use crate::lane::{Lane, Phase};
use crate::sys;
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use cci_transport::Core;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_congestion, set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SocketType, connect, getsockname};
use std::net::SocketAddr;
use std::time::Duration;

/// Lanes that dial at a time.
pub(crate) const DIALING: usize = 64;
/// What the kernel queues of a stream that it could not send yet, bytes: nothing overtakes it.
const UNSENT: i32 = 256 << 10;
/// First and longest pause after a dial that failed.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// How long a server of another host may refuse, because it is just starting.
const STARTING: Duration = Duration::from_secs(2);

/// Sets up a stream.
pub(crate) fn configure(s: &Shared, socket: &OwnedFd, peer: SocketAddr) {
    close_in_children(socket);
    // Each of these is about speed alone.
    let _ = set_tcp_nodelay(socket, true);
    let _ = sys::limit_unsent(socket, UNSENT);
    if let Some(name) = s.settings.congestion_to(peer.ip()) {
        let _ = set_tcp_congestion(socket, name);
    }
}

/// Whether a dial that failed for this may succeed later.
fn may_pass(error: Errno) -> bool {
    let is_shortage = matches!(error, Errno::AGAIN | Errno::ADDRNOTAVAIL | Errno::NOBUFS | Errno::NOMEM | Errno::INTR);
    is_shortage || sys::is_end_of_stream(error)
}

/// A socket for a stream to this address.
pub(crate) fn open(peer: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    descriptors::socket(family, SocketType::STREAM)
}

/// How long to wait after so many dials that failed, and one more.
pub(crate) fn pause_after(attempts: u32) -> Duration {
    let (first, longest) = PAUSES;
    let pause = (first * 2_u32.pow(attempts.min(10))).min(longest);
    pause / 2 + jitter(pause / 2)
}

impl Tcp {
    /// Dials the peer of this lane, or has it wait for its turn.
    pub(crate) fn dial(&mut self, core: &mut Core, number: u32) {
        if self.dialing >= DIALING {
            if let Some((lane, _)) = self.lane(number) {
                lane.phase = Phase::Queued;
            }
            return;
        }
        let Some((lane, shared)) = self.lane(number) else { return };
        let peer = lane.peer;
        let socket = match open(peer) {
            Ok(socket) => socket,
            Err(error @ (Errno::MFILE | Errno::NFILE)) => {
                let error = std::io::Error::from(error);
                return lane.end(shared, Cause::Refused(format!("no descriptor is left for a stream to {peer} ({error}); raise the limit (ulimit -n), or close connections")));
            }
            Err(error) => {
                let error = std::io::Error::from(error);
                return lane.end(shared, Cause::Refused(format!("cannot open a stream to {peer}: {error}")));
            }
        };
        configure(shared, &socket, peer);
        let begun = connect(&socket, &peer);
        let is_watched = shared.set.watch(&socket, lane.key(), EventFlags::IN | EventFlags::OUT);
        lane.socket = Some(socket);
        lane.on_watched(true);
        (lane.phase, lane.is_dialing) = (Phase::Dialing, true);
        if let (Ok(()) | Err(Errno::INPROGRESS), Err(error)) = (begun, is_watched) {
            lane.end_refused(shared, "epoll_ctl", error);
        }
        self.dialing += 1;
        match (begun, is_watched) {
            (Ok(()) | Err(Errno::INPROGRESS), Err(_)) => {}
            (Ok(()), Ok(())) => self.on_connected(core, number),
            (Err(Errno::INPROGRESS), Ok(())) => {}
            (Err(error), _) => self.on_dial_failed(number, error),
        }
    }

    /// Something has happened to a dial.
    pub(crate) fn on_dialed(&mut self, core: &mut Core, number: u32) {
        let Some((lane, _)) = self.lane(number) else { return };
        let Some(socket) = &lane.socket else { return };
        match socket_error(socket) {
            Ok(Ok(())) => match rustix::net::getpeername(socket) {
                Ok(_) => self.on_connected(core, number),
                Err(Errno::NOTCONN) => {}
                Err(error) => self.on_dial_failed(number, error),
            },
            Ok(Err(error)) | Err(error) => self.on_dial_failed(number, error),
        }
    }

    fn on_connected(&mut self, core: &mut Core, number: u32) {
        self.end_dial(number);
        let Some((lane, shared)) = self.lane(number) else { return };
        lane.phase = Phase::Greeting;
        lane.watch_room(shared, false);
        lane.say_hello(shared);
        let now = shared.now;
        lane.ask_all(shared, now);
        lane.flush(shared, core);
    }

    /// A lane does not dial any more. One that waits for its turn does so in the next call.
    pub(super) fn end_dial(&mut self, number: u32) {
        let Some((lane, _)) = self.lane(number) else { return };
        if !std::mem::take(&mut lane.is_dialing) {
            return;
        }
        self.dialing -= 1;
        if self.lanes.iter().flatten().any(|lane| lane.phase == Phase::Queued) {
            let now = self.shared.now;
            self.shared.check_by(now);
        }
    }

    fn on_dial_failed(&mut self, number: u32, error: Errno) {
        self.end_dial(number);
        let Some((lane, shared)) = self.lane(number) else { return };
        let is_own = lane.is_on_this_host();
        lane.was_turned_away = false;
        lane.drop_socket(shared);
        let waited = shared.now - lane.idle_since;
        let is_over = match error {
            Errno::CONNREFUSED => is_own || waited >= STARTING,
            error => !may_pass(error),
        };
        if is_over {
            let (peer, why) = (lane.peer_uri(), std::io::Error::from(error));
            let reason = match error {
                Errno::CONNREFUSED => {
                    format!("nobody listens at {peer} ({why}); start the server first, and check its URI")
                }
                _ => {
                    format!("the system does not let this process connect to {peer} ({why}); check filters and routes")
                }
            };
            lane.end(shared, Cause::Refused(reason));
        } else {
            let now = shared.now;
            lane.table.each_pending(|pending| pending.others.hurry(now));
            lane.pause(shared);
            if lane.table.all_pending().any(|(_, pending)| pending.elsewhere_at().is_some()) {
                shared.check_by(now);
            }
        }
    }
}

impl Lane {
    /// Whether the peer is an address of this host: the system chose the same for this end.
    pub(super) fn is_on_this_host(&self) -> bool {
        let own = self.socket.as_ref().and_then(|socket| SocketAddr::try_from(getsockname(socket).ok()?).ok());
        self.peer.ip().is_loopback() || own.is_some_and(|own| own.ip() == self.peer.ip())
    }

    /// Dials again after a while.
    pub(super) fn pause(&mut self, s: &mut Shared) {
        let at = s.now + pause_after(self.attempts);
        self.attempts += 1;
        self.phase = Phase::Paused(at);
        s.check_by(at);
    }
}
