//! Addresses, segments and statuses.

use crate::errors::Code;
use cci::__binding::Source;
use cci::{HeapBytes, Memory, View};
use cci_rendezvous::Source as Message;
use std::sync::Arc;

/// Bytes that are copied at a time where they cannot be reached in place.
const PIECE: usize = 512;
/// Bytes that are copied by two instructions, because the length is known: most short messages have
/// as many.
const WORD: usize = 8;
/// Segments of a request at most.
///
/// # Example
///
/// ```
/// assert_eq!(cci_mx::MAX_SEGMENTS, 256);
/// ```
pub const MAX_SEGMENTS: usize = 256;
/// The largest endpoint id.
///
/// # Example
///
/// ```
/// assert_eq!(cci_mx::MAX_ENDPOINT_ID, 2_047);
/// ```
pub const MAX_ENDPOINT_ID: u32 = 2_047;

/// An endpoint: where it is, and in which session. Found by a connect, or in the status of what it
/// has sent.
///
/// # Example
///
/// ```
/// let address = cci_mx::Address::new(0x7f00_0001, 3, 0x1234);
/// assert_eq!((address.nic(), address.id(), address.session()), (0x7f00_0001, 3, 0x1234));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    name: u64,
    session: u32,
}

impl Address {
    /// The endpoint `id` of a NIC, in a session.
    #[must_use]
    pub const fn new(nic: u64, id: u32, session: u32) -> Self {
        Self { name: nic << 32 | id as u64, session }
    }

    pub(crate) const fn of(name: u64, session: u32) -> Self {
        Self { name, session }
    }

    /// NIC and id in one word, as peers are named.
    #[must_use]
    pub const fn name(self) -> u64 {
        self.name
    }

    /// The NIC: the IPv4 address of its host.
    #[must_use]
    pub const fn nic(self) -> u64 {
        self.name >> 32
    }

    /// The endpoint id.
    #[must_use]
    pub const fn id(self) -> u32 {
        self.name as u32
    }

    /// A random number of the endpoint: one that is opened again has another.
    #[must_use]
    pub const fn session(self) -> u32 {
        self.session
    }
}

/// What a receive, a probe or a test of any request asks for: a mask bit of 1 is compared.
///
/// # Example
///
/// ```
/// use cci_mx::Match;
///
/// assert_eq!(Match::exact(7), Match { bits: 7, mask: !0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as MX has it")]
pub struct Match {
    /// The match bits.
    pub bits: u64,
    /// Which of them are compared.
    pub mask: u64,
}

impl Match {
    /// Everything.
    pub const ANY: Self = Self { bits: 0, mask: 0 };

    /// These bits.
    #[must_use]
    pub const fn exact(bits: u64) -> Self {
        Self { bits, mask: !0 }
    }

    #[inline]
    pub(crate) const fn covers(self, bits: u64) -> bool {
        (self.bits ^ bits) & self.mask == 0
    }
}

/// How a request has ended, or what a probe has found.
///
/// # Example
///
/// ```
/// fn is_whole(status: &cci_mx::Status) -> bool {
///     status.length == status.copied
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as MX has it")]
pub struct Status {
    /// How.
    pub code: Code,
    /// Of a receive: the sender; of a send or a connect: the peer.
    pub source: Address,
    /// The match bits of the message, or of the connect.
    pub bits: u64,
    /// Bytes of the message.
    pub length: u32,
    /// Bytes that were transferred.
    pub copied: u32,
    /// The program's own.
    pub context: u64,
}

/// Memory of a segment, which a request owns until it is done. [`Memory`] is one; a binding has its
/// own, which may be smaller.
///
/// # Example
///
/// ```
/// use cci_mx::{Buffer, buffer};
///
/// assert_eq!(buffer(vec![0; 3]).len(), 3);
/// ```
pub trait Buffer: Send + 'static {
    /// Bytes.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes from `offset` on out; false, and nothing is copied, where they do not lie
    /// inside.
    fn copy_out(&self, offset: usize, target: &mut [u8]) -> bool;

    /// Copies bytes in from `offset` on; false, and nothing is copied, where they do not lie
    /// inside.
    fn copy_in(&self, offset: usize, bytes: &[u8]) -> bool;

    /// Copies `len` bytes of a view, which has as many from `from` on, in; false where they do not
    /// lie inside.
    fn copy_view(&self, offset: usize, view: &View<'_>, from: usize, len: usize) -> bool {
        let mut piece = [0; PIECE];
        let mut done = 0;
        while done < len {
            let size = view.copy_to(from + done, &mut piece[..PIECE.min(len - done)]);
            if size == 0 || !self.copy_in(offset + done, &piece[..size]) {
                return false;
            }
            done += size;
        }
        true
    }

    /// The bytes in place, to be copied once; `None`: they can be had by [`Buffer::copy_out`] only.
    fn source(&self) -> Option<Source<'_>> {
        None
    }

    /// The same memory, for RMA.
    fn memory(&self) -> Memory;
}

impl Buffer for Memory {
    fn len(&self) -> usize {
        usize::try_from(Memory::len(self)).unwrap_or(usize::MAX)
    }

    fn copy_out(&self, offset: usize, target: &mut [u8]) -> bool {
        target.is_empty() || Memory::copy_out(self, offset as u64, target)
    }

    fn copy_in(&self, offset: usize, bytes: &[u8]) -> bool {
        bytes.is_empty() || Memory::copy_in(self, offset as u64, bytes)
    }

    fn copy_view(&self, offset: usize, view: &View<'_>, from: usize, len: usize) -> bool {
        len == 0 || Memory::copy_view(self, offset as u64, view, from, len)
    }

    fn source(&self) -> Option<Source<'_>> {
        Memory::source(self, Buffer::len(self))
    }

    fn memory(&self) -> Memory {
        self.clone()
    }
}

/// Memory of a vector, which it owns.
///
/// # Example
///
/// ```
/// let memory = cci_mx::buffer(b"bytes".to_vec());
/// let mut copy = [0; 5];
/// assert!(memory.copy_out(0, &mut copy) && copy == *b"bytes");
/// ```
#[must_use]
pub fn buffer(bytes: Vec<u8>) -> Memory {
    if bytes.is_empty() { Memory::none() } else { Memory::of_bytes(&Arc::new(HeapBytes::new(bytes))) }
}

/// The segments of a request, one behind the other.
///
/// # Example
///
/// ```
/// use cci_mx::{Segments, buffer};
///
/// let two = Segments::Many(vec![buffer(vec![1; 3]), buffer(vec![2; 5])]);
/// assert_eq!(two.len(), 8);
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "none, one or several")]
pub enum Segments<B> {
    /// No bytes.
    None,
    /// One segment.
    One(B),
    /// Several, some of which may be empty.
    Many(Vec<B>),
}

impl<B> From<B> for Segments<B> {
    fn from(one: B) -> Self {
        Self::One(one)
    }
}

impl<B> From<Vec<B>> for Segments<B> {
    fn from(many: Vec<B>) -> Self {
        Self::Many(many)
    }
}

impl<B: Buffer> Segments<B> {
    /// Bytes of all.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(one) => one.len(),
            Self::Many(many) => sum(many),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn parts(&self) -> &[B] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    /// Calls `act` for each run of bytes inside of one segment, in the range of the whole: the
    /// segment, the offset there, and the range. Stops at the first that fails.
    #[inline(never)]
    fn runs(&self, offset: usize, len: usize, mut act: impl FnMut(&B, usize, std::ops::Range<usize>) -> bool) -> bool {
        let (mut skip, mut done) = (offset, 0);
        for part in self.parts() {
            if done == len {
                break;
            }
            if skip >= part.len() {
                skip -= part.len();
                continue;
            }
            let size = (part.len() - skip).min(len - done);
            if !act(part, skip, done..done + size) {
                return false;
            }
            (skip, done) = (0, done + size);
        }
        done == len
    }

    /// Copies bytes out; false where they do not lie inside.
    #[inline(always)]
    pub(crate) fn copy_out(&self, offset: usize, target: &mut [u8]) -> bool {
        match self {
            Self::One(one) => match <&mut [u8; WORD]>::try_from(&mut *target) {
                Ok(word) => one.copy_out(offset, word),
                Err(_) => one.copy_out(offset, target),
            },
            _ => self.runs(offset, target.len(), |part, at, range| part.copy_out(at, &mut target[range])),
        }
    }

    /// Copies bytes in; false where they do not lie inside.
    #[inline(always)]
    pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) -> bool {
        match self {
            Self::One(one) => match <&[u8; WORD]>::try_from(bytes) {
                Ok(word) => one.copy_in(offset, word),
                Err(_) => one.copy_in(offset, bytes),
            },
            _ => self.runs(offset, bytes.len(), |part, at, range| part.copy_in(at, &bytes[range])),
        }
    }

    /// Copies `len` bytes of a view in, from `from` on.
    pub(crate) fn copy_view(&self, view: &View<'_>, from: usize, len: usize) -> bool {
        self.runs(0, len, |part, at, range| part.copy_view(at, view, from + range.start, range.len()))
    }

    /// Copies `len` bytes of a message in, from `from` on; false where there are not as many.
    #[inline]
    pub(crate) fn copy_message(&self, message: &Message<'_>, from: usize, len: usize) -> bool {
        match message {
            Message::Bytes(bytes) => bytes.get(from..from + len).is_some_and(|bytes| self.copy_in(0, bytes)),
            Message::View(view) => self.copy_view(view, from, len),
        }
    }

    /// Copies the first bytes to other segments.
    pub(crate) fn copy_to(&self, other: &Self, len: usize) -> bool {
        let mut piece = [0; PIECE];
        let mut done = 0;
        while done < len {
            let size = PIECE.min(len - done);
            if !self.copy_out(done, &mut piece[..size]) || !other.copy_in(done, &piece[..size]) {
                return false;
            }
            done += size;
        }
        true
    }

    /// The memory of the first bytes, segment by segment, without empty ones.
    pub(crate) fn memory(&self, len: usize, to: &mut Vec<Memory>) {
        to.clear();
        self.runs(0, len, |part, _, range| {
            to.extend(part.memory().part(0, range.len() as u64));
            true
        });
    }

    /// The bytes of the one segment in place.
    #[inline]
    pub(crate) fn source(&self) -> Option<Source<'_>> {
        if let Self::One(one) = self { one.source() } else { None }
    }

    /// Whether they are within the limits.
    pub(crate) fn are_right(&self) -> bool {
        self.parts().len() <= MAX_SEGMENTS && u32::try_from(self.len()).is_ok()
    }
}

#[inline(never)]
fn sum<B: Buffer>(parts: &[B]) -> usize {
    parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_through_segments_as_through_one() {
        let parts: Vec<_> = [3, 0, 5, 1].map(|len| buffer(vec![0; len])).into();
        let segments = Segments::Many(parts);
        let mut bytes: Vec<u8> = (1..=9).collect();
        assert!(segments.len() == 9 && !segments.copy_in(1, &bytes) && segments.copy_in(0, &bytes));
        for offset in 0..=9 {
            for len in 0..=9 - offset {
                let mut copy = vec![0; len];
                assert!(segments.copy_out(offset, &mut copy) && copy == bytes[offset..offset + len]);
            }
            let mut memory = Vec::new();
            segments.memory(offset, &mut memory);
            assert_eq!(memory.iter().map(Memory::len).sum::<u64>(), offset as u64);
        }
        let other = Segments::One(buffer(vec![0; 9]));
        let mut copy = vec![0; 9];
        assert!(segments.copy_to(&other, 9) && other.copy_out(0, &mut copy) && copy == bytes);
        assert!(other.copy_view(&View::of(&mut bytes), 4, 5) && other.copy_out(0, &mut copy));
        assert_eq!(copy, [5, 6, 7, 8, 9, 6, 7, 8, 9]);
        assert!(Segments::<Memory>::None.copy_in(0, &[]));
    }

    #[test]
    fn a_long_view_is_copied_into_all_segments() {
        let mut bytes: Vec<u8> = (0..3 * PIECE + 7).map(|number| number as u8).collect();
        let wanted = bytes[5..].to_vec();
        let segments: Segments<Memory> = vec![buffer(vec![0; 100]), buffer(vec![0; wanted.len() - 100])].into();
        let view = View::of(&mut bytes);
        assert!(segments.copy_view(&view, 5, wanted.len()));
        let mut copy = vec![0; wanted.len()];
        assert!(segments.copy_out(0, &mut copy) && copy == wanted);
        assert!(!segments.copy_view(&view, 6, wanted.len()), "it ends a byte early");
    }

    #[test]
    fn too_many_segments_and_too_many_bytes_are_wrong() {
        let of = |count| Segments::<Memory>::from(vec![buffer(vec![0; 1]); count]);
        assert!(of(MAX_SEGMENTS).are_right() && !of(MAX_SEGMENTS + 1).are_right());
    }
}
