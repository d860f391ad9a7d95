//! A NIC as Rust programs hold it.

use crate::attributes::{Access, Tag};
use crate::engine::Core;
use crate::errors::{Error, Fault};
use crate::region::{Region, Work};
use cci::{Device, Memory, OpenError};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// A NIC: an endpoint of CCI, with memory, completion queues and VIs. A clone is the same NIC,
/// which closes with the last of them and of what is made of it. Any thread may use it.
///
/// # Example
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nic = cci_via::Nic::open(cci::Context::new()?.default_device()?)?;
/// println!("{} at {}", nic.uri(), nic.host());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Nic(pub(crate) Arc<Core<Work>>);

impl Nic {
    /// Opens a NIC on a device of CCI.
    ///
    /// # Errors
    ///
    /// As [`cci::Endpoint::open`].
    pub fn open(device: &Device) -> Result<Self, OpenError> {
        Core::open(device).map(|core| Self(Arc::new(core)))
    }

    /// Returns the URI of its endpoint.
    #[must_use]
    pub fn uri(&self) -> &str {
        self.0.uri()
    }

    /// Returns the host's address, for [`crate::Address`].
    #[must_use]
    pub fn host(&self) -> IpAddr {
        self.0.host()
    }

    /// Makes a protection tag.
    ///
    /// # Errors
    ///
    /// [`Error::Resource`]: too many.
    pub fn protection(&self) -> Result<Tag, Error> {
        self.0.create_tag()
    }

    /// Registers bytes, and takes them over.
    ///
    /// # Errors
    ///
    /// [`Error::Tag`], [`Error::Parameter`] for no bytes, [`Error::Resource`].
    pub fn register(&self, bytes: Vec<u8>, tag: Tag, access: Access) -> Result<Region, Error> {
        self.register_memory(Region::memory_of(bytes), tag, access)
    }

    /// As [`Nic::register`], memory that the program shares otherwise.
    ///
    /// # Errors
    ///
    /// As [`Nic::register`].
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cci_via::{Access, Nic};
    ///
    /// let nic = Nic::open(cci::Context::new()?.default_device()?)?;
    /// let shared = cci::SharedMemory::new(4096)?;
    /// let region = nic.register_memory(shared.memory(), nic.protection()?, Access::default())?;
    /// assert_eq!(region.len(), 4096);
    /// # Ok(())
    /// # }
    /// ```
    pub fn register_memory(&self, memory: Memory, tag: Tag, access: Access) -> Result<Region, Error> {
        let handle = self.0.register(memory.clone(), 0, tag, access)?;
        Ok(Region { core: Arc::clone(&self.0), handle, memory })
    }

    /// Makes a completion queue.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no entries, or too many. [`Error::Resource`].
    pub fn queue(&self, entries: usize) -> Result<Queue, Error> {
        let number = self.0.create_queue(entries)?;
        Ok(Queue { core: Arc::clone(&self.0), number })
    }

    /// Returns a fault that no call has returned, oldest first.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.0.fault()
    }

    /// Returns how many messages have found no receive, or none that fits.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}

impl fmt::Debug for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nic({})", self.uri())
    }
}

/// A completion queue: which queues of which VIs have something to be taken, oldest first. Ends
/// when it is dropped; VIs that use it report nowhere then.
///
/// # Example
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nic = cci_via::Nic::open(cci::Context::new()?.default_device()?)?;
/// assert_eq!(nic.queue(16)?.done()?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Queue {
    core: Arc<Core<Work>>,
    pub(crate) number: u32,
}

impl Queue {
    /// Takes the oldest entry: the number of a VI ([`crate::Vi::number`]), and whether it is the
    /// receive queue.
    ///
    /// # Errors
    ///
    /// None while the queue lives.
    pub fn done(&self) -> Result<Option<(u32, bool)>, Error> {
        self.core.take_entry(self.number)
    }

    /// As [`Queue::done`], and sleeps until there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`].
    pub fn wait(&self, limit: Option<Duration>) -> Result<(u32, bool), Error> {
        self.core.wait_entry(self.number, limit)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // VIs may still name it; the number is never another queue's.
        self.core.remove_queue(self.number);
    }
}
