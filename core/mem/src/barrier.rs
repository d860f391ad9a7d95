//! An asymmetric fence: the frequent side pays nothing, the rare side pays for both.
//!
//! `light` stands between a store and a load of the frequent side (a sender: publish, then check
//! whether the receiver sleeps). `heavy` stands between a store and a load of the rare side (a
//! sleeper: announce the sleep, then check once more). Together they forbid that both miss the
//! other's store. `heavy` is `membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)`, which reaches every
//! process that has called [`prepare`]; `heavy_here` its private sister, which leaves other
//! processes alone. Where the kernel refuses them, both sides use a full fence; the two processes
//! of a lane agree on that in their handshake.

use crate::cancellation::Uncancelled;
use crate::sync::{Ordering, fence};
use std::time::Duration;

/// Stores leave a processor's buffer within microseconds.
const STORES_ARE_SEEN: Duration = Duration::from_millis(10);

/// How a pair orders its stores and loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// The rare side runs `membarrier`; the frequent side only stops the compiler.
    Asymmetric,
    /// Both sides run a full fence.
    Symmetric,
}

/// Registers this process for the heavy fence of others and of itself. `Asymmetric` when the kernel
/// can.
#[must_use]
pub fn prepare() -> Pairing {
    sys::prepare()
}

impl Pairing {
    /// The frequent side's fence.
    #[inline(always)]
    pub fn light(self) {
        if self == Self::Symmetric {
            fence(Ordering::SeqCst);
        } else {
            sys::light();
        }
    }

    /// The rare side's fence.
    pub fn heavy(self) {
        self.heavy_by(sys::heavy);
    }

    /// The rare side's fence of a pair within one process.
    pub fn heavy_here(self) {
        self.heavy_by(sys::heavy_here);
    }

    /// A filter of system calls that the program has set up since [`prepare`] may refuse the
    /// kernel's fence: then a sleep takes its place, many times as long as any store takes to be
    /// seen.
    fn heavy_by(self, heavy: impl FnOnce() -> bool) {
        fence(Ordering::SeqCst);
        if self == Self::Asymmetric && !heavy() {
            // A sleep is a cancellation point.
            let _uncancelled = Uncancelled::new();
            std::thread::sleep(STORES_ARE_SEEN);
            fence(Ordering::SeqCst);
        }
    }
}

#[cfg(not(loom))]
#[allow(unsafe_code)]
mod sys {
    use super::Pairing;
    use std::sync::atomic::{Ordering, compiler_fence};

    #[inline(always)]
    pub(super) fn light() {
        compiler_fence(Ordering::SeqCst);
    }

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier takes two integers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub(super) fn prepare() -> Pairing {
        // Miri does not imitate this call.
        let can = !cfg!(miri)
            && membarrier(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
            && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
            && heavy()
            && heavy_here();
        if can { Pairing::Asymmetric } else { Pairing::Symmetric }
    }

    /// False: refused.
    pub(super) fn heavy() -> bool {
        membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED)
    }

    /// The same for this process alone.
    pub(super) fn heavy_here() -> bool {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }
}

/// Models only: the calling thread stops running. A thread that `heavy` of another waits for calls
/// this at its end.
#[cfg(loom)]
pub fn leave() {
    sys::leave();
}

/// Models only: runs `sleep`, in which the calling thread blocks and needs no interrupt.
#[cfg(loom)]
pub fn while_blocked(sleep: impl FnOnce()) {
    sys::while_blocked(sleep);
}

/// Models only: the kernel's fence does nothing in this model.
#[cfg(loom)]
pub fn break_heavy() {
    sys::break_heavy();
}

/// `membarrier` between two threads of a model. The kernel interrupts the other side anywhere; here
/// it is interrupted where it calls `light` or `heavy`, if it has read the request by then. A
/// thread sleeps and ends with a full fence.
#[cfg(loom)]
mod sys {
    use super::Pairing;
    use crate::sync::{AtomicBool, AtomicU32, Ordering, fence, spin};

    loom::lazy_static! {
        static ref ASKED: AtomicU32 = AtomicU32::new(0);
        static ref ANSWERED: AtomicU32 = AtomicU32::new(0);
        static ref BLOCKED: AtomicU32 = AtomicU32::new(0);
        static ref BROKEN: AtomicBool = AtomicBool::new(false);
    }

    pub(super) fn prepare() -> Pairing {
        Pairing::Symmetric
    }

    pub(super) fn light() {
        // An interrupt is an order of its own: whoever serves it sees what the asking side did
        // before.
        let (asked, answered) = (ASKED.load(Ordering::Acquire), ANSWERED.load(Ordering::Relaxed));
        if asked > answered {
            fence(Ordering::SeqCst);
            // Not answered if the other side has changed it meanwhile: then it has left, or is
            // interrupted later.
            let _ = ANSWERED.compare_exchange(answered, asked, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Changes a number in one step; the new one. Loom's other steps may read what stood before the
    /// last change.
    fn change(number: &AtomicU32, next: impl Fn(u32) -> u32) -> u32 {
        let mut now = 0;
        loop {
            match number.compare_exchange(now, next(now), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return next(now),
                Err(other) => now = other,
            }
        }
    }

    pub(super) fn heavy() -> bool {
        if BROKEN.load(Ordering::Relaxed) {
            return true;
        }
        let asked = change(&ASKED, |asked| asked + 1);
        // Serves what the other side has asked before.
        fence(Ordering::SeqCst);
        if asked > 1 {
            change(&ANSWERED, |answered| answered.max(asked - 1));
        }
        while ANSWERED.load(Ordering::Acquire) < asked && BLOCKED.load(Ordering::Acquire) == 0 {
            spin();
            // A question of the other side that comes meanwhile comes after this one, and answers
            // it.
            let other = ASKED.load(Ordering::Acquire);
            if other > asked {
                fence(Ordering::SeqCst);
                change(&ANSWERED, |answered| answered.max(other));
            }
        }
        fence(Ordering::SeqCst);
        true
    }

    pub(super) fn heavy_here() -> bool {
        heavy()
    }

    pub(super) fn leave() {
        fence(Ordering::SeqCst);
        change(&ANSWERED, |_| u32::MAX);
    }

    pub(super) fn while_blocked(sleep: impl FnOnce()) {
        fence(Ordering::SeqCst);
        // One may sleep before the other one, which it has been woken by, has left its sleep.
        change(&BLOCKED, |blocked| blocked + 1);
        sleep();
        change(&BLOCKED, |blocked| blocked.wrapping_sub(1));
        fence(Ordering::SeqCst);
    }

    pub(super) fn break_heavy() {
        BROKEN.store(true, Ordering::Relaxed);
    }
}
