//! A tag by which other processes know this address space from that of the next program.
//!
//! The kernel's copies between processes name a process by its number. A process that executes another program keeps its number,
//! and another process may get it later; neither has the tag. The tag is a random word on a page of its own at a random address: a
//! copy that begins with it fails there, within the same call, when the address space is another one.

use crate::fork::PerProcess;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::rand::{GetRandomFlags, getrandom};
use std::ffi::c_void;

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

impl Tag {
    /// The tag of this process, the same for as long as it runs its program. A forked child gets its own; it has not got its parent's.
    ///
    /// # Errors
    ///
    /// No memory, no random numbers, or no address of those tried was free.
    pub fn of_this_process() -> Result<Self, Errno> {
        static TAG: PerProcess<Result<Tag, Errno>> = PerProcess::new();
        TAG.get(Self::new)?.1
    }

    fn new() -> Result<Self, Errno> {
        let mut error = Errno::NOMEM;
        for _ in 0..TRIALS {
            let [position, value] = random()?;
            match map(address(position)) {
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

fn random() -> Result<[u64; 2], Errno> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    let [position, value] = [0, 8].map(|at| std::array::from_fn(|byte| bytes[at + byte])).map(u64::from_ne_bytes);
    Ok([position, value])
}

/// A page's address for this random number, between 5/12 and 5/8 of the address space: programs, heaps, stacks, libraries and the
/// shadows of sanitizers lie elsewhere, so that the next program has nothing there but by a chance of about 1 in 2^32 a page.
fn address(random: u64) -> usize {
    let here = 0u8;
    // Stacks lie at the upper end.
    let end = (&raw const here).addr().next_power_of_two();
    let (low, high) = (end / 12 * 5, end / 8 * 5);
    let page = rustix::param::page_size();
    let offset = (u128::from(random) * (high - low) as u128) >> 64;
    (low + usize::try_from(offset).unwrap_or(0)) / page * page
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
    use super::{Tag, address, map};
    use rustix::io::Errno;

    #[test]
    fn a_process_has_one_tag() {
        let tag = Tag::of_this_process().expect("a tag");
        assert_eq!(Tag::of_this_process(), Ok(tag));
        assert_ne!(Tag::new().expect("another").address, tag.address);
    }

    #[test]
    fn addresses_are_spread_over_their_part_of_the_address_space() {
        let (low, high) = (address(0), address(u64::MAX));
        assert!(high - low > low / 3, "{low:x} to {high:x}");
        assert!(address(1 << 63).abs_diff(low + (high - low) / 2) < 8192);
    }

    #[test]
    fn what_is_mapped_is_not_replaced() {
        let tag = Tag::of_this_process().expect("a tag");
        assert_eq!(map(tag.address).err(), Some(Errno::EXIST));
    }
}
