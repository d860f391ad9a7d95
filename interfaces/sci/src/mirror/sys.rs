//! The unsafe code below mirrors: private pages, and the kernel's notice of their first store.

use cci::Memory;
use cci_mem::descriptors;
use cci_mem::sync::{AtomicU64, Ordering};
use rustix::fd::{FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Updater, ioctl, opcode};
use rustix::mm::{Advice, MapFlags, ProtFlags, UserfaultfdFlags, madvise, mmap_anonymous, munmap, userfaultfd};
use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;

const WORD: usize = 8;

/// Private pages of zeroes, mapped as long as this value.
pub(crate) struct Region {
    start: usize,
    len: usize,
    memory: Memory,
}

impl Region {
    /// `None`: there is no room for so many bytes.
    pub(crate) fn new(len: usize) -> Option<Self> {
        let len = len.checked_next_multiple_of(rustix::param::page_size())?;
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, rights, flags) }.ok()?;
        // SAFETY: mapped as long as this value, which keeps the name to itself; nobody makes a
        // reference to these bytes but as atomics.
        let memory = unsafe { Memory::new(start.cast(), len as u64) };
        Some(Self { start: start.expose_provenance(), len, memory })
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes, for copies while this value lives.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    fn word(&self, place: usize) -> &AtomicU64 {
        assert!(place < self.len / WORD, "outside of the mirror");
        let at = std::ptr::with_exposed_provenance_mut::<u64>(self.start + place * WORD);
        // SAFETY: inside of the mapping, which is as old as this value, and aligned; all who use
        // these bytes know that they change.
        unsafe { AtomicU64::from_ptr(at) }
    }

    /// Words in a row.
    pub(crate) fn span(&self, places: std::ops::Range<usize>) -> &[AtomicU64] {
        assert!(places.start <= places.end && places.end <= self.len / WORD, "outside of the mirror");
        let at = std::ptr::with_exposed_provenance::<AtomicU64>(self.start + places.start * WORD);
        // SAFETY: as in `word`.
        unsafe { std::slice::from_raw_parts(at, places.len()) }
    }

    /// Loads a word whole: what was stored before it in this process is seen by later loads.
    #[inline]
    pub(crate) fn load(&self, place: usize) -> u64 {
        self.word(place).load(Ordering::Acquire)
    }

    /// Stores a word.
    pub(crate) fn set(&self, place: usize, word: u64) {
        // As in `replace`.
        self.word(place).store(word, Ordering::Release);
    }

    /// Replaces a word, unless the program has stored to it.
    pub(crate) fn replace(&self, place: usize, old: u64, new: u64) -> bool {
        // Publishes what the owner has stored, as its word does.
        self.word(place).compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; windows and mirrors that use it keep this value.
        let unmapped = unsafe { munmap(std::ptr::with_exposed_provenance_mut(self.start), self.len) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

/// Words of zeroes, which take no memory until they are written. `None`: there is no room.
pub(crate) fn words(count: usize) -> Option<Box<[u64]>> {
    let layout = Layout::array::<u64>(count).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: of more than no bytes.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    let words = NonNull::slice_from_raw_parts(start.cast::<u64>(), count);
    // SAFETY: allocated as a box of these words is, and zero is a word.
    Some(unsafe { Box::from_raw(words.as_ptr()) })
}

/// The bytes of words, in the order of memory.
pub(crate) fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: these bytes, which words are made of, as long as the words are borrowed.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The same, to be written.
pub(crate) fn bytes_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: as in `bytes`; any bytes are words.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// Words of a segment of this host, which others store to. `None`: they lie outside, or are not
/// aligned.
pub(crate) fn words_of(memory: &Memory, offset: u64, count: usize) -> Option<&[AtomicU64]> {
    let span = memory.span(offset, count.checked_mul(WORD)?)?;
    let at = std::ptr::with_exposed_provenance::<AtomicU64>(span.start());
    // SAFETY: inside of the memory, which is mapped as long as its name, and aligned; all who use
    // these bytes know that they change.
    span.start().is_multiple_of(WORD).then(|| unsafe { std::slice::from_raw_parts(at, count) })
}

/// The structures of the kernel's interface.
#[repr(C)]
struct Api {
    version: u64,
    features: u64,
    calls: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    len: u64,
}

#[repr(C)]
struct Register {
    range: Range,
    mode: u64,
    calls: u64,
}

#[repr(C)]
struct Protect {
    range: Range,
    mode: u64,
}

#[repr(C)]
struct Copy {
    to: u64,
    from: u64,
    len: u64,
    mode: u64,
    copied: i64,
}

const GROUP: u8 = 0xaa;
const API: Opcode = opcode::read_write::<Api>(GROUP, 0x3f);
const REGISTER: Opcode = opcode::read_write::<Register>(GROUP, 0);
const UNREGISTER: Opcode = opcode::read::<Range>(GROUP, 1);
const COPY: Opcode = opcode::read_write::<Copy>(GROUP, 3);
const PROTECT: Opcode = opcode::read_write::<Protect>(GROUP, 6);
/// The version of the interface, the feature of write-protection, its mode, and the mode of a call.
const VERSION: u64 = 0xaa;
const HAS_PROTECTION: u64 = 1;
const OF_MISSING: u64 = 1;
const OF_WRITES: u64 = 2;
const WITH_PROTECTION: u64 = 1;
const COPY_PROTECTED: u64 = 2;
/// Bytes of a message, the kind of a fault, and where its address lies.
const MESSAGE: usize = 32;
const IS_FAULT: u8 = 0x12;
const ADDRESS: std::ops::Range<usize> = 16..24;

/// Tells of first stores to protected pages, those of the kernel too.
pub(crate) struct Faults(OwnedFd);

impl Faults {
    /// Opens it. `None`: the system lets this user not.
    pub(crate) fn open() -> Option<Self> {
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
        // SAFETY: the descriptor is used on pages of mirrors alone.
        let opened = unsafe { userfaultfd(flags) }.and_then(descriptors::above_standard);
        let faults = Self(opened.or_else(|_| by_device(flags)).ok()?);
        let mut api = Api { version: VERSION, features: HAS_PROTECTION, calls: 0 };
        faults.call::<API, _>(&mut api).ok()?;
        Some(faults)
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    fn call<const CODE: Opcode, T>(&self, value: &mut T) -> Result<(), Errno> {
        // SAFETY: each code stands with its structure in this file; the ranges are those of
        // mirrors. The calls leave their bytes as they are, but for a copy into a page that is
        // missing.
        unsafe { ioctl(&self.0, Updater::<CODE, T>::new(value)) }
    }

    /// Begins to watch a region. False: the system refuses.
    pub(crate) fn register(&self, region: &Region) -> bool {
        let range = Range { start: region.start as u64, len: region.len as u64 };
        self.call::<REGISTER, _>(&mut Register { range, mode: OF_WRITES, calls: 0 }).is_ok()
    }

    /// Ends the watch: all its pages are writable, and who waits goes on.
    pub(crate) fn unregister(&self, region: &Region) {
        // The end of the watch alone would wake nobody.
        self.protect(region, (0, region.len), false);
        let mut range = Range { start: region.start as u64, len: region.len as u64 };
        let ended = self.call::<UNREGISTER, _>(&mut range);
        debug_assert_eq!(ended, Ok(()));
    }

    /// Also has accesses to a page wait that is just replaced. All pages are there. False: the
    /// system refuses.
    pub(crate) fn register_pages(&self, region: &Region, (offset, len): (usize, usize)) -> bool {
        let range = Range { start: (region.start + offset) as u64, len: len.min(region.len - offset) as u64 };
        self.call::<REGISTER, _>(&mut Register { range, mode: OF_MISSING | OF_WRITES, calls: 0 }).is_ok()
    }

    /// Replaces a page that is protected, as it is afterwards, by these words: no store comes in
    /// between. False: it cannot, and the page has zeroes.
    pub(crate) fn replace_page(&self, region: &Region, offset: usize, words: &[u64]) -> bool {
        assert!(offset + size_of_val(words) <= region.len, "outside of the mirror");
        let to = std::ptr::with_exposed_provenance_mut(region.start + offset);
        // SAFETY: a page of the region, whose bytes nobody refers to but as atomics. Who uses it
        // meanwhile waits until it is there again.
        if unsafe { madvise(to, size_of_val(words), Advice::LinuxDontNeed) }.is_err() {
            return false;
        }
        let (to, from) = ((region.start + offset) as u64, words.as_ptr().expose_provenance() as u64);
        loop {
            let len = size_of_val(words) as u64;
            match self.call::<COPY, _>(&mut Copy { to, from, len, mode: COPY_PROTECTED, copied: 0 }) {
                Ok(()) => return true,
                Err(Errno::AGAIN) => {}
                Err(_) => return false,
            }
        }
    }

    /// Protects pages of a region against stores, or lets stores through again and wakes who waits.
    /// False: nothing has changed.
    pub(crate) fn protect(&self, region: &Region, (offset, len): (usize, usize), is_protected: bool) -> bool {
        let len = len.min(region.len - offset);
        let range = Range { start: (region.start + offset) as u64, len: len as u64 };
        let mode = if is_protected { WITH_PROTECTION } else { 0 };
        loop {
            match self.call::<PROTECT, _>(&mut Protect { range, mode }) {
                Ok(()) => return true,
                Err(Errno::AGAIN) if !is_protected => {}
                Err(_) => return false,
            }
        }
    }

    /// The address of the next store that waits.
    pub(crate) fn next(&self) -> Option<usize> {
        let mut message = [0; MESSAGE];
        while rustix::io::read(&self.0, &mut message) == Ok(MESSAGE) {
            if message[0] == IS_FAULT {
                return usize::try_from(u64::from_ne_bytes(message[ADDRESS].try_into().ok()?)).ok();
            }
        }
        None
    }
}

/// The call that the device has in place of the system call.
struct New(UserfaultfdFlags);

// SAFETY: the argument is flags; the result of a call that has succeeded is a descriptor that
// nobody else has.
unsafe impl Ioctl for New {
    type Output = OwnedFd;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        opcode::none(GROUP, 0)
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        std::ptr::without_provenance_mut(self.0.bits() as usize)
    }

    unsafe fn output_from_ptr(descriptor: IoctlOutput, _: *mut std::ffi::c_void) -> rustix::io::Result<OwnedFd> {
        // SAFETY: by the contract of the trait.
        descriptors::above_standard(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}

/// Where the user may not call the system, but open the device.
fn by_device(flags: UserfaultfdFlags) -> Result<OwnedFd, Errno> {
    let device = descriptors::above_standard(open("/dev/userfaultfd", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)?;
    // SAFETY: as of the system call.
    unsafe { ioctl(&device, New(flags)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_replaced_unless_somebody_stores() {
        let region = Region::new(100).expect("memory");
        assert_eq!((region.len(), region.load(3)), (rustix::param::page_size(), 0));
        assert!(region.replace(3, 0, 7) && !region.replace(3, 0, 9));
        assert_eq!(region.load(3), 7);
        assert!(Region::new(usize::MAX).is_none() && Region::new(1 << 60).is_none());
        assert_eq!(words(3).as_deref(), Some(&[0; 3][..]));
        assert!([0, 1 << 58, usize::MAX].into_iter().all(|count| words(count).is_none()));
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that cannot run says so")]
    fn a_first_store_waits_until_it_is_let_through() {
        let Some(faults) = Faults::open() else {
            eprintln!("skipped: the system lets this user not watch stores");
            return;
        };
        let region = Region::new(8192).expect("memory");
        assert!(faults.register(&region) && region.load(512) == 0);
        assert!(faults.protect(&region, (4096, 4096), true));
        std::thread::scope(|scope| {
            let store = scope.spawn(|| {
                assert!(region.replace(0, 0, 1), "another page");
                // By the kernel, as of `read(2)`.
                region.replace(512, 0, 1)
            });
            let address = loop {
                if let Some(address) = faults.next() {
                    break address;
                }
                std::thread::yield_now();
            };
            assert_eq!(address - region.start(), 4096);
            assert!(!store.is_finished());
            assert!(faults.protect(&region, (4096, 4096), false));
            assert!(store.join().expect("no panic"));
        });
        // Who waits when the watch ends goes on too.
        assert!(faults.protect(&region, (0, 8192), true));
        std::thread::scope(|scope| {
            let store = scope.spawn(|| region.replace(0, 1, 2));
            while faults.next().is_none() {
                std::thread::yield_now();
            }
            faults.unregister(&region);
            assert!(store.join().expect("no panic"));
        });
        assert!(region.replace(512, 1, 2), "no page is protected any more");
    }
}
