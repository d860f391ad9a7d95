//! A program whose engine is another process.

use super::frames::{Command, Returned, read_event};
use super::rings::{AREA_AT, COMMANDS, EVENTS, Frame, In, Out, len_of};
use super::socket::{self, Hello};
use crate::errors::Error;
use crate::handles::Handle;
use crate::initiator::Target;
use crate::objects::{Match, Position, Unlink};
use crate::types::{Described, Event, ProcessId};
use cci::Memory;
use cci_ground::may_spin;
use cci_mem::barrier::{Pairing, prepare};
use cci_mem::fork::Mark;
use cci_mem::segment::Segment;
use cci_mem::sync::spin;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Looks in vain between two at the socket, which tells that the engine is gone.
const LOOKS: u32 = 4096;

/// Why a program has no engine.
///
/// # Example
///
/// ```
/// use cci_portals::shared::{Client, NotJoined};
///
/// let nobody = Client::join("nobody has this name", None, 4096);
/// assert!(matches!(nobody, Err(NotJoined::System(_))));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum NotJoined {
    /// No engine has the name, it has gone, or the system has no memory or descriptor.
    System(std::io::Error),
    /// The engine has refused.
    Refused(Error),
}

impl fmt::Display for NotJoined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(why) => write!(f, "cannot join an engine: {why}; is one of this name running?"),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for NotJoined {}

impl From<rustix::io::Errno> for NotJoined {
    fn from(why: rustix::io::Errno) -> Self {
        Self::System(why.into())
    }
}

/// Events of a queue that came while the program asked for others.
#[derive(Debug)]
struct Waiting {
    most: usize,
    events: VecDeque<(Event, bool)>,
}

/// A network interface of this process, whose engine is another process. One thread uses it.
///
/// Its memory descriptors name memory that both processes have ([`Client::memory`]):
/// [`Described::start`] is an offset there. Calls that begin puts and gets return before the engine
/// has seen them; what it refuses then is the result of the next call that looks for events.
///
/// In a child of a fork all calls are refused by [`Error::NotInitialised`].
pub struct Client {
    /// None in a child that has dropped its copy.
    socket: Option<OwnedFd>,
    mark: Mark,
    pairing: Pairing,
    commands: Out<COMMANDS>,
    events: In<EVENTS>,
    area: Memory,
    own: ProcessId,
    queues: BTreeMap<Handle, Waiting>,
    first: Option<Frame>,
    answer: Option<(u32, u64)>,
    refused: VecDeque<Error>,
    has_gone: bool,
    looks: u32,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.own)
    }
}

impl Client {
    /// Joins the engine of this name, as the process of this number or of one that the engine
    /// chooses, with so many bytes of memory for descriptors, at most 1 GiB.
    ///
    /// # Errors
    ///
    /// There is no such engine; it has refused; there is no memory.
    pub fn join(name: &str, pid: Option<u32>, memory: usize) -> Result<Self, NotJoined> {
        let len = len_of(memory).ok_or(NotJoined::Refused(Error::NoSpace))?;
        let segment = Segment::create("cci portals", len)?;
        segment.reserve(0, len)?;
        let hello = Hello { pairing: prepare(), pid, len: len as u64 };
        let (socket, welcome) = socket::ask(name, &hello, segment.file_of()?, PATIENCE)?;
        let own = welcome.answer.map_err(NotJoined::Refused)?;
        let segment = Arc::new(segment);
        let area = Memory::of_peer(Arc::clone(&segment), AREA_AT, memory).ok_or(NotJoined::Refused(Error::NoSpace))?;
        Ok(Self {
            socket: Some(socket),
            mark: Mark::new()?,
            pairing: welcome.pairing,
            commands: Out::<COMMANDS>::of_commands(&segment),
            events: In::<EVENTS>::of_events(&segment),
            area,
            own,
            queues: BTreeMap::new(),
            first: None,
            answer: None,
            refused: VecDeque::new(),
            has_gone: false,
            looks: 0,
        })
    }

    /// Which process this is.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.own
    }

    /// The memory that descriptors name.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.area
    }

    /// Makes an event queue for at least `count` events.
    ///
    /// # Errors
    ///
    /// [`Error::NoSpace`]: too many queues, or more than 65,536 events in all of them; as
    /// [`Client::attach`].
    pub fn queue(&mut self, count: u64) -> Result<Handle, Error> {
        let handle = self.ask_for_handle(&Command::Queue(count))?;
        let most = usize::try_from(count.next_power_of_two().max(2)).map_err(|_| Error::NoSpace)?;
        self.queues.insert(handle, Waiting { most, events: VecDeque::new() });
        Ok(handle)
    }

    /// Ends an event queue.
    ///
    /// # Errors
    ///
    /// [`Error::Queue`]; as [`Client::attach`].
    pub fn free_queue(&mut self, queue: Handle) -> Result<(), Error> {
        self.ask(&Command::FreeQueue(queue))?;
        self.queues.remove(&queue);
        Ok(())
    }

    /// Enters a match entry into the list of a portal index.
    ///
    /// # Errors
    ///
    /// [`Error::PortalIndex`], [`Error::ListTooLong`], [`Error::NoSpace`]; [`Error::Network`]: the
    /// engine is gone; [`Error::Failed`]: it has not answered for 10 s;
    /// [`Error::NotInitialised`]: this is a child of a fork.
    pub fn attach(&mut self, portal: u32, wanted: Match, unlink: Unlink, at: Position) -> Result<Handle, Error> {
        self.ask_for_handle(&Command::Attach { portal, wanted, unlink, at })
    }

    /// Removes a match entry.
    ///
    /// # Errors
    ///
    /// [`Error::Entry`], [`Error::EntryInUse`]; as [`Client::attach`].
    pub fn unlink_entry(&mut self, entry: Handle) -> Result<(), Error> {
        self.ask(&Command::UnlinkEntry(entry)).map(drop)
    }

    /// Gives a match entry a memory descriptor, whose start is an offset in [`Client::memory`].
    ///
    /// # Errors
    ///
    /// [`Error::Entry`], [`Error::EntryInUse`], [`Error::IllegalMemory`], [`Error::Queue`],
    /// [`Error::NoSpace`]; as [`Client::attach`].
    pub fn attach_memory(&mut self, entry: Handle, described: Described, unlink: Unlink) -> Result<Handle, Error> {
        self.ask_for_handle(&Command::AttachMemory { entry, described, unlink })
    }

    /// Makes a memory descriptor for operations that begin here.
    ///
    /// # Errors
    ///
    /// [`Error::IllegalMemory`], [`Error::Queue`], [`Error::NoSpace`]; as [`Client::attach`].
    pub fn bind(&mut self, described: Described, unlink: Unlink) -> Result<Handle, Error> {
        self.ask_for_handle(&Command::Bind { described, unlink })
    }

    /// Removes a memory descriptor.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`], [`Error::MemoryInUse`]; as [`Client::attach`].
    pub fn unlink_memory(&mut self, memory: Handle) -> Result<(), Error> {
        self.ask(&Command::UnlinkMemory(memory)).map(drop)
    }

    /// A status register, as of [`crate::Interface::status`].
    ///
    /// # Errors
    ///
    /// [`Error::Register`]; as [`Client::attach`].
    pub fn status(&mut self, register: u32) -> Result<u64, Error> {
        self.ask(&Command::Status(register))
    }

    /// Begins a put of a memory descriptor, or of a region of it: offset and length. Does not wait
    /// for the engine.
    ///
    /// # Errors
    ///
    /// [`Error::Process`], [`Error::PortalIndex`], [`Error::AccessIndex`]; [`Error::NoSpace`]: 256
    /// commands wait for the engine, or 1,024 refusals for the program; [`Error::Network`]: it is
    /// gone; [`Error::NotInitialised`]. What the engine finds wrong is the result of a later call
    /// of [`Client::event`] or [`Client::wait`].
    #[inline]
    pub fn put(
        &mut self,
        memory: Handle,
        region: Option<(u64, u64)>,
        wants_ack: bool,
        to: &Target,
    ) -> Result<(), Error> {
        self.begin(to, &Command::Put { memory, region, wants_ack, to: *to })
    }

    /// Begins a get into a memory descriptor, or into a region of it.
    ///
    /// # Errors
    ///
    /// As [`Client::put`].
    pub fn get(&mut self, memory: Handle, region: Option<(u64, u64)>, from: &Target) -> Result<(), Error> {
        self.begin(from, &Command::Get { memory, region, from: *from })
    }

    /// Takes the oldest event of a queue; and whether events before it were lost.
    ///
    /// # Errors
    ///
    /// [`Error::Queue`], [`Error::QueueEmpty`]; [`Error::Network`]: the engine is gone, and all
    /// events were read; [`Error::NotInitialised`]; what was wrong with a put or a get.
    #[inline]
    pub fn event(&mut self, queue: Handle) -> Result<(Event, bool), Error> {
        self.check()?;
        if let Some(found) = self.find(queue) {
            return found;
        }
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS) {
            self.take_wakes();
            // The last events came with the end.
            return self.find(queue).unwrap_or(Err(Error::QueueEmpty));
        }
        Err(if self.has_gone { Error::Network } else { Error::QueueEmpty })
    }

    /// Waits for an event of a queue; `None`: for ever. Sleeps while there is none.
    ///
    /// # Errors
    ///
    /// As [`Client::event`]; [`Error::QueueEmpty`]: the time is over.
    pub fn wait(&mut self, queue: Handle, limit: Option<Duration>) -> Result<(Event, bool), Error> {
        self.check()?;
        self.wait_for(limit, |client| client.find(queue))?.unwrap_or(Err(Error::QueueEmpty))
    }

    fn check(&self) -> Result<(), Error> {
        if self.mark.is_here() { Ok(()) } else { Err(Error::NotInitialised) }
    }

    fn find(&mut self, queue: Handle) -> Option<Result<(Event, bool), Error>> {
        self.take();
        if let Some(why) = self.refused.pop_front() {
            return Some(Err(why));
        }
        let Some(waiting) = self.queues.get_mut(&queue) else { return Some(Err(Error::Queue)) };
        waiting.events.pop_front().map(Ok)
    }

    #[inline]
    fn begin(&mut self, with: &Target, command: &Command) -> Result<(), Error> {
        self.check()?;
        if !with.process.is_definite() {
            return Err(Error::Process);
        }
        if with.portal > u32::from(u16::MAX) {
            return Err(Error::PortalIndex);
        }
        if with.access > u32::from(u16::MAX) {
            return Err(Error::AccessIndex);
        }
        if self.has_gone {
            return Err(Error::Network);
        }
        if !self.has_room() && !self.make_room() {
            return Err(if self.has_gone { Error::Network } else { Error::NoSpace });
        }
        self.push(command);
        Ok(())
    }

    /// The engine takes no command while what it has to return finds no room. Takes that, unless the
    /// program reads none of it.
    #[cold]
    fn make_room(&mut self) -> bool {
        self.take_wakes();
        if self.refused.len() < EVENTS {
            self.take();
        }
        self.has_room()
    }

    #[inline]
    fn has_room(&mut self) -> bool {
        self.commands.has_room().unwrap_or_else(|_| {
            self.has_gone = true;
            false
        })
    }

    #[inline]
    fn push(&mut self, command: &Command) {
        self.commands.push(&command.frame());
        if self.commands.must_wake(self.pairing) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.socket.iter().for_each(socket::wake);
    }

    /// Takes wake-ups, and notes whether the engine has gone.
    #[cold]
    fn take_wakes(&mut self) {
        self.has_gone |= !self.socket.as_ref().is_some_and(socket::take_wakes);
        if self.has_gone {
            // What it has written before is there now.
            self.take();
        }
    }

    /// Has the engine follow a command, and waits for its answer.
    fn ask(&mut self, command: &Command) -> Result<u64, Error> {
        self.check()?;
        let room = self.wait_for(Some(PATIENCE), |client| client.has_room().then_some(()))?;
        room.ok_or(Error::Failed)?;
        self.answer = None;
        self.push(command);
        match self.wait_for(Some(PATIENCE), |client| client.answer.take())? {
            Some((0, value)) => Ok(value),
            Some((code, _)) => Err(Error::of_code(code.into())),
            // An answer that came later would be taken for that of the next command.
            None => {
                self.has_gone = true;
                Err(Error::Failed)
            }
        }
    }

    fn ask_for_handle(&mut self, command: &Command) -> Result<Handle, Error> {
        let value = self.ask(command)?;
        u32::try_from(value).map(Handle::from_bits).map_err(|_| Error::Failed)
    }

    /// Takes all that the engine has written.
    #[inline]
    fn take(&mut self) {
        let mut must_wake = false;
        while let Some((frame, gives_room)) = self.events.take() {
            must_wake |= gives_room;
            match Returned::parse(&frame) {
                Some(Returned::Event) => self.first = Some(frame),
                Some(Returned::Rest) => self.keep(&frame),
                Some(Returned::Answer(code, value)) => self.answer = Some((code, value)),
                Some(Returned::Refused(code)) => self.refused.push_back(Error::of_code(code.into())),
                None => self.has_gone = true,
            }
        }
        if must_wake && self.commands.must_wake(self.pairing) {
            self.wake();
        }
    }

    /// Keeps an event, whose second line this is, for its queue.
    #[inline]
    fn keep(&mut self, rest: &Frame) {
        let Some((event, mut is_lost)) = self.first.take().and_then(|first| read_event(&first, rest)) else {
            self.has_gone = true;
            return;
        };
        // It was freed meanwhile.
        let Some(waiting) = self.queues.get_mut(&event.described.queue) else { return };
        if waiting.events.len() == waiting.most {
            waiting.events.pop_front();
            match waiting.events.front_mut() {
                Some((_, is_lost)) => *is_lost = true,
                None => is_lost = true,
            }
        }
        waiting.events.push_back((event, is_lost));
    }

    /// Waits until there is a result, at most for so long.
    fn wait_for<R>(
        &mut self,
        limit: Option<Duration>,
        mut ready: impl FnMut(&mut Self) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let begun = Instant::now();
        loop {
            self.take();
            if let Some(result) = ready(self) {
                return Ok(Some(result));
            }
            if self.has_gone {
                return Err(Error::Network);
            }
            let now = Instant::now();
            let left = limit.map(|limit| limit.saturating_sub(now.saturating_duration_since(begun)));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            if may_spin(begun, now) {
                spin();
                continue;
            }
            self.events.arm();
            self.pairing.heavy();
            if self.events.is_empty() {
                match ready(self) {
                    Some(result) => {
                        self.events.disarm();
                        return Ok(Some(result));
                    }
                    None => self.sleep(left),
                }
            }
            self.events.disarm();
        }
    }

    fn sleep(&mut self, left: Option<Duration>) {
        if let Some(socket) = &self.socket {
            socket::sleep(&[socket.as_fd()], left);
        }
        self.take_wakes();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A child's copy was closed when it was forked, and its number may be another descriptor's.
        if !self.mark.is_here() {
            std::mem::forget(self.socket.take());
        }
    }
}
