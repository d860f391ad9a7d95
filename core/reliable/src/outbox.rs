//! The outbox: frames between the engine and the link.

use super::keys::Keys;
use super::registrations::{FrameMemory, Registrations};
use crate::{Link, Outgoing};
use cci_mem::memory::{Memory, Piece, Span};
use cci_mem::pages::Pages;
use cci_proto::Address;
use cci_proto::engine::{Seal, Transmit};
use cci_proto::wire::{self, Crc};

/// Bytes for the heads of frames.
const BYTES: usize = 256 << 10;
/// The same where frames are sealed: memory is encrypted here too.
const SEALED_BYTES: usize = 4 << 20;
/// Largest piece of memory that is always copied, bytes: its owner may change it between the check
/// and the system's copy, and then the frame would be lost. Copying this little costs no more than
/// the check alone.
pub(super) const COPIED: usize = 4096;
/// Frames given to the link at a time: as many as the kernel takes in one segmented send.
const BURST: usize = 64;

/// A frame whose head is in the buffer.
struct Queued {
    to: Address,
    at: usize,
    len: usize,
    piece: Option<Piece>,
    probe: bool,
}

impl Queued {
    fn outgoing<'a>(&'a self, buffer: &'a Pages) -> Outgoing<'a> {
        let head = &buffer[self.at..self.at + self.len];
        Outgoing { to: self.to, head, piece: self.piece.as_ref(), probe: self.probe }
    }
}

/// The frames. Filled when empty, then drained. No frame is added before all have left.
pub(super) struct Outbox {
    buffer: Pages,
    end: usize,
    frames: Vec<Queued>,
    /// Frames that the link has taken already.
    sent: usize,
    /// Memory for a burst, kept between bursts.
    burst: Vec<Outgoing<'static>>,
    mtu: usize,
}

/// Another lifetime for an empty vector's memory.
fn recycle<'to>(mut burst: Vec<Outgoing<'_>>) -> Vec<Outgoing<'to>> {
    burst.clear();
    // Collects in place: the element's type is the same.
    burst.into_iter().map_while(|_| None).collect()
}

impl Outbox {
    /// For frames of at most `mtu` bytes, which may be sealed.
    ///
    /// # Errors
    ///
    /// No address space.
    pub(super) fn new(mtu: u16, seals: bool) -> rustix::io::Result<Self> {
        let mtu = usize::from(mtu);
        let bytes = if seals { SEALED_BYTES } else { BYTES };
        Ok(Self {
            buffer: Pages::new(bytes.max(2 * mtu))?,
            end: 0,
            frames: Vec::with_capacity(BURST),
            sent: 0,
            burst: Vec::with_capacity(BURST),
            mtu,
        })
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Where the next frame may be written; none while the burst is full.
    #[inline]
    pub(super) fn space(&mut self) -> Option<&mut [u8]> {
        if self.frames.len() >= BURST {
            return None;
        }
        self.buffer.get_mut(self.end..self.end + self.mtu)
    }

    /// Keeps a frame that was written to [`Outbox::space`] and is sealed already, of so many bytes.
    #[inline]
    pub(super) fn keep_sealed(&mut self, transmit: &Transmit<FrameMemory>, len: usize) {
        self.frames.push(Queued { to: transmit.to, at: self.end, len, piece: None, probe: transmit.probe });
        self.end += len;
    }

    /// Keeps a frame that was written to [`Outbox::space`], and seals it with its memory. One whose
    /// memory is not registered any more is lost, and so is one that is not sealed.
    fn push_sealed(
        &mut self,
        transmit: &Transmit<FrameMemory>,
        seal: &Seal,
        registry: &Registrations,
        keys: &mut Keys,
    ) {
        let mut len = transmit.len;
        let Some(space) = self.buffer.get_mut(self.end..) else { return };
        if let Some(part) = transmit.piece {
            let end = len + transmit.piece_len as usize;
            let Some((memory, room)) = registry.living(part.number).zip(space.get_mut(len..end)) else { return };
            // The sum is of no use here, and costs little beside the cipher.
            if memory.copy_out_checked(part.span, 0, room).is_none() {
                return;
            }
            len = end;
        }
        if let Some(whole) = keys.seal_frame(seal, space, len) {
            self.keep_sealed(transmit, whole);
        }
    }

    /// Keeps a frame that was written to [`Outbox::space`], sealed or with its check. One whose
    /// memory is not registered any more is lost.
    #[inline]
    pub(super) fn push(&mut self, transmit: &Transmit<FrameMemory>, registry: &Registrations, keys: Option<&mut Keys>) {
        if let Some(seal) = &transmit.seal {
            if let Some(keys) = keys {
                self.push_sealed(transmit, seal, registry, keys);
            }
            return;
        }
        let Transmit { to, len, piece, piece_len, checked, probe, .. } = *transmit;
        let at = self.end;
        let more = piece_len as usize;
        let is_copied = piece.is_some_and(|part| checked && (part.span.len() <= COPIED || part.is_changing));
        let memory = piece.and_then(|part| Some((part.span, registry.living(part.number)?)));
        if memory.is_some() != piece.is_some() {
            return;
        }
        let kept = if is_copied { None } else { memory.and_then(|(span, memory)| memory.keep(span)) };
        let used = len + if is_copied { more } else { 0 };
        let Some(frame) = self.buffer.get_mut(at..at + used) else { return };
        let (head, body) = frame.split_at_mut(len);
        wire::seal(head, more, |crc| match (&kept, memory) {
            (Some(piece), _) if checked => Crc::resumed(piece.crc32c(crc.register())),
            (None, Some((span, memory))) => {
                memory.copy_out_checked(span, crc.register(), body).map_or(crc, Crc::resumed)
            }
            _ => crc,
        });
        self.frames.push(Queued { to, at, len: used, piece: kept, probe });
        self.end += used;
    }

    /// Offers the frames to the link. True: it took all.
    pub(super) fn flush(&mut self, link: &mut impl Link) -> bool {
        let buffer = &self.buffer;
        if let [frame] = &self.frames[self.sent..] {
            self.sent += link.send_burst(&[frame.outgoing(buffer)]).min(1);
        } else {
            let mut burst = recycle(std::mem::take(&mut self.burst));
            burst.extend(self.frames[self.sent..].iter().map(|frame| frame.outgoing(buffer)));
            self.sent += link.send_burst(&burst).min(burst.len());
            self.burst = recycle(burst);
        }
        if self.sent < self.frames.len() {
            return false;
        }
        self.clear();
        true
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.sent = 0;
        self.end = 0;
    }

    /// Drops frames that refer to memory which is deregistered: for the engine they are lost.
    pub(super) fn forget(&mut self, memory: &Memory) {
        self.drop_pieces(|span| span.touches(memory));
    }

    /// Drops frames that refer to registered memory: all of it is deregistered.
    pub(super) fn forget_memory(&mut self) {
        self.drop_pieces(|_| true);
    }

    fn drop_pieces(&mut self, is_gone: impl Fn(Span) -> bool) {
        self.frames.drain(..self.sent);
        self.sent = 0;
        self.frames.retain(|frame| !frame.piece.as_ref().is_some_and(|piece| is_gone(piece.span())));
        if self.frames.is_empty() {
            self.clear();
        }
    }
}
