//! A stream socket that carries frames: what arrives is cut, what leaves is queued. Where the job
//! has a secret, all but its first frames is sealed.

use crate::seal::Seal;
use crate::wire::{Bytes, Frame};
use cci_seal::Refused;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How much one call takes from the socket.
const CHUNK: usize = 65_536;

/// Why a stream is of no use any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The other side has closed it, or the system did.
    Ended,
    /// A frame is longer than allowed.
    TooLong,
    /// What came was not sealed by the other side.
    Unsealed,
    /// This side cannot seal or open, which says nothing of the other side.
    Refused(Refused),
}

impl From<Refused> for Broken {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Forged | Refused::Length => Self::Unsealed,
            other => Self::Refused(other),
        }
    }
}

/// A stream socket that never blocks.
pub(crate) struct Stream {
    socket: OwnedFd,
    inbound: Bytes,
    longest: usize,
    outbound: VecDeque<Frame>,
    /// How much of the first frame of `outbound` has left, or was sealed.
    sent: usize,
    /// How many frames of `outbound` leave in clear.
    clear: usize,
    seal: Option<Box<Seal>>,
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
        let (inbound, outbound) = (Bytes::default(), VecDeque::new());
        Ok(Self { socket, inbound, longest, outbound, sent: 0, clear: 0, seal: None })
    }

    /// Allows longer frames from here on.
    pub(crate) fn allow(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Seals what is queued from here on, and opens what arrives behind the frames that were taken.
    pub(crate) fn seal(&mut self, mut seal: Box<Seal>) -> Result<(), Broken> {
        self.clear = self.outbound.len();
        // With its room, of which a store with many ranks would have as much for each once more.
        *seal.sealed() = std::mem::take(&mut self.inbound.0);
        self.seal = Some(seal);
        self.open()
    }

    /// Opens what has arrived sealed.
    fn open(&mut self) -> Result<(), Broken> {
        let Some(seal) = &mut self.seal else { return Ok(()) };
        Ok(seal.open(&mut self.inbound.0)?)
    }

    /// Takes what has arrived, at most one chunk; how many bytes.
    pub(crate) fn receive(&mut self) -> Result<usize, Broken> {
        // What has come in clear may be secret.
        self.inbound.reserve(if self.seal.is_none() { CHUNK } else { 0 });
        let inbound = self.seal.as_mut().map_or(&mut self.inbound.0, |seal| seal.sealed());
        let before = inbound.len();
        inbound.resize(before + CHUNK, 0);
        let result = recv(&self.socket, &mut inbound[before..], RecvFlags::DONTWAIT);
        let length = result.map_or(0, |(length, _)| length);
        inbound.truncate(before + length);
        self.open()?;
        match result {
            Ok((0, _)) => Err(Broken::Ended),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(length),
            Err(_) => Err(Broken::Ended),
        }
    }

    /// The next whole frame, without its length.
    pub(crate) fn frame(&mut self) -> Result<Option<Bytes>, Broken> {
        let Some((length, rest)) = self.inbound.split_first_chunk() else { return Ok(None) };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > self.longest {
            return Err(Broken::TooLong);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let frame = Bytes(rest[..length].to_vec());
        self.inbound.remove(4 + length);
        Ok(Some(frame))
    }

    /// Queues a frame and sends what the socket takes.
    pub(crate) fn push(&mut self, frame: Frame) -> Result<(), Broken> {
        self.outbound.push_back(frame);
        self.flush()
    }

    /// Sends what the socket takes.
    pub(crate) fn flush(&mut self) -> Result<(), Broken> {
        loop {
            if let Some(seal) = self.seal.as_mut().filter(|seal| !seal.leaving().is_empty()) {
                let Some(length) = take(&self.socket, seal.leaving())? else { return Ok(()) };
                seal.advance(length);
                continue;
            }
            let Some(frame) = self.outbound.front() else { return Ok(()) };
            let rest = &frame[self.sent..];
            self.sent += match &mut self.seal {
                Some(seal) if self.clear == 0 => seal.seal(rest)?,
                _ => match take(&self.socket, rest)? {
                    Some(length) => length,
                    None => return Ok(()),
                },
            };
            if self.sent == frame.len() {
                self.outbound.pop_front();
                self.sent = 0;
                self.clear = self.clear.saturating_sub(1);
            }
        }
    }

    /// Whether everything has left.
    pub(crate) fn is_flushed(&self) -> bool {
        self.outbound.is_empty() && self.seal.as_ref().is_none_or(|seal| seal.leaving().is_empty())
    }
}

/// Sends what the socket takes of these bytes; how many. `None`: it has no room.
fn take(socket: &OwnedFd, bytes: &[u8]) -> Result<Option<usize>, Broken> {
    loop {
        match send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(length) => return Ok(Some(length)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => (),
            Err(_) => return Err(Broken::Ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_mem::descriptors;

    /// A stream whose keys are gone, and its other end.
    fn without_keys() -> (Stream, std::os::unix::net::UnixStream) {
        let (ours, theirs) = descriptors::stream_pair().expect("a pair");
        let mut stream = Stream::new(ours.into(), CHUNK).expect("a stream");
        stream.seal(Box::new(Seal::without_keys())).expect("nothing has come");
        (stream, theirs)
    }

    #[test]
    fn a_stream_that_is_sealed_keeps_no_room_of_before() {
        let (ours, mut theirs) = descriptors::stream_pair().expect("a pair");
        let mut stream = Stream::new(ours.into(), CHUNK).expect("a stream");
        std::io::Write::write_all(&mut theirs, &[1, 0, 0, 0, 9]).expect("room");
        stream.receive().expect("it has come");
        assert_eq!(stream.frame().expect("short").as_deref(), Some(&[9][..]));
        stream.seal(Box::new(Seal::without_keys())).expect("nothing has come");
        assert_eq!(stream.inbound.0.capacity(), 0);
    }

    #[test]
    fn what_this_side_cannot_do_is_not_put_down_to_the_other_one() {
        let (mut stream, _theirs) = without_keys();
        assert_eq!(stream.push(b"frame".to_vec().into()), Err(Broken::Refused(Refused::NoKey)));
        let (mut stream, mut theirs) = without_keys();
        let record = [&[5, 0, 0, 0][..], &[7; 21]].concat();
        std::io::Write::write_all(&mut theirs, &record).expect("room");
        assert_eq!(stream.receive(), Err(Broken::Refused(Refused::NoKey)));
    }
}
