//! Calls that make, change and remove the objects of an interface.

use super::Interface;
use crate::access::AccessEntry;
use crate::errors::Error;
use crate::handles::Handle;
use crate::objects::{Match, Position, Unlink};
use crate::queue::Queue;
use crate::types::{Described, Descriptor};

impl Interface {
    /// Enters a match entry into the list of a portal index.
    ///
    /// # Errors
    ///
    /// [`Error::PortalIndex`], [`Error::ListTooLong`], [`Error::NoSpace`].
    pub fn attach(&self, portal: u32, wanted: Match, unlink: Unlink, at: Position) -> Result<Handle, Error> {
        self.with(|state| state.objects.attach(portal, wanted, unlink, at))
    }

    /// Enters a match entry at the first portal index that has none, and returns that too.
    ///
    /// # Errors
    ///
    /// [`Error::TableFull`], [`Error::NoSpace`].
    pub fn attach_any(&self, wanted: Match, unlink: Unlink) -> Result<(u32, Handle), Error> {
        self.with(|state| state.objects.attach_any(wanted, unlink))
    }

    /// Enters a match entry beside another one.
    ///
    /// # Errors
    ///
    /// [`Error::Entry`], [`Error::ListTooLong`], [`Error::NoSpace`].
    pub fn insert(&self, beside: Handle, wanted: Match, unlink: Unlink, at: Position) -> Result<Handle, Error> {
        self.with(|state| state.objects.insert(beside, wanted, unlink, at))
    }

    /// Removes a match entry, and its memory descriptor if that goes by itself.
    ///
    /// # Errors
    ///
    /// [`Error::Entry`]; [`Error::EntryInUse`]: operations are pending.
    pub fn unlink_entry(&self, entry: Handle) -> Result<(), Error> {
        self.with(|state| state.objects.unlink_entry(entry))
    }

    /// Gives a match entry a memory descriptor.
    ///
    /// # Errors
    ///
    /// [`Error::Entry`]; [`Error::EntryInUse`]: it has one; [`Error::IllegalMemory`],
    /// [`Error::Queue`], [`Error::NoSpace`].
    pub fn attach_memory(&self, entry: Handle, descriptor: Descriptor, unlink: Unlink) -> Result<Handle, Error> {
        self.with(|state| state.objects.attach_memory(entry, descriptor, unlink))
    }

    /// Enters a match entry with its memory descriptor beside another entry, if `test` is empty
    /// and will stay so, or no queue.
    ///
    /// # Errors
    ///
    /// As [`Interface::insert`], [`Interface::attach_memory`] and [`Interface::update`]; nothing
    /// has changed.
    pub fn post(
        &self,
        beside: Handle,
        (wanted, unlink, at): (Match, Unlink, Position),
        (descriptor, memory_unlink): (Descriptor, Unlink),
        test: Handle,
    ) -> Result<(Handle, Handle), Error> {
        self.with(|state| {
            self.core.progress_of_call(state);
            if test != Handle::NO_QUEUE && !state.objects.is_quiet(test)? {
                return Err(Error::NoUpdate);
            }
            let entry = state.objects.insert(beside, wanted, unlink, at)?;
            let attached = state.objects.attach_memory(entry, descriptor, memory_unlink);
            if attached.is_err() {
                state.objects.unlink_entry(entry)?;
            }
            Ok((entry, attached?))
        })
    }

    /// Makes a memory descriptor for operations that begin here.
    ///
    /// # Errors
    ///
    /// [`Error::IllegalMemory`], [`Error::Queue`], [`Error::NoSpace`].
    pub fn bind(&self, descriptor: Descriptor, unlink: Unlink) -> Result<Handle, Error> {
        self.with(|state| state.objects.bind(descriptor, unlink))
    }

    /// Removes a memory descriptor, whose memory is the program's alone then.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`]; [`Error::MemoryInUse`]: operations are pending.
    pub fn unlink_memory(&self, memory: Handle) -> Result<(), Error> {
        self.with(|state| state.objects.unlink_memory(memory))
    }

    /// Returns what is stated of a memory descriptor; sets it to `new`, with offset 0 and active,
    /// if `test` is empty and will stay so, or no queue.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`], [`Error::IllegalMemory`], [`Error::Queue`]; [`Error::NoUpdate`]: `test`
    /// has events, or operations of its memory descriptors are pending.
    pub fn update(&self, memory: Handle, new: Option<Descriptor>, test: Handle) -> Result<Described, Error> {
        self.with(|state| {
            self.core.progress_of_call(state);
            state.objects.update(memory, new, test)
        })
    }

    /// Makes an event queue for at least `count` events; [`Handle::NO_QUEUE`] for none. Events of
    /// one with a handler come by [`Interface::handled`] too.
    ///
    /// # Errors
    ///
    /// [`Error::NoSpace`]: too many queues or events.
    pub fn queue(&self, count: u64, has_handler: bool) -> Result<Handle, Error> {
        if count == 0 {
            return Ok(Handle::NO_QUEUE);
        }
        self.with(|state| {
            let queue = Queue::new(count, has_handler, self.core.has_engine()).ok_or(Error::NoSpace)?;
            let handle = state.objects.queues.insert(queue).ok_or(Error::NoSpace)?;
            if let (Some(calls), Some(queue)) = (&self.core.calls, state.objects.queues.get(handle)) {
                calls.add_queue(handle, queue);
            }
            Ok(handle)
        })
    }

    /// Ends an event queue, and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Queue`].
    pub fn free_queue(&self, queue: Handle) -> Result<(), Error> {
        self.with(|state| {
            let has_handler = state.objects.free_queue(queue)?;
            if let Some(calls) = &self.core.calls {
                calls.remove_queue(queue, has_handler);
            }
            Ok(())
        })
    }

    /// Sets an entry of the access control table.
    ///
    /// # Errors
    ///
    /// [`Error::AccessIndex`], [`Error::PortalIndex`].
    pub fn access_entry(&self, index: u32, entry: AccessEntry) -> Result<(), Error> {
        self.with(|state| {
            let limits = state.objects.limits;
            state.objects.access.set(index, entry, limits)
        })
    }

    /// Whether the handle is that of an object of this interface.
    #[must_use]
    pub fn has(&self, handle: Handle) -> bool {
        self.lock().objects.has(handle)
    }
}
