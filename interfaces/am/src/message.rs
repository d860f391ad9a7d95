//! What handlers are given.

use crate::errors::{ReplyError, Status};
use crate::outbox::Outbox;
use crate::peers::Peer;
use crate::sort::Sort;
use crate::wire::Kind;
use cci::{Memory, View};

/// The bytes that came with a message, in place. They are valid in their handler only.
///
/// # Example
///
/// ```
/// use cci_am::Payload;
///
/// let payload = Payload::of_bytes(b"some bytes");
/// let mut four = [0; 4];
/// assert_eq!((payload.copy_to(5, &mut four), &four), (4, b"byte"));
/// assert_eq!(payload.to_vec(), b"some bytes");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Payload<'m>(Place<'m>);

/// Of whole words: a copy of a variant that is told by one byte loads words that reach over bytes
/// just stored. The processor has to wait for these, behind stores to memory that the peer has.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
enum Place<'m> {
    /// The message is a short one.
    Nowhere,
    /// Memory of this process alone.
    Bytes(&'m [u8]),
    /// Memory that the peer could write.
    View(View<'m>),
    /// Memory where a mapping receives, from an offset on.
    Received(&'m Memory, u64, usize),
    /// The segment, from an offset on.
    Segment(&'m Memory, u64, usize),
}

impl<'m> Payload<'m> {
    /// A payload of these bytes.
    #[inline]
    #[must_use]
    pub fn of_bytes(bytes: &'m [u8]) -> Self {
        Self(Place::Bytes(bytes))
    }

    /// A payload in memory that a peer could write.
    #[inline]
    #[must_use]
    pub fn of_view(view: View<'m>) -> Self {
        Self(Place::View(view))
    }

    /// A payload in memory in which a mapping receives: `len` bytes from `offset` on. What lies
    /// beyond the memory reads as nothing.
    #[inline]
    #[must_use]
    pub fn of_memory(memory: &'m Memory, offset: u64, len: usize) -> Self {
        Self(Place::Received(memory, offset, len))
    }

    /// The payload of a short message.
    #[inline]
    pub(crate) fn none() -> Self {
        Self(Place::Nowhere)
    }

    /// A payload of these bytes, or none for a short message.
    pub(crate) fn of(bytes: Option<&'m [u8]>) -> Self {
        bytes.map_or(Self::none(), Self::of_bytes)
    }

    /// Returns the sort of the message that it came with.
    #[inline]
    #[must_use]
    pub fn sort(&self) -> Sort {
        match self.0 {
            Place::Nowhere => Sort::Short,
            Place::Bytes(_) | Place::View(_) | Place::Received(..) => Sort::Medium,
            Place::Segment(..) => Sort::Bulk,
        }
    }

    /// Returns the address of the first byte, for bindings to languages that read memory by
    /// address; null for a short message.
    #[inline]
    #[must_use]
    pub fn address(&self) -> *const u8 {
        match self.0 {
            Place::Nowhere => std::ptr::null(),
            Place::Bytes(bytes) => bytes.as_ptr(),
            Place::View(view) => view.address(),
            Place::Received(memory, start, _) | Place::Segment(memory, start, _) => std::ptr::with_exposed_provenance(
                memory.start().wrapping_add(usize::try_from(start).unwrap_or_default()),
            ),
        }
    }

    /// The caller has checked that the range lies within the memory.
    pub(crate) fn of_segment(memory: &'m Memory, offset: u64, len: u64) -> Self {
        Self(Place::Segment(memory, offset, usize::try_from(len).unwrap_or_default()))
    }

    /// Returns the number of bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            Place::Nowhere => 0,
            Place::Bytes(bytes) => bytes.len(),
            Place::View(view) => view.len(),
            Place::Received(_, _, len) | Place::Segment(_, _, len) => len,
        }
    }

    /// Returns whether there is no byte.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes in place, where no peer can write them; [`Payload::copy_to`] reads others.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> Option<&'m [u8]> {
        match self.0 {
            Place::Bytes(bytes) => Some(bytes),
            Place::Nowhere => Some(&[]),
            Place::View(_) | Place::Received(..) | Place::Segment(..) => None,
        }
    }

    /// Copies bytes from `offset` on, as many as there are and `target` takes, and returns their
    /// number.
    #[inline]
    pub fn copy_to(&self, offset: usize, target: &mut [u8]) -> usize {
        let count = self.len().saturating_sub(offset).min(target.len());
        let target = &mut target[..count];
        match self.0 {
            Place::Nowhere => 0,
            Place::Bytes(bytes) => {
                target.copy_from_slice(&bytes[bytes.len().min(offset)..][..count]);
                count
            }
            Place::View(view) => view.copy_to(offset, target),
            Place::Received(memory, start, _) | Place::Segment(memory, start, _) => {
                if memory.copy_out(start + offset as u64, target) { count } else { 0 }
            }
        }
    }

    /// Asks for the bytes, which come from the peer's processor, before the handler reads them.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Place::View(view) = self.0 {
            view.prefetch();
        }
    }

    /// Copies the first `N` bytes; `None`: there are fewer.
    #[inline]
    pub(crate) fn array<const N: usize>(&self) -> Option<[u8; N]> {
        if let Place::View(view) = self.0
            && N == size_of::<u64>()
        {
            // One load, where it is aligned.
            let word = view.word(0)?.to_ne_bytes();
            return word.first_chunk().copied();
        }
        let mut bytes = [0; N];
        (self.copy_to(0, &mut bytes) == N).then_some(bytes)
    }

    /// Copies all bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.copy_to(0, &mut bytes);
        bytes
    }

    /// The bytes from `offset` on.
    #[inline(always)]
    pub(crate) fn from(&self, offset: usize) -> Self {
        let len = self.len().saturating_sub(offset);
        match self.0 {
            Place::Nowhere => *self,
            Place::Bytes(bytes) => Self(Place::Bytes(bytes.get(offset..).unwrap_or_default())),
            Place::View(view) => view.part(offset, len).map_or(Self(Place::Bytes(&[])), Self::of_view),
            Place::Received(memory, start, _) => Self(Place::Received(memory, start + offset as u64, len)),
            Place::Segment(memory, start, _) => Self(Place::Segment(memory, start + offset as u64, len)),
        }
    }
}

/// A request, in its handler. It is replied to at most once, by a method that consumes it; one that
/// is not replied to ends with its handler.
///
/// # Example
///
/// ```
/// /// Replies with the sum of the arguments to handler 7 of the requester.
/// fn sum(calls: &mut u64, request: cci_am::Request<'_>) {
///     *calls += 1;
///     let sum = request.arguments().iter().copied().fold(0, u32::wrapping_add);
///     request.reply(7, &[sum]).expect("one argument");
/// }
/// ```
///
/// No request is replied to twice:
///
/// ```compile_fail,E0382
/// fn twice(_: &mut (), request: cci_am::Request<'_>) {
///     let _ = request.reply(7, &[]);
///     let _ = request.reply(7, &[]);
/// }
/// ```
#[derive(Debug)]
pub struct Request<'m> {
    pub(crate) arguments: &'m [u32],
    pub(crate) payload: Payload<'m>,
    pub(crate) from: &'m str,
    pub(crate) tag: u64,
    pub(crate) outbox: &'m mut Outbox,
}

impl<'m> Request<'m> {
    /// Returns the arguments, at most 16.
    #[inline]
    #[must_use]
    pub fn arguments(&self) -> &'m [u32] {
        self.arguments
    }

    /// Returns the payload: of a medium request the message's bytes, of a bulk request those in the
    /// segment.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> Payload<'m> {
        self.payload
    }

    /// Returns the requester's name, by its own word.
    #[must_use]
    pub fn from(&self) -> &'m str {
        self.from
    }

    /// Returns the tag that the requester has mapped this endpoint with.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Replies with arguments. It never waits: the reply's buffer was reserved with the credit of
    /// the request.
    ///
    /// # Errors
    ///
    /// More than 16 arguments; the request ends without a reply.
    #[inline]
    pub fn reply(self, at: u8, arguments: &[u32]) -> Result<(), ReplyError> {
        self.outbox.write(Kind::Reply, at, arguments, &[])
    }

    /// Replies with arguments and bytes, which are the caller's again on return. It never waits.
    ///
    /// # Errors
    ///
    /// As [`Request::reply`], or longer than `longest_reply`.
    pub fn reply_medium(self, at: u8, arguments: &[u32], bytes: &[u8]) -> Result<(), ReplyError> {
        self.outbox.write(Kind::ReplyMedium, at, arguments, bytes)
    }

    /// Replies with arguments and with bytes that go into the requester's segment at `offset`. They
    /// are the caller's again on return. It never waits.
    ///
    /// # Errors
    ///
    /// As [`Request::reply_medium`], or the requester has no segment there.
    pub fn reply_bulk(self, at: u8, arguments: &[u32], bytes: &[u8], offset: u64) -> Result<(), ReplyError> {
        self.outbox.write_bulk(at, arguments, bytes, offset)
    }
}

/// A reply to a request of this endpoint, or a get that has ended, in its handler.
///
/// # Example
///
/// ```
/// fn store(sums: &mut Vec<u32>, reply: cci_am::Reply<'_>) {
///     sums.extend_from_slice(reply.arguments());
/// }
/// ```
#[derive(Debug)]
pub struct Reply<'m> {
    pub(crate) arguments: &'m [u32],
    pub(crate) payload: Payload<'m>,
    pub(crate) from: Peer,
}

impl<'m> Reply<'m> {
    /// Returns the arguments, at most 16.
    #[inline]
    #[must_use]
    pub fn arguments(&self) -> &'m [u32] {
        self.arguments
    }

    /// Returns the payload: of a bulk reply or a get, the bytes in the segment.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> Payload<'m> {
        self.payload
    }

    /// Returns the peer that replied.
    #[must_use]
    pub fn from(&self) -> Peer {
        self.from
    }
}

/// A request that came back.
///
/// # Example
///
/// ```
/// fn count_lost(lost: &mut u32, returned: cci_am::Returned<'_>) {
///     *lost += u32::from(returned.status() == cci_am::Status::Unreachable);
/// }
/// ```
#[derive(Debug)]
pub struct Returned<'m> {
    pub(crate) status: Status,
    pub(crate) handler: u8,
    pub(crate) sort: Sort,
    pub(crate) is_reply: bool,
    pub(crate) arguments: &'m [u32],
    pub(crate) peer: Peer,
}

impl<'m> Returned<'m> {
    /// Returns why it came back.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the sort of the message.
    #[must_use]
    pub fn sort(&self) -> Sort {
        self.sort
    }

    /// Returns whether it is the reply of a request, which found no place here.
    #[must_use]
    pub fn is_reply(&self) -> bool {
        self.is_reply
    }

    /// Returns the handler that it was for.
    #[must_use]
    pub fn handler(&self) -> u8 {
        self.handler
    }

    /// Returns its arguments.
    #[must_use]
    pub fn arguments(&self) -> &'m [u32] {
        self.arguments
    }

    /// Returns the peer that it was for.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer
    }
}
