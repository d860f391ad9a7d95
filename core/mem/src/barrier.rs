//! An asymmetric fence: the frequent side pays nothing, the rare side pays for both.
//!
//! `light` stands between a store and a load of the frequent side (a sender: publish, then look whether the
//! receiver sleeps). `heavy` stands between a store and a load of the rare side (a sleeper: announce the
//! sleep, then look once more). Together they forbid that both miss the other's store. `heavy` is
//! `membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)`, which reaches every process that has called [`prepare`].
//! Where the kernel refuses it, both sides use a full fence; the two processes of a lane agree on that in
//! their handshake.

use crate::sync::{Ordering, fence};

/// How a pair orders its stores and loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// The rare side runs `membarrier`; the frequent side only stops the compiler.
    Asymmetric,
    /// Both sides run a full fence.
    Symmetric,
}

/// Registers this process for the heavy fence of others and of itself. `Asymmetric` when the kernel can.
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
        fence(Ordering::SeqCst);
        if self == Self::Asymmetric {
            sys::heavy();
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
        if membarrier(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
            && membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED)
        {
            Pairing::Asymmetric
        } else {
            Pairing::Symmetric
        }
    }

    pub(super) fn heavy() {
        // It cannot fail once `prepare` has succeeded: the kernel keeps the registration until exec.
        let done = membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED);
        debug_assert!(done);
    }
}

/// Models only: the calling thread stops running. A thread that `heavy` of another waits for calls this at its end.
#[cfg(loom)]
pub fn leave() {
    sys::leave();
}

/// `membarrier` between two threads of a model, of which one asks. The kernel interrupts the other side anywhere; here it is
/// interrupted where it calls `light`, if it has heard of the question by then, and when it leaves the processor.
#[cfg(loom)]
mod sys {
    use super::Pairing;
    use crate::sync::{AtomicU32, Ordering, fence, spin};

    loom::lazy_static! {
        static ref ASKED: AtomicU32 = AtomicU32::new(0);
        static ref ANSWERED: AtomicU32 = AtomicU32::new(0);
    }

    pub(super) fn prepare() -> Pairing {
        Pairing::Symmetric
    }

    pub(super) fn light() {
        // An interrupt is an order of its own: whoever serves it sees what the asking side did before.
        let asked = ASKED.load(Ordering::Acquire);
        if asked > ANSWERED.load(Ordering::Relaxed) {
            fence(Ordering::SeqCst);
            ANSWERED.store(asked, Ordering::Release);
        }
    }

    pub(super) fn heavy() {
        let asked = ASKED.load(Ordering::Relaxed) + 1;
        ASKED.store(asked, Ordering::Release);
        while ANSWERED.load(Ordering::Acquire) < asked {
            spin();
        }
        fence(Ordering::SeqCst);
    }

    pub(super) fn leave() {
        fence(Ordering::SeqCst);
        ANSWERED.store(u32::MAX, Ordering::Release);
    }
}
