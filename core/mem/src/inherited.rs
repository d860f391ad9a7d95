//! Sockets that a forked child is not to keep: while it does, peers do not see that this process
//! has closed them, and names and ports stay taken.
//!
//! A fork may come while other threads hold any lock, so that the child reads atomics only. A
//! socket is known by its number and its inode: the child never closes what the program has opened
//! under that number since.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Numbers of descriptors that are known. A child keeps what has a higher one.
const MOST_DESCRIPTORS: usize = 1 << 16;

/// The inode of the socket that last had the number; 0 for none. The pages that were never used
/// take no memory.
static INODES: [AtomicU64; MOST_DESCRIPTORS] = [const { AtomicU64::new(0) }; MOST_DESCRIPTORS];
/// All numbers that were ever used are below.
static END: AtomicUsize = AtomicUsize::new(0);
static HAS_HANDLER: AtomicBool = AtomicBool::new(false);

/// Has every child that this process forks from now on close its copy of the socket. Nothing
/// happens to the copy of a child that is made behind the C library's back, such as by `clone`.
pub fn close_in_children(socket: impl AsFd) {
    let socket = socket.as_fd();
    let Ok(status) = rustix::fs::fstat(socket) else { return };
    let number = usize::try_from(socket.as_raw_fd()).unwrap_or(MOST_DESCRIPTORS);
    let Some(inode) = INODES.get(number) else { return };
    inode.store(status.st_ino, Ordering::Relaxed);
    END.fetch_max(number + 1, Ordering::Relaxed);
    if !HAS_HANDLER.swap(true, Ordering::Relaxed) {
        // SAFETY: the handler makes system calls only, and this code is never unloaded.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(close_copies)) };
    }
}

/// Runs in the child: nothing but this, since what is behind the descriptors is the parent's.
extern "C" fn close_copies() {
    for (number, inode) in (0..).zip(&INODES[..END.load(Ordering::Relaxed).min(MOST_DESCRIPTORS)]) {
        let inode = inode.load(Ordering::Relaxed);
        if inode == 0 {
            continue;
        }
        // SAFETY: nobody else runs in this process; a number without a descriptor is an error of
        // the call, nothing more.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        let is_ours = rustix::fs::fstat(socket).is_ok_and(|status| {
            status.st_ino == inode && rustix::fs::FileType::from_raw_mode(status.st_mode).is_socket()
        });
        if is_ours {
            // SAFETY: the copy of a descriptor whose owner is the parent; what the child has
            // inherited of it is never touched.
            unsafe { rustix::io::close(number) };
        }
    }
}
