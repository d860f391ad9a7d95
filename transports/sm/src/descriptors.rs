//! The descriptors of an endpoint, under one epoll descriptor that is its OS handle.

use crate::format::address::Address;
use crate::sys::{self, Peer};
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use cci_mem::sync::{AtomicU32, Ordering};
use cci_proto::{Status, Time};
use cci_transport::{CallError, NameCall, OpenError, PollSet, child_holds, retry_in_use};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, Shutdown, SocketType, bind, listen, shutdown};
use std::sync::Arc;

/// Connections that may wait to be taken.
const BACKLOG: i32 = 128;
/// Endpoints of one process.
const MAX_ID: u32 = 1 << 16;

/// Which name the listener of an endpoint gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// The next number of this process that is free.
    Free,
    /// This one, or none.
    Exactly(Address),
    /// The one that stands for a port, where nobody has it; else as [`Name::Free`].
    OfPort(u16),
}

/// Which descriptor is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    Listener,
    Timer,
    Waker,
    /// A lane's socket; true when hung up.
    Socket(u32, bool),
    /// A process with this number, the peer of some lanes, is dead.
    Death(u32),
}

pub(crate) struct Control {
    set: PollSet,
    listener: OwnedFd,
    /// Made when a call first waits while events do.
    quiet: Option<Quiet>,
    /// The processes of the lanes that are watched, each once.
    peers: Vec<Watched>,
    /// When the listener was last left alone for want of descriptors; none while it is watched.
    resting: Option<u64>,
}

/// A process that is the peer of so many lanes. Its end is watched once for all of them.
struct Watched {
    peer: Arc<Peer>,
    lanes: u32,
}

/// What a call inside waits on: as the handle, but without the events of the program, which nobody
/// takes meanwhile, and without the listener, which can wait.
struct Quiet {
    epoll: Arc<OwnedFd>,
    event: OwnedFd,
    /// The eventfd is readable.
    signalled: bool,
}

impl Quiet {
    // Nobody asks which descriptor it is.
    fn watch_socket(&self, socket: &OwnedFd) -> Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(0), EventFlags::IN | EventFlags::RDHUP)
    }

    fn watch_peer(&self, peer: &Peer) -> Result<()> {
        epoll::add(&self.epoll, &peer.pidfd, EventData::new_u64(0), EventFlags::IN)
    }
}

impl Drop for Control {
    /// Nobody is to wait for an answer here, also while a child has a copy of the listener.
    fn drop(&mut self) {
        let _ = shutdown(&self.listener, Shutdown::Both);
        for _ in 0..=BACKLOG {
            match descriptors::accept(&self.listener) {
                Ok(socket) => drop(shutdown(&socket, Shutdown::Both)),
                Err(_) => break,
            }
        }
    }
}

/// Whether a child of this process has the name: it was made without the handlers of `fork`, and
/// keeps a copy of the listener.
fn is_held_by_child(address: Address) -> bool {
    let name = format!("@cci-sm/{}/{}", address.pid, address.id);
    child_holds("/proc/net/unix", |columns| match columns {
        // Only a listener has this flag.
        [_, _, _, "00010000", _, _, inode, path] if *path == name => inode.parse().ok(),
        _ => None,
    })
}

/// The number of the next endpoint without a service, modulo `MAX_ID`. Each is taken once, by one
/// thread, and comes again only after all others: who connects to an endpoint that was closed is to
/// find nobody, and not another endpoint.
static NEXT_ID: AtomicU32 = AtomicU32::new(0);

const LISTENER: u64 = 1 << 32;
const SOCKET: u64 = 2 << 32;
const DEATH: u64 = 3 << 32;

impl Control {
    /// Binds the name, and makes the descriptors.
    pub(crate) fn open(name: Name) -> std::result::Result<(Self, Address), OpenError> {
        let system = |refused| OpenError::call("cannot make the descriptors of an sm endpoint", refused);
        let (listener, address) = match name {
            Name::Free => Self::listen(None)?,
            Name::Exactly(address) => Self::listen(Some(address))?,
            // Another address of this host may have an endpoint with that port, and so may another
            // user, who must not keep this one from opening.
            Name::OfPort(port) => match Self::listen(Some(Address::of_port(port))) {
                Err(taken) if taken.status == Status::AddrNotAvail => Self::listen(None)?,
                done => done?,
            },
        };
        let set = PollSet::new().map_err(system)?;
        set.watch(&listener, LISTENER, EventFlags::IN).by("epoll_ctl").map_err(system)?;
        Ok((Self { set, listener, quiet: None, peers: Vec::new(), resting: None }, address))
    }

    fn listen(service: Option<Address>) -> std::result::Result<(OwnedFd, Address), OpenError> {
        let system = |refused| OpenError::call("cannot make the socket of an sm endpoint", refused);
        let socket = descriptors::socket(AddressFamily::UNIX, SocketType::SEQPACKET).by("socket").map_err(system)?;
        let pid = std::process::id();
        let count = if service.is_some() { 1 } else { MAX_ID };
        for _ in 0..count {
            // Publishes nothing. It wraps at a multiple of the numbers.
            let next = || NEXT_ID.fetch_add(1, Ordering::Relaxed) % MAX_ID;
            let address = service.unwrap_or_else(|| Address { pid, id: next() });
            let name = address.socket().by("bind").map_err(system)?;
            let bound = if service.is_some() { retry_in_use(|| bind(&socket, &name)) } else { bind(&socket, &name) };
            match bound {
                Ok(()) => {
                    listen(&socket, BACKLOG).by("listen").map_err(system)?;
                    close_in_children(&socket);
                    return Ok((socket, address));
                }
                Err(Errno::ADDRINUSE) => {}
                Err(error) => return Err(system(CallError { call: "bind", error })),
            }
        }
        Err(OpenError::new(
            Status::AddrNotAvail,
            match service {
                Some(address) if is_held_by_child(address) => {
                    format!("a child process of this program still holds {address}; end it, or choose another service")
                }
                Some(address) => format!(
                    "another endpoint of this host has {address}, maybe in a forked child; choose another service"
                ),
                None => format!("all {MAX_ID} names of this process are taken; close endpoints"),
            },
        ))
    }

    /// The OS handle.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.set.handle()
    }

    pub(crate) fn shared_handle(&self) -> Arc<OwnedFd> {
        self.set.shared_handle()
    }

    /// As [`Control::peer_of`], of a process that has connected to the listener. What is wrong fits
    /// into a REFUSE.
    pub(crate) fn client_of(&self, socket: &OwnedFd) -> std::result::Result<Arc<Peer>, String> {
        let user = rustix::process::geteuid().as_raw();
        match sys::credentials(socket) {
            Ok(about) if about.uid != user => {
                Err(format!("this process is of user {user}, yours of user {}", about.uid))
            }
            _ => self.peer_of(socket),
        }
    }

    /// The process at the other end of a socket, if it belongs to our user; else why it is no peer.
    /// While a process lives nobody else has its number, unless that is 0: then it has none here.
    pub(crate) fn peer_of(&self, socket: &OwnedFd) -> std::result::Result<Arc<Peer>, String> {
        let no_peer = |errno: Errno| format!("the kernel does not tell which process listens there: {errno}");
        // Of a listener: as it was when it began to listen.
        let about = sys::credentials(socket).map_err(no_peer)?;
        let user = rustix::process::geteuid().as_raw();
        if about.uid != user {
            return Err(format!(
                "its endpoint was opened by user {}, and this process is of user {user}; open endpoints of sm after the \
                 change of user, and as one user, or use another transport",
                about.uid
            ));
        }
        let same = |known: &&Watched| about.pid != 0 && known.peer.pid == about.pid && !known.peer.is_dead();
        if let Some(known) = self.peers.iter().find(same) {
            return Ok(Arc::clone(&known.peer));
        }
        let made = sys::peer(socket, about).map(Arc::new);
        made.map_err(|errno| match about.pid {
            0 => "it is in a pid name space that this process does not see, and this kernel gives no descriptor of such a \
                  process; use Linux 6.5 or newer, or one pid name space"
                .into(),
            _ => no_peer(errno),
        })
    }

    /// Watches a lane's socket and its peer's life. [`Control::forget_lane`] follows, even if this
    /// fails.
    pub(crate) fn watch_lane(&mut self, number: u32, socket: &OwnedFd, peer: &Arc<Peer>) -> Result<()> {
        let flags = EventFlags::IN | EventFlags::RDHUP;
        let known = self.peers.iter_mut().find(|known| Arc::ptr_eq(&known.peer, peer));
        let is_new = known.is_none();
        match known {
            Some(known) => known.lanes += 1,
            None => self.peers.push(Watched { peer: Arc::clone(peer), lanes: 1 }),
        }
        self.set.watch(socket, SOCKET | u64::from(number), flags)?;
        if let Some(quiet) = &self.quiet {
            quiet.watch_socket(socket)?;
        }
        if is_new {
            self.set.watch(&peer.pidfd, DEATH | u64::from(peer.pid.cast_unsigned()), EventFlags::IN)?;
            self.quiet.as_ref().map_or(Ok(()), |quiet| quiet.watch_peer(peer))?;
        }
        Ok(())
    }

    /// Wakes this endpoint when a lane's socket has room for packets, or no more.
    pub(crate) fn watch_room(&self, number: u32, socket: &OwnedFd, on: bool) {
        let room = if on { EventFlags::OUT } else { EventFlags::empty() };
        let flags = EventFlags::IN | EventFlags::RDHUP | room;
        let _ = self.set.rewatch(socket, SOCKET | u64::from(number), flags);
    }

    /// Stops watching a lane, and hangs up. Closing would not suffice where a forked child still
    /// has the descriptors.
    pub(crate) fn forget_lane(&mut self, socket: &OwnedFd, peer: &Arc<Peer>) {
        // One way only: whether the peer hangs up must still be seen while it copies.
        let _ = shutdown(socket, Shutdown::Write);
        let _ = self.set.unwatch(socket);
        if let Some(quiet) = &self.quiet {
            let _ = epoll::delete(&quiet.epoll, socket);
        }
        let Some(at) = self.peers.iter().position(|known| Arc::ptr_eq(&known.peer, peer)) else { return };
        self.peers[at].lanes -= 1;
        if self.peers[at].lanes == 0 {
            self.peers.swap_remove(at);
            let _ = self.set.unwatch(&peer.pidfd);
            if let Some(quiet) = &self.quiet {
                let _ = epoll::delete(&quiet.epoll, &peer.pidfd);
            }
        }
    }

    /// Makes what a call waits on while events do; `sockets` are those of the lanes that there are.
    pub(crate) fn make_quiet<'l>(&mut self, sockets: impl Iterator<Item = &'l OwnedFd>) -> Result<()> {
        let epoll = Arc::new(descriptors::epoll()?);
        let event = descriptors::eventfd(0)?;
        for fd in [self.set.timer(), event.as_fd()] {
            epoll::add(&epoll, fd, EventData::new_u64(0), EventFlags::IN)?;
        }
        let quiet = Quiet { epoll, event, signalled: false };
        for socket in sockets {
            quiet.watch_socket(socket)?;
        }
        for known in &self.peers {
            quiet.watch_peer(&known.peer)?;
        }
        self.quiet = Some(quiet);
        Ok(())
    }

    /// What it made, for the caller; none while there is something to do.
    pub(crate) fn quiet_handle(&self) -> Option<Arc<OwnedFd>> {
        Some(Arc::clone(&self.quiet.as_ref().filter(|quiet| !quiet.signalled)?.epoll))
    }

    /// Makes it readable, or not as far as its eventfd goes.
    pub(crate) fn signal_quiet(&mut self, on: bool) {
        if let Some(quiet) = &mut self.quiet
            && quiet.signalled != on
        {
            quiet.signalled = on;
            set_readable(&quiet.event, on);
        }
    }

    /// Fills in what is ready now. The vector is the caller's to use again, so that a look
    /// allocates nothing. True: more may be ready than one look finds.
    ///
    /// # Errors
    ///
    /// The system refuses to report that.
    pub(crate) fn ready(&self, found: &mut Vec<Ready>) -> Result<bool> {
        found.clear();
        let mut events = [PollSet::NO_EVENT; 32];
        let count = match self.set.ready(&mut events) {
            Ok(count) => count,
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(error),
        };
        found.extend(events[..count].iter().filter_map(|event| Self::decode(event.data.u64(), event.flags)));
        Ok(count == events.len())
    }

    /// What may be ready besides the sockets of lanes, where the system refuses to report what is.
    #[cold]
    pub(crate) fn suppose_ready(&self, found: &mut Vec<Ready>) {
        found.push(Ready::Waker);
        if self.set.is_timer_readable() {
            found.push(Ready::Timer);
        }
        if self.is_listening() {
            found.push(Ready::Listener);
        }
        let dead = self.peers.iter().filter(|known| known.peer.is_dead());
        found.extend(dead.map(|known| Ready::Death(known.peer.pid.cast_unsigned())));
    }

    #[expect(clippy::cast_possible_truncation, reason = "the number is the low half")]
    fn decode(data: u64, flags: EventFlags) -> Option<Ready> {
        match data {
            PollSet::TIMER => return Some(Ready::Timer),
            PollSet::WAKER => return Some(Ready::Waker),
            _ => {}
        }
        Some(match data & !0xffff_ffff {
            LISTENER => Ready::Listener,
            SOCKET => {
                Ready::Socket(data as u32, flags.intersects(EventFlags::HUP | EventFlags::RDHUP | EventFlags::ERR))
            }
            DEATH => Ready::Death(data as u32),
            _ => return None,
        })
    }

    /// Takes a connection. None: no more now.
    pub(crate) fn accept(&mut self, now: u64) -> Option<OwnedFd> {
        match descriptors::accept(&self.listener) {
            Ok(socket) => {
                close_in_children(&socket);
                Some(socket)
            }
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                // Readable all the time and nothing to be done about it: looked at again by timer.
                self.watch_listener(false);
                self.resting = Some(now);
                None
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => None,
            // A listener that stays readable would keep the program awake.
            Err(_) => {
                self.watch_listener(false);
                self.resting = Some(now);
                None
            }
        }
    }

    /// Whether the listener is watched; without descriptors it is not for a while.
    pub(crate) fn is_listening(&self) -> bool {
        self.resting.is_none()
    }

    /// Watches the listener again if it has rested for `rest` milliseconds.
    pub(crate) fn listen_again(&mut self, now: u64, rest: u64) {
        if self.resting.is_some_and(|since| now >= since + rest) {
            self.resting = None;
            self.watch_listener(true);
        }
    }

    fn watch_listener(&self, on: bool) {
        let flags = if on { EventFlags::IN } else { EventFlags::empty() };
        let _ = self.set.rewatch(&self.listener, LISTENER, flags);
    }

    /// What makes the handle readable from outside the endpoint's lock.
    pub(crate) fn waker(&self) -> Arc<OwnedFd> {
        self.set.waker()
    }

    /// Makes the handle readable, with an edge also where it is readable already.
    pub(crate) fn write_waker(&self) {
        self.set.write_waker();
    }

    /// Makes the handle quiet as far as the waker goes.
    pub(crate) fn drain_waker(&self) {
        self.set.drain_waker();
    }

    /// Sets the timer. False: the system refuses.
    pub(crate) fn set_timer(&self, at: Option<Time>) -> bool {
        self.set.set_timer(at)
    }

    /// Drains the timer after it fired.
    pub(crate) fn drain_timer(&self) {
        self.set.drain_timer();
    }
}

/// Fills or empties an eventfd.
fn set_readable(event: impl AsFd, on: bool) {
    let mut counter = [0; 8];
    // Both are non-blocking, and nobody else has this descriptor: they do what they should.
    let _ = if on { rustix::io::write(event, &1u64.to_ne_bytes()) } else { rustix::io::read(event, &mut counter[..]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also where threads open and close endpoints at once.
    #[test]
    fn a_number_is_given_to_one_endpoint_alone() {
        let open = || Control::open(Name::Free).map(|(_, address)| address.id).expect("a name");
        let many = || (0..2000).map(|_| open()).collect::<Vec<_>>();
        let mut all: Vec<u32> = std::thread::scope(|scope| {
            let threads = [0; 4].map(|_| scope.spawn(many));
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "numbers that came twice");
    }

    #[test]
    fn the_number_of_a_closed_endpoint_is_not_used_for_the_next_one() {
        let number = |opened: std::result::Result<(Control, Address), OpenError>| opened.map(|(_, it)| it.id).ok();
        let first = number(Control::open(Name::Free)).expect("a name");
        // Other tests of this process may take numbers meanwhile.
        for _ in 0..100 {
            assert_ne!(number(Control::open(Name::Free)), Some(first));
        }
        let service = Address { pid: u32::MAX, id: first };
        assert_eq!(
            [(); 2].map(|()| number(Control::open(Name::Exactly(service)))),
            [Some(first); 2],
            "a service can be had again"
        );
    }
}
