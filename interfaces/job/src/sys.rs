//! The unsafe code of the crate: a descriptor that the environment names, and for tests a signal.

#![allow(unsafe_code)]

use cci_mem::descriptors;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Takes an open descriptor over as a new one, which no program that this process starts inherits,
/// and has the old one inherited no more either.
pub(crate) fn take(descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: the caller has seen the descriptor open; should another thread close it meanwhile,
    // both calls are refused or duplicate another one, and neither touches memory.
    let inherited = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(descriptors::take_over(inherited)?)
}

/// What this returns has been done with SIGPIPE blocked, and whether the thread was sent one.
#[cfg(test)]
pub(crate) fn sigpipe_of<R>(work: impl FnOnce() -> R) -> (R, bool) {
    let mut signals = std::mem::MaybeUninit::uninit();
    // SAFETY: sets of signals of this function's own.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), std::ptr::null_mut());
    }
    let done = work();
    let mut pending = std::mem::MaybeUninit::uninit();
    // SAFETY: the call fills the set in.
    let was_sent = unsafe {
        libc::sigpending(pending.as_mut_ptr());
        libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1
    };
    (done, was_sent)
}

/// Runs this in a thread that is of another user from now on. `None`: this user may not.
#[cfg(test)]
pub(crate) fn as_another_user<T>(run: impl FnOnce() -> T) -> Option<T> {
    const NOBODY: libc::uid_t = 65_534;
    // SAFETY: the bare system call changes this thread alone, and takes no memory.
    let is_other = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) } == 0;
    is_other.then(run)
}
