//! Network interfaces.

mod objects;

use crate::calls::{Calls, Handed};
use crate::errors::Error;
use crate::handles::Handle;
use crate::initiator::Target;
use crate::objects::REGISTERS;
use crate::place::{NotOpened, Place, Ranks, Sibling};
use crate::queue::Queue;
use crate::shared::frames::Command;
use crate::state::State;
use crate::types::{Event, Limits, ProcessId};
use crate::waiting::Core;
use cci::Context;
use cci_ground::Entered;
use cci_job::Job;
use cci_mem::quiet_thread;
use cci_peers::{Options, Peers};
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the end of an interface waits until its last messages are delivered.
const LAST: Duration = Duration::from_secs(1);

/// How long operations wait for a partner that has not been there yet.
const LIMIT: Duration = Duration::from_secs(300);

/// A network interface: one endpoint of CCI, and all objects behind one lock. Any thread may call
/// it. Progress is made by calls that begin operations, read events or wait.
///
/// # Example
///
/// ```
/// use cci_portals::{Descriptor, Interface, Limits, Match, Place, Position, ProcessId, Target, Unlink, buffer, options};
///
/// let place = Place::by_rule(cci::Context::new()?.default_device()?, None)?;
/// let ni = Interface::new(place, 0, Limits::default())?;
/// let queue = ni.queue(8, false)?;
///
/// // What matches 7 goes here.
/// let memory = buffer(vec![0; 64]);
/// let wanted = Match { source: ProcessId::ANY, bits: 7, ignore: 0 };
/// let entry = ni.attach(4, wanted, Unlink::Retain, Position::After)?;
/// let target = Descriptor::new(&memory).options(options::OP_PUT).events(queue);
/// ni.attach_memory(entry, target, Unlink::Retain)?;
///
/// // A put to this process itself.
/// let source = ni.bind(Descriptor::new(&buffer(b"hello".to_vec())), Unlink::Retain)?;
/// ni.put(source, None, false, &Target { bits: 7, ..Target::at(ni.id(), 4) })?;
/// let (begun, _) = ni.wait(queue)?;
/// let (ended, _) = ni.wait(queue)?;
/// assert_eq!((begun.link, ended.mlength), (ended.link, 5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Interface {
    core: Arc<Core>,
    handle: Handle,
    own: ProcessId,
    ranks: Option<Ranks>,
    job: Option<Arc<Job>>,
    /// The engine of an accelerated interface.
    engine: Option<JoinHandle<()>>,
}

impl fmt::Debug for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interface({:?} at {})", self.own, self.core.endpoint().uri())
    }
}

impl Interface {
    /// An interface at a place. `number`, 0 to 3, tells the interfaces of a process apart in
    /// handles.
    ///
    /// # Errors
    ///
    /// The number is above 3, or the system has no descriptor or no random numbers.
    pub fn new(place: Place, number: u32, limits: Limits) -> Result<Self, NotOpened> {
        Self::open(place, number, limits, false)
    }

    /// An accelerated interface at a place: an engine, which is a thread of this process, makes the
    /// progress. Requests of others end without a call of this program. The engine sleeps while
    /// there is nothing to do.
    ///
    /// A child of a fork has no engine: it leaves the interface alone, and does not drop it.
    ///
    /// # Errors
    ///
    /// As [`Interface::new`]; there is no thread for the engine.
    ///
    /// # Example
    ///
    /// ```
    /// use cci_portals::{Interface, Limits, Place};
    ///
    /// let place = Place::by_rule(cci::Context::new()?.default_device()?, None)?;
    /// let ni = Interface::accelerated(place, 0, Limits::default())?;
    /// assert!(ni.is_accelerated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn accelerated(place: Place, number: u32, limits: Limits) -> Result<Self, NotOpened> {
        Self::open(place, number, limits, true)
    }

    fn open(place: Place, number: u32, limits: Limits, has_engine: bool) -> Result<Self, NotOpened> {
        if number > 3 {
            return Err(NotOpened::Refused(Error::Interface));
        }
        let Place { endpoint, own, directory, ranks, job } = place;
        let options = Options::new().limit(LIMIT).most_peers(1 << 16);
        let peers = Peers::new(crate::state::name_of(own), directory, &options)?;
        let uid = rustix::process::getuid().as_raw();
        let mut state = State::new((number, limits.granted()), own, (uid, 0), peers);
        let (calls, commands) = has_engine.then(Calls::new).unzip();
        state.commands = commands;
        let handle = state.objects.interface;
        let core = Arc::new(Core::new(endpoint, state, calls)?);
        let engine = if has_engine {
            let of_engine = Arc::clone(&core);
            let started = quiet_thread::spawn("portals engine", quiet_thread::STACK, move || of_engine.run());
            Some(started.map_err(|source| cci::OpenError::system("no thread for the engine of an interface", source))?)
        } else {
            None
        };
        Ok(Self { core, handle, own, ranks, job, engine })
    }

    /// Which process this is.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.own
    }

    /// The URI of the endpoint.
    #[must_use]
    pub fn uri(&self) -> &str {
        self.core.endpoint().uri()
    }

    /// The rank of this process in its job, and the processes of all ranks: of the interfaces that
    /// they have opened when this one was.
    #[must_use]
    pub fn ranks(&self) -> Option<(u32, &[ProcessId])> {
        self.ranks.as_ref().map(|ranks| (ranks.rank, &ranks.ids[..]))
    }

    /// The handle of the interface itself.
    #[must_use]
    pub const fn handle(&self) -> Handle {
        self.handle
    }

    /// Whether an engine makes the progress.
    #[must_use]
    pub fn is_accelerated(&self) -> bool {
        self.core.has_engine()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    #[inline(always)]
    fn lock(&self) -> Entered<'_, State> {
        self.core.lock()
    }

    /// Runs a call under the lock, after the commands of calls before it, and wakes those whom its
    /// changes may concern.
    #[inline]
    fn with<R>(&self, act: impl FnOnce(&mut State) -> Result<R, Error>) -> Result<R, Error> {
        if let Some(calls) = &self.core.calls {
            return self.with_engine(calls, act);
        }
        let mut state = self.lock();
        if state.is_closed {
            return Err(Error::Network);
        }
        let before = state.objects.changes.get();
        let result = act(&mut state);
        if state.objects.changes.get() != before {
            self.core.wake(&state);
        }
        result
    }

    #[inline(never)]
    fn with_engine<R>(&self, calls: &Calls, act: impl FnOnce(&mut State) -> Result<R, Error>) -> Result<R, Error> {
        let mut commands = calls.commands();
        let mut state = self.lock();
        if state.is_closed {
            return Err(Error::Network);
        }
        let before = state.objects.changes.get();
        state.follow(self.core.endpoint(), usize::MAX);
        let result = act(&mut state);
        // An engine that sleeps is not woken for messages of this process to itself.
        state.serve_self(self.core.endpoint());
        let is_closed = state.is_closed;
        commands.note(&mut state.objects, is_closed);
        calls.note_room(&state);
        if state.objects.changes.get() != before || state.has_work() {
            self.core.wake(&state);
        }
        result
    }

    /// Begins an operation by a command, or under the lock.
    #[inline]
    fn begin(
        &self,
        of: (Handle, Option<(u64, u64)>),
        to: &Target,
        command: impl FnOnce() -> Command,
        by_lock: impl FnOnce(&mut State) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let handed = self.core.calls.as_ref().map_or(Handed::Refused, |calls| calls.hand_over(of, to, &command()));
        match handed {
            Handed::Over => Ok(()),
            // Its result is that of the command, whatever becomes of the interface meanwhile.
            Handed::Followed => self.with(|_| Ok(())).or(Ok(())),
            Handed::Refused => self.with(|state| {
                by_lock(state)?;
                self.core.progress_at_times(state);
                Ok(())
            }),
        }
    }

    /// Ends the interface: links close, operations end without events, waits end. Short puts whose
    /// sends have ended are delivered first, for which it waits 1 s at most.
    ///
    /// # Errors
    ///
    /// [`Error::Network`]: it has ended already.
    pub fn close(&self) -> Result<(), Error> {
        let is_delivered = |state: &mut State| {
            state.is_closing = true;
            (state.undelivered == 0).then_some(())
        };
        // What a SEND_END has told of is with its target then, or the link has failed.
        let _ = self.core.wait(Some(LAST), is_delivered);
        self.with(|state| {
            state.take_all(self.core.endpoint());
            state.close(self.core.endpoint());
            self.core.calls.iter().for_each(Calls::close);
            Ok(())
        })
    }

    /// What the interface has of everything.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.lock().objects.limits
    }

    /// An event of a queue with a handler, for which the handler is to be called now; oldest first.
    #[must_use]
    pub fn handled(&self) -> Option<(Handle, Event)> {
        self.lock().objects.handled.pop_front()
    }

    /// Takes the oldest event, and says whether events before it were lost. Makes progress before
    /// it finds a queue empty, and in one of eight calls that find an event, unless an engine does.
    ///
    /// # Errors
    ///
    /// [`Error::Queue`], [`Error::QueueEmpty`].
    pub fn event(&self, queue: Handle) -> Result<(Event, bool), Error> {
        if let Some(calls) = &self.core.calls {
            return calls.event(queue);
        }
        self.with(|state| {
            let is_due = state.is_progress_due();
            let of = state.objects.queues.get_mut(queue).ok_or(Error::Queue)?;
            if !is_due && !of.is_empty() {
                return of.pop();
            }
            state.take_all(self.core.endpoint());
            state.objects.queues.get_mut(queue).ok_or(Error::Queue)?.pop()
        })
    }

    /// Waits for an event.
    ///
    /// # Errors
    ///
    /// [`Error::Queue`]: there is no such queue, or it was freed meanwhile. [`Error::Network`]: the
    /// interface was closed meanwhile.
    pub fn wait(&self, queue: Handle) -> Result<(Event, bool), Error> {
        self.poll(&[queue], None).map(|(_, event, is_lost)| (event, is_lost))
    }

    /// Waits for an event of one of several queues, and says of which; `None`: for ever.
    ///
    /// # Errors
    ///
    /// As [`Interface::wait`]; [`Error::QueueEmpty`]: the time is over, or there is something for
    /// [`Interface::handled`].
    pub fn poll(&self, queues: &[Handle], limit: Option<Duration>) -> Result<(usize, Event, bool), Error> {
        if queues.is_empty() {
            return Err(Error::Queue);
        }
        if let Some(calls) = &self.core.calls
            && let Some(found) = calls.look(queues, limit, &self.core.changes)
        {
            return found;
        }
        let found = self.core.wait(limit, |state| {
            let _reads = self.core.calls.as_ref().map(Calls::reads);
            for (index, handle) in queues.iter().enumerate() {
                match state.objects.queues.get_mut(*handle).ok_or(Error::Queue).and_then(Queue::pop) {
                    Ok((event, is_lost)) => return Some(Ok((index, event, is_lost))),
                    Err(Error::QueueEmpty) => {}
                    Err(why) => return Some(Err(why)),
                }
            }
            // The handlers are to be called first.
            (!state.objects.handled.is_empty()).then_some(Err(Error::QueueEmpty))
        });
        found?.unwrap_or(Err(Error::QueueEmpty))
    }

    /// Makes progress, at most for `limit` without any change.
    ///
    /// # Errors
    ///
    /// [`Error::Network`]: the interface was closed.
    pub fn make_progress(&self, limit: Duration) -> Result<(), Error> {
        let before = self.core.changes.get();
        self.core.wait(Some(limit), |state| (state.objects.changes.get() != before).then_some(())).map(drop)
    }

    /// Begins a put of a memory descriptor, or of a region of it: offset and length.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`]: there is none, or it is inactive; [`Error::IllegalMemory`]: the region
    /// lies outside of it; [`Error::Process`], [`Error::PortalIndex`], [`Error::AccessIndex`];
    /// [`Error::NoSpace`]: 65,536 operations are open.
    pub fn put(&self, memory: Handle, region: Option<(u64, u64)>, wants_ack: bool, to: &Target) -> Result<(), Error> {
        self.begin(
            (memory, region),
            to,
            || Command::Put { memory, region, wants_ack, to: *to },
            |state| state.put(self.core.endpoint(), memory, region, wants_ack, to),
        )
    }

    /// Begins a get into a memory descriptor, or into a region of it.
    ///
    /// # Errors
    ///
    /// As [`Interface::put`].
    pub fn get(&self, memory: Handle, region: Option<(u64, u64)>, from: &Target) -> Result<(), Error> {
        self.begin(
            (memory, region),
            from,
            || Command::Get { memory, region, from: *from },
            |state| state.get(self.core.endpoint(), memory, region, from),
        )
    }

    /// Begins a swap: all bytes of `source` go to the target, and as many of its bytes come to the
    /// front of `memory`.
    ///
    /// # Errors
    ///
    /// As [`Interface::put`]; [`Error::IllegalMemory`] also: `source` is longer than `memory`, or
    /// than `max_getput_md`.
    pub fn get_put(&self, memory: Handle, source: Handle, with: &Target) -> Result<(), Error> {
        self.with(|state| {
            state.get_put(self.core.endpoint(), memory, source, with)?;
            self.core.progress_at_times(state);
            Ok(())
        })
    }

    /// A status register: requests dropped (0) and their bytes (1), requests taken (2) and their
    /// bytes (3), puts sent (4) and their bytes (5).
    ///
    /// # Errors
    ///
    /// [`Error::Register`].
    pub fn status(&self, register: u32) -> Result<u64, Error> {
        self.with(|state| {
            self.core.progress_of_call(state);
            let index = usize::try_from(register).ok().filter(|index| *index < REGISTERS);
            Ok(state.objects.registers[index.ok_or(Error::Register)?])
        })
    }

    /// How far a process is: 0 this one, 1 the same node, 2 another one.
    ///
    /// # Errors
    ///
    /// [`Error::Process`]: it has a wildcard.
    pub fn distance(&self, process: ProcessId) -> Result<u64, Error> {
        if !process.is_definite() {
            return Err(Error::Process);
        }
        Ok(u64::from(process != self.own) + u64::from(process.nid != self.own.nid))
    }

    /// User and job of this process, as others see them.
    #[must_use]
    pub fn identity(&self) -> (u32, u32) {
        let state = self.lock();
        (state.uid, state.jid)
    }

    /// Sets the job of this process, for links that open from now on.
    pub fn set_job(&self, jid: u32) {
        // Behind the commands of calls before it. One that is closed opens no links.
        let _ = self.with(|state| {
            state.jid = jid;
            Ok(())
        });
    }

    /// Operations that are open, and messages of partners that broke the format.
    #[must_use]
    pub fn counts(&self) -> (usize, u64) {
        // Those of commands count as well. Nothing else can be told of one that is closed.
        let _ = self.with(|_| Ok(()));
        let state = self.lock();
        (state.operations.len(), state.malformed)
    }
}

impl Place {
    /// For a second interface in a job, beside one that this process has: all ranks make one, of
    /// whichever mode each. Partners find both interfaces of each process from then on, and both
    /// interfaces of this process find all of theirs. `None`: the number of the process is its rank
    /// and once the size of the job, or the rank where the other interface has another number.
    ///
    /// # Errors
    ///
    /// As [`Place::of_job`]; [`Error::Interface`]: the other one is not of a job.
    pub fn beside(other: &Interface, context: &Context, pid: Option<u32>) -> Result<Self, NotOpened> {
        let job = other.job.clone().ok_or(NotOpened::Refused(Error::Interface))?;
        let names = other.ranks.as_ref().map(|ranks| &ranks.names);
        Self::exchanged(job, context, pid, Some(&Sibling { id: other.id(), uri: other.uri(), names }))
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        let _ = self.close();
        if let Some(engine) = self.engine.take() {
            // It ends once the interface is closed. Its panic is nobody's here.
            let _ = engine.join();
        }
    }
}
