//! Networks that the endpoints of this process share, by name.

use crate::address::{self, SimAddress, Tag};
use crate::network::{Frame, Graph, LinkSettings, Network, NodeIndex, Occurrence, Time};
use crate::settings::Settings;
use cci_mem::fork::PerProcess;
use cci_proto::{Address, Status};
use cci_transport::{OpenError, lock};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Bytes of frames that wait for an endpoint, at most.
pub(crate) const RECV_BUFFER: u32 = 1 << 20;
/// What a waiting frame costs beside its bytes.
const FRAME_COST: usize = 64;
/// How far time moves when nothing is deliverable: while someone may be computing, and while
/// deadlines are unknown.
const CREEP: u64 = 1000;
const LEAP: u64 = 50_000;
/// Bytes of a frame that a refusal quotes.
const QUOTE: usize = 64;

/// A network and who uses it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: String,
    state: Mutex<State>,
}

/// What a node of the network is called, and what the links are like on which it sends.
#[derive(Debug)]
struct Named {
    number: u32,
    link: LinkSettings,
}

/// A frame for an endpoint.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) from: Address,
    pub(crate) what: Arrival,
    pub(crate) frame: Frame,
}

/// What kind of a frame it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrival {
    Frame,
    /// To a group that the endpoint joined under this number.
    Multicast(u32),
    Refusal,
}

/// Until when an endpoint has nothing to do by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// Nothing is known: it may be computing.
    Unknown,
    /// Its last poll found nothing; its deadlines are unknown.
    Idle,
    /// It has said so; `None`: for ever.
    Until(Option<Time>),
}

/// An open endpoint.
#[derive(Debug)]
struct Seat {
    number: u32,
    node: NodeIndex,
    port: u16,
    inbox: VecDeque<Received>,
    waiting: usize,
    handle: Arc<OwnedFd>,
    armed: bool,
    rest: Rest,
    /// When it has armed with a deadline that had passed, and whether it has polled in vain since.
    overdue: Option<(Time, bool)>,
    /// Groups that it has joined: the group, and its own number for it.
    groups: Vec<(u32, u32)>,
}

impl Seat {
    fn wake(&self) {
        if self.armed {
            let _ = rustix::io::write(&self.handle, &1_u64.to_ne_bytes());
        }
    }
}

/// Everything that changes.
#[derive(Debug)]
pub(crate) struct State {
    network: Network,
    seed: u64,
    named: Vec<Named>,
    seats: Vec<Seat>,
    next_seat: u32,
    groups: Vec<String>,
    /// Time moves by [`State::advance`] alone.
    held: bool,
}

fn networks() -> Result<MutexGuard<'static, Vec<Weak<Shared>>>, OpenError> {
    static NETWORKS: PerProcess<Mutex<Vec<Weak<Shared>>>> = PerProcess::new();
    let (_, networks) = NETWORKS
        .get(|| Mutex::new(Vec::new()))
        .map_err(|error| OpenError::system("no memory for virtual networks", error))?;
    Ok(lock(networks))
}

impl Shared {
    /// Takes a seat in the network that the settings name; makes the network if there is none. Says
    /// the seat's number, its node's number and its port.
    pub(crate) fn join(settings: &Settings, handle: Arc<OwnedFd>) -> Result<(Arc<Self>, u32, u32, u16), OpenError> {
        let mut networks = networks()?;
        networks.retain(|network| network.strong_count() > 0);
        let found = networks.iter().filter_map(Weak::upgrade).find(|network| network.name == settings.network);
        let shared = found.unwrap_or_else(|| {
            let seed = settings.seed.unwrap_or(1);
            let fresh = Arc::new(Self { name: settings.network.clone(), state: Mutex::new(State::new(seed)) });
            networks.push(Arc::downgrade(&fresh));
            fresh
        });
        let (seat, node, port) = shared.lock().join(settings, handle)?;
        Ok((shared, seat, node, port))
    }

    /// The network of an open endpoint of this process, and the endpoint's seat in it.
    pub(crate) fn find(uri: &str) -> Option<(Arc<Self>, u32)> {
        let found: Vec<_> = networks().ok()?.iter().filter_map(Weak::upgrade).collect();
        found.into_iter().find_map(|shared| {
            let (node, port) = address::endpoint(uri, &shared.name)?;
            let seat = shared.lock().seat(node, port)?;
            Some((shared, seat))
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn new(seed: u64) -> Self {
        Self {
            network: Network::new(seed, Graph::new()),
            seed,
            named: Vec::new(),
            seats: Vec::new(),
            next_seat: 0,
            groups: Vec::new(),
            held: false,
        }
    }

    fn join(&mut self, settings: &Settings, handle: Arc<OwnedFd>) -> Result<(u32, u32, u16), OpenError> {
        if settings.seed.is_some_and(|seed| seed != self.seed) {
            let what = format!(
                "the virtual network '{}' is there already, with seed {}; use that, or another network",
                settings.network, self.seed
            );
            return Err(OpenError::new(Status::Inval, what));
        }
        let is_used = |node: u32| self.node(node).is_some_and(|index| self.seats.iter().any(|seat| seat.node == index));
        let number = settings.node.unwrap_or_else(|| (0..).find(|node| !is_used(*node)).unwrap_or(0));
        let node = self.node(number).unwrap_or_else(|| self.add_node(number, settings));
        let is_taken = |port: u16| self.seats.iter().any(|seat| seat.node == node && seat.port == port);
        let port = match settings.port {
            Some(port) if is_taken(port) => {
                let what =
                    format!("port {port} of node {number} of the virtual network '{}' is taken", settings.network);
                return Err(OpenError::new(Status::AddrNotAvail, what));
            }
            Some(port) => port,
            None => (1..=u16::MAX).find(|port| !is_taken(*port)).ok_or_else(|| {
                OpenError::new(Status::AddrNotAvail, format!("every port of node {number} is taken; use another node"))
            })?,
        };
        self.next_seat += 1;
        self.seats.push(Seat {
            number: self.next_seat,
            node,
            port,
            inbox: VecDeque::new(),
            waiting: 0,
            handle,
            armed: false,
            rest: Rest::Unknown,
            overdue: None,
            groups: Vec::new(),
        });
        Ok((self.next_seat, number, port))
    }

    fn node(&self, number: u32) -> Option<NodeIndex> {
        let at = self.named.iter().position(|named| named.number == number)?;
        u32::try_from(at).ok().map(NodeIndex)
    }

    /// The number that keys and URIs call a node by.
    pub(crate) fn number(&self, node: NodeIndex) -> Option<u32> {
        self.named.get(node.0 as usize).map(|named| named.number)
    }

    /// Another node, joined to itself and to all others; a link is like what its sender's keys say.
    fn add_node(&mut self, number: u32, settings: &Settings) -> NodeIndex {
        let link = &settings.link;
        self.named.push(Named { number, link: link.clone() });
        let named = &self.named;
        let mut node = NodeIndex(0);
        self.network.grow(|graph| {
            node = graph.add_node(settings.processor);
            for (other, Named { link: back, .. }) in (0..).map(NodeIndex).zip(named) {
                let there = graph.add_link(node, other, link);
                graph.set_route(node, other, &[there]);
                if other != node {
                    let back = graph.add_link(other, node, back);
                    graph.set_route(other, node, &[back]);
                }
            }
        });
        node
    }

    /// The seat of the endpoint with this address.
    fn seat(&self, node: u32, port: u16) -> Option<u32> {
        let node = self.node(node)?;
        self.seats.iter().find(|seat| seat.node == node && seat.port == port).map(|seat| seat.number)
    }

    fn at(&self, seat: u32) -> Option<usize> {
        self.seats.iter().position(|taken| taken.number == seat)
    }

    /// Gives a seat up. Frames to it are refused from now on.
    pub(crate) fn leave(&mut self, seat: u32) {
        if let Some(at) = self.at(seat) {
            self.seats.swap_remove(at);
        }
        self.wake_all();
    }

    /// The address of an endpoint; `None`: there is no such node.
    pub(crate) fn resolve(&self, node: u32, port: u16) -> Option<Address> {
        self.node(node).map(|node| SimAddress::Endpoint(node, port).to_address())
    }

    /// The number of a group; a new one when it has none.
    pub(crate) fn group(&mut self, name: &str) -> u32 {
        let at = self.groups.iter().position(|group| group == name).unwrap_or_else(|| {
            self.groups.push(name.to_owned());
            self.groups.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    pub(crate) fn join_group(&mut self, seat: u32, name: &str, number: u32) {
        let group = self.group(name);
        if let Some(at) = self.at(seat) {
            self.seats[at].groups.push((group, number));
        }
    }

    pub(crate) fn leave_group(&mut self, seat: u32, number: u32) {
        if let Some(at) = self.at(seat) {
            self.seats[at].groups.retain(|(_, own)| *own != number);
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.network.now()
    }

    /// When the processor of an endpoint's node has done what it was charged with, or now if it is
    /// idle.
    pub(crate) fn busy_until(&self, seat: u32) -> Time {
        let idle_at = self.at(seat).map_or(Time(0), |at| self.network.idle_at(self.seats[at].node));
        idle_at.max(self.now())
    }

    /// Keeps the processor of an endpoint's node busy for so many nanoseconds.
    pub(crate) fn charge(&mut self, seat: u32, time: u64) {
        if let Some(at) = self.at(seat) {
            self.network.charge(self.seats[at].node, time);
        }
    }

    /// Frames that an endpoint can take without time moving.
    pub(crate) fn waiting(&self, seat: u32) -> usize {
        self.at(seat).map_or(0, |at| self.seats[at].inbox.len())
    }

    /// Sends a frame. One to an address of another transport is lost.
    pub(crate) fn send(&mut self, seat: u32, to: &Address, bytes: &[u8]) {
        let Some(at) = self.at(seat) else { return };
        let (node, port) = (self.seats[at].node, self.seats[at].port);
        self.seats[at].rest = Rest::Unknown;
        match SimAddress::of_address(to) {
            Some(SimAddress::Endpoint(to, to_port)) => {
                self.network.send(node, to, Tag::Unicast(port, to_port).to_word(), &[bytes]);
            }
            Some(SimAddress::Group(group)) => {
                let tag = Tag::Multicast(port, group).to_word();
                for to in (0..self.network.graph().nodes()).map(NodeIndex) {
                    let is_member = |seat: &Seat| seat.node == to && seat.groups.iter().any(|(of, _)| *of == group);
                    if self.seats.iter().any(is_member) {
                        self.network.send(node, to, tag, &[bytes]);
                    }
                }
            }
            None => {}
        }
        self.wake_all();
    }

    /// Something is pending: a thread that sleeps must advance time.
    fn wake_all(&self) {
        for seat in &self.seats {
            seat.wake();
        }
    }

    /// The next frame for an endpoint. When there is none, time moves, once.
    pub(crate) fn take(&mut self, seat: u32, may_move: bool) -> Option<Received> {
        let at = self.at(seat)?;
        if self.seats[at].inbox.is_empty() && may_move && !self.held {
            self.move_time(at);
        }
        let Some(received) = self.seats[at].inbox.pop_front() else {
            if let Some((_, has_polled)) = &mut self.seats[at].overdue {
                *has_polled = true;
            }
            return None;
        };
        self.seats[at].waiting -= received.frame.bytes.len() + FRAME_COST;
        self.seats[at].rest = Rest::Unknown;
        Some(received)
    }

    pub(crate) fn recycle(&mut self, frame: Frame) {
        self.network.recycle(frame);
    }

    /// An endpoint has polled and found nothing: advances time as far as no endpoint can act
    /// earlier.
    fn move_time(&mut self, at: usize) {
        let now = self.now();
        if self.seats[at].rest == Rest::Unknown {
            self.seats[at].rest = Rest::Idle;
        }
        let limit = self.seats.iter().map(|seat| match (self.network.idle_at(seat.node), seat.rest) {
            // Its program goes on as soon as its processor does: not later.
            (idle_at, Rest::Unknown | Rest::Idle) if idle_at > now => idle_at.0,
            (_, Rest::Unknown) => now.0 + CREEP,
            (_, Rest::Idle) => now.0 + LEAP,
            (_, Rest::Until(deadline)) => deadline.map_or(u64::MAX, |deadline| deadline.0.max(now.0)),
        });
        let limit = Time(limit.min().unwrap_or(now.0 + CREEP));
        self.advance_to(limit);
        let now = self.now();
        for seat in &mut self.seats {
            match seat.rest {
                Rest::Until(Some(deadline)) if deadline <= now => {
                    seat.rest = Rest::Unknown;
                    seat.wake();
                }
                Rest::Idle => seat.rest = Rest::Unknown,
                Rest::Until(_) | Rest::Unknown => {}
            }
        }
    }

    /// Moves time to the next frame that an endpoint takes, but not beyond `limit`.
    fn advance_to(&mut self, limit: Time) {
        while let Some(occurrence) = self.network.advance(limit) {
            if let Occurrence::Frame(node) = occurrence
                && self.deliver(node)
            {
                break;
            }
        }
    }

    /// From now on polls do not move time.
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Moves time to the next frame that an endpoint takes, to the moment at which a busy processor
    /// is idle again, or by the granularity of the engine's timers, whichever is first.
    pub(crate) fn advance(&mut self) {
        let now = self.now();
        let busy = self.seats.iter().map(|seat| self.network.idle_at(seat.node)).filter(|idle_at| *idle_at > now);
        let limit = busy.min().unwrap_or(Time(u64::MAX)).min(Time(now.0 + LEAP));
        self.advance_to(limit);
    }

    /// Gives what has reached a node to its endpoints. False when none took anything.
    fn deliver(&mut self, node: NodeIndex) -> bool {
        let mut taken = false;
        while let Some(frame) = self.network.take(node) {
            taken |= match Tag::of_word(frame.tag) {
                Some(Tag::Unicast(from, to)) => {
                    let from_address = SimAddress::Endpoint(frame.from, from).to_address();
                    if self.seats.iter().any(|seat| seat.node == node && seat.port == to) {
                        self.hand(node, to, Received { from: from_address, what: Arrival::Frame, frame })
                    } else {
                        let quoted = &frame.bytes[..frame.bytes.len().min(QUOTE)];
                        self.network.send(node, frame.from, Tag::Refusal(to, from).to_word(), &[quoted]);
                        self.network.recycle(frame);
                        false
                    }
                }
                Some(Tag::Refusal(from, to)) => {
                    let from = SimAddress::Endpoint(frame.from, from).to_address();
                    self.hand(node, to, Received { from, what: Arrival::Refusal, frame })
                }
                Some(Tag::Multicast(from, group)) => self.hand_to_members(node, from, group, &frame),
                None => false,
            };
        }
        taken
    }

    fn hand_to_members(&mut self, node: NodeIndex, from: u16, group: u32, frame: &Frame) -> bool {
        let mut members = Vec::new();
        for seat in self.seats.iter().filter(|seat| seat.node == node) {
            let own = seat.groups.iter().filter(|(of, _)| *of == group);
            members.extend(own.map(|(_, number)| (seat.port, *number)));
        }
        let from = SimAddress::Endpoint(frame.from, from).to_address();
        let mut taken = false;
        for (port, number) in members {
            let frame = frame.clone();
            taken |= self.hand(node, port, Received { from, what: Arrival::Multicast(number), frame });
        }
        taken
    }

    /// Puts a frame into an endpoint's inbox; it is lost when that is full.
    fn hand(&mut self, node: NodeIndex, port: u16, received: Received) -> bool {
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.node == node && seat.port == port) else {
            return false;
        };
        let cost = received.frame.bytes.len() + FRAME_COST;
        if seat.waiting + cost > RECV_BUFFER as usize {
            return false;
        }
        seat.waiting += cost;
        seat.inbox.push_back(received);
        seat.rest = Rest::Unknown;
        seat.wake();
        true
    }

    /// Prepares an endpoint's wait. False when a frame waits for it.
    pub(crate) fn arm(&mut self, seat: u32, deadline: Option<Time>) -> bool {
        let Some(at) = self.at(seat) else { return false };
        if !self.seats[at].inbox.is_empty() {
            return false;
        }
        let now = self.now();
        let armed = &mut self.seats[at];
        armed.armed = true;
        let is_overdue = deadline.is_some_and(|deadline| deadline <= now);
        // One that has polled in vain since, and wants to act at the same moment again, needs time
        // to move: its timers may have a granularity of their own.
        let is_stuck = is_overdue && armed.overdue == Some((now, true));
        armed.overdue = is_overdue.then_some((now, is_stuck));
        armed.rest = if is_stuck { Rest::Idle } else { Rest::Until(deadline) };
        let has_deadline = |seat: &Seat| matches!(seat.rest, Rest::Until(Some(_)));
        if is_stuck || self.network.next_event().is_some() || self.seats.iter().any(has_deadline) {
            self.seats[at].wake();
        }
        true
    }

    /// Ends an endpoint's wait.
    pub(crate) fn disarm(&mut self, seat: u32) {
        if let Some(at) = self.at(seat) {
            self.seats[at].armed = false;
            let _ = rustix::io::read(&self.seats[at].handle, &mut [0_u8; 8]);
        }
    }
}
