//! Frames between launchers: `kind u8 | rank u32 | length u32 | bytes`, little-endian.

use crate::feed::Feed;
use crate::polling::read_into;
use std::os::fd::{AsFd, BorrowedFd};

/// The most bytes of a frame: more than a pipe is read for at once, and any plan.
const LONGEST: usize = 16 << 20;

/// How many bytes stand in front of a frame's own.
const HEAD: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Start = 1,
    Store,
    StoreEnd,
    Input,
    Signal,
    Output,
    Errors,
    Ready,
    Ended,
    Taken,
    Pause,
    Resume,
    Pmi,
    PmiEnd,
}

const KINDS: [Kind; 14] = [
    Kind::Start,
    Kind::Store,
    Kind::StoreEnd,
    Kind::Input,
    Kind::Signal,
    Kind::Output,
    Kind::Errors,
    Kind::Ready,
    Kind::Ended,
    Kind::Taken,
    Kind::Pause,
    Kind::Resume,
    Kind::Pmi,
    Kind::PmiEnd,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: Kind,
    pub(crate) rank: u32,
    pub(crate) bytes: &'a [u8],
}

/// Sends a frame. `bytes` is at most as long as one read of a pipe, or a plan.
pub(crate) fn send<F: AsFd>(to: &mut Feed<F>, kind: Kind, rank: u32, bytes: &[u8]) {
    to.push_both(&head(kind, rank, bytes.len()), bytes);
}

pub(crate) fn head(kind: Kind, rank: u32, length: usize) -> [u8; HEAD] {
    let length = u32::try_from(length).expect("below the longest frame");
    let mut head = [kind as u8; HEAD];
    head[1..5].copy_from_slice(&rank.to_le_bytes());
    head[5..].copy_from_slice(&length.to_le_bytes());
    head
}

/// The other side sent what is no frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoFrame;

/// Cuts what arrives into frames.
#[derive(Default)]
pub(crate) struct Frames {
    buffer: Vec<u8>,
    /// Where the next frame begins.
    next: usize,
}

impl Frames {
    /// Reads what there is, without blocking: how many bytes, none at the end, nothing if there is
    /// nothing now.
    pub(crate) fn read(&mut self, from: BorrowedFd<'_>) -> Option<usize> {
        // What is left is a part of one frame.
        self.buffer.drain(..std::mem::take(&mut self.next));
        read_into(from, &mut self.buffer)
    }

    /// Adds what has arrived.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.next));
        self.buffer.extend_from_slice(piece);
    }

    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, NoFrame> {
        let Some((head, rest)) = self.buffer[self.next..].split_first_chunk::<HEAD>() else { return Ok(None) };
        let [kind, rank @ .., l0, l1, l2, l3] = *head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let kind = KINDS.into_iter().find(|known| *known as u8 == kind).filter(|_| length <= LONGEST).ok_or(NoFrame)?;
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        self.next += HEAD + length;
        Ok(Some(Frame { kind, rank: u32::from_le_bytes(rank), bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    #[test]
    fn frames_are_whole_however_they_arrive() {
        let frame = |kind: &Kind| [&head(*kind, 70_000, 300)[..], &[*kind as u8; 300]].concat();
        let all: Vec<u8> = KINDS.iter().flat_map(frame).collect();
        let (from, to) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for piece in all.chunks(7) {
            assert_eq!(rustix::io::write(&to, piece), Ok(piece.len()));
            assert_eq!(frames.read(from.as_fd()), Some(piece.len()));
            while let Some(frame) = frames.next().expect("a frame") {
                assert_eq!((frame.rank, frame.bytes), (70_000, &[frame.kind as u8; 300][..]));
                found.push(frame.kind);
            }
        }
        assert_eq!(frames.read(from.as_fd()), None);
        drop(to);
        assert_eq!(frames.read(from.as_fd()), Some(0));
        assert_eq!(found, KINDS);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for wrong in [&b"Welcome to this host"[..], &[1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]] {
            let mut frames = Frames { buffer: wrong.to_vec(), next: 0 };
            assert_eq!(frames.next(), Err(NoFrame));
        }
    }
}
