//! Received messages.

use super::held::Held;
use crate::connection::Connection;
use cci_mem::view::View;
use std::fmt;

/// A received message: see [`crate::Event::Received`]. Its bytes stay where they arrived until it
/// is dropped.
///
/// # Example
///
/// ```
/// /// The number at the beginning of a message, without a copy of the rest.
/// fn number(message: &cci::Received<'_>) -> Option<u32> {
///     message.view().array(0).map(u32::from_le_bytes)
/// }
///
/// /// The message as text; in place, where that is safe.
/// fn text(message: &cci::Received<'_>) -> String {
///     match message.bytes() {
///         Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
///         None => String::from_utf8_lossy(&message.to_vec()).into_owned(),
///     }
/// }
/// ```
pub struct Received<'e>(pub(super) Held<'e>);

impl Received<'_> {
    /// Returns the connection on which the message came.
    #[inline]
    #[must_use]
    pub fn connection(&self) -> Option<Connection> {
        self.0.connection()
    }

    /// Returns the number of bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.slot.detail() as usize
    }

    /// Returns whether the message has no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes in place, where their memory is private to this process: messages over
    /// `sock`, and those of `sm` up to 56 bytes. `None` where the peer could still write them;
    /// [`Received::view`] reads those safely.
    #[inline]
    #[must_use]
    #[expect(unsafe_code, reason = "the bytes are read where the library has put them")]
    pub fn bytes(&self) -> Option<&[u8]> {
        // SAFETY: the slot is given back only when this value is dropped, which the result borrows;
        // until then the library does not write the payload, and programs reach it through this
        // type only.
        unsafe { self.0.slot.private_payload() }
    }

    /// Returns the bytes in place, wherever they are, to be read by copies of words.
    #[inline]
    #[must_use]
    #[expect(unsafe_code, reason = "the bytes are read where the library has put them")]
    pub fn view(&self) -> View<'_> {
        // SAFETY: the slot is given back only when this value is dropped, which the result borrows.
        unsafe { self.0.slot.view() }
    }

    /// Copies the first bytes of the message into `target`, and returns their number.
    #[expect(unsafe_code, reason = "the bytes are read where the library has put them")]
    pub fn copy_to(&self, target: &mut [u8]) -> usize {
        // SAFETY: the slot is given back only when this value is dropped, and is not filled before;
        // programs reach the payload through this type only, which does not write it.
        unsafe { self.0.slot.copy_payload(target) }
    }

    /// Copies the message.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.copy_to(&mut bytes);
        bytes
    }
}

impl fmt::Debug for Received<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Received({} bytes on {:?})", self.len(), self.0)
    }
}
