//! The unsafe code of the launcher: what a process does between fork and exec.

#![allow(unsafe_code)]

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::os::fd::BorrowedFd;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has what this command starts be killed when the launcher ends, however that comes; lets it
/// inherit a descriptor; and binds it to processors.
pub(crate) fn prepare(command: &mut Command, inherited: Option<RawFd>, processors: Option<CpuSet>) {
    let parent = getpid();
    let prepared = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have ended before.
        if getppid() != Some(parent) {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        if let Some(inherited) = inherited {
            // SAFETY: the caller keeps it open until the command has been started.
            let inherited = unsafe { BorrowedFd::borrow_raw(inherited) };
            rustix::io::fcntl_setfd(inherited, rustix::io::FdFlags::empty())?;
        }
        processors.map_or(Ok(()), |processors| sched_setaffinity(None, &processors).map_err(Into::into))
    };
    // SAFETY: between fork and exec it makes system calls and touches no memory but its own.
    unsafe { command.pre_exec(prepared) };
}
