//! A tag by which other processes know this address space from that of the next program.
//!
//! The kernel's copies between processes name a process by its number. A process that executes
//! another program keeps its number, and another process may get it later; neither has the tag. The
//! tag is a random word on a page of its own at a random address: a copy that begins with it fails
//! there, within the same call, when the address space is another one.

use crate::fork::PerProcess;
use crate::random::random;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::OnceLock;

/// Where the tag of an address space lies, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Address of 8 bytes, aligned to 8.
    pub address: usize,
    /// What stands there.
    pub value: u64,
}

/// Random addresses that are tried.
const TRIALS: usize = 16;
/// Pages among which a tag is hidden, at least.
const FEWEST_PAGES: usize = 1 << 20;

impl Tag {
    /// The tag of this process, the same for as long as it runs its program. A forked child gets
    /// its own; it has not got its parent's.
    ///
    /// # Errors
    ///
    /// No memory, no random numbers, an address space that is too small, or no address of those
    /// tried was free.
    pub fn of_this_process() -> Result<Self, Errno> {
        static TAG: PerProcess<OnceLock<Tag>> = PerProcess::new();
        let place = &TAG.get(OnceLock::new)?.1;
        if let Some(tag) = place.get() {
            return Ok(*tag);
        }
        // Of two threads that come here at once one leaves a page behind.
        let tag = Self::new()?;
        Ok(*place.get_or_init(|| tag))
    }

    fn new() -> Result<Self, Errno> {
        let range = range(end_of_address_space())?;
        let mut error = Errno::NOMEM;
        for _ in 0..TRIALS {
            let [position, value] = random()?;
            match map(address(&range, position)) {
                Ok(page) => return Ok(Self::write(page, value)),
                Err(errno) => error = errno,
            }
        }
        Err(error)
    }

    fn write(page: *mut c_void, value: u64) -> Self {
        // SAFETY: a page that was just mapped, is never unmapped, and is this word's alone.
        let word = unsafe { &*page.cast::<std::sync::atomic::AtomicU64>() };
        word.store(value, std::sync::atomic::Ordering::Relaxed);
        Self { address: page.expose_provenance(), value }
    }
}

/// The end of the address space as the kernel laid it out: what it left above the first thread's
/// stack, rounded up.
fn end_of_address_space() -> usize {
    // SAFETY: reads a word that the kernel gave the program.
    let above_the_stack = unsafe { libc::getauxval(libc::AT_RANDOM) };
    usize::try_from(above_the_stack).unwrap_or(0).next_power_of_two()
}

/// Where tags lie: between 5/12 and 5/8 of the address space. Programs, heaps, stacks, libraries
/// and the shadows of sanitizers lie elsewhere, so that the next program has nothing at a tag but
/// by chance: of 47 bits of addresses, about 1 in 2^32 a page.
fn range(end: usize) -> Result<Range<usize>, Errno> {
    let range = end / 12 * 5..end / 8 * 5;
    if range.len() / rustix::param::page_size() < FEWEST_PAGES { Err(Errno::NOMEM) } else { Ok(range) }
}

/// A page's address for this random number.
fn address(range: &Range<usize>, random: u64) -> usize {
    let page = rustix::param::page_size();
    let offset = (u128::from(random) * range.len() as u128) >> 64;
    (range.start + usize::try_from(offset).unwrap_or(0)) / page * page
}

/// Maps a page at this address, which a forked child does not get.
fn map(address: usize) -> Result<*mut c_void, Errno> {
    let (page, wanted) = (rustix::param::page_size(), std::ptr::without_provenance_mut(address));
    let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
    // SAFETY: a fresh mapping that replaces none.
    let mapped = unsafe { mmap_anonymous(wanted, page, ProtFlags::READ | ProtFlags::WRITE, flags)? };
    // Before Linux 4.17 the address is a wish.
    let outcome = if mapped.addr() == address {
        // SAFETY: the page just mapped.
        unsafe { madvise(mapped, page, Advice::LinuxDontFork) }
    } else {
        Err(Errno::EXIST)
    };
    if outcome.is_err() {
        // SAFETY: the page just mapped, which nobody knows.
        unsafe { munmap(mapped, page)? };
    }
    outcome.map(|()| mapped)
}

#[cfg(test)]
mod tests {
    use super::{Tag, address, end_of_address_space, map, range};
    use rustix::io::Errno;

    #[test]
    fn a_process_has_one_tag() {
        let tag = Tag::of_this_process().expect("a tag");
        assert_eq!(Tag::of_this_process(), Ok(tag));
        assert_ne!(Tag::new().expect("another").address, tag.address);
    }

    #[test]
    fn addresses_are_spread_over_their_part_of_the_address_space() {
        let range = range(end_of_address_space()).expect("a large one");
        let (low, high) = (address(&range, 0), address(&range, u64::MAX));
        assert!(high - low > low / 3, "{low:x} to {high:x}");
        assert!(address(&range, 1 << 63).abs_diff(low + (high - low) / 2) < 8192);
        assert_eq!(super::range(1 << 30).err(), Some(Errno::NOMEM));
    }

    /// The stack of the thread that asks says nothing about the address space.
    #[test]
    fn every_thread_sees_the_same_end() {
        let end = end_of_address_space();
        assert!(end >= (&raw const end).addr() && end > 1 << 32, "{end:x}");
        assert_eq!(std::thread::spawn(end_of_address_space).join().expect("a thread"), end);
    }

    #[test]
    fn what_is_mapped_is_not_replaced() {
        let tag = Tag::of_this_process().expect("a tag");
        assert_eq!(map(tag.address).err(), Some(Errno::EXIST));
    }
}
