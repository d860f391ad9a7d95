//! Protection tags, registered memory and completion queues.

use crate::attributes::{Access, MAX_QUEUE_ENTRIES, Tag};
use crate::engine::{Core, NO_QUEUE};
use crate::errors::Error;
use crate::state::{Area, CompletionQueue};
use crate::task::{Completion, Token};
use cci::{Memory, RegisterError, Rights, Sleeper};
use cci_ground::Drive;
use std::time::Duration;

const NO_MEMORY: Error = Error::Parameter("no such memory handle; was it deregistered?");

fn registration(why: RegisterError) -> Error {
    match why {
        RegisterError::Busy => Error::Resource("a peer copies this memory; deregister it again later"),
        RegisterError::NoMemory => Error::Resource("no memory for another registration; deregister others"),
        _ => Error::Parameter("the range of memory is empty, or wraps around"),
    }
}

impl<T: Token> Core<T> {
    /// Closes a NIC that has no VI and no completion queue: whoever waits for clients gets
    /// [`Error::Parameter`]. The endpoint ends with the value.
    ///
    /// # Errors
    ///
    /// [`Error::Resource`]: it is in use; [`Error::Parameter`]: it has been closed already.
    pub fn close(&self) -> Result<(), Error> {
        self.with(|state| {
            state.check_open()?;
            if !state.vis.is_empty() || !state.queues.is_empty() {
                return Err(Error::Resource("the NIC has VIs or completion queues; destroy them first"));
            }
            state.is_closed = true;
            Ok(())
        })?;
        if let Some(closed) = self.closed.get() {
            // It is written once, so that it has room.
            let _ = rustix::io::write(closed, &1_u64.to_ne_bytes());
        }
        Ok(())
    }

    /// Makes a protection tag.
    ///
    /// # Errors
    ///
    /// [`Error::Resource`]: too many.
    pub fn create_tag(&self) -> Result<Tag, Error> {
        let number = self.lock().tags.insert(0);
        number.map(Tag).ok_or(Error::Resource("no room for another protection tag; destroy others"))
    }

    /// Ends a protection tag that nothing uses.
    ///
    /// # Errors
    ///
    /// [`Error::Tag`]: no such tag. [`Error::Resource`]: VIs or memory use it.
    pub fn destroy_tag(&self, tag: Tag) -> Result<(), Error> {
        let mut state = self.lock();
        let users = *state.tags.get(tag.0).ok_or(Error::Tag)?;
        let in_use = users > 0 || state.areas.iter().any(|(_, area)| area.tag == tag);
        if in_use || state.vis.iter().any(|(_, vi)| vi.attributes.tag == tag) {
            return Err(Error::Resource("VIs or memory use this protection tag; destroy them first"));
        }
        state.tags.remove(tag.0);
        Ok(())
    }

    /// Registers memory, whose first byte programs name by `base`, and returns its handle.
    ///
    /// # Errors
    ///
    /// [`Error::Tag`], [`Error::Parameter`] for no memory, [`Error::Resource`].
    pub fn register(&self, memory: Memory, base: u64, tag: Tag, access: Access) -> Result<u32, Error> {
        let mut state = self.lock();
        state.tags.get(tag.0).ok_or(Error::Tag)?;
        let registered = self.endpoint().register(memory.clone(), Rights::NONE).map_err(registration)?;
        let area = Area { tag, access, base, memory, registration: registered };
        state.areas.insert(area).ok_or(Error::Resource("no room for another registration; deregister others"))
    }

    /// Ends a registration. Waits at most 100 ms for peers that copy.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no such handle, or not at this `base`. [`Error::Resource`]: a peer
    /// still copies; the memory takes no new transfer, and is still registered.
    pub fn deregister(&self, handle: u32, base: u64) -> Result<(), Error> {
        let mut state = self.lock();
        state.areas.get(handle).filter(|area| area.base == base).ok_or(NO_MEMORY)?;
        if !state.withdraw(handle) {
            return Err(registration(RegisterError::Busy));
        }
        let Some(Area { tag, access, memory, registration: registered, .. }) = state.areas.remove(handle) else {
            return Err(NO_MEMORY);
        };
        registered.deregister().map(drop).map_err(|still| {
            state.areas.restore(handle, Area { tag, access, base, memory, registration: still.registration });
            registration(still.why)
        })
    }

    /// Returns tag and rights of registered memory.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no such handle, or not at this `base`.
    pub fn query_memory(&self, handle: u32, base: u64) -> Result<(Tag, Access), Error> {
        let state = self.lock();
        state.areas.get(handle).filter(|area| area.base == base).map(|area| (area.tag, area.access)).ok_or(NO_MEMORY)
    }

    /// Changes tag and rights of registered memory. What peers know of the memory is stale then.
    ///
    /// # Errors
    ///
    /// As [`Core::query_memory`] and [`Core::register`].
    pub fn set_memory(&self, handle: u32, base: u64, tag: Tag, access: Access) -> Result<(), Error> {
        let mut state = self.lock();
        state.tags.get(tag.0).ok_or(Error::Tag)?;
        let area = state.areas.get_mut(handle).filter(|area| area.base == base).ok_or(NO_MEMORY)?;
        (area.tag, area.access) = (tag, access);
        // Who still copies has begun before.
        state.withdraw(handle);
        Ok(())
    }

    /// Makes a completion queue for so many entries.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: none, or more than [`MAX_QUEUE_ENTRIES`]. [`Error::Resource`].
    pub fn create_queue(&self, capacity: usize) -> Result<u32, Error> {
        if capacity == 0 || capacity > MAX_QUEUE_ENTRIES {
            return Err(Error::Parameter("a completion queue has 1 to 65,536 entries"));
        }
        let entries = std::collections::VecDeque::with_capacity(capacity);
        let mut state = self.lock();
        state.check_open()?;
        let queue = state.queues.insert(CompletionQueue { entries, capacity, users: 0 });
        queue.ok_or(Error::Resource("no room for another completion queue; destroy others"))
    }

    /// Changes the number of entries of a completion queue, and keeps those that it has.
    ///
    /// # Errors
    ///
    /// As [`Core::create_queue`]; [`Error::Resource`] too when it has more entries now.
    pub fn resize_queue(&self, queue: u32, capacity: usize) -> Result<(), Error> {
        let mut state = self.lock();
        let queue = state.queues.get_mut(queue).ok_or(NO_QUEUE)?;
        if capacity == 0 || capacity > MAX_QUEUE_ENTRIES {
            return Err(Error::Parameter("a completion queue has 1 to 65,536 entries"));
        }
        if capacity < queue.entries.len() {
            return Err(Error::Resource("the completion queue has more entries now; take them first"));
        }
        queue.capacity = capacity;
        queue.entries.reserve_exact(capacity - queue.entries.len());
        Ok(())
    }

    /// Ends a completion queue that no VI uses.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no such queue. [`Error::Resource`]: VIs use it.
    pub fn destroy_queue(&self, queue: u32) -> Result<(), Error> {
        let mut state = self.lock();
        if state.queues.get(queue).ok_or(NO_QUEUE)?.users > 0 {
            return Err(Error::Resource("VIs report to this completion queue; destroy them first"));
        }
        state.queues.remove(queue);
        state.changes += 1;
        self.driven.wake(&state);
        Ok(())
    }

    /// Ends a completion queue; VIs that use it report nowhere from then on.
    pub(crate) fn remove_queue(&self, queue: u32) {
        self.with(|state| {
            state.queues.remove(queue);
            state.changes += 1;
        });
    }

    /// Returns whether there is such a completion queue.
    #[must_use]
    pub fn has_queue(&self, queue: u32) -> bool {
        self.lock().queues.get(queue).is_some()
    }

    /// Takes the oldest entry of a completion queue: the VI, and whether it is its receive queue.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no such queue.
    #[inline]
    pub fn take_entry(&self, queue: u32) -> Result<Option<(u32, bool)>, Error> {
        let mut state = self.lock();
        if state.queues.get(queue).ok_or(NO_QUEUE)?.entries.is_empty() {
            self.look(&mut state, |state| state.queues.get(queue).is_none_or(|queue| !queue.entries.is_empty()));
        }
        Ok(state.queues.get_mut(queue).and_then(|queue| queue.entries.pop_front()))
    }

    /// Takes the oldest entry of a completion queue together with its descriptor: the VI, whether
    /// it is its receive queue, and how the descriptor ended. Makes progress if there is none and
    /// `looks`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no such queue.
    #[inline(always)]
    pub fn take_completed(&self, queue: u32, looks: bool) -> Result<Option<(u32, bool, Completion, T)>, Error> {
        let mut state = self.lock();
        if looks && state.queues.get(queue).ok_or(NO_QUEUE)?.entries.is_empty() {
            self.look(&mut state, |state| state.queues.get(queue).is_none_or(|queue| !queue.entries.is_empty()));
        }
        let entry = state.queues.get_mut(queue).ok_or(NO_QUEUE)?.entries.pop_front();
        // An entry whose descriptor was taken without it is passed over.
        Ok(entry.and_then(|(number, is_receive)| {
            let (end, token) = state.queue_of(number, is_receive)?.take()?;
            Some((number, is_receive, end, token))
        }))
    }

    /// Makes progress until nothing comes, and arms the NIC's descriptor for one sleep: it becomes
    /// readable when there is something from now on. Returns [`Core::changes`] too; no descriptor
    /// where the endpoint has failed, which the next call finds.
    pub fn arm(&self) -> (u64, Option<Sleeper<'_>>) {
        let mut state = self.lock();
        let before = state.changes;
        state.progress(self.endpoint());
        if state.changes != before {
            self.driven.wake(&state);
        }
        (state.changes, self.endpoint().sleeper().ok())
    }

    /// As [`Core::take_entry`], and sleeps until there is one, at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]; [`Error::Timeout`].
    pub fn wait_entry(&self, queue: u32, limit: Option<Duration>) -> Result<(u32, bool), Error> {
        let found = self.wait(limit, |state| match state.queues.get_mut(queue) {
            None => Some(Err(NO_QUEUE)),
            Some(queue) => queue.entries.pop_front().map(Ok),
        });
        found.unwrap_or(Err(Error::Timeout))
    }
}
