//! Frames between launchers: `kind u8 | rank u32 | length u32 | bytes`, little-endian.

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
}

const KINDS: [Kind; 9] = [
    Kind::Start,
    Kind::Store,
    Kind::StoreEnd,
    Kind::Input,
    Kind::Signal,
    Kind::Output,
    Kind::Errors,
    Kind::Ready,
    Kind::Ended,
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) rank: u32,
    pub(crate) bytes: Vec<u8>,
}

/// The bytes of a frame. `bytes` is at most as long as one read of a pipe, or a plan.
pub(crate) fn emit(kind: Kind, rank: u32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("below the longest frame");
    [&[kind as u8], &rank.to_le_bytes()[..], &length.to_le_bytes(), bytes].concat()
}

/// The other side sent what is no frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoFrame;

/// Cuts what arrives into frames.
#[derive(Default)]
pub(crate) struct Frames(Vec<u8>);

impl Frames {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn next(&mut self) -> Result<Option<Frame>, NoFrame> {
        let Some((head, rest)) = self.0.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [kind, rank @ .., l0, l1, l2, l3] = *head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let kind = KINDS.into_iter().find(|known| *known as u8 == kind).filter(|_| length <= LONGEST).ok_or(NoFrame)?;
        let Some(bytes) = rest.get(..length).map(<[u8]>::to_vec) else { return Ok(None) };
        self.0.drain(..HEAD + length);
        Ok(Some(Frame { kind, rank: u32::from_le_bytes(rank), bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_whole_however_they_arrive() {
        let all: Vec<u8> = KINDS.iter().flat_map(|kind| emit(*kind, 70_000, &[*kind as u8; 300])).collect();
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for piece in all.chunks(7) {
            frames.push(piece);
            while let Some(frame) = frames.next().expect("a frame") {
                assert_eq!((frame.rank, frame.bytes), (70_000, vec![frame.kind as u8; 300]));
                found.push(frame.kind);
            }
        }
        assert_eq!(found, KINDS);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for wrong in [&b"Welcome to this host"[..], &[1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]] {
            let mut frames = Frames::default();
            frames.push(wrong);
            assert_eq!(frames.next(), Err(NoFrame));
        }
    }
}
