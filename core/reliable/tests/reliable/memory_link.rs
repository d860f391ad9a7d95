//! A link between endpoints of this process: queues in memory, the real clock unless it is stopped,
//! faults on demand.

use cci_proto::{Address, ConnectError, Time};
use cci_reliable::{Groups, Incoming, Link, Names, Outgoing, Wait};
use cci_transport::monotonic;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Largest frame, bytes.
pub(crate) const MTU: u16 = 4096;

/// What happens to frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Of a thousand frames so many are lost.
    pub(crate) lost: u32,
    /// So many come twice.
    pub(crate) doubled: u32,
    /// So many come after the next one.
    pub(crate) late: u32,
    /// So many have a bit turned.
    pub(crate) spoilt: u32,
}

struct Port {
    frames: VecDeque<(u64, u32, Vec<u8>)>,
    arrival: Arc<OwnedFd>,
    groups: Vec<(String, u32)>,
}

/// What all links of a hub share.
struct State {
    ports: BTreeMap<u64, Port>,
    last: u64,
    faults: Faults,
    random: u64,
    /// The links take nothing.
    full: bool,
    /// Receiving in the progress thread panics.
    panics: bool,
    /// When the clock was stopped.
    stopped: Option<Instant>,
    /// Memory of frames that were taken.
    spare: Vec<Vec<u8>>,
    /// Frames handed over so far, those of them with a piece of memory, and calls that did.
    frames: u64,
    pieces: u64,
    bursts: u64,
    arms: u64,
    /// When the handles are to give an edge, if the links have a timer for that.
    rings: Option<Vec<Time>>,
    /// Names that are looked up: for which port, under which number, and the URI.
    asked: Vec<(u64, u64, String)>,
    /// What was found, in the same way.
    found: Vec<(u64, u64, Result<Vec<Address>, String>)>,
    /// Largest frame of every path and of any, bytes.
    mtu: (u16, u16),
    /// What the owner of memory does to it between the check of frames and the moment when they are
    /// taken.
    change: Option<Change>,
}

type Change = Box<dyn FnMut() + Send>;

/// A network of links.
#[derive(Clone)]
pub(crate) struct Hub(Arc<Mutex<State>>);

impl Hub {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            ports: BTreeMap::new(),
            last: 0,
            faults: Faults::default(),
            random: 0x9e37_79b9_7f4a_7c15,
            full: false,
            panics: false,
            stopped: None,
            // Enough for all, so that none is allocated for a frame.
            spare: (0..512).map(|_| Vec::with_capacity(MTU.into())).collect(),
            frames: 0,
            pieces: 0,
            bursts: 0,
            arms: 0,
            rings: None,
            asked: Vec::new(),
            found: Vec::new(),
            mtu: (1200, MTU),
            change: None,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics with it held")
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    pub(crate) fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Receiving in the progress thread panics from now on.
    pub(crate) fn set_panics(&self) {
        self.lock().panics = true;
    }

    /// No time passes any more.
    pub(crate) fn stop_clock(&self) {
        self.lock().stopped = Some(Instant::now());
    }

    /// Time passes, of a clock that stands still.
    pub(crate) fn advance(&self, time: Duration) {
        let mut state = self.lock();
        state.stopped = state.stopped.map(|stopped| stopped + time);
    }

    /// Frames handed over so far, and calls that did.
    pub(crate) fn sent(&self) -> (u64, u64) {
        let state = self.lock();
        (state.frames, state.bursts)
    }

    /// The links have a timer for edges. It does not fire.
    pub(crate) fn take_rings(&self) {
        self.lock().rings = Some(Vec::new());
    }

    /// When handles were to give an edge.
    pub(crate) fn rings(&self) -> Vec<Time> {
        self.lock().rings.clone().unwrap_or_default()
    }

    /// Frames that nobody has received yet.
    pub(crate) fn frames_under_way(&self) -> usize {
        self.lock().ports.values().map(|port| port.frames.len()).sum()
    }

    /// Times that a timer was set.
    pub(crate) fn arms(&self) -> u64 {
        self.lock().arms
    }

    /// Names that are still wanted.
    pub(crate) fn names(&self) -> usize {
        self.lock().asked.len()
    }

    /// Finds all names that are looked up: the endpoints that follow "later:", or none.
    pub(crate) fn find_names(&self) {
        let mut state = self.lock();
        for (port, name, uri) in std::mem::take(&mut state.asked) {
            let found: Option<Vec<_>> = uri.split(',').map(|uri| number(uri).map(address)).collect();
            let found = found.ok_or_else(|| format!("no host {uri}"));
            state.found.push((port, name, found));
            if let Some(port) = state.ports.get(&port) {
                rustix::io::write(&*port.arrival, &1u64.to_ne_bytes()).expect("an eventfd");
            }
        }
    }

    /// Frames of up to this size are carried from now on: the links open later go by that.
    pub(crate) fn set_mtu(&self, mtu: u16) {
        self.lock().mtu = (mtu, mtu);
    }

    /// Frames with a piece of memory that were handed over so far.
    pub(crate) fn pieces(&self) -> u64 {
        self.lock().pieces
    }

    /// Has `change` run between the check of frames and the moment when they are taken.
    pub(crate) fn set_change(&self, change: Option<Change>) {
        self.lock().change = change;
    }

    /// Hands a frame to an endpoint, from an address of nobody.
    pub(crate) fn inject(&self, to: &str, bytes: &[u8]) {
        let port = number(to).expect("a URI of this hub");
        self.lock().deliver(u64::MAX, port, 0, &[bytes]);
    }

    /// A link on a host of its own.
    pub(crate) fn link(&self) -> MemoryLink {
        let host = self.lock().last + 1;
        self.link_on(host)
    }

    /// A link on this host.
    pub(crate) fn link_on(&self, host: u64) -> MemoryLink {
        let mut state = self.lock();
        state.last += 1;
        let port = host << HOST_SHIFT | state.last;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let arrival = Arc::new(eventfd(0, flags).expect("a descriptor"));
        let waker = Arc::new(eventfd(0, flags).expect("a descriptor"));
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .expect("a descriptor");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
        for fd in [arrival.as_fd(), waker.as_fd(), timer.as_fd()] {
            epoll::add(&epoll, fd, EventData::new_u64(0), EventFlags::IN).expect("room in an epoll");
        }
        state.ports.insert(
            port,
            Port { frames: VecDeque::with_capacity(1024), arrival: Arc::clone(&arrival), groups: Vec::new() },
        );
        let uri = format!("mem://{port}");
        MemoryLink { hub: self.clone(), port, uri, arrival, waker, timer, epoll, start: (Instant::now(), monotonic()) }
    }
}

fn number(uri: &str) -> Option<u64> {
    uri.strip_prefix("mem://")?.parse().ok()
}

impl State {
    fn chance(&mut self, of_thousand: u32) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1000 < u64::from(of_thousand)
    }

    fn deliver(&mut self, from: u64, to: u64, group: u32, parts: &[&[u8]]) {
        let faults = self.faults;
        if self.chance(faults.lost) {
            return;
        }
        let times = 1 + u32::from(self.chance(faults.doubled));
        let (late, spoilt) = (self.chance(faults.late), self.chance(faults.spoilt));
        for _ in 0..times {
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.clear();
            parts.iter().for_each(|part| frame.extend_from_slice(part));
            if spoilt {
                let at = usize::try_from(self.random).unwrap_or(0) % frame.len();
                frame[at] ^= 4;
            }
            let Some(port) = self.ports.get_mut(&to) else { return };
            let at = port.frames.len() - usize::from(late && !port.frames.is_empty());
            port.frames.insert(at, (from, group, frame));
            rustix::io::write(&*port.arrival, &1u64.to_ne_bytes()).expect("an eventfd");
        }
    }
}

/// One end.
pub(crate) struct MemoryLink {
    hub: Hub,
    port: u64,
    uri: String,
    arrival: Arc<OwnedFd>,
    waker: Arc<OwnedFd>,
    timer: OwnedFd,
    epoll: OwnedFd,
    start: (Instant, Time),
}

/// A port's number holds that of its host.
const HOST_SHIFT: u32 = 32;

fn address(port: u64) -> Address {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&(port >> HOST_SHIFT).to_be_bytes());
    bytes[16..].copy_from_slice(&port.to_be_bytes());
    Address(bytes)
}

fn port_of(address: &Address) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&address.0[16..]);
    u64::from_be_bytes(bytes)
}

/// The address of a group: a number that no port has, made from its name.
fn group_address(name: &str) -> Address {
    let hash = name.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut address = address(hash);
    address.0[8] = 1;
    address
}

fn group_name(uri: &str) -> Result<&str, ConnectError> {
    uri.strip_prefix("mem://group/").ok_or(ConnectError::BadUri)
}

fn empty(fd: &OwnedFd) {
    let mut counter = [0; 8];
    let _ = rustix::io::read(fd, &mut counter[..]);
}

impl Link for MemoryLink {
    fn name(&self) -> &'static str {
        "mem"
    }

    fn uri(&self) -> &str {
        &self.uri
    }

    fn now(&self) -> Time {
        let now = self.hub.lock().stopped.unwrap_or_else(Instant::now);
        self.start.1 + (now - self.start.0)
    }

    fn mtu(&self) -> u16 {
        self.hub.lock().mtu.1
    }

    fn base_mtu(&self) -> u16 {
        self.hub.lock().mtu.0
    }

    fn recv_buffer(&self) -> u32 {
        1 << 20
    }

    fn resolve(&mut self, uri: &str) -> Result<Address, ConnectError> {
        number(uri).map(address).ok_or(ConnectError::BadUri)
    }

    fn send_burst(&mut self, frames: &[Outgoing<'_>]) -> usize {
        let mut state = self.hub.lock();
        if state.full {
            return 0;
        }
        state.bursts += 1;
        state.frames += frames.len() as u64;
        let mtu = usize::from(state.mtu.1);
        let mut piece = [0; u16::MAX as usize];
        for frame in frames {
            if let Some(change) = &mut state.change {
                change();
            }
            state.pieces += u64::from(frame.piece.is_some());
            let len = frame.piece.map_or(0, |part| part.copy_to(0, &mut piece));
            let parts = [frame.head, &piece[..len]];
            assert!(frame.head.len() + len <= mtu, "longer than the link carries");
            if frame.to.0[8] == 1 {
                let is_of = |name: &str| group_address(name) == frame.to;
                let members: Vec<_> = (state.ports.iter())
                    .flat_map(|(port, at)| at.groups.iter().map(|(name, number)| (*port, name.clone(), *number)))
                    .filter(|(_, name, _)| is_of(name))
                    .collect();
                for (port, _, number) in members {
                    state.deliver(self.port, port, number + 1, &parts);
                }
            } else {
                state.deliver(self.port, port_of(&frame.to), 0, &parts);
            }
        }
        frames.len()
    }

    fn recv_burst(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let panics = self.hub.lock().panics;
        assert!(!panics || std::thread::current().name() != Some("cci-progress"), "on purpose");
        let mut count = 0;
        while count < budget {
            let mut state = self.hub.lock();
            let port = state.ports.get_mut(&self.port).expect("open");
            let Some((from, group, frame)) = port.frames.pop_front() else {
                empty(&self.arrival);
                break;
            };
            drop(state);
            let (from, bytes) = (address(from), &frame[..]);
            sink(match group.checked_sub(1) {
                None => Incoming::Frame { from, bytes, congested: false },
                Some(group) => Incoming::Multicast { group, from, bytes },
            });
            self.hub.lock().spare.push(frame);
            count += 1;
        }
        count
    }

    fn is_writable(&mut self) -> bool {
        !self.hub.lock().full
    }

    fn write_name(&self, to: &Address, text: &mut dyn std::fmt::Write) -> std::fmt::Result {
        write!(text, "mem://{}", port_of(to))
    }

    fn path(&self, _: &Address) -> (String, String) {
        ("queues in memory".into(), "it is a test".into())
    }

    fn names(&mut self) -> Option<&mut dyn Names> {
        Some(self)
    }

    fn groups(&mut self) -> Option<&mut dyn Groups> {
        Some(self)
    }
}

impl Wait for MemoryLink {
    fn handle(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn arm(&mut self, deadline: Option<Time>, _: bool) -> bool {
        self.hub.lock().arms += 1;
        let left = deadline.map_or(0, |deadline| deadline.since(self.now()).max(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(left / 1_000_000_000).expect("short"),
            tv_nsec: i64::try_from(left % 1_000_000_000).expect("short"),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })
            .expect("a timer");
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&*self.arrival, PollFlags::IN)], Some(&none)) == Ok(0)
    }

    fn disarm(&mut self) {
        empty(&self.waker);
        empty(&self.timer);
    }

    fn ring(&mut self, at: Time) -> bool {
        self.hub.lock().rings.as_mut().map(|rings| rings.push(at)).is_some()
    }

    fn waker(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.waker)
    }
}

impl Names for MemoryLink {
    fn begin(&mut self, uri: &str, number: u64) -> Result<Option<Address>, ConnectError> {
        let Some(name) = uri.strip_prefix("later:") else { return self.resolve(uri).map(Some) };
        self.hub.lock().asked.push((self.port, number, name.to_owned()));
        Ok(None)
    }

    fn next(&mut self) -> Option<(u64, Result<Vec<Address>, String>)> {
        let mut state = self.hub.lock();
        let at = state.found.iter().position(|(port, ..)| *port == self.port)?;
        let (_, number, found) = state.found.remove(at);
        Some((number, found))
    }

    fn forget(&mut self, number: u64) {
        self.hub.lock().asked.retain(|asked| (asked.0, asked.1) != (self.port, number));
    }
}

impl Groups for MemoryLink {
    fn join(&mut self, uri: &str, number: u32) -> Result<(), ConnectError> {
        let name = group_name(uri)?.to_owned();
        self.hub.lock().ports.get_mut(&self.port).expect("open").groups.push((name, number));
        Ok(())
    }

    fn leave(&mut self, number: u32) {
        self.hub.lock().ports.get_mut(&self.port).expect("open").groups.retain(|(_, other)| *other != number);
    }

    fn address(&mut self, uri: &str) -> Result<Address, ConnectError> {
        Ok(group_address(group_name(uri)?))
    }
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        self.hub.lock().ports.remove(&self.port);
    }
}
