//! Memory that the library allocates for programs, so that peers of the same host can map it and
//! copy without a system call. Each allocation is a segment of its own.

use crate::fork::PerProcess;
use crate::memory::Memory;
use crate::mutex::lock;
use crate::segment::Segment;
use crate::words;
use rustix::io::{Errno, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// An allocation: its number, which is never given twice, and its memory.
type Numbered = (u64, Arc<Segment>);

#[derive(Default)]
struct All {
    by_start: BTreeMap<usize, Numbered>,
    last: u64,
}

type Allocations = Mutex<All>;

static ALLOCATIONS: PerProcess<Allocations> = PerProcess::new();

fn allocations() -> Result<std::sync::MutexGuard<'static, All>> {
    let (_, allocations) = ALLOCATIONS.get(Allocations::default)?;
    Ok(lock(allocations))
}

/// Allocates `len` bytes of zeroes, rounded up to pages, with physical memory reserved, in huge
/// pages where the system grants them to shared memory that asks, and entered into the page table.
/// The system has the memory back with the last use of it here, even while peers still map the
/// segment.
///
/// # Errors
///
/// No memory, descriptor or address space left; `INVAL` when `len` is 0.
pub fn allocate(len: usize) -> Result<Arc<Segment>> {
    let page = rustix::param::page_size();
    let len = len.checked_next_multiple_of(page).filter(|len| *len > 0).ok_or(Errno::INVAL)?;
    let segment = Arc::new(Segment::create("cci-memory", len)?.owned());
    segment.reserve_huge_pages()?;
    segment.reserve(0, len)?;
    segment.enter(0, len);
    let mut all = allocations()?;
    all.last += 1;
    let number = all.last;
    all.by_start.insert(segment.base().addr(), (number, Arc::clone(&segment)));
    drop(all);
    Ok(segment)
}

/// Frees the allocation that starts at `start`. It stays mapped until the last registration of it
/// is gone. False when there is none.
pub fn free(start: *mut u8) -> bool {
    allocations().is_ok_and(|mut all| all.by_start.remove(&start.addr()).is_some())
}

/// The allocation in which the whole range lies, its number, and the range's offset.
#[must_use]
pub fn find(memory: &Memory) -> Option<(Arc<Segment>, u64, usize)> {
    let all = allocations().ok()?;
    let (start, (number, segment)) = all.by_start.range(..=memory.start()).next_back()?;
    let offset = memory.start() - start;
    let end = u64::try_from(offset).ok()?.checked_add(memory.len())?;
    (end <= segment.len() as u64).then(|| (Arc::clone(segment), *number, offset))
}

/// The allocations that a range touches, the last one apart, so that one alone needs no vector: a
/// range may begin or end in memory of the program, or go on into the next allocation.
pub(crate) fn touched(start: usize, len: u64) -> (Option<Arc<Segment>>, Vec<Arc<Segment>>) {
    let end = usize::try_from(len).map_or(usize::MAX, |len| start.saturating_add(len));
    let Ok(all) = allocations() else { return (None, Vec::new()) };
    let below = all.by_start.range(..end).rev();
    let touched = below.take_while(|(first, (_, segment))| *first + segment.len() > start);
    let mut touched = touched.map(|(_, (_, segment))| Arc::clone(segment));
    (touched.next(), touched.collect())
}

/// An allocation as a safe Rust program uses it: it copies in and out, because peers with rights
/// copy too.
///
/// It lives until this value and the last [`SharedMemory::memory`] and registration of it are gone.
/// Any thread may copy at any time; bytes that two threads write at once become a mix of both.
///
/// # Example
///
/// ```
/// # use cci_mem::arena as cci;
/// use cci::SharedMemory;
///
/// let memory = SharedMemory::new(4096)?;
/// memory.write(8, b"bytes");
/// assert_eq!((memory.len(), memory.to_vec(8, 5)), (4096, b"bytes".to_vec()));
/// # Ok::<(), rustix::io::Errno>(())
/// ```
#[derive(Debug)]
pub struct SharedMemory {
    allocation: Arc<Allocation>,
    len: usize,
}

/// An allocation that is freed when its last owner drops it. Until then it is found by its address,
/// so that a registration of it is known to be library memory.
#[derive(Debug)]
pub struct Allocation(Arc<Segment>);

impl Allocation {
    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.0.base()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        free(self.0.base());
    }
}

impl SharedMemory {
    /// Allocates `len` bytes of zeroes.
    ///
    /// # Errors
    ///
    /// As [`allocate`].
    pub fn new(len: usize) -> Result<Self> {
        Ok(Self { allocation: Arc::new(Allocation(allocate(len)?)), len })
    }

    /// Bytes.
    #[expect(clippy::len_without_is_empty, reason = "an allocation is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The range, to be registered. It keeps the allocation, also when this value is dropped.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory::of_allocation(&self.allocation, self.len)
    }

    /// Copies bytes in. Threads and peers that use the same bytes at the same time see some of the
    /// old and some of the new ones; aligned words of 8 bytes are written whole.
    ///
    /// # Panics
    ///
    /// The range lies outside the allocation.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len), "outside the allocation");
        let target = self.allocation.0.bytes(offset, bytes.len());
        // SAFETY: inside the mapping; the source is a program's slice, which is never part of a
        // segment. Other threads and peers may use the target meanwhile.
        unsafe { words::copy_in(bytes.as_ptr(), target, bytes.len()) };
    }

    /// Copies bytes out, as [`SharedMemory::write`] copies them in.
    ///
    /// # Panics
    ///
    /// The range lies outside the allocation.
    pub fn read(&self, offset: usize, target: &mut [u8]) {
        assert!(offset.checked_add(target.len()).is_some_and(|end| end <= self.len), "outside the allocation");
        let source = self.allocation.0.bytes(offset, target.len());
        // SAFETY: inside the mapping; the target is a program's slice, which is never part of a
        // segment. Other threads and peers may write the source meanwhile.
        unsafe { words::copy_out(source, target.as_mut_ptr(), target.len()) };
    }

    /// A copy of a part.
    #[must_use]
    pub fn to_vec(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.read(offset, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weak references, so that the test itself keeps nothing.
    fn live(segments: &[std::sync::Weak<Segment>]) -> Vec<bool> {
        segments.iter().map(|segment| segment.strong_count() > 0).collect()
    }

    #[test]
    fn a_named_range_keeps_every_allocation_that_it_touches() {
        let page = rustix::param::page_size();
        let segment = allocate(2 * page).expect("memory");
        let (start, weak) = (segment.base(), [Arc::downgrade(&segment)]);
        drop(segment);
        // SAFETY: nothing is copied.
        let name = |from: usize, len: usize| unsafe { Memory::new(start.wrapping_add(from), len as u64) };
        let (inside, beyond, before) = (name(page, 1), name(2 * page - 1, 10), name(0, 1));
        // SAFETY: as above.
        let around = unsafe { Memory::new(start.wrapping_sub(1), 2) };
        assert!(free(start) && !free(start));
        for memory in [inside, beyond, before, around] {
            assert_eq!(live(&weak), [true]);
            drop(memory);
        }
        assert_eq!(live(&weak), [false]);
    }

    #[test]
    fn a_range_beside_an_allocation_keeps_nothing() {
        let segment = allocate(1).expect("memory");
        let (start, len) = (segment.base(), segment.len());
        let is_kept = |start: *mut u8, len| {
            let (last, others) = touched(start.addr(), len);
            last.iter().chain(&others).any(|kept| Arc::ptr_eq(kept, &segment))
        };
        assert!(!is_kept(start.wrapping_add(len), 1) && !is_kept(start.wrapping_sub(8), 8));
        assert!(is_kept(start.wrapping_sub(8), 9) && is_kept(start.wrapping_sub(8), u64::MAX));
        assert!(free(start));
    }
}
