//! Memory of a peer as one's own.

use cci_mem::memory::Memory;
use cci_mem::sync::Ordering;
use cci_proto::Rights;
use cci_transport::Imported;
use std::fmt;

/// Memory that a peer on this host has registered, mapped into this process:
/// [`crate::EndpointFor::import`]. Reading and writing it costs what memory costs, and the peer
/// sees it without a call. Others write it at any time, so it is never shown as a slice; copies
/// move aligned words of 8 bytes whole.
///
/// The peer may end its registration at any time; [`crate::Event::ImportEnded`] tells of it. The
/// bytes stay mapped until the import is dropped. They may be of another use of the peer's by then,
/// and are zero once it has freed them. Any thread may use an import, and drop it, also after the
/// endpoint has closed.
///
/// # Example
///
/// ```
/// use cci::{Connection, Endpoint, Import, ImportError, RmaHandle};
///
/// /// Counts up in memory of the peer, which has sent its handle.
/// fn tick(endpoint: &Endpoint, peer: Connection, handle: &RmaHandle) -> Result<Import, ImportError> {
///     let memory = endpoint.import(peer, handle)?;
///     let mut count = [0; 8];
///     if memory.is_current() && memory.read(0, &mut count) {
///         let next = u64::from_ne_bytes(count) + 1;
///         assert!(memory.write(0, &next.to_ne_bytes()), "the peer allows reading alone");
///     }
///     Ok(memory)
/// }
/// ```
pub struct Import(Imported);

impl Import {
    pub(crate) fn new(imported: Imported) -> Self {
        Self(imported)
    }

    fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// Returns the number of bytes: those that the peer has registered.
    #[expect(clippy::len_without_is_empty, reason = "registered memory is never empty")]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.memory().len()
    }

    /// Returns what the peer allows: reading, or both.
    #[must_use]
    pub fn rights(&self) -> Rights {
        self.0.rights
    }

    /// Returns whether the registration lives, as far as this side has been told.
    #[must_use]
    pub fn is_current(&self) -> bool {
        !self.0.ended.load(Ordering::Acquire)
    }

    /// Copies bytes out of the memory. False, and nothing is copied, when they do not lie inside as
    /// a whole.
    #[must_use]
    pub fn read(&self, offset: u64, target: &mut [u8]) -> bool {
        self.memory().copy_out(offset, target)
    }

    /// Copies `bytes` into the memory. False, and nothing is written, when they do not fit inside
    /// as a whole, or the peer allows only reading.
    #[must_use]
    pub fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        self.rights().has(Rights::WRITE) && self.memory().copy_in(offset, bytes)
    }

    /// Returns the address of the first byte, for atomics and other uses of memory that several
    /// processes write. It is valid as long as the import.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.memory().start())
    }
}

impl fmt::Debug for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_current() { "current" } else { "ended" };
        write!(f, "Import({} bytes, {state})", self.len())
    }
}
