//! The unsafe code of the crate: a descriptor that the environment names, and for tests a signal
//! and children.

#![allow(unsafe_code)]

use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

/// Takes an open descriptor over as a new one, which no program that this process starts inherits,
/// and has the old one inherited no more either. A forked child closes the old one: its words would
/// come in the midst of the rank's, and the other side would not see the end of the rank.
pub(crate) fn take(descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: the caller has seen the descriptor open; should another thread close it meanwhile,
    // both calls are refused or duplicate another one, and neither touches memory.
    let inherited = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let taken = descriptors::take_over(inherited)?;
    close_in_children(inherited);
    Ok(taken)
}

/// As [`take`], and leaves `/dev/null` in the place of the old descriptor: a second join of this
/// process, or that of a forked child, would speak in the midst of the first one. Where there is no
/// room for that, the old one stays.
pub(crate) fn take_alone(descriptor: i32) -> io::Result<OwnedFd> {
    let taken = take(descriptor)?;
    if let Ok(nothing) = File::open("/dev/null") {
        // SAFETY: the number is open, was given to this library alone, and is never closed here.
        let mut number = ManuallyDrop::new(OwnedFd::from(unsafe { File::from_raw_fd(descriptor) }));
        let _ = descriptors::put(nothing, &mut number);
    }
    Ok(taken)
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

/// Forks a child that runs this and ends; its number.
#[cfg(test)]
pub(crate) fn child(run: impl FnOnce()) -> libc::pid_t {
    // A child that hangs ends by a signal.
    const LIMIT: u32 = 20;
    // SAFETY: the child is a copy of this thread, and ends before it returns.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", io::Error::last_os_error());
    if child == 0 {
        // SAFETY: a system call.
        unsafe { libc::alarm(LIMIT) };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        // SAFETY: nothing of the parent's runs at its end.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
    child
}

/// Waits for the end of a child; how it ended.
#[cfg(test)]
pub(crate) fn ended(child: libc::pid_t) -> std::process::ExitStatus {
    let mut status = 0;
    // SAFETY: the status is this function's.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    std::os::unix::process::ExitStatusExt::from_raw(status)
}
