//! Bytes on their way to a descriptor that may be full.

use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

/// How many bytes may wait for one descriptor before nothing more is read for it.
const MOST: usize = 1 << 20;

/// What a pipe takes without blocking once it is ready, also one that others have set to block.
const AT_ONCE: usize = 4096;

/// A descriptor and the bytes that wait for it. It is closed once it takes no more.
pub(crate) struct Feed<F> {
    to: Option<F>,
    waiting: Vec<u8>,
    is_ending: bool,
}

impl<F: AsFd> Feed<F> {
    pub(crate) fn new(to: F) -> Self {
        Self { to: Some(to), waiting: Vec::new(), is_ending: false }
    }

    /// Adds bytes, which leave when the descriptor is ready.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.to.is_some() && !self.is_ending {
            self.waiting.extend_from_slice(bytes);
        }
    }

    /// Closes the descriptor once it has taken what waits.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
        self.close_if_done();
    }

    /// Closes the descriptor at once.
    pub(crate) fn close(&mut self) {
        self.to = None;
        self.waiting.clear();
    }

    /// Whether more may be read for it.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < MOST
    }

    /// Whether nothing waits, or nothing takes it any more.
    pub(crate) fn is_done(&self) -> bool {
        self.to.is_none() || self.waiting.is_empty()
    }

    /// The descriptor, until it is closed.
    pub(crate) fn open(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().map(AsFd::as_fd)
    }

    /// The descriptor, if it is to be asked for room.
    pub(crate) fn waits(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().filter(|_| !self.waiting.is_empty()).map(AsFd::as_fd)
    }

    /// Writes what a descriptor takes that is ready.
    pub(crate) fn flush(&mut self) {
        let Some(to) = &self.to else { return };
        let piece = &self.waiting[..self.waiting.len().min(AT_ONCE)];
        match rustix::io::write(to, piece) {
            Ok(length) => drop(self.waiting.drain(..length)),
            Err(Errno::AGAIN | Errno::INTR) => (),
            Err(_) => self.close(),
        }
        self.close_if_done();
    }

    fn close_if_done(&mut self) {
        if self.is_ending && self.waiting.is_empty() {
            self.to = None;
        }
    }
}
