//! An endpoint: its lanes, and what each call does.

mod handle;
mod hot;
mod progress;
mod timers;
mod transport;

use crate::lane::shared::Shared;
use crate::lane::{Lane, Phase};
use cci_mem::descriptors;
use cci_mem::guarded::Threading;
use cci_proto::{Attribute, Time};
use cci_transport::{
    Background, CallError, CallHandle, Connection, Core, NameCall, PollSet, Readiness, Resolver, Slot,
};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Key of the listening socket.
pub(crate) const LISTENER: u64 = u64::MAX - 2;
/// Calls that look at all descriptors after several lanes have delivered.
const LOOKS: u32 = 64;

/// A connect whose host's name is being looked up.
pub(crate) struct PendingName {
    pub(crate) number: u64,
    /// Reserved for the CONNECT event.
    pub(crate) slot: &'static Slot,
    pub(crate) attribute: Attribute,
    pub(crate) payload: Box<[u8]>,
    pub(crate) context: u64,
    pub(crate) deadline: Time,
}

/// Which lane is hot, and for how long it has been.
#[derive(Clone, Copy, Debug, Default)]
struct Hot {
    lane: Option<u32>,
    /// Calls without an armed handle that found something on it.
    streak: u32,
}

pub(crate) struct Tcp {
    pub(crate) shared: Shared,
    pub(crate) lanes: Vec<Option<Box<Lane>>>,
    free: Vec<u32>,
    last_life: u32,
    /// The lanes that this side has dialed, by the address.
    pub(crate) dialed: BTreeMap<SocketAddr, u32>,
    /// Lanes that are dialing.
    pub(crate) dialing: usize,
    pub(crate) listener: Option<OwnedFd>,
    /// A descriptor to accept and close with, where there is no other.
    pub(crate) spare: Option<OwnedFd>,
    /// The listening socket may have more streams than were accepted.
    pub(crate) has_streams: bool,
    uri: String,
    readiness: Readiness,
    pub(crate) background: Background,
    pub(crate) resolver: Resolver,
    pub(crate) names: Vec<PendingName>,
    pub(crate) last_name: u64,
    hot: Hot,
    calls: u32,
    /// Calls in which all descriptors are looked at, since several lanes deliver.
    look_at_all: u32,
    /// What the timer is set to; `None`: it was set for an edge.
    timer: Option<Option<Time>>,
    call_handle: CallHandle,
    /// Where the search for unused grants goes on.
    recall_at: usize,
    /// When streams are accepted again, after the system refused that.
    pub(crate) listens_at: Option<Time>,
}

impl Tcp {
    pub(crate) fn new(
        core: &Core,
        shared: Shared,
        listener: OwnedFd,
        uri: String,
        threading: Threading,
    ) -> Result<Self, CallError> {
        shared.set.watch(&listener, LISTENER, EventFlags::IN).by("epoll_ctl")?;
        let resolver = Resolver::new(shared.set.waker());
        let mut tcp = Self {
            spare: descriptors::duplicate(&listener).ok(),
            shared,
            lanes: Vec::new(),
            free: Vec::new(),
            last_life: 0,
            dialed: BTreeMap::new(),
            dialing: 0,
            listener: Some(listener),
            has_streams: false,
            uri,
            readiness: Readiness::default(),
            background: Background::new(core, threading),
            resolver,
            names: Vec::new(),
            last_name: 0,
            hot: Hot::default(),
            calls: 0,
            look_at_all: 0,
            timer: Some(None),
            call_handle: CallHandle::default(),
            recall_at: 0,
            listens_at: None,
        };
        // The handle is readable until it is armed: a program that sleeps first must not miss
        // anything.
        Readiness::signal(&mut tcp);
        Ok(tcp)
    }

    /// Adds a lane, and returns its number.
    pub(crate) fn add_lane(&mut self, peer: SocketAddr, phase: Phase) -> u32 {
        self.last_life = self.last_life.wrapping_add(1) & (u32::MAX >> 1);
        let number = self.free.pop().unwrap_or_else(|| {
            self.lanes.push(None);
            u32::try_from(self.lanes.len() - 1).unwrap_or(u32::MAX)
        });
        let lane = Lane::new(number, self.last_life, peer, phase, self.shared.now);
        self.lanes[number as usize] = Some(Box::new(lane));
        self.share_slots();
        number
    }

    /// The receive slots are shared among the lanes that there are now.
    fn share_slots(&mut self) {
        self.shared.sharing = (self.lanes.len() - self.free.len()).max(1);
    }

    /// Takes a lane out.
    pub(crate) fn remove_lane(&mut self, number: u32) -> Option<Box<Lane>> {
        let lane = self.lanes.get_mut(number as usize)?.take()?;
        self.free.push(number);
        self.share_slots();
        if self.hot.lane == Some(number) {
            self.hot = Hot::default();
        }
        Some(lane)
    }

    /// The lane of this number, and what it shares with others.
    #[inline]
    pub(crate) fn lane(&mut self, number: u32) -> Option<(&mut Lane, &mut Shared)> {
        Some((self.lanes.get_mut(number as usize)?.as_deref_mut()?, &mut self.shared))
    }

    /// The lane of a connection.
    #[inline]
    pub(crate) fn lane_of(&mut self, connection: &Connection) -> Option<(&mut Lane, &mut Shared)> {
        self.lane(connection.lane.load(cci_mem::sync::Ordering::Relaxed))
    }

    /// The lane to which a key belongs, if that has not ended.
    fn lane_by_key(&mut self, key: u64) -> Option<(&mut Lane, &mut Shared)> {
        let number = u32::try_from(key & u64::from(u32::MAX)).ok()?;
        self.lane(number).filter(|(lane, _)| lane.key() == key)
    }
}

const _: () = assert!(LISTENER > u64::MAX >> 1 && LISTENER < PollSet::WAKER);
