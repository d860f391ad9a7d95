//! How a process becomes a rank of a Split-C program, and how it ends as one.

use crate::am::ActiveMessages;
use crate::carrier::Carrier;
use crate::fault::{Fault, StartError};
use crate::layout::{MOST_RANKS, OWN, control};
use crate::mapping::Mapping;
use crate::memory::register;
use crate::pieces::Piece;
use crate::ranges::Ranges;
use crate::server::Server;
use crate::sys::{Statics, Windows};
use crate::traffic::Traffic;
use crate::vi::VirtualInterfaces;
use crate::world::{Peer, World};
use cci::{Attribute, Connect, Context, EndpointOptions, Event, ImportError, RmaHandle, SharedMemory};
use cci_job::Job;
use cci_mem::barrier::Pairing;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long connecting to all other ranks may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Bytes of memory for [`World::allocate_local`], unless [`LOCAL`] gives another number.
const LOCAL_BYTES: u64 = 4 << 20;
/// The variable with that number.
const LOCAL: &str = "CCI_SPLITC_MALLOC";
/// Spread memory at the start, bytes.
const FIRST_BYTES: u64 = 1 << 20;

/// Why a Split-C program failed.
///
/// # Example
///
/// ```
/// use cci_splitc::{Error, Fault};
///
/// let error = Error::from(Fault::Gone { rank: 2 });
/// assert!(error.to_string().starts_with("rank 2 has ended"));
/// ```
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "before it runs, or while it does")]
pub enum Error {
    /// It did not start.
    Start(StartError),
    /// An operation failed.
    Fault(Fault),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(why) => why.fmt(f),
            Self::Fault(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Runs `main` as a rank of the job that this process belongs to, and returns its value once all
/// ranks have come to their end. A process has one such program at a time.
///
/// # Errors
///
/// The program did not start; or `main` failed, and this rank leaves without waiting for others.
///
/// # Example
///
/// ```no_run
/// fn main() -> Result<(), cci_splitc::Error> {
///     cci_splitc::run(|world| {
///         println!("rank {} of {}", world.me(), world.procs());
///         world.barrier()
///     })
/// }
/// ```
pub fn run<T>(main: impl FnOnce(&World) -> Result<T, Fault>) -> Result<T, Error> {
    let world = World::start(None).map_err(Error::Start)?;
    let value = main(&world)?;
    world.end()?;
    Ok(value)
}

/// What a rank gives to all others at the start.
pub(crate) struct Card {
    /// 1: a sleeper can fence for all.
    fences: u64,
    len: u64,
    statics: (u64, u64),
    handles: [RmaHandle; 2],
}

impl Card {
    pub(crate) fn emit(&self) -> Vec<u8> {
        let words = [self.fences, self.len, self.statics.0, self.statics.1];
        let words = words.into_iter().chain(self.handles.iter().flat_map(RmaHandle::words));
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// What the rank has registered.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let [own, statics] = self.handles;
        let own = Piece { start: OWN, len: self.len, handle: own };
        let statics = Piece { start: self.statics.0, len: self.statics.1, handle: statics };
        vec![own, statics]
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let &[fences, len, start, statics, a, b, c, d, e, f, g, h] = words.as_slice() else { return None };
        let handles = [[a, b, c, d], [e, f, g, h]].map(RmaHandle::from_words);
        Some(Self { fences, len, statics: (start, statics), handles })
    }
}

fn refused(why: impl fmt::Display) -> StartError {
    StartError(why.to_string())
}

fn local_bytes() -> Result<u64, StartError> {
    let Some(text) = std::env::var_os(LOCAL).filter(|text| !text.is_empty()) else { return Ok(LOCAL_BYTES) };
    let bytes = text.to_str().and_then(|text| text.parse::<u64>().ok()).filter(|bytes| *bytes <= 1 << 34);
    let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(0x1000));
    bytes.ok_or_else(|| refused(format!("{LOCAL} is {text:?}; give a number of bytes up to 17179869184")))
}

impl World {
    /// Joins the job, connects to all other ranks, and maps their memory.
    fn start(statics: Option<Statics>) -> Result<Self, StartError> {
        let (local, mapping) = (local_bytes()?, Mapping::named()?);
        let job = Job::join().map_err(refused)?;
        let (me, procs) = (job.rank(), job.size());
        if procs > MOST_RANKS {
            return Err(refused(format!("the job has {procs} ranks; start at most {MOST_RANKS}")));
        }
        let first = control(procs) + local;
        let len = first + FIRST_BYTES;
        let windows = Rc::new(Windows::reserve(me, procs).map_err(refused)?);
        let memory = SharedMemory::new(len as usize).map_err(|why| {
            refused(format!("cannot allocate {len} bytes of spread memory: {why}; raise ulimit -v, or lower {LOCAL}"))
        })?;
        let options = EndpointOptions::new().disconnect_events(true);
        let context = Context::new().map_err(refused)?;
        let endpoint = job.open(&context, &options).map_err(refused)?;
        let mut world = Self {
            me,
            procs,
            carrier: RefCell::default(),
            server: Rc::new(Server::new(me, procs, Rc::clone(&windows))),
            windows,
            staging: OnceCell::new(),
            endpoint,
            job,
            peers: (0..procs).map(|_| Peer::default()).collect(),
            traffic: RefCell::new(Traffic::default()),
            is_all_mapped: Cell::new(false),
            own_changes: Cell::new(0),
            is_leaving: Cell::new(false),
            pairing: cci_mem::barrier::prepare(),
            failed: RefCell::default(),
            epoch: Cell::new(0),
            turn: Cell::new(0),
            consumed: Cell::new(0),
            registered: RefCell::default(),
            spread: RefCell::new(Ranges::default()),
            local: RefCell::new(Ranges::default()),
            first,
            end: Cell::new(len),
            one_thread: PhantomData,
        };
        world.spread.borrow_mut().add(first, FIRST_BYTES);
        world.local.borrow_mut().add(control(procs), local);
        if let Some(vis) = mapping.vis() {
            let interfaces = VirtualInterfaces::open(&world.job, &context, vis, Rc::clone(&world.server))?;
            world.carrier.replace(Some(Carrier::Vi(Box::new(interfaces))));
        }
        let cards = world.register_own(Arc::new(memory), statics)?;
        let mappings = world.job.exchange(&[mapping as u8]).map_err(refused)?;
        if let Some(rank) = mappings.iter().position(|other| other != &[mapping as u8]) {
            return Err(refused(format!("rank {rank} has another CCI_SPLITC_MAPPING than rank {me}; set it for all")));
        }
        if cards.iter().any(|card| card.fences == 0) {
            world.pairing = Pairing::Symmetric;
        }
        world.connect_all()?;
        match mapping {
            Mapping::Direct => world.map_all(&cards)?,
            Mapping::Am => {
                let active = ActiveMessages::open(&world.job, &context, Rc::clone(&world.server))?;
                world.carrier.replace(Some(Carrier::Am(Box::new(active))));
            }
            Mapping::Vi | Mapping::TwoVis => {
                if let Some(Carrier::Vi(interfaces)) = &mut *world.carrier.borrow_mut() {
                    interfaces.connect(&world.job)?;
                }
            }
        }
        world.is_all_mapped.set((0..procs).all(|rank| world.is_mapped(rank)));
        // Who has come here has mapped all, and needs no peer to be there for it.
        world.job.exchange(&[]).map_err(refused)?;
        Ok(world)
    }

    /// As [`run`], for a C program, whose statics move to memory that others map.
    ///
    /// # Errors
    ///
    /// As [`run`].
    ///
    /// # Safety
    ///
    /// This process has one thread. Statics of the program are used as memory that other ranks read
    /// and write.
    #[expect(unsafe_code, reason = "the caller's contract is that of the move")]
    pub unsafe fn start_with_statics() -> Result<Self, StartError> {
        // SAFETY: by the contract of this call.
        let statics = unsafe { Statics::move_all() };
        let statics = statics.map_err(|why| {
            refused(format!("cannot move the program's statics to shared memory: {why}; raise ulimit -v and -f"))
        })?;
        Self::start(statics)
    }

    /// Ends this rank's part: returns once all ranks have come to their end.
    ///
    /// # Errors
    ///
    /// A rank has ended before, or an operation that nobody has waited for has failed.
    pub fn end(self) -> Result<(), Fault> {
        self.leave()?;
        self.job.leave();
        Ok(())
    }

    /// Maps and registers this rank's memory, and exchanges what others need for it.
    fn register_own(&self, memory: Arc<SharedMemory>, statics: Option<Statics>) -> Result<Vec<Card>, StartError> {
        let registered = register(&self.endpoint, &memory).map_err(refused)?;
        let mut pieces = vec![Piece { start: OWN, len: registered.len(), handle: *registered.handle() }];
        let fences = u64::from(self.pairing == Pairing::Asymmetric);
        let mut card = Card { fences, len: registered.len(), statics: (0, 0), handles: [*registered.handle(); 2] };
        self.windows.add_own(registered, memory.memory().start(), 0).map_err(refused)?;
        self.register_with_carrier(OWN, &memory.memory());
        if let Some(statics) = statics {
            let registered = register(&self.endpoint, &statics.memory).map_err(refused)?;
            card.statics = (statics.start, statics.len);
            card.handles[1] = *registered.handle();
            pieces.push(Piece { start: statics.start, len: statics.len, handle: card.handles[1] });
            self.windows.keep(registered);
            self.register_with_carrier(statics.start, &statics.memory.memory());
            self.windows.set_statics(self.me, card.statics, None).map_err(refused)?;
        }
        self.registered.replace(pieces);
        let cards = self.job.exchange(&card.emit()).map_err(refused)?;
        let parsed = (0..).zip(&cards).map(|(rank, bytes): (u32, _)| {
            let other = Card::parse(bytes).filter(|other| other.len == card.len);
            other.ok_or_else(|| {
                refused(format!(
                    "rank {rank} has other spread memory than rank {}; give both the same program and the same {LOCAL}",
                    self.me
                ))
            })
        });
        let cards: Vec<Card> = parsed.collect::<Result<_, _>>()?;
        // A pointer to a static of this rank is to lead to the same static elsewhere.
        if let Some(rank) = cards.iter().position(|other| other.statics.0 != card.statics.0) {
            return Err(refused(format!(
                "the program's statics lie at other addresses in rank {rank} than in rank {}; link it with -no-pie, \
                 as `pkg-config splitc` states",
                self.me
            )));
        }
        Ok(cards)
    }

    /// Connects to all lower ranks, and accepts all higher ones.
    fn connect_all(&self) -> Result<(), StartError> {
        let deadline = Instant::now() + LIMIT;
        let mut waiting = 0;
        let mine = self.me.to_le_bytes();
        let is_open = |rank: &u32| *rank == self.me || self.peers[*rank as usize].connection.get().is_some();
        loop {
            // A few at a time, so that buffers suffice.
            while waiting < self.me {
                let name = format!("job:{waiting}");
                let connect = Connect::to(&name).payload(&mine).attribute(Attribute::ReliableOrdered);
                match self.endpoint.connect(&connect.context(u64::from(waiting)).timeout(LIMIT)) {
                    Ok(()) => waiting += 1,
                    Err(cci::ConnectError::NoBuffers) => break,
                    Err(why) => return Err(refused(format!("cannot connect to rank {waiting}: {why}"))),
                }
            }
            let Some(missing) = (0..self.procs).find(|rank| !is_open(rank)) else { return Ok(()) };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(refused(format!("rank {missing} did not connect within {LIMIT:?}; see that it runs")));
            }
            match self.endpoint.wait(Some(left)) {
                Ok(Some(event)) => self.open(event)?,
                Ok(None) => {}
                Err(why) => return Err(refused(why)),
            }
        }
    }

    /// Handles what happens while ranks connect.
    fn open(&self, event: Event<'_>) -> Result<(), StartError> {
        match event {
            Event::Request(request) => {
                let rank = <[u8; 4]>::try_from(request.payload().as_slice()).map(u32::from_le_bytes);
                let is_expected = rank.is_ok_and(|rank| {
                    rank > self.me && rank < self.procs && self.peers[rank as usize].connection.get().is_none()
                });
                let answered = match rank {
                    Ok(rank) if is_expected => request.accept(u64::from(rank)),
                    _ => request.reject(),
                };
                answered
                    .map_err(|unanswered| refused(format!("cannot answer a rank that connects: {}", unanswered.why)))
            }
            Event::Connected(opened) => {
                self.set_open(opened.context(), opened.connection());
                Ok(())
            }
            Event::Accepted(opened) => {
                self.set_open(opened.context(), opened.connection());
                Ok(())
            }
            Event::ConnectFailed(failed) => {
                Err(refused(format!("cannot connect to rank {}: {failed}", failed.context())))
            }
            other => {
                self.handle(other);
                let gone = self.peers.iter().position(|peer| peer.gone.get());
                gone.map_or(Ok(()), |rank| Err(refused(Fault::Gone { rank: rank as u32 })))
            }
        }
    }

    fn set_open(&self, rank: u64, connection: Option<cci::Connection>) {
        if let Some(peer) = usize::try_from(rank).ok().and_then(|rank| self.peers.get(rank)) {
            peer.connection.set(connection);
        }
    }

    /// Maps the memory of all ranks that are on this host.
    fn map_all(&self, cards: &[Card]) -> Result<(), StartError> {
        for (rank, card) in (0..).zip(cards).filter(|(rank, _)| *rank != self.me) {
            let Some(connection) = self.peers[rank as usize].connection.get() else { continue };
            let lost = |why: &dyn fmt::Display| refused(format!("cannot map the memory of rank {rank}: {why}"));
            match self.endpoint.import(connection, &card.handles[0]) {
                Ok(import) => self.windows.add(rank, import, 0).map_err(|why| lost(&why))?,
                // On another host, or not over shared memory: RMA and messages serve it.
                Err(ImportError::NotImplemented | ImportError::NotMapped) => {
                    self.peers[rank as usize].pieces.replace(card.pieces());
                    continue;
                }
                Err(why) => return Err(lost(&why)),
            }
            if card.statics.1 > 0 {
                let import = self.endpoint.import(connection, &card.handles[1]).map_err(|why| lost(&why))?;
                self.windows.set_statics(rank, card.statics, Some(import)).map_err(|why| lost(&why))?;
            }
        }
        Ok(())
    }

    /// The address at which memory of [`World::allocate_spread`] and [`World::allocate_local`]
    /// begins, in every rank.
    #[must_use]
    pub fn base() -> u64 {
        OWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_read_as_they_were_written() {
        let handles = [[1, 2, 3, 4], [5, 6, 7, 8]].map(RmaHandle::from_words);
        let card = Card { fences: 1, len: 9, statics: (10, 11), handles };
        let bytes = card.emit();
        let read = Card::parse(&bytes).expect("whole");
        assert_eq!((read.fences, read.len, read.statics, read.handles), (1, 9, (10, 11), handles));
        assert!(Card::parse(&bytes[..88]).is_none() && Card::parse(&[]).is_none());
    }
}
