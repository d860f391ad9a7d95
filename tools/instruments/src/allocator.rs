//! An allocator that counts: it shows that a fast path does not allocate, and what a connection
//! takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static OFF_MAIN: AtomicU64 = AtomicU64::new(0);
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Without a destructor, so that it can be counted until the thread has ended.
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
    /// Whether it is the first thread of its process, once that is known.
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// The system's allocator, counting. Where it is not the program's allocator, all counts are 0.
///
/// ```
/// use cci_instruments::{CountingAllocator, allocations};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let before = allocations();
/// drop(Box::new(7));
/// assert!(allocations() > before);
/// ```
#[derive(Debug)]
pub struct CountingAllocator;

// SAFETY: every call goes to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn add(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    OF_THREAD.set(OF_THREAD.get() + 1);
    OFF_MAIN.fetch_add((!is_main()).into(), Ordering::Relaxed);
    let now = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

fn is_main() -> bool {
    IS_MAIN.get().unwrap_or_else(|| {
        let is_main = rustix::thread::gettid() == rustix::process::getpid();
        IS_MAIN.set(Some(is_main));
        is_main
    })
}

/// Allocations and reallocations since the process began.
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Those of all threads but the first one of the process. That is where the harness of tests makes
/// a list of those that have run for a minute, at whatever moment of theirs. Called by that thread
/// itself, those of all threads.
#[must_use]
pub fn allocations_off_main() -> u64 {
    if is_main() { allocations() } else { OFF_MAIN.load(Ordering::Relaxed) }
}

/// Those of this thread.
#[must_use]
pub fn thread_allocations() -> u64 {
    OF_THREAD.get()
}

/// How often [`assert_no_allocation`] counts.
const ROUNDS: usize = 3;

/// Checks that a round allocates nothing. The progress thread may begin late, or do its first work,
/// where processors are short: what it allocates then does not come again in a later round.
///
/// # Panics
///
/// This thread has allocated, or other ones in each of three rounds.
pub fn assert_no_allocation(mut round: impl FnMut(), what: &str) {
    let counted = [(); ROUNDS].map(|()| {
        let (own, all) = (thread_allocations(), allocations_off_main());
        round();
        (thread_allocations() - own, allocations_off_main() - all)
    });
    assert!(counted.iter().all(|(own, _)| *own == 0), "allocations of the program's thread in {what}: {counted:?}");
    assert!(counted.iter().any(|(_, all)| *all == 0), "allocations in {what}: {counted:?}");
}

/// Bytes that are allocated now.
#[must_use]
pub fn bytes_in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// The most bytes in use at one time while `run` ran, beyond what was before. One call at a time.
pub fn peak_of(run: impl FnOnce()) -> usize {
    let before = bytes_in_use();
    PEAK.store(before, Ordering::Relaxed);
    run();
    PEAK.load(Ordering::Relaxed).saturating_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    #[test]
    fn what_the_first_thread_allocates_is_counted_apart() {
        // A harness that runs one test at a time does so in the first thread.
        assert!(is_main() || allocations_off_main() < allocations(), "the harness has made its list of tests");
        let before = allocations_off_main();
        drop(std::hint::black_box(Box::new(7)));
        assert!(allocations_off_main() > before);
    }
}
