//! The unsafe code of the launcher: fork, and what a process does between fork and exec.

#![allow(unsafe_code)]

use crate::end::NOT_STARTED;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal, setpgid};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has what this command starts be killed when the launcher ends, however that comes; lets it
/// inherit descriptors; and binds it to processors.
pub(crate) fn prepare(command: &mut Command, inherited: Vec<RawFd>, processors: Option<CpuSet>) {
    let parent = getpid();
    let prepared = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have ended before.
        if getppid() != Some(parent) {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        for inherited in &inherited {
            // SAFETY: the caller keeps it open until the command has been started.
            let inherited = unsafe { BorrowedFd::borrow_raw(*inherited) };
            rustix::io::fcntl_setfd(inherited, rustix::io::FdFlags::empty())?;
        }
        processors.map_or(Ok(()), |processors| sched_setaffinity(None, &processors).map_err(Into::into))
    };
    // SAFETY: between fork and exec it makes system calls and touches no memory but its own.
    unsafe { command.pre_exec(prepared) };
}

/// Starts a command in a process group of its own without waiting until it runs, so that many start
/// at once. One that cannot run writes its number and the system's into `failures`, and ends.
///
/// This process has one thread: another one could hold a lock that the child would wait for.
pub(crate) fn start(command: &mut Command, number: u32, failures: BorrowedFd<'_>) -> io::Result<Pid> {
    // SAFETY: with one thread the child may do what this process may.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let error = command.exec().raw_os_error().unwrap_or(libc::EINVAL);
        // Short enough to be written whole; without a reader nobody asks.
        let _ = rustix::io::write(failures, [number.to_le_bytes(), error.to_le_bytes()].as_flattened());
        // SAFETY: nothing that the parent would do at its end is done here.
        unsafe { libc::_exit(NOT_STARTED.into()) };
    }
    let pid = Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error)?;
    // The child does it too: whoever comes first. It is refused once the child runs its program.
    let _ = setpgid(Some(pid), Some(pid));
    Ok(pid)
}
