//! The one lock of an endpoint.
//!
//! Taking it is one locked instruction, giving it back none: the releasing side stores and looks for waiters
//! behind a light fence, and a waiter pays with a heavy one before it sleeps. A holder may be preempted, so a
//! waiter spins briefly and then sleeps on a futex. A value opened for one thread takes no lock at all; the
//! thread is known by the address of a thread-local, which costs one load.

use crate::barrier::Pairing;
use crate::sync::{AtomicU32, AtomicUsize, Ordering, spin};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Turns of busy waiting before a waiter sleeps: about a microsecond, longer than any send holds the lock. None in models:
/// loom lets a thread that yields wait for the others, and so would never let it sleep beside a holder.
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// The bare lock.
pub struct Lock {
    held: AtomicU32,
    waiters: AtomicU32,
}

impl Lock {
    /// Free.
    #[must_use]
    pub fn new() -> Self {
        Self { held: AtomicU32::new(0), waiters: AtomicU32::new(0) }
    }

    /// Waits for the lock and takes it.
    #[inline]
    pub fn acquire(&self, pairing: Pairing) {
        if !self.try_take() {
            self.acquire_contended(pairing);
        }
    }

    #[inline(always)]
    fn try_take(&self) -> bool {
        // A swap that finds 1 leaves what was there, like a compare-exchange that fails. Models use the latter, because loom
        // lets such a swap come after the store of `release` in the order of changes and yet read what stood before it.
        if cfg!(loom) {
            self.held.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        } else {
            self.held.swap(1, Ordering::Acquire) == 0
        }
    }

    #[cold]
    fn acquire_contended(&self, pairing: Pairing) {
        let taken = (0..SPINS).any(|_| {
            spin();
            self.held.load(Ordering::Relaxed) == 0 && self.try_take()
        });
        if taken {
            return;
        }
        self.waiters.fetch_add(1, Ordering::Relaxed);
        // Either the holder sees this waiter after it stores 0, or the swap below sees that 0.
        pairing.heavy();
        while !self.try_take() {
            futex::wait(&self.held, 1);
        }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives the lock back. Only its holder may.
    #[inline]
    pub fn release(&self, pairing: Pairing) {
        // Publishes what the holder wrote to the next holder.
        self.held.store(0, Ordering::Release);
        pairing.light();
        if self.waiters.load(Ordering::Relaxed) != 0 {
            futex::wake_one(&self.held);
        }
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(loom))]
mod futex {
    use super::AtomicU32;
    use rustix::thread::futex::{Flags, Timespec, wait as futex_wait, wake};

    pub(super) fn wait(word: &AtomicU32, expected: u32) {
        // Woken, value changed, or a signal: the caller looks again in every case. The time limit bounds what
        // a lost wake-up could cost should the kernel's fence ever fail to reach a holder.
        let limit = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        let _ = futex_wait(word, Flags::PRIVATE, expected, Some(&limit));
    }

    #[cold]
    pub(super) fn wake_one(word: &AtomicU32) {
        let _ = wake(word, Flags::PRIVATE, 1);
    }
}

/// The kernel's futex as a model: looking at the word and joining the sleepers are one step for whoever wakes. There is no
/// time limit, so that a lost wake-up is a deadlock, which loom reports. One word per model.
#[cfg(loom)]
mod futex {
    use super::{AtomicU32, Ordering};
    use loom::sync::Mutex;
    use loom::thread::{Thread, current, park};

    loom::lazy_static! {
        static ref SLEEPERS: Mutex<Vec<Thread>> = Mutex::new(Vec::new());
    }

    pub(super) fn wait(word: &AtomicU32, expected: u32) {
        let Ok(mut sleepers) = SLEEPERS.lock() else { return };
        let sleeps = word.load(Ordering::Relaxed) == expected;
        if sleeps {
            sleepers.push(current());
        }
        drop(sleepers);
        if sleeps {
            park();
        }
    }

    pub(super) fn wake_one(_: &AtomicU32) {
        let woken = SLEEPERS.lock().ok().and_then(|mut sleepers| sleepers.pop());
        if let Some(sleeper) = woken {
            sleeper.unpark();
        }
    }
}

/// Who may use a [`Guarded`] value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threading {
    /// Any thread, one at a time.
    Many,
    /// The first thread that uses it, and no other.
    One,
}

/// The caller is not the thread that the value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongThread;

const NOBODY: usize = 0;
/// The owner while a value is for many threads: no thread-local lives at this address.
const EVERYBODY: usize = 1;

/// A value behind the lock, or belonging to one thread.
pub struct Guarded<T> {
    lock: Lock,
    owner: AtomicUsize,
    /// True while the owning thread has a guard: a second one would alias the value.
    borrowed: AtomicU32,
    pairing: Pairing,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, and there is at most one: the lock sees to that, or the
// owner check together with `borrowed`.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// A value for many threads; [`Guard::hand_over`] may restrict it.
    pub fn new(value: T, pairing: Pairing) -> Self {
        Self {
            lock: Lock::new(),
            owner: AtomicUsize::new(EVERYBODY),
            borrowed: AtomicU32::new(0),
            pairing,
            value: UnsafeCell::new(value),
        }
    }

    /// Access to the value.
    ///
    /// # Errors
    ///
    /// The value belongs to one thread and this is another.
    #[inline]
    pub fn enter(&self) -> Result<Guard<'_, T>, WrongThread> {
        let mut owner = self.owner.load(Ordering::Relaxed);
        if owner == EVERYBODY {
            self.lock.acquire(self.pairing);
            // The last holder may have handed the value over while this thread waited. Acquire: pairs with `hand_over`.
            owner = self.owner.load(Ordering::Acquire);
            if owner == EVERYBODY {
                return Ok(Guard { guarded: self, locked: true, here: PhantomData });
            }
            self.lock.release(self.pairing);
        }
        let me = thread_token();
        if owner != me {
            self.adopt(me)?;
        }
        if self.borrowed.load(Ordering::Relaxed) != 0 {
            return Err(WrongThread);
        }
        self.borrowed.store(1, Ordering::Relaxed);
        Ok(Guard { guarded: self, locked: false, here: PhantomData })
    }

    #[cold]
    fn adopt(&self, me: usize) -> Result<(), WrongThread> {
        // Acquire and release order this after `hand_over`, and a second candidate after the first.
        match self.owner.compare_exchange(NOBODY, me, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(owner) if owner == me => Ok(()),
            Err(_) => Err(WrongThread),
        }
    }
}

/// A number that no other live thread has: the thread pointer, which one instruction reads. A thread-local's address would cost a
/// call in a shared library.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
#[inline(always)]
fn thread_token() -> usize {
    let token: usize;
    // SAFETY: the psABI of x86-64 puts the thread control block's own address at offset 0 of the segment `fs`.
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) token, options(nostack, readonly, preserves_flags)) };
    token
}

/// A number that no other live thread has: the address of a thread-local.
#[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
#[inline(always)]
fn thread_token() -> usize {
    #[cfg(not(loom))]
    thread_local!(static TOKEN: u64 = const { 0 });
    #[cfg(loom)]
    loom::thread_local!(static TOKEN: u64 = 0);
    TOKEN.with(|token| std::ptr::from_ref(token).addr())
}

/// Access to a [`Guarded`] value until dropped.
pub struct Guard<'a, T> {
    guarded: &'a Guarded<T>,
    locked: bool,
    /// A guard stays on its thread.
    here: PhantomData<*mut ()>,
}

impl<T> Guard<'_, T> {
    /// Gives the value back, from now on to be used as `threading` says. This guard is the only one, so whoever enters later
    /// finds the new rule.
    pub fn hand_over(self, threading: Threading) {
        let owner = match threading {
            Threading::Many => EVERYBODY,
            Threading::One => NOBODY,
        };
        if !self.locked {
            self.guarded.borrowed.store(0, Ordering::Relaxed);
        }
        // Release: publishes the value to whoever enters next.
        self.guarded.owner.store(owner, Ordering::Release);
        if self.locked {
            self.guarded.lock.release(self.guarded.pairing);
        }
        std::mem::forget(self);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one (see `Sync` above).
        unsafe { &*self.guarded.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one (see `Sync` above).
        unsafe { &mut *self.guarded.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.locked {
            self.guarded.lock.release(self.guarded.pairing);
        } else {
            self.guarded.borrowed.store(0, Ordering::Relaxed);
        }
    }
}
