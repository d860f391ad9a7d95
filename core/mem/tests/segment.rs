//! Segments and library memory: nobody can cut them under a mapping, and what is published is read
//! only.
#![cfg(not(loom))]

use cci_mem::arena::{self, SharedMemory};
use cci_mem::memory::Memory;
use cci_mem::segment::Segment;
use cci_mem::sync::Ordering;
use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, ftruncate,
    memfd_create, open,
};
use rustix::io::{Errno, pwrite};
use rustix::mm::{MprotectFlags, mprotect};
use std::os::fd::{AsRawFd, OwnedFd};

const SEGMENT_LEN: usize = 3 * 4096;

fn shared(segment: &Segment) -> OwnedFd {
    OwnedFd::from(segment.share().expect("a descriptor"))
}

/// A file as a peer could send it, with these seals only.
fn foreign(len: usize, seals: SealFlags) -> OwnedFd {
    let fd = memfd_create("cci-test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a memfd");
    ftruncate(&fd, len as u64).expect("room");
    fcntl_add_seals(&fd, seals).expect("seals");
    fd
}

#[test]
fn what_one_side_writes_the_other_reads() {
    let ours = Segment::create("cci-test", SEGMENT_LEN).expect("a segment");
    let theirs = Segment::attach(shared(&ours), SEGMENT_LEN).expect("attached");
    assert_eq!(theirs.len(), SEGMENT_LEN);
    ours.words32(4096, 4)[3].store(7, Ordering::Release);
    assert_eq!(theirs.words32(4096, 4)[3].load(Ordering::Acquire), 7);
    theirs.words64(8, 1)[0].store(9, Ordering::Release);
    assert_eq!(ours.words64(8, 1)[0].load(Ordering::Acquire), 9);
    assert_ne!(ours.base(), theirs.base(), "one mapping each");
}

#[test]
fn a_segment_cannot_be_cut_or_grown() {
    let segment = Segment::create("cci-test", SEGMENT_LEN).expect("a segment");
    let fd = shared(&segment);
    assert!(fcntl_get_seals(&fd).expect("seals").contains(SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL));
    assert_eq!(ftruncate(&fd, 4096), Err(Errno::PERM));
    assert_eq!(ftruncate(&fd, 2 * SEGMENT_LEN as u64), Err(Errno::PERM));
    assert_eq!(fcntl_add_seals(&fd, SealFlags::WRITE), Err(Errno::PERM));
}

#[test]
fn attach_refuses_what_could_shrink_or_has_another_size() {
    let size = SealFlags::SHRINK | SealFlags::GROW;
    for seals in [SealFlags::empty(), SealFlags::SHRINK, SealFlags::GROW, SealFlags::SEAL, size] {
        assert_eq!(Segment::attach(foreign(SEGMENT_LEN, seals), SEGMENT_LEN).err(), Some(Errno::PERM), "{seals:?}");
        assert_eq!(
            Segment::attach_read_only(foreign(SEGMENT_LEN, seals), SEGMENT_LEN).err(),
            Some(Errno::PERM),
            "{seals:?}"
        );
    }
    let sealed = size | SealFlags::SEAL;
    assert!(Segment::attach(foreign(SEGMENT_LEN, sealed), SEGMENT_LEN).is_ok());
    for claimed in [0, 1, SEGMENT_LEN - 1, SEGMENT_LEN + 1, 2 * SEGMENT_LEN, usize::MAX] {
        assert_eq!(Segment::attach(foreign(SEGMENT_LEN, sealed), claimed).err(), Some(Errno::INVAL), "{claimed}");
    }
    assert_eq!(Segment::attach(foreign(0, sealed), 0).err(), Some(Errno::INVAL));
}

/// Their reservation can be taken away by the peer, after which a touch is SIGBUS.
#[test]
fn attach_refuses_huge_pages() {
    const HUGE: usize = 2 << 20;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    match memfd_create("cci-test", flags) {
        Ok(fd) => {
            ftruncate(&fd, HUGE as u64).expect("a size");
            fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).expect("seals");
            assert_eq!(Segment::attach(fd, HUGE).err(), Some(Errno::PERM));
        }
        // A kernel without huge pages: no peer can have them either.
        Err(error) => assert!(matches!(error, Errno::NODEV | Errno::NOENT | Errno::INVAL | Errno::NOSYS), "{error}"),
    }
}

#[test]
fn attach_refuses_files_that_cannot_be_sealed() {
    for path in ["/dev/null", "/proc/self/exe", "/dev/zero"] {
        let fd = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).expect("a file");
        assert_eq!(Segment::attach(fd, 4096).err(), Some(Errno::INVAL), "{path}");
    }
}

#[test]
fn a_range_is_reserved_inside_the_segment_only() {
    let segment = Segment::create("cci-test", SEGMENT_LEN).expect("a segment");
    let blocks = || rustix::fs::fstat(segment.file_of().expect("open")).expect("a file").st_blocks;
    assert_eq!(blocks(), 0, "nothing is reserved before it is asked for");
    segment.reserve(4096, 4096).expect("memory");
    assert_eq!(blocks(), 4096 / 512);
    segment.reserve(0, SEGMENT_LEN).expect("memory");
    assert_eq!(blocks(), SEGMENT_LEN as i64 / 512);
    assert_eq!(segment.reserve(SEGMENT_LEN, 4096), Err(Errno::PERM), "the size is sealed");
    assert_eq!(segment.reserve(0, 0), Err(Errno::INVAL));
}

#[test]
fn ranges_outside_a_segment_are_caught() {
    let segment = Segment::create("cci-test", SEGMENT_LEN).expect("a segment");
    assert_eq!(segment.bytes(SEGMENT_LEN, 0), segment.base().wrapping_add(SEGMENT_LEN));
    let outside: [&dyn Fn(); 6] = [
        &|| assert!(segment.words32(SEGMENT_LEN, 1).is_empty()),
        &|| assert!(segment.words64(SEGMENT_LEN - 4, 1).is_empty()),
        &|| assert!(segment.words32(0, usize::MAX / 2).is_empty()),
        &|| assert!(segment.words32(usize::MAX, 1).is_empty()),
        &|| assert!(segment.entries::<1>(32).is_empty(), "misaligned"),
        &|| assert!(segment.bytes(1, SEGMENT_LEN).is_null()),
    ];
    for (number, range) in outside.into_iter().enumerate() {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(range)).expect_err("a range outside");
        let message = caught.downcast_ref::<&str>().copied().unwrap_or_default();
        assert!(matches!(message, "range outside the segment" | "misaligned offset"), "{number}: {message}");
    }
}

#[test]
fn a_published_segment_is_written_by_its_owner_only() {
    let ours = Segment::create_published("cci-test", SEGMENT_LEN).expect("a segment");
    ours.reserve(0, SEGMENT_LEN).expect("memory");
    ours.words32(0, 1)[0].store(7, Ordering::Release);

    // Through the descriptor that a peer gets, and through one that it opens afresh for writing.
    let again =
        open(format!("/proc/self/fd/{}", shared(&ours).as_raw_fd()), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    for fd in [Ok(shared(&ours)), again].into_iter().flatten() {
        assert_eq!(pwrite(&fd, b"x", 0), Err(Errno::PERM));
        assert_eq!(fallocate(&fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 4096), Err(Errno::PERM));
        assert_eq!(Segment::attach(fd, SEGMENT_LEN).err(), Some(Errno::PERM), "mapped writable");
    }

    let theirs = Segment::attach_read_only(shared(&ours), SEGMENT_LEN).expect("attached");
    assert_eq!(theirs.words32(0, 1)[0].load(Ordering::Acquire), 7);
    // SAFETY: the mapping of `theirs`; making it writable is what must fail.
    let raised = unsafe { mprotect(theirs.base().cast(), SEGMENT_LEN, MprotectFlags::READ | MprotectFlags::WRITE) };
    assert_eq!(raised, Err(Errno::ACCESS));
    ours.words32(0, 1)[0].store(8, Ordering::Release);
    assert_eq!(theirs.words32(0, 1)[0].load(Ordering::Acquire), 8, "the owner goes on writing");
}

fn memory(start: *mut u8, len: u64) -> Memory {
    // SAFETY: never registered here, only looked up.
    unsafe { Memory::new(start, len) }
}

#[test]
fn library_memory_is_found_by_any_range_inside_it() {
    let segment = arena::allocate(5000).expect("memory");
    assert_eq!(segment.len() % rustix::param::page_size(), 0);
    let (base, len) = (segment.base(), segment.len());
    for (offset, bytes) in [(0, 1), (0, len), (1, len - 1), (len - 1, 1), (4096, 17)] {
        let (found, _, at) = arena::find(&memory(base.wrapping_add(offset), bytes as u64)).expect("inside");
        assert!(std::ptr::eq(&*found, &*segment));
        assert_eq!(at, offset);
    }
    for (offset, bytes) in [(0, len as u64 + 1), (1, len as u64), (len, 1), (8, u64::MAX)] {
        assert!(arena::find(&memory(base.wrapping_add(offset), bytes)).is_none(), "{offset} {bytes}");
    }
    assert!(!arena::free(base.wrapping_add(1)), "only the start frees");
    assert!(arena::free(base));
    assert!(!arena::free(base), "freed twice");
    assert!(arena::find(&memory(base, 1)).is_none());
    // A registration holds the segment: it is mapped until the last one is gone.
    segment.words32(0, 1)[0].store(1, Ordering::Relaxed);
    assert_eq!(segment.words32(0, 1)[0].load(Ordering::Relaxed), 1);
}

#[test]
fn the_memory_of_an_allocation_keeps_it() {
    let first = SharedMemory::new(100).expect("memory").memory();
    let (_, number, offset) = arena::find(&first).expect("library memory, though its first owner is gone");
    assert_eq!(offset, 0);
    let copy = first.clone();
    drop(first);
    assert!(arena::find(&copy).is_some_and(|(_, found, _)| found == number));
    let start = std::ptr::with_exposed_provenance_mut(copy.start());
    drop(copy);
    // Another allocation may lie there by now.
    assert!(arena::find(&memory(start, 1)).is_none_or(|(_, found, _)| found != number));
}

#[test]
fn impossible_allocations_are_refused() {
    assert_eq!(arena::allocate(0).err(), Some(Errno::INVAL));
    assert_eq!(arena::allocate(usize::MAX).err(), Some(Errno::INVAL));
    assert!(arena::allocate(usize::MAX / 4).is_err());
}

#[test]
fn shared_memory_copies_in_and_out() {
    let shared = SharedMemory::new(100).expect("memory");
    assert_eq!((shared.len(), shared.memory().len()), (100, 100));
    assert_eq!(shared.to_vec(0, 100), [0; 100]);
    shared.write(40, b"sixty bytes");
    assert_eq!(shared.to_vec(39, 13), *b"\0sixty bytes\0");
    shared.write(100, b"");
    for (offset, len) in [(90, 11), (101, 0), (usize::MAX, 2)] {
        let outside = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shared.write(offset, &vec![0; len])));
        assert!(outside.is_err(), "{offset} {len}");
        let outside = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shared.read(offset, &mut vec![0; len])));
        assert!(outside.is_err(), "{offset} {len}");
    }
}
