//! How peers are connected to.

use std::time::Duration;

/// How [`crate::Peers`] connects, and how long it waits.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// let options = cci_peers::Options::new().limit(Duration::from_secs(5)).most_waiting(1024);
/// assert_eq!(options.limit, Duration::from_secs(5));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long operations wait for a peer that has not been there yet. 30 s.
    pub limit: Duration,
    /// How long they wait for one that was there and has gone. 1 s. When both sides connect at
    /// once, the connect of one is rejected, and it needs this time for the connect of the other.
    pub return_limit: Duration,
    /// How long operations wait while each attempt is refused: nobody is there, or it does not want
    /// this side. 30 s, so that a peer may come late.
    pub refusal_limit: Duration,
    /// How many operations wait for each peer at most. 64.
    pub most_waiting: usize,
    /// How many peers there may be at most, those included that have come by themselves. 2^20.
    pub most_peers: u32,
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            limit: Duration::from_secs(30),
            return_limit: Duration::from_secs(1),
            refusal_limit: Duration::from_secs(30),
            most_waiting: 64,
            most_peers: 1 << 20,
        }
    }

    /// Sets how long operations wait for a peer that has not been there yet.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets how long operations wait for a peer that was there and has gone.
    #[must_use]
    pub fn return_limit(mut self, limit: Duration) -> Self {
        self.return_limit = limit;
        self
    }

    /// Sets how long operations wait while each attempt is refused.
    #[must_use]
    pub fn refusal_limit(mut self, limit: Duration) -> Self {
        self.refusal_limit = limit;
        self
    }

    /// Sets how many operations wait for each peer at most.
    #[must_use]
    pub fn most_waiting(mut self, most: usize) -> Self {
        self.most_waiting = most;
        self
    }

    /// Sets how many peers there may be.
    #[must_use]
    pub fn most_peers(mut self, most: u32) -> Self {
        self.most_peers = most;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
