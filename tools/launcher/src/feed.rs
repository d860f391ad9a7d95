//! Bytes on their way to a descriptor that may be full.

use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

/// How many bytes may wait for one descriptor before nothing more is read for it.
pub(crate) const MOST: usize = 1 << 20;

/// What a pipe takes without blocking once it is ready, also one that others have set to block.
const AT_ONCE: usize = 4096;

/// A descriptor and the bytes that wait for it. It is closed once it takes no more.
pub(crate) struct Feed<F> {
    to: Option<F>,
    waiting: VecDeque<u8>,
    is_ending: bool,
    /// Whether a write may block, so that bytes leave only when the descriptor is ready.
    may_block: bool,
    failure: Option<Errno>,
}

impl<F: AsFd> Feed<F> {
    /// A feed of a descriptor that never blocks and that only this process writes to.
    pub(crate) fn new(to: F) -> Self {
        Self { to: Some(to), waiting: VecDeque::new(), is_ending: false, may_block: false, failure: None }
    }

    /// A feed of a descriptor that others share, and that may be set to block.
    pub(crate) fn shared(to: F) -> Self {
        Self { may_block: true, ..Self::new(to) }
    }

    /// Adds bytes, which leave at once where that cannot block, or when the descriptor is ready.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.push_both(&[], bytes);
    }

    /// Adds the bytes of both, as one.
    pub(crate) fn push_both(&mut self, head: &[u8], bytes: &[u8]) {
        let Some(to) = self.to.as_ref().filter(|_| !self.is_ending) else { return };
        let mut written = 0;
        if self.waiting.is_empty() && !self.may_block {
            match rustix::io::writev(to, &[IoSlice::new(head), IoSlice::new(bytes)]) {
                Ok(length) => written = length,
                Err(Errno::AGAIN | Errno::INTR) => (),
                Err(error) => return self.fail(error),
            }
        }
        self.waiting.extend(&head[written.min(head.len())..]);
        self.waiting.extend(&bytes[written.saturating_sub(head.len())..]);
    }

    /// Closes the descriptor once it has taken what waits.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
        self.close_if_done();
    }

    /// Closes the descriptor at once.
    pub(crate) fn close(&mut self) {
        self.to = None;
        self.waiting = VecDeque::new();
    }

    /// Closes the descriptor because of this error.
    pub(crate) fn fail(&mut self, error: Errno) {
        self.failure = Some(error);
        self.close();
    }

    /// Why the descriptor took no more.
    pub(crate) fn failure(&self) -> Option<Errno> {
        self.failure
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
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
        let Some(to) = self.to.as_ref().filter(|_| !self.waiting.is_empty()) else { return };
        let (first, second) = self.waiting.as_slices();
        let written = match self.may_block {
            true => rustix::io::write(to, &first[..first.len().min(AT_ONCE)]),
            false => rustix::io::writev(to, &[IoSlice::new(first), IoSlice::new(second)]),
        };
        match written {
            Ok(length) => drop(self.waiting.drain(..length)),
            Err(Errno::AGAIN | Errno::INTR) => (),
            Err(error) => self.fail(error),
        }
        self.close_if_done();
    }

    fn close_if_done(&mut self) {
        if self.is_ending && self.waiting.is_empty() {
            self.to = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    /// Bytes in an order that a loss or an exchange would change.
    fn numbers(count: u32) -> Vec<u8> {
        (0..count).flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn what_a_pipe_does_not_take_at_once_follows_in_order() {
        let (from, to) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        for mut feed in [Feed::new(to.try_clone().expect("a descriptor")), Feed::shared(to)] {
            let all = numbers(100_000);
            for part in all.chunks(7001) {
                feed.push_both(&part[..3], &part[3..]);
            }
            assert!(feed.waits().is_some(), "a pipe holds less");
            let (mut found, mut some) = (Vec::new(), [0; 10_000]);
            while found.len() < all.len() {
                feed.flush();
                let length = rustix::io::read(&from, &mut some).expect("bytes");
                found.extend_from_slice(&some[..length]);
            }
            assert!(feed.is_done() && found == all);
        }
    }

    #[test]
    fn a_descriptor_that_fails_is_closed_with_the_reason() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the device");
        let mut feed = Feed::shared(full);
        feed.push(b"text");
        assert_eq!(feed.failure(), None);
        feed.flush();
        assert_eq!((feed.failure(), feed.open().is_none(), feed.is_done()), (Some(Errno::NOSPC), true, true));
    }
}
