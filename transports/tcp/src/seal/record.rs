//! The records of a stream ([`cci_seal::records`]), and sending them.

use super::keys::Sealing;
use crate::sys;
use cci_mem::source::Source;
use cci_seal::Refused;
use cci_seal::noise::Initiator;
use cci_seal::records::{RECORD, Records};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// What a stream has whose bytes are sealed.
pub(crate) struct Sealed {
    records: Records,
    /// This side has asked, and waits for the answer.
    initiator: Option<Initiator>,
    /// The record that is about to leave: `at..end` of this memory.
    leaving: Vec<u8>,
    at: usize,
    end: usize,
    /// Sealed bytes that have come and were not opened.
    kept: Vec<u8>,
}

impl Sealed {
    pub(super) fn new(index: u32) -> Self {
        let (leaving, kept) = (Vec::new(), Vec::new());
        Self { records: Records::new(index), initiator: None, leaving, at: 0, end: 0, kept }
    }

    /// A stream whose first message of the handshake leaves now.
    pub(super) fn asking(initiator: Initiator) -> Self {
        Self { initiator: Some(initiator), ..Self::new(u32::MAX) }
    }

    pub(super) fn initiator(&self) -> Option<&Initiator> {
        self.initiator.as_ref()
    }

    /// Whether the handshake is over.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.initiator.is_none()
    }

    pub(crate) fn index(&self) -> Option<u32> {
        self.is_open().then_some(self.records.index())
    }

    /// Records that were sent, and received.
    #[cfg(test)]
    pub(crate) fn numbers(&self) -> (u64, u64) {
        self.records.numbers()
    }

    /// Goes on with these numbers of records.
    #[cfg(test)]
    pub(crate) fn skip_to(&mut self, sent: u64, received: u64) {
        self.records.skip_to(sent, received);
    }

    /// Whether part of a record is left to leave.
    pub(crate) fn has_unsent(&self) -> bool {
        self.at < self.end
    }

    /// Sends the rest of the record that has begun to leave.
    #[inline]
    pub(crate) fn push(&mut self, sealing: &mut Option<Box<Sealing>>, socket: &OwnedFd) -> Result<(), Errno> {
        if self.at == self.end {
            return Ok(());
        }
        self.at += sys::send(socket, &self.leaving[self.at..self.end])?;
        if self.at < self.end {
            return Err(Errno::AGAIN);
        }
        (self.at, self.end) = (0, 0);
        let memory = std::mem::take(&mut self.leaving);
        if let Some(sealing) = sealing {
            sealing.put_leaving(memory);
        }
        Ok(())
    }

    /// Sends bytes, of which one record takes as many as it can. Returns how many. What the stream
    /// does not take of the record leaves by [`Sealed::push`].
    pub(crate) fn send(
        &mut self,
        sealing: &mut Option<Box<Sealing>>,
        socket: &OwnedFd,
        bytes: &[u8],
    ) -> Result<usize, Errno> {
        self.send_parts(sealing, socket, &[Source::from(&bytes[..bytes.len().min(RECORD)])])
    }

    /// Sends parts, which fit a record together.
    pub(crate) fn send_parts(
        &mut self,
        sealing: &mut Option<Box<Sealing>>,
        socket: &OwnedFd,
        parts: &[Source<'_>],
    ) -> Result<usize, Errno> {
        self.push(sealing, socket)?;
        let len: usize = parts.iter().map(Source::len).sum();
        // Any reason is one for the stream to end: a forked child, or no memory for the key.
        (self.at, self.end) = (0, self.seal(sealing, parts).map_err(|_| Errno::KEYREJECTED)?);
        match self.push(sealing, socket) {
            Ok(()) | Err(Errno::AGAIN) => Ok(len),
            Err(error) => Err(error),
        }
    }

    fn seal(&mut self, sealing: &mut Option<Box<Sealing>>, parts: &[Source<'_>]) -> Result<usize, Refused> {
        let sealing = sealing.as_mut().ok_or(Refused::NoKey)?;
        self.leaving = sealing.take_leaving();
        self.records.seal(&mut sealing.vault, parts, &mut self.leaving)
    }

    /// Opens the record that these bytes begin with into a text. Returns the bytes of the record
    /// and of its text. `None`: it is not there as a whole, or the text has no room for it.
    pub(crate) fn open_next(
        &mut self,
        sealing: &mut Option<Box<Sealing>>,
        bytes: &[u8],
        text: &mut [u8],
    ) -> Result<Option<(usize, usize)>, Refused> {
        let sealing = sealing.as_mut().ok_or(Refused::NoKey)?;
        self.records.open_next(&mut sealing.vault, bytes, text)
    }

    /// Sealed bytes that have come and were not opened.
    pub(crate) fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Keeps sealed bytes, in place of those that were kept.
    pub(crate) fn keep(&mut self, sealing: &mut Option<Box<Sealing>>, bytes: &[u8]) {
        let Some(sealing) = sealing else { return };
        if bytes.is_empty() {
            if self.kept.capacity() > 0 {
                sealing.put_kept(std::mem::take(&mut self.kept));
            }
            return;
        }
        if self.kept.capacity() == 0 {
            self.kept = sealing.take_kept();
        }
        self.kept.clear();
        self.kept.extend_from_slice(bytes);
    }
}
