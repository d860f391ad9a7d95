//! How an endpoint is opened.

use crate::errors::Error;
use std::time::Duration;

/// How an endpoint is opened.
///
/// # Example
///
/// ```
/// let options = cci_mx::Options::new().context_ids(4, 60);
/// assert_eq!(options.context_bits, Some((4, 60)));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of unexpected messages that are kept, 4 MiB. Each link has 4 KiB at least.
    pub unexpected_max: u32,
    /// Bits of the match information that are a context id: their number and the lowest of them.
    pub context_bits: Option<(u32, u32)>,
    /// How long sends and connects wait for an endpoint that nobody has: each attempt is refused.
    /// 30 s.
    pub absent_limit: Duration,
}

impl Options {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { unexpected_max: 4 << 20, context_bits: None, absent_limit: Duration::from_secs(30) }
    }

    /// Sets how many bytes of unexpected messages are kept.
    #[must_use]
    pub const fn unexpected_max(mut self, bytes: u32) -> Self {
        self.unexpected_max = bytes;
        self
    }

    /// Makes `count` bits from bit `shift` on a context id.
    #[must_use]
    pub const fn context_ids(mut self, count: u32, shift: u32) -> Self {
        self.context_bits = Some((count, shift));
        self
    }

    /// Sets how long sends and connects wait for an endpoint that nobody has.
    #[must_use]
    pub const fn absent_limit(mut self, limit: Duration) -> Self {
        self.absent_limit = limit;
        self
    }

    /// Checks them, as [`crate::Endpoint::open`] does.
    ///
    /// # Errors
    ///
    /// [`Error::BadParameterValue`]: a context id of no bits, of more than 16, or beyond bit 63.
    pub fn check(&self) -> Result<(), Error> {
        match self.context_bits {
            Some((count, shift)) if count == 0 || count > 16 || shift > 64 - count => Err(Error::BadParameterValue),
            _ => Ok(()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
