//! What a process has: whether it is initialised, and its objects by their handles.

use crate::answer::{Answer, Refusal, WRONG};
use crate::far::Far;
use cci_mem::fork::PerProcess;
use cci_mem::mutex::{lock, read, write};
use cci_mem::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use cci_sci::{
    DataInterrupt, DmaQueue, Error, Host, Interrupt, LocalSegment, Options, RemoteDataInterrupt, RemoteInterrupt,
    Sequence, SequenceStatus, Window,
};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{c_uint, c_void};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

/// A handle as C has it: it is compared and taken apart, never followed.
pub(crate) type Handle = *mut c_void;

/// Connections that have ended whose segments' numbers are kept.
const MOST_ENDED: usize = 256;
/// What lies between handles.
const STEP: usize = 16;

/// Objects of one kind by their handles.
pub(crate) struct Table<T>(RwLock<HashMap<usize, Arc<T>>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(RwLock::new(HashMap::new()))
    }
}

impl<T> Table<T> {
    pub(crate) fn enter(&self, handle: Handle, object: T) -> Arc<T> {
        let object = Arc::new(object);
        let mut all = write(&self.0);
        all.insert(handle.addr(), Arc::clone(&object));
        object
    }

    pub(crate) fn find(&self, handle: Handle) -> Answer<Arc<T>> {
        registry()?.check()?;
        let all = read(&self.0);
        all.get(&handle.addr()).map(Arc::clone).ok_or(WRONG)
    }

    /// Removes an object. It is dropped by the caller, without the lock.
    pub(crate) fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        write(&self.0).remove(&handle.addr())
    }

    /// Puts others in place of some objects. Those are dropped by the caller, without the lock.
    pub(crate) fn replace(&self, is_old: impl Fn(&T) -> bool, new: impl Fn() -> T) -> Vec<Arc<T>> {
        let mut all = write(&self.0);
        all.values_mut().filter(|object| is_old(object)).map(|old| std::mem::replace(old, Arc::new(new()))).collect()
    }
}

/// What `SCIOpen` opens: all of a process share one host.
pub(crate) struct Device {
    pub(crate) host: Arc<Host>,
}

/// An object, which keeps the host.
pub(crate) struct Owned<T> {
    pub(crate) object: T,
    _host: Arc<Host>,
}

impl<T> Owned<T> {
    pub(crate) fn new(device: &Device, object: T) -> Self {
        Self { object, _host: Arc::clone(&device.host) }
    }
}

/// A map, and how many sequences it has.
pub(crate) struct Map {
    pub(crate) window: Window,
    pub(crate) sequences: AtomicUsize,
}

/// A sequence with its map, or one whose map was unmapped, which programs still remove.
pub(crate) enum MapSequence {
    Of(Sequence, Arc<Map>),
    Unmapped,
}

impl MapSequence {
    /// Runs something on the sequence; one that was unmapped has lost its connection.
    #[inline]
    pub(crate) fn status(&self, act: impl FnOnce(&Sequence) -> SequenceStatus) -> SequenceStatus {
        match self {
            Self::Of(sequence, _) => act(sequence),
            Self::Unmapped => SequenceStatus::NotRetriable,
        }
    }
}

#[derive(Default)]
pub(crate) struct Registry {
    is_initialised: AtomicBool,
    host: Mutex<Option<Arc<Host>>>,
    /// Connections that the program has ended, and the numbers of their segments.
    ended: Mutex<VecDeque<(usize, c_uint)>>,
    pub(crate) devices: Table<Device>,
    pub(crate) segments: Table<Owned<LocalSegment>>,
    pub(crate) remotes: Table<Owned<Far>>,
    pub(crate) maps: Table<Map>,
    pub(crate) sequences: Table<MapSequence>,
    pub(crate) queues: Table<Owned<DmaQueue>>,
    pub(crate) interrupts: Table<Owned<Interrupt>>,
    pub(crate) remote_interrupts: Table<Owned<RemoteInterrupt>>,
    pub(crate) data_interrupts: Table<Owned<DataInterrupt>>,
    pub(crate) remote_data_interrupts: Table<Owned<RemoteDataInterrupt>>,
}

/// The registry of this process. A child of a fork gets one of its own, since the locks of this one
/// may be held for ever there.
pub(crate) fn registry() -> Answer<&'static Registry> {
    static REGISTRY: PerProcess<Registry> = PerProcess::new();
    let new = || {
        // What a thread has kept of the registry before is not of this one.
        EPOCH.fetch_add(1, Ordering::AcqRel);
        Registry::default()
    };
    REGISTRY.get(new).map(|(_, registry)| registry).map_err(|_| Error::System.into())
}

/// The last handle. A forked child goes on with it: a handle of its parent names nothing there.
static LAST_HANDLE: AtomicUsize = AtomicUsize::new(0);
/// Counts sequences that were removed, and registries.
static EPOCH: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The sequence that this thread has used last: its handle, the epoch, and where it lies. So a
    /// check takes no lock.
    static LAST: Cell<(usize, u64, *const MapSequence)> = const { Cell::new((0, 0, std::ptr::null())) };
}

impl Registry {
    pub(crate) fn check(&self) -> Answer<()> {
        // Publishes nothing: a program initialises before its threads call.
        if self.is_initialised.load(Ordering::Relaxed) { Ok(()) } else { Err(Error::NotInitialized.into()) }
    }

    pub(crate) fn set_initialised(&self, is_initialised: bool) {
        // As `check`.
        self.is_initialised.store(is_initialised, Ordering::Relaxed);
    }

    /// A handle that was never given.
    pub(crate) fn next(&self) -> Handle {
        // Publishes nothing.
        std::ptr::without_provenance_mut(LAST_HANDLE.fetch_add(STEP, Ordering::Relaxed) + STEP)
    }

    /// The host of this process, which is opened for the first device.
    pub(crate) fn host(&self) -> Answer<Arc<Host>> {
        let mut host = lock(&self.host);
        if let Some(host) = &*host {
            return Ok(Arc::clone(host));
        }
        let opened = Arc::new(Host::open(&Options::new()).map_err(|why| Refusal::from(why.code()))?);
        *host = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// Ends the host if no device and no object uses it.
    pub(crate) fn let_go(&self) {
        let mut host = lock(&self.host);
        let is_unused = host.as_ref().is_some_and(|host| Arc::strong_count(host) == 1);
        let unused = if is_unused { host.take() } else { None };
        drop(host);
        drop(unused);
    }

    /// Whether there is a host. One whose lock is held is in use.
    pub(crate) fn has_host(&self) -> bool {
        self.host.try_lock().map_or(true, |host| host.is_some())
    }

    /// Waits until owners have what the program has stored: so long, and a second.
    pub(crate) fn confirm(&self, limit: Duration) {
        let host = lock(&self.host).clone();
        if let Some(host) = host {
            // Who is late has lost it: the program ends.
            let _ = host.confirm(limit);
        }
    }

    /// Keeps the number of a connection that has ended: programs ask for it after that.
    pub(crate) fn note_ended(&self, handle: Handle, id: c_uint) {
        let mut ended = lock(&self.ended);
        if ended.len() >= MOST_ENDED {
            ended.pop_front();
        }
        ended.push_back((handle.addr(), id));
    }

    /// The number of the segment of a connection that has ended.
    pub(crate) fn id_of_ended(&self, handle: Handle) -> Answer<c_uint> {
        let found = lock(&self.ended).iter().rev().find(|(of, _)| *of == handle.addr()).map(|(_, id)| *id);
        found.ok_or(WRONG)
    }

    /// Runs a call on a sequence.
    #[inline]
    pub(crate) fn with_sequence<R>(&self, handle: Handle, act: impl FnOnce(&MapSequence) -> R) -> Answer<R> {
        // Acquires the removals that this thread has been told of.
        let epoch = EPOCH.load(Ordering::Acquire);
        let (last, at, found) = LAST.get();
        if last == handle.addr() && at == epoch && !found.is_null() {
            // SAFETY: the table of this process has had it in this epoch, and has it as long as no
            // sequence is removed. By the contract of the header no thread removes a sequence that
            // another one uses.
            return Ok(act(unsafe { &*found }));
        }
        let found = self.sequences.find(handle)?;
        LAST.set((handle.addr(), epoch, Arc::as_ptr(&found)));
        Ok(act(&found))
    }

    pub(crate) fn remove_sequence(&self, handle: Handle) -> Answer<()> {
        self.check()?;
        let removed = self.sequences.remove(handle).ok_or(WRONG)?;
        // Publishes the removal to threads that have used it last, before it is dropped.
        EPOCH.fetch_add(1, Ordering::AcqRel);
        if let MapSequence::Of(_, map) = &*removed {
            // Publishes nothing.
            map.sequences.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Takes the sequences of a map from it: they keep it no longer.
    pub(crate) fn orphan_sequences(&self, map: &Arc<Map>) {
        let is_of = |sequence: &MapSequence| matches!(sequence, MapSequence::Of(_, of) if Arc::ptr_eq(of, map));
        let orphaned = self.sequences.replace(is_of, || MapSequence::Unmapped);
        // As in `remove_sequence`.
        EPOCH.fetch_add(1, Ordering::AcqRel);
        drop(orphaned);
    }
}

/// A time-out of C, in ms.
pub(crate) fn limit(ms: c_uint) -> Option<Duration> {
    (ms != c_uint::MAX).then(|| Duration::from_millis(ms.into()))
}

/// The only adapter is 0.
pub(crate) fn check_adapter(adapter: c_uint) -> Answer<()> {
    if adapter == 0 { Ok(()) } else { Err(crate::answer::NO_SUCH_ADAPTER) }
}
