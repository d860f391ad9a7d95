//! A rank's view of the global address space.

use crate::carrier::Carrier;
use crate::fault::Fault;
use crate::layout::{BLAMED, OWN, left};
use crate::pieces::Piece;
use crate::ranges::Ranges;
use crate::server::Server;
use crate::sys::{Staging, Windows};
use crate::traffic::Traffic;
use cci::{Connection, Endpoint};
use cci_job::Job;
use cci_mem::barrier::Pairing;
use cci_mem::sync::Ordering;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

/// A peer as this rank sees it.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// None for this rank itself.
    pub(crate) connection: Cell<Option<Connection>>,
    /// What it has registered, where that is not mapped here.
    pub(crate) pieces: RefCell<Vec<Piece>>,
    /// Whether it has ended, or cannot be reached.
    pub(crate) gone: Cell<bool>,
}

/// A rank of a Split-C program: what it reaches of the others, and what it does with them.
///
/// It is used by one thread. Calls that wait serve what other ranks ask by messages.
///
/// # Example
///
/// ```no_run
/// cci_splitc::run(|world| {
///     let sum = world.reduce(cci_splitc::Op::Add, world.me())?;
///     assert_eq!(sum, world.procs() * (world.procs() - 1) / 2);
///     Ok(())
/// })?
/// # ; Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct World {
    pub(crate) me: u32,
    pub(crate) procs: u32,
    /// What carries everything, where nothing is mapped.
    pub(crate) carrier: RefCell<Option<Carrier>>,
    pub(crate) server: Rc<Server>,
    // Its registrations end before the endpoint.
    pub(crate) windows: Rc<Windows>,
    /// Made by the first RMA.
    pub(crate) staging: OnceCell<Staging>,
    pub(crate) endpoint: Endpoint,
    pub(crate) job: Job,
    pub(crate) peers: Vec<Peer>,
    pub(crate) traffic: RefCell<Traffic>,
    /// Whether the memory of all ranks is mapped here.
    pub(crate) is_all_mapped: Cell<bool>,
    /// Atomic operations of this rank on its own memory.
    pub(crate) own_changes: Cell<u32>,
    /// Whether this rank needs others only to come to their end.
    pub(crate) is_leaving: Cell<bool>,
    /// Who fences where a store meets a sleeper; asymmetric only if all ranks can.
    pub(crate) pairing: Pairing,
    /// Why the endpoint is of no use any more.
    pub(crate) failed: RefCell<Option<String>>,
    /// Barriers that this rank has come to.
    pub(crate) epoch: Cell<u64>,
    /// Gatherings that this rank has come to.
    pub(crate) turn: Cell<u64>,
    /// Bytes stored here that a wait has counted off.
    pub(crate) consumed: Cell<u64>,
    /// What this rank has registered.
    pub(crate) registered: RefCell<Vec<Piece>>,
    /// Free spread memory, by offset from [`OWN`]; the same in all ranks.
    pub(crate) spread: RefCell<Ranges>,
    /// Free memory of this rank alone, by offset.
    pub(crate) local: RefCell<Ranges>,
    /// The offset at which spread memory begins.
    pub(crate) first: u64,
    /// The offset at which it ends.
    pub(crate) end: Cell<u64>,
    pub(crate) one_thread: PhantomData<*mut ()>,
}

impl World {
    /// Returns the number of this rank.
    #[must_use]
    pub fn me(&self) -> u32 {
        self.me
    }

    /// Returns how many ranks the program has.
    #[must_use]
    pub fn procs(&self) -> u32 {
        self.procs
    }

    /// Has `watch` told of what time is spent on from now on, where the mapping is that over the VI
    /// Architecture: at each call the time since the last one was spent on that part. `None` ends
    /// it. False: the mapping is another one.
    pub fn watch(&self, watch: Option<Rc<dyn Fn(cci_via::Part)>>) -> bool {
        let Some(Carrier::Vi(interfaces)) = &mut *self.carrier.borrow_mut() else { return false };
        interfaces.watch(watch);
        true
    }

    /// Returns whether a rank's spread memory is mapped here, so that an access costs what memory
    /// costs. Others are reached by messages.
    #[must_use]
    pub fn is_mapped(&self, rank: u32) -> bool {
        rank < self.procs && self.windows.is_mapped(rank)
    }

    /// The rank and the address of a global pointer, if there is such a rank.
    #[inline]
    pub(crate) fn parts(&self, bits: u64) -> Result<(u32, u64), Fault> {
        let (rank, address) = crate::pointer::parts(bits);
        if rank < self.procs { Ok((rank, address)) } else { Err(Fault::NoRank { rank, procs: self.procs }) }
    }

    /// Whether bytes lie in memory that only spread arrays use, so that a safe program may reach
    /// them.
    #[inline]
    pub(crate) fn is_spread(&self, address: u64, len: u64) -> bool {
        let offset = address.wrapping_sub(OWN);
        offset >= self.first && offset < self.end.get() && len <= self.end.get() - offset
    }

    /// A rank that has ended and that this one waits for in vain.
    pub(crate) fn lost(&self) -> Option<u32> {
        let is_lost = |rank: &u32| {
            let has_left = || self.windows.own_word(left(self.procs, *rank)).load(Ordering::Acquire) != 0;
            self.peers[*rank as usize].gone.get() && !(self.is_leaving.get() && has_left())
        };
        let lost = (0..self.procs).find(is_lost)?;
        // Ranks that end because of another one end soon after it.
        let blamed = self.windows.own_word(BLAMED).load(Ordering::Acquire);
        Some(u32::try_from(blamed).ok().and_then(|blamed| blamed.checked_sub(1)).unwrap_or(lost))
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World(rank {} of {})", self.me, self.procs)
    }
}
