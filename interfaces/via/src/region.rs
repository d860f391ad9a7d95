//! Registered memory, and work that owns it.

use crate::engine::Core;
use crate::task::{Completion, Segment, Task, Token};
use cci::{HeapBytes, Memory};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Registered memory of a NIC, which owns its bytes: [`crate::Nic::register`] makes it. Peers may
/// write it where its rights allow that, so it is never shown as a slice. Its first byte has the
/// address 0, for peers too. A drop ends the registration.
///
/// # Example
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nic = cci_via::Nic::open(cci::Context::new()?.default_device()?)?;
/// let region = nic.register(vec![0; 64], nic.protection()?, cci_via::Access { write: true, read: false })?;
/// assert!(region.write(60, b"tail") && !region.write(61, b"tail"));
/// assert_eq!(region.to_vec(60, 4).as_deref(), Some(&b"tail"[..]));
/// # Ok(())
/// # }
/// ```
pub struct Region {
    pub(crate) core: Arc<Core<Work>>,
    pub(crate) handle: u32,
    pub(crate) memory: Memory,
}

impl Region {
    pub(crate) fn memory_of(bytes: Vec<u8>) -> Memory {
        Memory::of_bytes(&Arc::new(HeapBytes::new(bytes)))
    }

    /// Returns the handle by which descriptors and peers name it.
    #[must_use]
    pub fn handle(&self) -> u32 {
        self.handle
    }

    /// Returns the number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "registered memory is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len() as usize
    }

    /// Copies `bytes` into the memory. False, and nothing is written, when they do not fit.
    #[must_use]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        self.memory.copy_in(offset as u64, bytes)
    }

    /// Copies bytes out of the memory. False, and nothing is copied, when they do not lie inside.
    #[must_use]
    pub fn read(&self, offset: usize, target: &mut [u8]) -> bool {
        self.memory.copy_out(offset as u64, target)
    }

    /// Copies `len` bytes out of the memory; `None` when they do not lie inside.
    #[must_use]
    pub fn to_vec(&self, offset: usize, len: usize) -> Option<Vec<u8>> {
        if offset.checked_add(len)? > self.len() {
            return None;
        }
        let mut bytes = vec![0; len];
        self.read(offset, &mut bytes).then_some(bytes)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // What a peer copies at this moment stays with the NIC until it closes.
        let _ = self.core.deregister(self.handle, 0);
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({:#x}, {} bytes)", self.handle, self.len())
    }
}

/// What a descriptor works on: parts of regions, which it owns until it comes back in
/// [`crate::Done`]. So nobody reuses memory that a transfer still needs.
///
/// # Example
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cci_via::{Access, Work};
///
/// let nic = cci_via::Nic::open(cci::Context::new()?.default_device()?)?;
/// let region = nic.register(vec![7; 64], nic.protection()?, Access::default())?;
/// let work = Work::part(region, 0..8).user(1);
/// assert_eq!((work.len(), work.user_word()), (8, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Work(Box<Parts>);

/// Apart, so that work is moved by its address.
#[derive(Debug, Default)]
struct Parts {
    regions: Vec<Region>,
    ranges: Vec<Range<usize>>,
    user: u64,
    immediate: Option<u32>,
    is_fenced: bool,
}

impl Work {
    /// Work on no memory: for immediate data alone.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Work on a whole region.
    #[must_use]
    pub fn of(region: Region) -> Self {
        let whole = 0..region.len();
        Self::part(region, whole)
    }

    /// Work on a part of a region. A range beyond its end fails when it is worked on.
    #[must_use]
    pub fn part(region: Region, range: Range<usize>) -> Self {
        Self::empty().and(region, range)
    }

    /// Goes on with a part of another region.
    #[must_use]
    pub fn and(mut self, region: Region, range: Range<usize>) -> Self {
        self.0.regions.push(region);
        self.0.ranges.push(range);
        self
    }

    /// Sets the program's word.
    #[must_use]
    pub fn user(mut self, word: u64) -> Self {
        self.0.user = word;
        self
    }

    /// Sets immediate data of a send.
    #[must_use]
    pub fn immediate(mut self, word: u32) -> Self {
        self.0.immediate = Some(word);
        self
    }

    /// Waits for earlier RDMA reads of the VI.
    #[must_use]
    pub fn fence(mut self) -> Self {
        self.0.is_fenced = true;
        self
    }

    /// Returns the program's word.
    #[must_use]
    pub fn user_word(&self) -> u64 {
        self.0.user
    }

    /// Returns the bytes of all parts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.ranges.iter().map(ExactSizeIterator::len).sum()
    }

    /// Returns whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the regions, in order.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.0.regions
    }

    /// Gives the regions back.
    #[must_use]
    pub fn into_regions(self) -> Vec<Region> {
        self.0.regions
    }

    /// Writes what it asks for into a plain task.
    #[inline]
    pub(crate) fn describe(&self, task: &mut Task) {
        task.immediate = self.0.immediate.map(u64::from);
        task.fence = self.0.is_fenced;
        if self.0.regions.len() > crate::attributes::MAX_SEGMENTS {
            task.fault = crate::errors::Status::FORMAT;
        }
        for (region, range) in self.0.regions.iter().zip(&self.0.ranges) {
            let length = u32::try_from(range.len()).unwrap_or(u32::MAX);
            task.push(Segment { address: range.start as u64, handle: region.handle, length });
        }
    }
}

impl Token for Work {
    fn complete(&mut self, _: &Completion) {}
}
