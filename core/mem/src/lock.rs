//! A lock that is acquired with one locked instruction and released without any.
//!
//! The releasing thread stores and then, after a light fence, checks whether a waiter sleeps. A
//! waiter pays with a heavy fence before it sleeps. A holder may be preempted, so a waiter spins
//! briefly and then sleeps on a futex. The thread that wakes it takes its mark down first: one that
//! acquires and releases the lock many times before the waiter runs makes one system call. The lock
//! is not fair: a thread that releases and acquires it again at once is faster than a waiter that
//! was just woken. So a waiter that was woken in vain a few times asks for a *handoff*: the thread
//! that releases the lock then sleeps until that waiter has it.

use crate::barrier::Pairing;
use crate::futex;
use crate::sync::{AtomicU32, Ordering, spin};
use std::time::Duration;

/// Turns of busy waiting before a waiter sleeps: about a microsecond, longer than any send holds
/// the lock. None in models: loom lets a thread that yields wait for the others, and so would never
/// let it sleep beside a holder.
pub(crate) const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// Wake-ups in vain before a waiter asks for a handoff.
const HANDOFF_AFTER: u32 = if cfg!(loom) { 1 } else { 4 };

/// The longest that a releasing thread waits for a handoff. A waiter that cannot run meanwhile
/// finds the lock free as long as the others sleep. A waiter that is stopped costs each call of the
/// others this time.
const HANDOFF_LIMIT: Duration = Duration::from_millis(1);

/// The bare lock.
pub struct Lock {
    held: AtomicU32,
    /// Waiters past their spinning, asleep or awake.
    waiters: AtomicU32,
    /// Not 0 while a waiter may sleep that nobody has woken; they sleep on it.
    asleep: AtomicU32,
    /// How many waiters have asked for a handoff.
    handoffs: AtomicU32,
}

impl Lock {
    /// Free.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU32::new(0);
        Self { held: zero(), waiters: zero(), asleep: zero(), handoffs: zero() }
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
        // A swap that finds 1 leaves what was there, like a compare-exchange that fails. Models use
        // the latter, because loom lets such a swap come after the store of `release` in the order
        // of changes and yet read what stood before it.
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
        let mut in_vain = 0;
        loop {
            // Anew each time: whoever has woken this thread has taken it down.
            self.asleep.store(1, Ordering::Relaxed);
            // Either the holder sees the mark after it stores 0, or the swap below sees that 0.
            pairing.heavy_here();
            if self.try_take() {
                break;
            }
            if in_vain == HANDOFF_AFTER {
                self.handoffs.fetch_add(1, Ordering::Relaxed);
            }
            futex::wait(&self.asleep, 1, futex::LIMIT);
            in_vain += 1;
        }
        if self.waiters.fetch_sub(1, Ordering::Relaxed) > 1 {
            // The wake-up of this thread has taken down the mark of all; its release wakes the next
            // one.
            self.asleep.store(1, Ordering::Relaxed);
        }
        if in_vain > HANDOFF_AFTER {
            self.handoffs.fetch_sub(1, Ordering::Relaxed);
            futex::wake_all(&self.handoffs);
        }
    }

    /// Whether a thread holds it: a hint, since it may change at once.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) != 0
    }

    /// Releases the lock, first to a waiter that asked for a handoff. Only its holder may.
    #[inline]
    pub fn release(&self, pairing: Pairing) {
        if self.let_go(pairing) {
            self.hand_off();
        }
    }

    /// Wakes a waiter. One whose mark is taken down before it sleeps looks again.
    fn wake_one(&self) {
        self.asleep.store(0, Ordering::Relaxed);
        futex::wake_one(&self.asleep);
    }

    /// Releases the lock without a handoff, for a holder that the next one may wait for. Only its
    /// holder may.
    pub(crate) fn release_at_once(&self, pairing: Pairing) {
        if self.let_go(pairing) {
            self.wake_one();
        }
    }

    /// Frees the lock. Returns whether a thread sleeps until then.
    #[inline(always)]
    fn let_go(&self, pairing: Pairing) -> bool {
        // Publishes what the holder wrote to the next holder.
        self.held.store(0, Ordering::Release);
        pairing.light();
        self.asleep.load(Ordering::Relaxed) != 0
    }

    /// Wakes a waiter, and waits until those that asked for a handoff had the lock.
    #[cold]
    #[inline(never)]
    fn hand_off(&self) {
        self.wake_one();
        let handoffs = self.handoffs.load(Ordering::Relaxed);
        if handoffs != 0 {
            futex::wait(&self.handoffs, handoffs, HANDOFF_LIMIT);
        }
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    /// Long enough for a waiter to sleep, and to be late for each gap.
    const HOLD: Duration = Duration::from_millis(1);
    const MOST_ROUNDS: u32 = 400;

    /// Has this thread run on one processor only.
    fn pin() {
        let allowed = sched_getaffinity(None).expect("the processors of a thread");
        let first = (0..CpuSet::MAX_CPU).find(|&at| allowed.is_set(at)).expect("it runs on one");
        let mut only = CpuSet::new();
        only.set(first);
        sched_setaffinity(None, &only).expect("one of those");
    }

    /// Has this thread take no processor from others when it is woken.
    fn give_others_precedence() {
        // What the system reads is a priority alone; musl's function only refuses.
        let priority: libc::c_int = 0;
        let call = libc::SYS_sched_setscheduler;
        // SAFETY: the priority lives until the call returns.
        assert_eq!(unsafe { libc::syscall(call, 0, libc::SCHED_BATCH, &raw const priority) }, 0);
    }

    /// The holder is hardly ever without the lock, and has the processor whenever it gives it back:
    /// a waiter that is woken there is late.
    #[test]
    fn a_waiter_gets_the_lock_of_one_that_takes_it_again_at_once() {
        let (lock, got) = (Lock::new(), AtomicBool::new(false));
        let pairing = crate::barrier::prepare();
        pin();
        lock.acquire(pairing);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin();
                give_others_precedence();
                lock.acquire(pairing);
                got.store(true, Ordering::Relaxed);
                lock.release(pairing);
            });
            let mut rounds = 0;
            while !got.load(Ordering::Relaxed) && rounds < MOST_ROUNDS {
                let begun = Instant::now();
                while begun.elapsed() < HOLD {
                    std::hint::spin_loop();
                }
                lock.release(pairing);
                lock.acquire(pairing);
                // Only those count in which it waited.
                rounds += u32::from(lock.waiters.load(Ordering::Relaxed) > 0);
            }
            lock.release(pairing);
            assert!(rounds < MOST_ROUNDS, "no handoff reached the waiter");
        });
    }

    /// A waiter that is woken, and does not run yet, costs the holder no further system calls.
    #[test]
    fn one_wake_up_reaches_a_waiter_that_does_not_run_yet() {
        const ROUNDS: u32 = 1_000;
        let lock = Lock::new();
        let pairing = crate::barrier::prepare();
        pin();
        lock.acquire(pairing);
        let wakes = std::thread::scope(|scope| {
            scope.spawn(|| {
                pin();
                give_others_precedence();
                lock.acquire(pairing);
                lock.release(pairing);
            });
            while lock.asleep.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(HOLD);
            }
            // So it sleeps, or is about to.
            std::thread::sleep(HOLD);
            let mut wakes = 0;
            for _ in 0..ROUNDS {
                if lock.let_go(pairing) {
                    lock.wake_one();
                    wakes += 1;
                }
                lock.acquire(pairing);
            }
            lock.release(pairing);
            wakes
        });
        // Whenever it runs in between it may sleep once more.
        assert!(wakes > 0 && wakes < ROUNDS / 10, "{wakes} wake-ups in {ROUNDS} releases");
    }
}
