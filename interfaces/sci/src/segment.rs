//! Segments of this host.

use crate::claims::{self, Named};
use crate::device_memory::Piece;
use crate::errors::Error;
use crate::mapped::Mapped;
use crate::notices::{Notices, Source, retire};
use crate::objects::OwnSegment;
use crate::shared::Shared;
use crate::state::State;
use crate::types::{Access, Callback, Reason, SegmentEvent, Then, Withdraw};
use crate::window::Window;
use crate::wire::Message;
use cci::{Memory, Registration, Rights, SharedMemory};
use cci_mem::meminfo::available;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A segment of this host. Dropping it withdraws it by force and removes it.
///
/// # Example
///
/// ```
/// use cci_sci::{Error, Host, Options, Withdraw};
///
/// let host = Host::open(&Options::new())?;
/// let id = std::process::id();
/// let segment = host.create(id, 100)?;
/// assert_eq!(segment.publish(), Err(Error::SegmentNotPrepared));
/// segment.prepare()?;
/// segment.publish()?;
/// let connection = host.connect(host.node(), id, None)?;
/// assert_eq!(segment.remove(), Err(Error::Busy));
/// segment.withdraw(Withdraw::Force)?;
/// segment.remove()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LocalSegment {
    shared: Arc<Shared>,
    id: u32,
    life: u64,
    /// Its name; none of a broadcast segment, whose group has one.
    claim: Option<u64>,
    mapped: Arc<Mapped>,
}

impl LocalSegment {
    pub(crate) fn create(shared: &Arc<Shared>, id: u32, size: usize) -> Result<Self, Error> {
        if size == 0 {
            return Err(Error::IllegalParameter);
        }
        if !shared.is_here() {
            return Err(Error::NotInitialized);
        }
        let socket = claims::claim(shared.nodes.own(), Named::Segment(id))?;
        let (device, mark) = shared.with(|state| Ok((state.device.clone(), state.mark)))?;
        let (mapped, piece) = match device {
            Some(device) => {
                let piece = Arc::new(device.create(id, size, mark)?);
                (Mapped::piece(&piece, mark), Some(piece))
            }
            // Memory is reserved at once: the system would end programs to find so much.
            None if available().is_some_and(|bytes| size as u64 > bytes) => return Err(Error::NoSpace),
            None => (Mapped::own(Arc::new(SharedMemory::new(size).map_err(|_| Error::NoSpace)?), mark), None),
        };
        let mapped = Arc::new(mapped);
        shared.with(|state| {
            // That of a group has no claim here.
            if state.segments.contains_key(&id) {
                return Err(Error::SegmentIdUsed);
            }
            let claim = shared.enter_claim(state, socket)?;
            Ok(Self::enter(shared, state, id, (Some(claim), mapped, piece)))
        })
    }

    /// The segment of this process in a broadcast group, which it has joined.
    pub(crate) fn of_group(shared: &Arc<Shared>, id: u32) -> Result<Self, Error> {
        shared.with(|state| {
            if state.segments.contains_key(&id) {
                return Err(Error::SegmentIdUsed);
            }
            let group = state.groups.get(&id).ok_or(Error::NoSuchSegment)?;
            let mapped = Arc::new(Mapped::common(&group.commons, state.mark));
            Ok(Self::enter(shared, state, id, (None, mapped, None)))
        })
    }

    fn enter(
        shared: &Arc<Shared>,
        state: &mut State,
        id: u32,
        (claim, mapped, piece): (Option<u64>, Arc<Mapped>, Option<Arc<Piece>>),
    ) -> Self {
        let life = state.next();
        let segment = OwnSegment {
            life,
            mapped: Arc::clone(&mapped),
            piece,
            anchor: None,
            registration: None,
            is_available: false,
            is_broadcast: claim.is_none(),
            connectors: BTreeSet::new(),
            notices: Notices::new(),
        };
        state.segments.insert(id, segment);
        Self { shared: Arc::clone(shared), id, life, claim, mapped }
    }

    /// Runs a call on the segment, unless it was removed.
    fn with<R>(&self, act: impl FnOnce(&mut State) -> Result<R, Error>) -> Result<R, Error> {
        self.shared.with(|state| {
            let is_there = state.segments.get(&self.id).is_some_and(|segment| segment.life == self.life);
            if is_there { act(state) } else { Err(Error::NoSuchSegment) }
        })
    }

    fn register(&self, rights: Rights) -> Result<Registration<Memory>, Error> {
        let memory = self.mapped.memory().ok_or(Error::NoSuchSegment)?;
        self.shared.endpoint().register(memory, rights).map_err(|_| Error::NoSpace)
    }

    /// Returns the segment's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "a segment is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.mapped.len()
    }

    /// Makes the segment ready to be published, and usable by DMA queues.
    ///
    /// # Errors
    ///
    /// [`Error::IllegalOperation`]: it is prepared already. [`Error::NoSpace`],
    /// [`Error::NoSuchSegment`], [`Error::NotInitialized`].
    pub fn prepare(&self) -> Result<(), Error> {
        self.with(|state| {
            if state.segments[&self.id].registration.is_some() {
                return Err(Error::IllegalOperation);
            }
            let anchor = self.register(Rights::NONE)?;
            let registration = self.register(Rights::READ_WRITE)?;
            if let Some(segment) = state.segments.get_mut(&self.id) {
                (segment.anchor, segment.registration) = (Some(anchor), Some(registration));
            }
            Ok(())
        })
    }

    /// Makes the segment available: others connect from now on.
    ///
    /// # Errors
    ///
    /// [`Error::SegmentNotPrepared`], [`Error::NoSuchSegment`], [`Error::NotInitialized`].
    pub fn publish(&self) -> Result<(), Error> {
        self.with(|state| match state.segments.get_mut(&self.id) {
            Some(segment) if segment.registration.is_some() => {
                segment.is_available = true;
                segment.piece.iter().for_each(|piece| piece.set_available(true));
                if segment.is_broadcast {
                    state.publish_member(self.shared.endpoint(), self.id, true);
                }
                Ok(())
            }
            _ => Err(Error::SegmentNotPrepared),
        })
    }

    /// Makes the segment unavailable.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSegment`], [`Error::NotInitialized`]; [`Error::NoSpace`]: the connections
    /// have ended, and the segment is no more prepared.
    pub fn withdraw(&self, how: Withdraw) -> Result<(), Error> {
        let endpoint = self.shared.endpoint();
        self.with(|state| {
            let Some(segment) = state.segments.get_mut(&self.id) else { return Ok(()) };
            segment.is_available = false;
            segment.piece.iter().for_each(|piece| piece.set_available(false));
            if segment.is_broadcast {
                // The group goes on without this segment: nobody is connected to it alone.
                state.publish_member(endpoint, self.id, false);
                return Ok(());
            }
            match how {
                Withdraw::Quiet => {}
                Withdraw::Notify => {
                    for key in segment.connectors.clone() {
                        let notice = Message::Notice { token: key.1, reason: Reason::Disconnect as u32 };
                        state.send(endpoint, key.0, notice);
                    }
                }
                Withdraw::Force => {
                    segment.piece.iter().for_each(|piece| piece.disconnect());
                    // Its end is that of each import; the next one is for later connections.
                    let before = segment.registration.take();
                    state.disconnect_all(endpoint, self.id);
                    if before.is_some() {
                        drop(before);
                        let registration = self.register(Rights::READ_WRITE)?;
                        if let Some(segment) = state.segments.get_mut(&self.id) {
                            segment.registration = Some(registration);
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Maps a range of the segment.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`], [`Error::NoSuchSegment`], [`Error::NotInitialized`].
    pub fn map(&self, range: Range<usize>, access: Access) -> Result<Window, Error> {
        self.with(|_| Window::new(&self.shared, &self.mapped, range, access))
    }

    /// Waits for an event of the segment, at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]; [`Error::Cancelled`]: it was removed; [`Error::IllegalOperation`]: it
    /// has a callback, or this is one.
    pub fn wait(&self, limit: Option<Duration>) -> Result<SegmentEvent, Error> {
        self.shared.wait_for(limit, |state| {
            let segment = state.segments.get_mut(&self.id).filter(|segment| segment.life == self.life);
            let Some(segment) = segment else { return Some(Err(Error::Cancelled)) };
            if segment.notices.callback.is_some() {
                return Some(Err(Error::IllegalOperation));
            }
            segment.notices.events.pop_front().map(Ok)
        })
    }

    /// Sets what is called for each event, on the thread of the host, in place of
    /// [`LocalSegment::wait`]. Events that wait are given to it.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSegment`], [`Error::NotInitialized`].
    pub fn on_event(&self, callback: impl FnMut(SegmentEvent) -> Then + Send + 'static) -> Result<(), Error> {
        // One that is refused is dropped without the lock.
        let mut callback: Option<Callback<SegmentEvent>> = Some(Arc::new(Mutex::new(callback)));
        self.with(|state| {
            if let Some(segment) = state.segments.get_mut(&self.id) {
                retire(&mut state.callbacks.retired, &mut segment.notices);
                segment.notices.callback = callback.take();
                let waiting = segment.notices.events.len();
                state.callbacks.ready.extend(std::iter::repeat_n(self.source(), waiting));
            }
            Ok(())
        })
    }

    fn source(&self) -> Source {
        Source::Segment(self.id, self.life)
    }

    /// Removes the segment. The memory is freed once its windows are dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`]: it has windows or connections. [`Error::NoSuchSegment`]: it was removed
    /// before. [`Error::NotInitialized`].
    pub fn remove(&self) -> Result<(), Error> {
        self.with(|state| {
            let has_connectors = !state.segments[&self.id].connectors.is_empty();
            if has_connectors || self.mapped.is_in_use() {
                return Err(Error::Busy);
            }
            self.end(state);
            Ok(())
        })?;
        self.shared.settle(self.source());
        Ok(())
    }

    /// Removes the segment as [`LocalSegment::remove`] does, also where it has connections. Those
    /// stay, and their owners get no event: the memory is freed once the last one has ended. In the
    /// memory of a device they end at once.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`]: it has windows. [`Error::NoSuchSegment`]: it was removed before.
    /// [`Error::NotInitialized`].
    pub fn release(&self) -> Result<(), Error> {
        self.with(|state| {
            if self.mapped.is_in_use() {
                return Err(Error::Busy);
            }
            let segment = &state.segments[&self.id];
            match self.claim.filter(|_| segment.piece.is_none() && !segment.connectors.is_empty()) {
                // Its name would keep the number from others.
                Some(claim) => {
                    state.release_segment(self.id);
                    self.shared.free_claim(state, claim);
                    state.waits.has_changed = true;
                }
                None => self.end(state),
            }
            Ok(())
        })?;
        self.shared.settle(self.source());
        Ok(())
    }

    fn end(&self, state: &mut State) {
        state.disconnect_all(self.shared.endpoint(), self.id);
        if let Some(mut segment) = state.segments.remove(&self.id) {
            segment.piece.iter().for_each(|piece| piece.disconnect());
            retire(&mut state.callbacks.retired, &mut segment.notices);
        }
        self.mapped.lose();
        let claim = self.claim.or_else(|| {
            state.publish_member(self.shared.endpoint(), self.id, false);
            state.leave_group(self.shared.endpoint(), self.id)
        });
        if let Some(claim) = claim {
            self.shared.free_claim(state, claim);
        }
        state.waits.has_changed = true;
    }

    /// The memory, and the handle of its registration.
    pub(crate) fn registered(&self, state: &State) -> Result<(Arc<Mapped>, cci::RmaHandle), Error> {
        let segment = state.segments.get(&self.id).filter(|segment| segment.life == self.life);
        let segment = segment.ok_or(Error::NoSuchSegment)?;
        let registration = segment.registration.as_ref().ok_or(Error::SegmentNotPrepared)?;
        Ok((Arc::clone(&self.mapped), *registration.handle()))
    }
}

impl Drop for LocalSegment {
    fn drop(&mut self) {
        // Refused where it was removed, or the host has ended.
        let ended = self.with(|state| {
            self.end(state);
            Ok(())
        });
        if ended.is_ok() {
            self.shared.settle(self.source());
        }
    }
}

impl fmt::Debug for LocalSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalSegment({}, {} bytes)", self.id, self.len())
    }
}
