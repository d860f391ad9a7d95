//! The wake-up probe: two processes that wake each other by eventfds, as an event loop does (poll,
//! read, write).

use super::side::Side;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// How long a wait sleeps at most, in this probe as in a measuring loop: the kernel's timer is part
/// of what a sleep costs. It bounds what a lost wake-up costs, and never shortens a wait.
pub(crate) const NAP: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The descriptor that the client writes, and the one that the server writes.
pub(crate) struct Pair([OwnedFd; 2]);

impl Pair {
    /// New descriptors. A child has them by [`pass_on`](super::pass_on).
    pub(crate) fn create() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self([eventfd(0, flags)?, eventfd(0, flags)?]))
    }

    /// Descriptors that the parent passed on under these numbers.
    pub(crate) fn inherit(numbers: [RawFd; 2]) -> Self {
        // SAFETY: the parent, another instance of this program, opened both descriptors for this
        // process, and nothing else here uses the numbers.
        Self(numbers.map(|number| unsafe { OwnedFd::from_raw_fd(number) }))
    }

    /// The numbers, for a child.
    pub(crate) fn numbers(&self) -> [RawFd; 2] {
        [self.0[0].as_raw_fd(), self.0[1].as_raw_fd()]
    }

    #[cfg(test)]
    pub(super) fn duplicate(&self) -> io::Result<Self> {
        Ok(Self([self.0[0].try_clone()?, self.0[1].try_clone()?]))
    }

    pub(super) fn ping(&self, side: Side, count: u64) -> io::Result<()> {
        let [client, server] = &self.0;
        for _ in 0..count {
            match side {
                Side::Client => {
                    ring(client)?;
                    sleep(server)?;
                }
                Side::Server => {
                    sleep(client)?;
                    ring(server)?;
                }
            }
        }
        Ok(())
    }
}

fn ring(fd: &OwnedFd) -> io::Result<()> {
    rustix::io::write(fd, &1_u64.to_ne_bytes())?;
    Ok(())
}

fn sleep(fd: &OwnedFd) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&NAP)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match rustix::io::read(fd, &mut [0_u8; 8]) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
