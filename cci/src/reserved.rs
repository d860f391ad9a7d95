//! Messages that a program writes where they are sent from.

use crate::binding;
use crate::connection::Connection;
use crate::endpoint::{EndpointFor, ManyThreads};
use crate::operations::Notify;
use cci_proto::SendError;
use cci_transport::Room;
use std::fmt;
use std::io::{self, Write};

/// Room for a message: [`EndpointFor::reserve`]. What is written here is the message, once it is
/// [sent](Reserved::send): on `sm` its receiver reads it where it was written, if it is longer than
/// 56 bytes.
///
/// Dropping it gives the room back. It holds room that other messages may wait for, so it is for a
/// message that is written at once. Bytes that were never written are those of an earlier message
/// of this endpoint. On `sm` a peer that breaks the protocol could read and change them, which is
/// why they are never shown as a slice.
///
/// # Example
///
/// ```
/// # use cci::{Connection, Endpoint};
/// use std::error::Error;
/// use std::io::Write;
///
/// /// Formats a message in place.
/// fn tell(endpoint: &Endpoint, to: Connection, value: u64) -> Result<(), Box<dyn Error>> {
///     let mut message = endpoint.reserve(to, 100)?;
///     write!(message, "the value is {value}")?;
///     message.send(1)?;
///     Ok(())
/// }
/// ```
#[must_use = "dropping it gives the room back"]
pub struct Reserved<'e, T = ManyThreads> {
    endpoint: &'e EndpointFor<T>,
    connection: Connection,
    room: Room,
    capacity: usize,
    len: usize,
}

impl<'e, T> Reserved<'e, T> {
    pub(crate) fn new(
        endpoint: &'e EndpointFor<T>,
        connection: Connection,
        capacity: usize,
    ) -> Result<Self, SendError> {
        let room = binding::reserve(endpoint.cell(), || connection.live(endpoint.cell()), capacity)?;
        Ok(Self { endpoint, connection, room, capacity, len: 0 })
    }

    /// Returns the most bytes that it takes: as many as were asked for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the bytes of the message so far: up to the last that was written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes bytes at an offset. False, and nothing is written, when they do not fit as a whole.
    #[must_use]
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let end = offset.checked_add(bytes.len()).filter(|end| *end <= self.capacity);
        let written = end.is_some() && self.room.memory.copy_in(offset as u64, bytes);
        if let Some(end) = end.filter(|_| written) {
            self.len = self.len.max(end);
        }
        written
    }

    /// Sets the length of the message, for a program that writes through [`Reserved::as_mut_ptr`].
    /// False, and nothing changes, beyond the capacity.
    #[must_use]
    pub fn set_len(&mut self, len: usize) -> bool {
        let fits = len <= self.capacity;
        if fits {
            self.len = len;
        }
        fits
    }

    /// Returns the address of the first byte, for code that writes through pointers. It is valid as
    /// long as this value.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.room.memory.start())
    }

    /// Sends the message: what was written. Its end is reported as that of [`EndpointFor::send`].
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent, and the message is given back with the reason.
    pub fn send(self, notify: impl Into<Notify>) -> Result<(), Unsent<'e, T>> {
        let (context, flags) = notify.into().parts();
        let cell = self.endpoint.cell();
        let message = (self.room.number, self.len);
        match binding::commit(cell, || self.connection.live(cell), message, context, flags) {
            // The room is gone; nothing else is to be given back.
            Ok(()) => {
                let mut this = self;
                this.room.number = SENT;
                Ok(())
            }
            Err(why) => Err(Unsent { message: self, why }),
        }
    }
}

/// The number of no room.
const SENT: u64 = 0;

impl<T> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        if self.room.number != SENT {
            // Refused where the endpoint is gone, and the room with it.
            let _ = binding::cancel(self.endpoint.cell(), self.room.number);
        }
    }
}

/// Appends to the message; writes as much as there is room for.
impl<T> Write for Reserved<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.capacity - self.len);
        Ok(if self.write_at(self.len, &bytes[..len]) { len } else { 0 })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T> fmt::Debug for Reserved<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reserved({} of {} bytes)", self.len, self.capacity)
    }
}

/// A message that was not sent, and why. It can be sent again; dropping it gives its room back.
///
/// # Example
///
/// ```
/// use cci::{Reserved, SendError, Unsent};
///
/// /// Sends a message, or keeps it while send buffers are short.
/// fn send<'e>(message: Reserved<'e>, later: &mut Vec<Reserved<'e>>) -> Result<(), SendError> {
///     match message.send(1) {
///         Err(Unsent { message, why: SendError::NoBuffers }) => later.push(message),
///         sent => sent?,
///     }
///     Ok(())
/// }
/// ```
#[must_use = "dropping it gives the room back"]
pub struct Unsent<'e, T = ManyThreads> {
    /// The message.
    pub message: Reserved<'e, T>,
    /// Why it was refused.
    pub why: SendError,
}

impl<T> fmt::Debug for Unsent<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unsent({:?}, {:?})", self.message, self.why)
    }
}

impl<T> fmt::Display for Unsent<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T> From<Unsent<'_, T>> for SendError {
    fn from(unsent: Unsent<'_, T>) -> Self {
        unsent.why
    }
}

impl<T> From<Unsent<'_, T>> for Box<dyn std::error::Error> {
    fn from(unsent: Unsent<'_, T>) -> Self {
        unsent.why.into()
    }
}

impl<T> From<Unsent<'_, T>> for Box<dyn std::error::Error + Send + Sync> {
    fn from(unsent: Unsent<'_, T>) -> Self {
        unsent.why.into()
    }
}
