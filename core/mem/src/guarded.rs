//! A value behind a biased lock, or a value that belongs to one thread.
//!
//! One thread uses most values that many threads may use. The lock's one instruction would cost
//! that thread more than itself: the instruction waits until all earlier stores have left the
//! processor, and some of them go to cache lines of a peer. So a thread gets the *bias* once it has
//! entered often enough without another thread in between. The biased owner enters by a store to
//! its owner slot and a load of the owner word, with a compiler fence between. Another thread
//! *revokes* the bias: it takes the lock, clears the owner word, makes the owner's processor fence
//! (`membarrier`), and waits until the owner slot is empty. Each bias makes the next one harder to
//! earn.
//!
//! The system may suspend an owner between its first load and its store, so the store may follow
//! the revocation. The store goes to an owner slot that no other live thread uses. The owner then
//! finds the bias revoked and clears the slot again, so nobody is misled. A value has few owner
//! slots. The first threads that earn a bias keep them as long as the value exists; others use the
//! lock.

use crate::barrier::Pairing;
use crate::futex;
use crate::lock::{Lock, SPINS};
use crate::sync::{AtomicU32, AtomicUsize, Ordering, own_acquire, spin};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

mod sleepers;
#[cfg(all(test, not(loom)))]
mod tests;

pub use sleepers::Sleepers;

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

/// The owner word of a value for one thread that no thread has used yet.
const NOBODY: usize = 0;
/// Bit of the owner word: the value is for many threads. With no other bit set, no thread has the
/// bias.
const MANY: usize = 1;
/// The bias number stands above [`MANY`], and above it the owner's token, which is a multiple of
/// [`ALIGNMENT`].
const BIAS_SHIFT: u32 = 1;
const ALIGNMENT: usize = 8;
/// How many threads may ever have the bias; bias number 0 means none.
const BIASED_OWNERS: usize = (ALIGNMENT >> BIAS_SHIFT) - 1;
/// The owner slot of a thread that a value belongs to.
const ONE_THREAD: usize = 0;

/// Consecutive entries that earn the first bias.
const FIRST_STREAK: u32 = if cfg!(loom) { 1 } else { 256 };
/// The factor by which each bias raises that number. A revocation takes some microseconds: a bias
/// that does not pay costs a few percent at first, and nothing in the long run.
const STREAK_FACTOR: u32 = 4;
/// The most consecutive entries that a bias may need.
const LONGEST_STREAK: u32 = 1 << 20;

/// Decides when a thread earns the bias; used by the thread that has the value.
struct BiasPolicy {
    last: AtomicUsize,
    streak: AtomicU32,
    needed: AtomicU32,
}

/// A value behind a biased lock, or a value that belongs to one thread.
pub struct Guarded<T> {
    owner: AtomicUsize,
    /// Owner slots, indexed by the bits of `owner` below the token: not 0 while that owner has a
    /// guard. Not all are used. Their bytes pay for an index that costs one subtraction.
    slots: [AtomicU32; ALIGNMENT],
    /// The threads that own the slots of biases; each changes once, under the lock. A later thread
    /// may have an ended thread's token.
    tokens: [AtomicUsize; BIASED_OWNERS],
    lock: Lock,
    /// Not 0 while a thread waits for an owner to leave.
    revoking: AtomicU32,
    pairing: Pairing,
    policy: BiasPolicy,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, and there is at most one. The holder of the
// lock has found no bias, or has revoked it and waited for its owner to leave; only the holder can
// grant another. A biased owner, and the one thread that a value belongs to, mark in their owner
// slot whether they have a guard.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// A value for many threads; [`Guard::hand_over`] may restrict it.
    pub fn new(value: T, pairing: Pairing) -> Self {
        let (last, streak) = (AtomicUsize::new(NOBODY), AtomicU32::new(0));
        Self {
            owner: AtomicUsize::new(MANY),
            slots: std::array::from_fn(|_| AtomicU32::new(0)),
            tokens: std::array::from_fn(|_| AtomicUsize::new(NOBODY)),
            lock: Lock::new(),
            revoking: AtomicU32::new(0),
            pairing,
            policy: BiasPolicy { last, streak, needed: AtomicU32::new(FIRST_STREAK) },
            value: UnsafeCell::new(value),
        }
    }

    /// Access to the value by the fast path: if it belongs to this thread, or this thread has the
    /// bias.
    ///
    /// # Errors
    ///
    /// Neither holds, or this thread has a guard already. [`Guarded::enter`] tells which, once
    /// [`Outside`] has been dropped.
    #[inline(always)]
    pub fn enter_at_once(&self) -> Result<Guard<'_, T>, Outside<'_, T>> {
        let owner = self.owner.load(Ordering::Relaxed);
        // The owner slot, if the token is this thread's.
        let number = owner ^ thread_token();
        if number >= ALIGNMENT {
            return Err(Outside::default());
        }
        self.enter_own(owner, number).unwrap_or_else(|WrongThread| Err(Outside::default()))
    }

    /// Enters as the thread that `owner` names, by the owner slot `number`. Outside: another thread
    /// has revoked its right.
    #[inline(always)]
    fn enter_own(&self, owner: usize, number: usize) -> Result<Result<Guard<'_, T>, Outside<'_, T>>, WrongThread> {
        let (slot, is_still) = self.mark_own(owner, number)?;
        let guard = self.guard(Some(slot));
        Ok(if is_still { Ok(guard) } else { Err(guard.outside()) })
    }

    /// Sets the owner slot `number` of the thread that `owner` names. False: another thread has
    /// revoked its right.
    #[inline(always)]
    fn mark_own(&self, owner: usize, number: usize) -> Result<(&AtomicU32, bool), WrongThread> {
        let slot = &self.slots[number];
        // Acquire: pairs with the last exit of an ended thread that had the same token.
        if own_acquire(slot) != 0 {
            return Err(WrongThread);
        }
        slot.store(1, Ordering::Relaxed);
        // Either this thread sees the revocation, or the revoking thread sees the owner slot.
        Pairing::Asymmetric.light();
        Ok((slot, self.owner.load(Ordering::Acquire) == owner))
    }

    /// Whether a thread has a guard: a hint, since it may change at once.
    pub fn is_busy(&self) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        self.lock.is_held() || owner != MANY && self.owner_slot(owner).load(Ordering::Relaxed) != 0
    }

    /// Access to the value.
    ///
    /// # Errors
    ///
    /// The value belongs to another thread, or this thread has a guard already without the lock. A
    /// thread with a guard must not enter again: it could wait for itself.
    #[inline(always)]
    pub fn enter(&self) -> Result<Guard<'_, T>, WrongThread> {
        let me = thread_token();
        let owner = self.owner.load(Ordering::Relaxed);
        let number = owner ^ me;
        if number < ALIGNMENT {
            let (slot, is_still) = self.mark_own(owner, number)?;
            if is_still {
                return Ok(self.guard(Some(slot)));
            }
            self.leave(slot);
        } else if owner == MANY {
            self.lock.acquire(self.pairing);
            // Acquire: pairs with `hand_over`.
            if self.owner.load(Ordering::Acquire) == MANY {
                return Ok(self.guard(self.admit(me)));
            }
            self.lock.release(self.pairing);
        }
        Ok(self.guard(self.enter_slow(me)?))
    }

    /// The owner slot that an owner word names.
    #[inline(always)]
    fn owner_slot(&self, owner: usize) -> &AtomicU32 {
        &self.slots[owner % ALIGNMENT]
    }

    fn guard<'a>(&'a self, slot: Option<&'a AtomicU32>) -> Guard<'a, T> {
        Guard { guarded: self, slot, here: PhantomData }
    }

    /// Enters by the slow path: another thread has the bias, no thread has claimed the value yet,
    /// or it is being handed over. Returns what [`Guard::slot`] is: a guard would come back in
    /// memory, and the fast path would write its own there too.
    #[cold]
    #[inline(never)]
    fn enter_slow(&self, me: usize) -> Result<Option<&AtomicU32>, WrongThread> {
        loop {
            if self.owner.load(Ordering::Relaxed) & MANY == 0 {
                // Acquire and release order this after `hand_over`, and a second candidate after
                // the first.
                match self.owner.compare_exchange(NOBODY, me, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return self.enter().map(Guard::into_slot),
                    Err(owner) if owner & MANY != 0 => {}
                    Err(owner) if owner == me => return self.enter().map(Guard::into_slot),
                    Err(_) => return Err(WrongThread),
                }
            }
            self.lock.acquire(self.pairing);
            let owner = self.owner.load(Ordering::Acquire);
            if owner == MANY || self.revoke_bias(owner) {
                return Ok(self.admit(me));
            }
            self.lock.release(self.pairing);
        }
    }

    /// Revokes the bias; with the lock held. False: the value belongs to one thread now.
    fn revoke_bias(&self, owner: usize) -> bool {
        owner & MANY != 0 && self.revoke(owner)
    }

    /// Revokes the right of the thread that `owner` names to enter without the lock, and waits
    /// until that thread has left; with the lock held. False: the owner has handed the value over
    /// meanwhile.
    fn revoke(&self, owner: usize) -> bool {
        self.revoking.store(1, Ordering::Relaxed);
        // The owner may be handing the value over: then its store stays.
        let _ = self.owner.compare_exchange(owner, MANY, Ordering::Relaxed, Ordering::Relaxed);
        Pairing::Asymmetric.heavy_here();
        let slot = self.owner_slot(owner);
        // Acquire: pairs with `leave`, after the owner's last write.
        let is_inside = || slot.load(Ordering::Acquire) != 0;
        let has_left = (0..SPINS).any(|_| {
            spin();
            !is_inside()
        });
        while !has_left && is_inside() {
            futex::wait(slot, 1, futex::LIMIT);
        }
        self.revoking.store(0, Ordering::Relaxed);
        self.owner.load(Ordering::Acquire) == MANY
    }

    /// Access to a value that may belong to another thread, for a thread that ends its use. Waits
    /// until the other thread has left. From then on the value is for many threads. `is_meant`
    /// checks that the value is still the one that was meant; if not, its owner keeps it.
    ///
    /// A thread suspended while it enters may write the owner slot `ONE_THREAD` at any time
    /// later. So the value must not belong to one thread again.
    #[cold]
    pub fn seize(&self, is_meant: impl FnOnce(&T) -> bool) -> Option<Guard<'_, T>> {
        let me = thread_token();
        loop {
            let owner = self.owner.load(Ordering::Relaxed);
            if owner == me {
                match self.enter_own(owner, ONE_THREAD) {
                    Ok(Ok(guard)) => return is_meant(&guard).then_some(guard),
                    // Another thread has seized it meanwhile.
                    Ok(Err(_)) => continue,
                    // This thread has a guard already: it would wait for itself.
                    Err(WrongThread) => return None,
                }
            }
            self.lock.acquire(self.pairing);
            let owner = self.owner.load(Ordering::Acquire);
            if owner == me || owner != MANY && !self.revoke(owner) {
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

    /// Leaves as an owner that entered without the lock.
    #[inline(always)]
    fn leave(&self, slot: &AtomicU32) {
        // Release: publishes the owner's writes to a thread that revokes.
        slot.store(0, Ordering::Release);
        // Either this thread sees that another waits for it, or the other sees the empty owner
        // slot.
        Pairing::Asymmetric.light();
        if self.revoking.load(Ordering::Relaxed) != 0 {
            wake(slot);
        }
    }

    /// What [`Guard::slot`] is for the holder of the lock: with the bias, if this thread has
    /// entered often enough without another in between.
    #[inline(always)]
    fn admit(&self, me: usize) -> Option<&AtomicU32> {
        let policy = &self.policy;
        let is_again = policy.last.load(Ordering::Relaxed) == me;
        let streak = if is_again { policy.streak.load(Ordering::Relaxed).wrapping_add(1) } else { 0 };
        policy.last.store(me, Ordering::Relaxed);
        policy.streak.store(streak, Ordering::Relaxed);
        if streak >= policy.needed.load(Ordering::Relaxed) { self.grant_bias(me) } else { None }
    }

    /// Replaces the lock by the bias, if the kernel can revoke it and the thread has an owner slot
    /// or finds a free one.
    #[cold]
    fn grant_bias(&self, me: usize) -> Option<&AtomicU32> {
        let policy = &self.policy;
        policy.streak.store(0, Ordering::Relaxed);
        let has = |token: usize| self.tokens.iter().position(|own| own.load(Ordering::Relaxed) == token);
        let at = has(me).or_else(|| has(NOBODY));
        let (Some(at), Pairing::Asymmetric) = (at, self.pairing) else { return None };
        let next = policy.needed.load(Ordering::Relaxed).saturating_mul(STREAK_FACTOR);
        policy.needed.store(next.min(LONGEST_STREAK), Ordering::Relaxed);
        let owner = me | (at + 1) << BIAS_SHIFT | MANY;
        let slot = self.owner_slot(owner);
        self.tokens[at].store(me, Ordering::Relaxed);
        slot.store(1, Ordering::Relaxed);
        self.owner.store(owner, Ordering::Relaxed);
        // The next holder waits until this thread has left.
        self.lock.release_at_once(self.pairing);
        Some(slot)
    }
}

/// Wakes the thread that waits until this one has left. Not inlined: `leave` then needs no
/// registers for it.
#[cold]
#[inline(never)]
fn wake(slot: &AtomicU32) {
    futex::wake_one(slot);
}

/// A number that no other live thread has, a multiple of [`ALIGNMENT`]: the thread pointer, which
/// points to itself and which one instruction reads. A thread-local's address would cost a call in
/// a shared library.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(loom)))]
#[inline(always)]
fn thread_token() -> usize {
    let token: usize;
    // SAFETY: the psABI of x86-64 puts the thread control block's own address at offset 0 of the
    // segment `fs`.
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) token, options(nostack, readonly, preserves_flags)) };
    token
}

/// A number that no other live thread has, a multiple of [`ALIGNMENT`]: the address of a
/// thread-local.
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
    /// This thread's owner slot; none: it holds the lock.
    slot: Option<&'a AtomicU32>,
    /// A guard stays on its thread.
    here: PhantomData<*mut ()>,
}

/// A thread that got no access to a value. Its owner slot may still be set; dropping this clears
/// it. Passed on to the start of the slow path, it costs the fast path nothing.
#[must_use = "dropping this clears the owner slot"]
pub struct Outside<'a, T>(#[expect(dead_code, reason = "its drop is all that it is for")] Option<Guard<'a, T>>);

impl<T> Default for Outside<'_, T> {
    /// For a thread that has not set an owner slot.
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

    /// Takes the guard apart; its access goes on.
    fn into_slot(self) -> Option<&'a AtomicU32> {
        let slot = self.slot;
        std::mem::forget(self);
        slot
    }
}

impl<T> Guard<'_, T> {
    /// Returns the value, to be used from now on as `threading` defines. This guard is the only
    /// one, so each later entry follows the new rule.
    pub fn hand_over(self, threading: Threading) {
        let Guarded { owner, slots, lock, pairing, policy, .. } = self.guarded;
        policy.last.store(NOBODY, Ordering::Relaxed);
        policy.needed.store(FIRST_STREAK, Ordering::Relaxed);
        let next = match threading {
            Threading::Many => MANY,
            Threading::One => NOBODY,
        };
        let first = &slots[ONE_THREAD];
        // Another thread may become the next owner at once, with the same owner slot.
        if self.slot.is_some_and(|slot| std::ptr::eq(slot, first)) {
            first.store(0, Ordering::Relaxed);
        }
        // Release: publishes the value to the thread that enters next.
        owner.store(next, Ordering::Release);
        match self.slot {
            // A thread that revokes the bias finds the new rule.
            Some(slot) if !std::ptr::eq(slot, first) => self.guarded.leave(slot),
            // A thread that seizes the value may wait for the first owner slot.
            Some(_) => {
                Pairing::Asymmetric.light();
                if self.guarded.revoking.load(Ordering::Relaxed) != 0 {
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
        // SAFETY: `some` has found a value, and no other thread reaches the option while this has
        // the guard.
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
        match self.slot {
            Some(slot) => self.guarded.leave(slot),
            None => self.guarded.lock.release(self.guarded.pairing),
        }
    }
}
