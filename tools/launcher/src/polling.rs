//! One wait for many descriptors, each with what it is for.

use cci_report::{UserError, while_doing};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Descriptors, and what each is for.
pub(crate) struct Polling<'a, T> {
    polled: Vec<PollFd<'a>>,
    names: Vec<T>,
}

impl<'a, T> Polling<'a, T> {
    pub(crate) fn new() -> Self {
        Self { polled: Vec::new(), names: Vec::new() }
    }

    /// Waits for bytes or an end, if there is a descriptor.
    pub(crate) fn read(&mut self, from: Option<BorrowedFd<'a>>, name: T) {
        self.add(from, PollFlags::IN, name);
    }

    /// Waits for room, if there is a descriptor.
    pub(crate) fn write(&mut self, to: Option<BorrowedFd<'a>>, name: T) {
        self.add(to, PollFlags::OUT, name);
    }

    fn add(&mut self, of: Option<BorrowedFd<'a>>, flags: PollFlags, name: T) {
        if let Some(of) = of {
            self.polled.push(PollFd::from_borrowed_fd(of, flags));
            self.names.push(name);
        }
    }

    /// Waits, at most this long, and returns what is ready.
    pub(crate) fn wait(mut self, limit: Option<Duration>) -> Result<Vec<T>, UserError> {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match poll(&mut self.polled, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => (),
            Err(error) => return Err(while_doing("cannot wait for the ranks")(error)),
        }
        let is_ready = self.polled.iter().map(|polled| !polled.revents().is_empty());
        Ok(self.names.into_iter().zip(is_ready).filter(|(_, ready)| *ready).map(|(name, _)| name).collect())
    }
}

/// The most bytes that one read takes.
const READ: usize = 65_536;

/// Reads what there is from a descriptor that is ready; nothing at its end.
pub(crate) fn read(from: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    read_into(from, &mut bytes).map(|_| bytes)
}

/// Adds what there is at a descriptor that is ready: how many bytes, none at its end.
pub(crate) fn read_into(from: BorrowedFd<'_>, bytes: &mut Vec<u8>) -> Option<usize> {
    bytes.reserve(READ);
    match rustix::io::read(from, spare_capacity(bytes)) {
        Ok(length) => Some(length),
        Err(Errno::AGAIN | Errno::INTR) => None,
        // A terminal or a socket that is gone has ended.
        Err(_) => Some(0),
    }
}
