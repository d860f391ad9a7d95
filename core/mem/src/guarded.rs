//! A value behind the lock, with the thread that uses it alone, or belonging to one thread.
//!
//! Most values for many threads are used by one. The lock's one instruction would cost such a thread more than the instruction: it
//! waits until all that was stored before has left the processor, lines of a peer's cache among it. So a thread that has entered
//! often enough without another in between gets the value *on loan* (biased locking): it enters by a store of its own, a look whether
//! the loan still stands, and a fence for the compiler between the two. Whoever else comes takes the lock, ends the loan, makes the
//! borrower's processor fence (`membarrier`), and waits for it to leave. Each loan makes the next one harder to get.
//!
//! A borrower that is held up between its first look and its store may store at any time later. It stores into a place that no
//! other live thread ever has, finds the loan ended, and takes the store back: nobody is misled. A value has few such places, and the
//! first threads that earn a loan keep them for as long as the value exists; others use the lock.

use crate::barrier::Pairing;
use crate::futex;
use crate::lock::{Lock, SPINS};
use crate::sync::{AtomicU32, AtomicUsize, Ordering, spin};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

#[cfg(all(test, not(loom)))]
mod tests;

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

/// The owner of a value for one thread that nobody has used yet.
const NOBODY: usize = 0;
/// Bit of the owner: the value is for many threads. Without more, nobody has it on loan.
const MANY: usize = 1;
/// Above it stands the number of the loan, and above that the owner's token, which is a multiple of [`ALIGNMENT`].
const LOAN_SHIFT: u32 = 1;
const ALIGNMENT: usize = 8;
/// Loan number 0 is no loan.
const LOANS: usize = (ALIGNMENT >> LOAN_SHIFT) - 1;
/// What stands below the token of a thread that a value belongs to.
const ONE_THREAD: usize = 0;

/// Entries in a row for the first loan, by how much each loan raises the number, and the most that it comes to: the end of a loan
/// takes some microseconds, so that loans which do not pay cost a few percent at first and nothing in the long run.
const FIRST_STREAK: u32 = if cfg!(loom) { 1 } else { 256 };
const HARDER: u32 = 4;
const LONGEST_STREAK: u32 = 1 << 20;

/// What decides about loans; used by whoever has the value.
struct Habit {
    last: AtomicUsize,
    streak: AtomicU32,
    wanted: AtomicU32,
}

/// A value behind the lock, with the thread that uses it alone, or belonging to one thread.
pub struct Guarded<T> {
    owner: AtomicUsize,
    /// Where a thread says that it is inside, by what stands in `owner` below its token. Not all of them are used: a number that
    /// needs no more than the token taken away is worth their bytes.
    inside: [AtomicU32; ALIGNMENT],
    /// Whose the loans are; changed under the lock, once. A thread that comes after its end may have the same token.
    tokens: [AtomicUsize; LOANS],
    lock: Lock,
    /// Somebody waits for a borrower to leave.
    recalling: AtomicU32,
    pairing: Pairing,
    habit: Habit,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, and there is at most one. The holder of the lock has seen, since it has the
// lock, that there is no loan, or has ended it and waited for the borrower to leave; only it can make another. A borrower and the
// one thread that a value belongs to have their place, which says whether there is a guard.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// A value for many threads; [`Guard::hand_over`] may restrict it.
    pub fn new(value: T, pairing: Pairing) -> Self {
        let (last, streak) = (AtomicUsize::new(NOBODY), AtomicU32::new(0));
        Self {
            owner: AtomicUsize::new(MANY),
            inside: std::array::from_fn(|_| AtomicU32::new(0)),
            tokens: std::array::from_fn(|_| AtomicUsize::new(NOBODY)),
            lock: Lock::new(),
            recalling: AtomicU32::new(0),
            pairing,
            habit: Habit { last, streak, wanted: AtomicU32::new(FIRST_STREAK) },
            value: UnsafeCell::new(value),
        }
    }

    /// Access to the value where it costs least: if it is this thread's, or on loan to it.
    ///
    /// # Errors
    ///
    /// It is not, or this thread has a guard already: [`Guarded::enter`] says how it stands, once [`Outside`] has been dropped.
    #[inline(always)]
    pub fn enter_at_once(&self) -> Result<Guard<'_, T>, Outside<'_, T>> {
        let owner = self.owner.load(Ordering::Relaxed);
        // What stands below the token, if the token is this thread's.
        let number = owner ^ thread_token();
        if number >= ALIGNMENT {
            return Err(Outside::default());
        }
        self.enter_own(owner, number).unwrap_or_else(|WrongThread| Err(Outside::default()))
    }

    /// The way in for the thread that `owner` names, with `number` below its token. Outside: it is not its any more.
    #[inline(always)]
    fn enter_own(&self, owner: usize, number: usize) -> Result<Result<Guard<'_, T>, Outside<'_, T>>, WrongThread> {
        let inside = &self.inside[number];
        // Acquire: a thread that has ended and had the same token is done.
        if inside.load(Ordering::Acquire) != 0 {
            return Err(WrongThread);
        }
        inside.store(1, Ordering::Relaxed);
        // Either this thread sees that its loan has ended, or whoever ends it sees this thread inside.
        Pairing::Asymmetric.light();
        let is_still = self.owner.load(Ordering::Acquire) == owner;
        let guard = self.guard(Some(inside));
        Ok(if is_still { Ok(guard) } else { Err(guard.outside()) })
    }

    /// Whether somebody has a guard, as it seemed a moment ago: a hint.
    pub fn is_busy(&self) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        self.lock.is_held() || owner != MANY && self.place(owner).load(Ordering::Relaxed) != 0
    }

    /// Access to the value.
    ///
    /// # Errors
    ///
    /// The value belongs to one thread and this is another; or this one has a guard that is not the lock's. With a guard a thread
    /// must not enter again: it could wait for itself.
    #[inline(always)]
    pub fn enter(&self) -> Result<Guard<'_, T>, WrongThread> {
        let me = thread_token();
        let owner = self.owner.load(Ordering::Relaxed);
        let number = owner ^ me;
        if number < ALIGNMENT {
            if let Ok(guard) = self.enter_own(owner, number)? {
                return Ok(guard);
            }
        } else if owner == MANY {
            self.lock.acquire(self.pairing);
            // Acquire: pairs with `hand_over`.
            if self.owner.load(Ordering::Acquire) == MANY {
                return Ok(self.admit(me));
            }
            self.lock.release(self.pairing);
        }
        self.enter_anew(me)
    }

    /// Where an owner says that it is inside.
    #[inline(always)]
    fn place(&self, owner: usize) -> &AtomicU32 {
        &self.inside[owner % ALIGNMENT]
    }

    fn guard<'a>(&'a self, inside: Option<&'a AtomicU32>) -> Guard<'a, T> {
        Guard { guarded: self, inside, here: PhantomData }
    }

    /// The way in where the value is on another's loan, new to its one thread, or just changing hands.
    #[cold]
    fn enter_anew(&self, me: usize) -> Result<Guard<'_, T>, WrongThread> {
        loop {
            if self.owner.load(Ordering::Relaxed) & MANY == 0 {
                // Acquire and release order this after `hand_over`, and a second candidate after the first.
                match self.owner.compare_exchange(NOBODY, me, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return self.enter(),
                    Err(owner) if owner & MANY != 0 => {}
                    Err(owner) => return if owner == me { self.enter() } else { Err(WrongThread) },
                }
            }
            self.lock.acquire(self.pairing);
            let owner = self.owner.load(Ordering::Acquire);
            if owner == MANY || self.recall(owner) {
                return Ok(self.admit(me));
            }
            self.lock.release(self.pairing);
        }
    }

    /// Ends a loan; with the lock held. False: the value belongs to one thread now.
    fn recall(&self, owner: usize) -> bool {
        owner & MANY != 0 && self.evict(owner)
    }

    /// Has the thread that `owner` names enter as all others do, and waits until it is outside; with the lock held. False: the
    /// value has changed hands meanwhile.
    fn evict(&self, owner: usize) -> bool {
        self.recalling.store(1, Ordering::Relaxed);
        // The borrower may be handing the value over: what it says counts.
        let _ = self.owner.compare_exchange(owner, MANY, Ordering::Relaxed, Ordering::Relaxed);
        Pairing::Asymmetric.heavy_here();
        let inside = self.place(owner);
        // Acquire: what the borrower wrote.
        let is_inside = || inside.load(Ordering::Acquire) != 0;
        let has_left = (0..SPINS).any(|_| {
            spin();
            !is_inside()
        });
        while !has_left && is_inside() {
            futex::wait(inside, 1, futex::LIMIT);
        }
        self.recalling.store(0, Ordering::Relaxed);
        self.owner.load(Ordering::Acquire) == MANY
    }

    /// Access to a value whoever it belongs to, for a thread that ends its use. Where it belongs to another thread, that thread is
    /// waited for while it is inside; from then on the value is for many threads. `is_meant` looks whether it still is the value
    /// that was meant: where it is not, its owner keeps it.
    ///
    /// A thread that is held up at the door may write to the place of one-thread owners at any time later, so that the value must
    /// not belong to one thread again.
    #[cold]
    pub fn seize(&self, is_meant: impl FnOnce(&T) -> bool) -> Option<Guard<'_, T>> {
        let me = thread_token();
        loop {
            let owner = self.owner.load(Ordering::Relaxed);
            if owner == me {
                match self.enter_own(owner, ONE_THREAD) {
                    Ok(Ok(guard)) => return is_meant(&guard).then_some(guard),
                    // Another thread has just seized it.
                    Ok(Err(_)) => continue,
                    // It is inside already: it would wait for itself.
                    Err(WrongThread) => return None,
                }
            }
            self.lock.acquire(self.pairing);
            let owner = self.owner.load(Ordering::Acquire);
            if owner == me || owner != MANY && !self.evict(owner) {
                self.lock.release(self.pairing);
                continue;
            }
            let guard = self.guard(None);
            if !is_meant(&guard) {
                // Release: the owner sees what this thread saw.
                self.owner.store(owner, Ordering::Release);
                return None;
            }
            return Some(guard);
        }
    }

    /// A borrower leaves, or a thread whose value it is.
    #[inline(always)]
    fn leave(&self, inside: &AtomicU32) {
        // Release: publishes what it wrote to whoever recalls the value.
        inside.store(0, Ordering::Release);
        // Either this side sees that it is waited for, or the other that it has left.
        Pairing::Asymmetric.light();
        if self.recalling.load(Ordering::Relaxed) != 0 {
            wake(inside);
        }
    }

    /// A guard for the holder of the lock: a loan, if it has come often enough without another in between.
    #[inline(always)]
    fn admit(&self, me: usize) -> Guard<'_, T> {
        let habit = &self.habit;
        let is_again = habit.last.load(Ordering::Relaxed) == me;
        let streak = if is_again { habit.streak.load(Ordering::Relaxed).wrapping_add(1) } else { 0 };
        habit.last.store(me, Ordering::Relaxed);
        habit.streak.store(streak, Ordering::Relaxed);
        if streak >= habit.wanted.load(Ordering::Relaxed) { self.lend(me) } else { self.guard(None) }
    }

    /// Puts a loan in the place of the lock, where the kernel can end it and there is a place for the thread.
    #[cold]
    fn lend(&self, me: usize) -> Guard<'_, T> {
        let habit = &self.habit;
        habit.streak.store(0, Ordering::Relaxed);
        let has = |token: usize| self.tokens.iter().position(|own| own.load(Ordering::Relaxed) == token);
        let at = has(me).or_else(|| has(NOBODY));
        let (Some(at), Pairing::Asymmetric) = (at, self.pairing) else { return self.guard(None) };
        let harder = habit.wanted.load(Ordering::Relaxed).saturating_mul(HARDER);
        habit.wanted.store(harder.min(LONGEST_STREAK), Ordering::Relaxed);
        let owner = me | (at + 1) << LOAN_SHIFT | MANY;
        let inside = self.place(owner);
        self.tokens[at].store(me, Ordering::Relaxed);
        inside.store(1, Ordering::Relaxed);
        self.owner.store(owner, Ordering::Relaxed);
        // The next holder waits for this thread to be outside.
        self.lock.release_at_once(self.pairing);
        self.guard(Some(inside))
    }
}

/// Wakes whoever waits until this thread is outside. Apart from the way out, which needs no registers without it.
#[cold]
#[inline(never)]
fn wake(inside: &AtomicU32) {
    futex::wake_one(inside);
}

/// A number that no other live thread has, a multiple of [`ALIGNMENT`]: the thread pointer, which points to itself and which one
/// instruction reads. A thread-local's address would cost a call in a shared library.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(loom)))]
#[inline(always)]
fn thread_token() -> usize {
    let token: usize;
    // SAFETY: the psABI of x86-64 puts the thread control block's own address at offset 0 of the segment `fs`.
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) token, options(nostack, readonly, preserves_flags)) };
    token
}

/// A number that no other live thread has, a multiple of [`ALIGNMENT`]: the address of a thread-local.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri), not(loom))))]
#[inline(always)]
fn thread_token() -> usize {
    #[repr(align(8))]
    struct Token(#[expect(dead_code, reason = "its address is all that counts, and nothing has none")] u8);
    const { assert!(align_of::<Token>() == ALIGNMENT) };
    #[cfg(not(loom))]
    thread_local!(static TOKEN: Token = const { Token(0) });
    #[cfg(loom)]
    loom::thread_local!(static TOKEN: Token = Token(0));
    TOKEN.with(|token| std::ptr::from_ref(token).addr())
}

/// Access to a [`Guarded`] value until dropped.
pub struct Guard<'a, T> {
    guarded: &'a Guarded<T>,
    /// Where this thread says that it is inside; none: it holds the lock.
    inside: Option<&'a AtomicU32>,
    /// A guard stays on its thread.
    here: PhantomData<*mut ()>,
}

/// A thread that has no access to a value. It may still have to leave its door, and does so when this is dropped: passed on to where
/// the long way begins, it costs the fast path nothing.
#[must_use = "the door is left when this is dropped"]
pub struct Outside<'a, T>(#[expect(dead_code, reason = "its drop is all that it is for")] Option<Guard<'a, T>>);

impl<T> Default for Outside<'_, T> {
    /// Of a thread that has not been at the door.
    #[inline(always)]
    fn default() -> Self {
        Self(None)
    }
}

impl<'a, T> Guard<'a, T> {
    /// Gives up the access, when the result is dropped.
    #[inline(always)]
    pub fn outside(self) -> Outside<'a, T> {
        Outside(Some(self))
    }
}

impl<T> Guard<'_, T> {
    /// Gives the value back, from now on to be used as `threading` says. This guard is the only one, so whoever enters later
    /// finds the new rule.
    pub fn hand_over(self, threading: Threading) {
        let Guarded { owner, inside: places, lock, pairing, habit, .. } = self.guarded;
        habit.last.store(NOBODY, Ordering::Relaxed);
        habit.wanted.store(FIRST_STREAK, Ordering::Relaxed);
        let next = match threading {
            Threading::Many => MANY,
            Threading::One => NOBODY,
        };
        let first = &places[ONE_THREAD];
        // The next owner may be another thread, at once, and have the first place.
        if self.inside.is_some_and(|inside| std::ptr::eq(inside, first)) {
            first.store(0, Ordering::Relaxed);
        }
        // Release: publishes the value to whoever enters next.
        owner.store(next, Ordering::Release);
        match self.inside {
            // Whoever recalls the value comes after the new rule.
            Some(inside) if !std::ptr::eq(inside, first) => self.guarded.leave(inside),
            // Whoever seizes the value may wait for the first place.
            Some(_) => {
                Pairing::Asymmetric.light();
                if self.guarded.recalling.load(Ordering::Relaxed) != 0 {
                    futex::wake_one(first);
                }
            }
            None => lock.release(*pairing),
        }
        std::mem::forget(self);
    }
}

/// Access to what a [`Guarded`] option has, until dropped.
pub struct SomeGuard<'a, T> {
    guard: Guard<'a, Option<T>>,
}

impl<'a, T> Guard<'a, Option<T>> {
    /// Access to the value in the option; none when there is none.
    #[inline(always)]
    pub fn some(self) -> Option<SomeGuard<'a, T>> {
        self.some_or_outside().ok()
    }

    /// As [`Guard::some`].
    ///
    /// # Errors
    ///
    /// There is none.
    #[inline(always)]
    pub fn some_or_outside(self) -> Result<SomeGuard<'a, T>, Outside<'a, Option<T>>> {
        if self.is_some() { Ok(SomeGuard { guard: self }) } else { Err(self.outside()) }
    }
}

impl<'a, T> SomeGuard<'a, T> {
    /// As [`Guard::outside`].
    #[inline(always)]
    pub fn outside(self) -> Outside<'a, Option<T>> {
        self.guard.outside()
    }
}

impl<T> Deref for SomeGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `some` has found a value, and nobody else reaches the option as long as this has the guard.
        unsafe { self.guard.as_ref().unwrap_unchecked() }
    }
}

impl<T> DerefMut for SomeGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { self.guard.as_mut().unwrap_unchecked() }
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
        match self.inside {
            Some(inside) => self.guarded.leave(inside),
            None => self.guarded.lock.release(self.guarded.pairing),
        }
    }
}
