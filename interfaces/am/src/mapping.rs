//! What the engine of Active Messages needs of the layer below it.

use crate::message::Payload;
use cci::{Memory, PollError, RegisterError, Rights, RmaHandle};
use std::borrow::Cow;
use std::io::IoSlice;
use std::time::Duration;

/// Why a mapping refused to start something; then nothing has happened.
///
/// # Example
///
/// ```
/// assert_ne!(cci_am::Refused::NoRoom, cci_am::Refused::Gone);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No room now: poll and try again.
    NoRoom,
    /// The channel is closed, or its peer is gone.
    Gone,
    /// Nothing can be used here: this is a child of a fork.
    Unusable,
}

/// How an operation ended.
///
/// # Example
///
/// ```
/// assert_ne!(cci_am::Outcome::Done, cci_am::Outcome::Rejected);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has ended as it should.
    Done,
    /// The peer's side refused it, its message was not delivered, and the channel lives on.
    Rejected,
    /// The channel is broken.
    Broken,
}

/// A message, in place.
///
/// # Example
///
/// ```
/// use cci_am::{Arrived, Payload};
///
/// let message = Arrived::new(Payload::of_bytes(b"in place"));
/// assert_eq!(message.len(), 8);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'m>(pub(crate) Payload<'m>);

impl<'m> Arrived<'m> {
    /// A message with these bytes.
    #[inline]
    #[must_use]
    pub fn new(bytes: Payload<'m>) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A peer that asks for a channel.
///
/// # Example
///
/// ```
/// fn turn_away<A: cci_am::Asking>(peer: A) {
///     peer.reject();
/// }
/// ```
pub trait Asking {
    /// Returns what the peer sent with its request.
    fn hello(&self) -> Vec<u8>;

    /// Accepts: `context` names the channel from now on. [`Incoming::Opened`] or
    /// [`Incoming::Closed`] follows. False: it could not be accepted.
    fn accept(self, context: u64) -> bool;

    /// Turns the peer away.
    fn reject(self);
}

/// What a mapping reports.
///
/// # Example
///
/// ```
/// use cci_am::{Asking, Incoming};
///
/// fn is_message<A: Asking>(incoming: &Incoming<'_, u32, A>) -> bool {
///     matches!(incoming, Incoming::Message(..))
/// }
/// ```
#[derive(Debug)]
pub enum Incoming<'m, C, A> {
    /// A message on the channel with this context.
    Message(u64, Arrived<'m>),
    /// The operation with this context has ended.
    Ended(u64, Outcome),
    /// A peer asks for a channel.
    Asks(A),
    /// The channel with this context is open.
    Opened(u64, C),
    /// The channel with this context did not open, or its peer is gone.
    Closed(u64),
}

/// Bytes that go between memory of this side and memory of a peer.
///
/// # Example
///
/// ```
/// use cci::RmaHandle;
///
/// fn first_page<'a>(local: &'a RmaHandle, remote: &'a RmaHandle) -> cci_am::Transfer<'a> {
///     cci_am::Transfer { local, local_offset: 0, remote, remote_offset: 0, len: 4096 }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    /// This side's memory.
    pub local: &'a RmaHandle,
    /// Where the bytes begin in it.
    pub local_offset: u64,
    /// The peer's memory.
    pub remote: &'a RmaHandle,
    /// Where the bytes begin in it.
    pub remote_offset: u64,
    /// Their number, at least 1.
    pub len: u64,
}

/// Room for a message that is written in place.
///
/// # Example
///
/// ```
/// fn fill<R: cci_am::Room>(room: &mut R) -> bool {
///     room.write_at(0, b"in place")
/// }
/// ```
pub trait Room {
    /// Writes bytes at an offset. False, and nothing is written, when they do not fit.
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> bool;

    /// Sends the message.
    ///
    /// # Errors
    ///
    /// Refused; the message comes back.
    fn send(self, context: u64) -> Result<(), (Refused, Self)>
    where
        Self: Sized;
}

/// What carries Active Messages: channels that keep messages reliable and in order, and memory that
/// peers write. [`crate::CciMapping`] is the one over CCI.
///
/// A mapping never runs a handler and never waits, but in [`Mapping::wait`]. Its operations report
/// their end with the context that they were started with: those of messages only when they fail.
///
/// # Example
///
/// ```
/// use cci_am::{Mapping, Refused};
///
/// fn hello<M: Mapping>(mapping: &M, channel: M::Channel) -> Result<(), Refused> {
///     mapping.send(channel, b"hello", 1)
/// }
/// ```
pub trait Mapping {
    /// One direction of requests between two endpoints, with their replies.
    type Channel: Copy;
    /// Registered memory; dropping it ends the registration.
    type Region;
    /// Room for a message.
    type Room<'e>: Room
    where
        Self: 'e;
    /// A peer that asks.
    type Asking<'e>: Asking
    where
        Self: 'e;

    /// Returns what peers reach this endpoint by.
    fn name(&self) -> &str;

    /// Returns what this name stands for: a name as that of [`Mapping::name`].
    ///
    /// # Errors
    ///
    /// It stands for nothing here, with a sentence.
    fn resolve<'n>(&self, name: &'n str) -> Result<Cow<'n, str>, String> {
        Ok(Cow::Borrowed(name))
    }

    /// Begins to open a channel to the endpoint of this name. [`Incoming::Opened`] or
    /// [`Incoming::Closed`] follows.
    ///
    /// # Errors
    ///
    /// Refused at once, with a sentence.
    fn connect(&self, name: &str, hello: &[u8], context: u64) -> Result<(), String>;

    /// Closes a channel. What is open on it ends as broken.
    fn close(&self, channel: Self::Channel);

    /// Returns the length of the longest message, bytes.
    fn longest(&self, channel: Self::Channel) -> usize;

    /// Sends a message. The bytes are the caller's again on return.
    ///
    /// # Errors
    ///
    /// Refused.
    fn send(&self, channel: Self::Channel, message: &[u8], context: u64) -> Result<(), Refused>;

    /// Sends a message gathered from parts, as [`Mapping::send`]; by a room, unless the mapping has
    /// a cheaper way.
    ///
    /// # Errors
    ///
    /// As [`Mapping::send`].
    fn send_vectored(&self, channel: Self::Channel, parts: &[IoSlice<'_>], context: u64) -> Result<(), Refused> {
        let len = parts.iter().map(|part| part.len()).sum();
        let (mut room, mut at) = (self.reserve(channel, len)?, 0);
        for part in parts {
            let is_written = room.write_at(at, part);
            debug_assert!(is_written, "a room of {len} bytes");
            at += part.len();
        }
        room.send(context).map_err(|(why, _)| why)
    }

    /// Sends a message with room that is set aside for replies.
    ///
    /// # Errors
    ///
    /// Refused.
    fn reply(&self, channel: Self::Channel, message: &[u8], context: u64) -> Result<(), Refused>;

    /// Gives room for a message of `len` bytes.
    ///
    /// # Errors
    ///
    /// Refused.
    fn reserve(&self, channel: Self::Channel, len: usize) -> Result<Self::Room<'_>, Refused>;

    /// Registers memory; `rights` are those of peers.
    ///
    /// # Errors
    ///
    /// Memory or handles are short.
    fn register(&self, memory: &Memory, rights: Rights) -> Result<Self::Region, RegisterError>;

    /// Returns the handle by which peers name a region.
    fn handle(region: &Self::Region) -> &RmaHandle;

    /// Ends a registration: nobody copies any more on return.
    ///
    /// # Errors
    ///
    /// A peer is in the midst of a copy; the region comes back.
    fn deregister(&self, region: Self::Region) -> Result<(), (Self::Region, RegisterError)>;

    /// Writes into a peer's memory, then delivers `message` there.
    ///
    /// # Errors
    ///
    /// Refused.
    fn write(
        &self,
        channel: Self::Channel,
        transfer: &Transfer<'_>,
        message: &[u8],
        context: u64,
    ) -> Result<(), Refused>;

    /// Reads from a peer's memory.
    ///
    /// # Errors
    ///
    /// Refused.
    fn read(&self, channel: Self::Channel, transfer: &Transfer<'_>, context: u64) -> Result<(), Refused>;

    /// Hands what has happened to `take`, at most `most` of it, and returns how much there was.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    fn poll<'e>(
        &'e self,
        most: usize,
        take: impl FnMut(Incoming<'_, Self::Channel, Self::Asking<'e>>),
    ) -> Result<usize, PollError>;

    /// As [`Mapping::poll`] for one, and sleeps until there is one, at most for `limit`.
    ///
    /// # Errors
    ///
    /// As [`Mapping::poll`].
    fn wait<'e>(
        &'e self,
        limit: Duration,
        take: impl FnMut(Incoming<'_, Self::Channel, Self::Asking<'e>>),
    ) -> Result<usize, PollError>;

    /// Takes the wake-ups of other threads that have ended a wait or shall end the next one:
    /// whether there was any.
    fn take_wake(&self) -> bool;

    /// As [`Mapping::wait`] for several; `take` also gets the place of the one that reports. A
    /// wake-up from another thread ends it before `limit`, and is then there for
    /// [`Mapping::take_wake`].
    ///
    /// # Errors
    ///
    /// As [`Mapping::poll`].
    fn wait_any<'e>(
        mappings: &[&'e Self],
        limit: Duration,
        take: impl FnMut(usize, Incoming<'_, Self::Channel, Self::Asking<'e>>),
    ) -> Result<usize, PollError>;
}
