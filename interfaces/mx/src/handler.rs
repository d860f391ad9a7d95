//! The unexpected handler of a program.

use crate::types::Address;

/// What becomes of an unexpected message.
///
/// # Example
///
/// ```
/// use cci_mx::{Answer, Unexpected};
///
/// /// Takes what is out of band.
/// fn handle(message: &Unexpected<'_>) -> Answer {
///     if message.bits >> 63 == 1 { Answer::Finished } else { Answer::Continue }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "as MX has it")]
pub enum Answer {
    /// It goes to a receive, as if there were no handler.
    Continue,
    /// It is gone: the handler has used it.
    Finished,
}

/// What the unexpected handler is shown of a message.
///
/// # Example
///
/// ```
/// fn is_here(message: &cci_mx::Unexpected<'_>) -> bool {
///     message.data.is_some()
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Unexpected<'a> {
    /// The sender.
    pub source: Address,
    /// The match bits.
    pub bits: u64,
    /// Bytes of the message.
    pub length: u32,
    /// The bytes, if they have come with the message, until the handler returns.
    pub data: Option<&'a [u8]>,
}

/// The unexpected handler.
pub(crate) type Handler = Box<dyn Fn(&Unexpected<'_>) -> Answer + Send + Sync>;
