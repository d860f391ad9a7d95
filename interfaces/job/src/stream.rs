//! A stream socket that carries frames: what arrives is cut, what leaves is queued.

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// How much one call takes from the socket.
const CHUNK: usize = 65_536;

/// Why a stream is of no use any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The other side has closed it, or the system did.
    Ended,
    /// A frame is longer than allowed.
    TooLong,
}

/// A stream socket that never blocks.
pub(crate) struct Stream {
    socket: OwnedFd,
    inbound: Vec<u8>,
    longest: usize,
    outbound: VecDeque<Arc<[u8]>>,
    /// How much of the first frame of `outbound` has left.
    sent: usize,
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Stream {
    /// A stream over this socket, which accepts frames of at most `longest` bytes.
    pub(crate) fn new(socket: OwnedFd, longest: usize) -> std::io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { socket, inbound: Vec::new(), longest, outbound: VecDeque::new(), sent: 0 })
    }

    /// Allows longer frames from here on.
    pub(crate) fn allow(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Takes what has arrived, at most one chunk; how many bytes.
    pub(crate) fn receive(&mut self) -> Result<usize, Broken> {
        let before = self.inbound.len();
        self.inbound.resize(before + CHUNK, 0);
        let result = recv(&self.socket, &mut self.inbound[before..], RecvFlags::DONTWAIT);
        let length = result.map_or(0, |(length, _)| length);
        self.inbound.truncate(before + length);
        match result {
            Ok((0, _)) => Err(Broken::Ended),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(length),
            Err(_) => Err(Broken::Ended),
        }
    }

    /// The next whole frame, without its length.
    pub(crate) fn frame(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let Some((length, rest)) = self.inbound.split_first_chunk() else { return Ok(None) };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > self.longest {
            return Err(Broken::TooLong);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let frame = rest[..length].to_vec();
        self.inbound.drain(..4 + length);
        Ok(Some(frame))
    }

    /// Queues a frame and sends what the socket takes.
    pub(crate) fn push(&mut self, frame: Arc<[u8]>) -> Result<(), Broken> {
        self.outbound.push_back(frame);
        self.flush()
    }

    /// Sends what the socket takes.
    pub(crate) fn flush(&mut self) -> Result<(), Broken> {
        while let Some(frame) = self.outbound.front() {
            match send(&self.socket, &frame[self.sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(length) => self.sent += length,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => (),
                Err(_) => return Err(Broken::Ended),
            }
            if self.sent == frame.len() {
                self.outbound.pop_front();
                self.sent = 0;
            }
        }
        Ok(())
    }

    /// Whether everything has left.
    pub(crate) fn is_flushed(&self) -> bool {
        self.outbound.is_empty()
    }
}
