//! How an endpoint is opened.

use std::time::Duration;

/// How an endpoint is opened.
///
/// # Example
///
/// ```
/// use cci_am::Options;
/// use std::time::Duration;
///
/// let options = Options::new().credits(32).send_timeout(Duration::from_secs(5));
/// assert_eq!(options.credits, 32);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Requests of all peers together that may be open at this endpoint, at least 1. Each has a
    /// reply buffer.
    pub credits: u32,
    /// Bytes of the longest medium payload.
    pub longest_medium: usize,
    /// Bytes of the longest reply: the length of a reply buffer.
    pub longest_reply: usize,
    /// Bytes of the longest bulk request that is copied; one from the segment may be longer.
    pub longest_bulk: usize,
    /// How long a peer may not answer, or lend no credit, before requests come back.
    pub send_timeout: Duration,
}

impl Options {
    /// The defaults: 512 credits, mediums and replies of 64 KiB, copied bulk of 1 MiB, 30 s.
    #[must_use]
    pub fn new() -> Self {
        Self {
            credits: 512,
            longest_medium: 64 << 10,
            longest_reply: 64 << 10,
            longest_bulk: 1 << 20,
            send_timeout: Duration::from_secs(30),
        }
    }

    /// Sets the number of credits.
    #[must_use]
    pub fn credits(mut self, credits: u32) -> Self {
        self.credits = credits;
        self
    }

    /// Sets the send timeout.
    #[must_use]
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = timeout;
        self
    }

    /// Sets the longest medium payload, bytes.
    #[must_use]
    pub fn longest_medium(mut self, bytes: usize) -> Self {
        self.longest_medium = bytes;
        self
    }

    /// Sets the longest reply, bytes.
    #[must_use]
    pub fn longest_reply(mut self, bytes: usize) -> Self {
        self.longest_reply = bytes;
        self
    }

    /// Sets the longest copied bulk request, bytes.
    #[must_use]
    pub fn longest_bulk(mut self, bytes: usize) -> Self {
        self.longest_bulk = bytes;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
