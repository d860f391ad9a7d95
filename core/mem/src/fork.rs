//! Notices a fork without a system call: one page that the kernel wipes in a forked child.

use crate::sync::{AtomicPtr, Ordering};
#[cfg(not(miri))]
use rustix::mm::madvise;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

const ALIVE: u32 = 0x0cc1_0cc1;

/// Whether this process is the one that made the mark.
#[derive(Clone, Copy, Debug)]
pub struct Mark(&'static std::sync::atomic::AtomicU32);

impl Mark {
    /// A mark of this process. One page per process is used; it is never unmapped.
    ///
    /// # Errors
    ///
    /// Out of memory, or the kernel is older than 4.14.
    pub fn new() -> rustix::io::Result<Self> {
        let page = rustix::param::page_size();
        // SAFETY: a fresh private mapping at an address of the kernel's choice, used by this module
        // only.
        let memory = unsafe {
            mmap_anonymous(std::ptr::null_mut(), page, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        // Miri forks nothing, and does not imitate this call.
        #[cfg(not(miri))]
        // SAFETY: the range is the mapping just made.
        unsafe {
            madvise(memory, page, rustix::mm::Advice::LinuxWipeOnFork)?
        }
        // SAFETY: page-aligned, zero-filled, never unmapped, and only ever accessed as this atomic.
        let word = unsafe { &*memory.cast::<std::sync::atomic::AtomicU32>() };
        word.store(ALIVE, std::sync::atomic::Ordering::Relaxed);
        Ok(Self(word))
    }

    /// False in a forked child of the process that made the mark.
    #[inline(always)]
    #[must_use]
    pub fn is_here(self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed) == ALIVE
    }
}

/// Where a [`Mark`] stands, or will: a look takes two loads, whether there is one or not.
pub struct MarkPlace(std::sync::atomic::AtomicPtr<std::sync::atomic::AtomicU32>);

/// What a place without a mark points to.
static NOWHERE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

impl MarkPlace {
    /// Without a mark.
    #[must_use]
    pub const fn new() -> Self {
        Self(std::sync::atomic::AtomicPtr::new((&raw const NOWHERE).cast_mut()))
    }

    /// Sets the mark.
    pub fn set(&self, mark: Mark) {
        // Release: whoever sees the place of the word sees the word.
        self.0.store(std::ptr::from_ref(mark.0).cast_mut(), std::sync::atomic::Ordering::Release);
    }

    /// Whether a mark was set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !std::ptr::eq(self.0.load(std::sync::atomic::Ordering::Relaxed), &raw const NOWHERE)
    }

    /// False in a forked child of the process that made the mark, and without a mark.
    #[inline(always)]
    #[must_use]
    pub fn is_here(&self) -> bool {
        // SAFETY: points to `NOWHERE` or to the word of a mark; both are there for ever. Acquire:
        // pairs with `set`.
        let word = unsafe { &*self.0.load(std::sync::atomic::Ordering::Acquire) };
        Mark(word).is_here()
    }
}

impl Default for MarkPlace {
    fn default() -> Self {
        Self::new()
    }
}

/// A process-wide value that a forked child makes afresh, because the locks inside the parent's may
/// be held by threads that do not exist in the child. Values are never freed.
pub struct PerProcess<T: 'static>(AtomicPtr<(Mark, T)>);

impl<T: Sync + 'static> PerProcess<T> {
    /// No value yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// This process's value and fork mark, made by `make` if there is none.
    ///
    /// # Errors
    ///
    /// As [`Mark::new`].
    #[inline]
    pub fn get(&'static self, make: impl FnOnce() -> T) -> rustix::io::Result<&'static (Mark, T)> {
        self.inherit(|_| make())
    }

    /// As [`PerProcess::get`], where `make` gets the value of the process that has forked this one,
    /// if there was one. Its locks may be held for ever: `make` only tries them.
    ///
    /// # Errors
    ///
    /// As [`Mark::new`].
    #[inline]
    pub fn inherit(
        &'static self,
        make: impl FnOnce(Option<&'static T>) -> T,
    ) -> rustix::io::Result<&'static (Mark, T)> {
        let current = self.0.load(Ordering::Acquire);
        match Self::here(current) {
            Some(value) => Ok(value),
            None => self.make(current, make),
        }
    }

    #[cold]
    fn make(
        &'static self,
        current: *mut (Mark, T),
        make: impl FnOnce(Option<&'static T>) -> T,
    ) -> rustix::io::Result<&'static (Mark, T)> {
        // SAFETY: null, or published below and never freed.
        let parents = unsafe { current.as_ref() };
        let fresh = Box::into_raw(Box::new((Mark::new()?, make(parents.map(|(_, value)| value)))));
        match self.0.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just made by `Box::into_raw`, published once, never freed.
            Ok(_) => Ok(unsafe { &*fresh }),
            Err(other) => {
                // SAFETY: `fresh` was not published; this thread alone has it. `other` was
                // published by a thread that won, and is never freed.
                unsafe {
                    drop(Box::from_raw(fresh));
                    Ok(&*other)
                }
            }
        }
    }

    fn here(pointer: *mut (Mark, T)) -> Option<&'static (Mark, T)> {
        // SAFETY: null, or published by `make` and never freed.
        unsafe { pointer.as_ref() }.filter(|(mark, _)| mark.is_here())
    }
}

impl<T: Sync + 'static> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}
