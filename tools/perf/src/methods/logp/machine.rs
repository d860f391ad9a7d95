//! What the method needs of whatever it measures.

use cci_report::UserError;

/// A burst of requests, each of which is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    /// Requests.
    pub(crate) length: u64,
    /// What the requester computes after each, nanoseconds.
    pub(crate) delay: u64,
    /// Requests without reply at most: with so many it waits for a reply before the next.
    pub(crate) window: u64,
    /// After each request and delay it looks for a reply, once. A burst that does not look takes
    /// the time of the requests alone.
    pub(crate) looks: bool,
}

/// How long a burst took, nanoseconds, without what reading the clock takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times {
    /// Until the last request was issued, and its delay and look were over.
    pub(crate) issued: f64,
    /// Until the last reply was handled.
    pub(crate) answered: f64,
}

/// Two processors and what is between them: one issues requests, the other answers each at once.
pub(crate) trait Machine {
    /// Runs a burst from a state of rest: nothing is on its way, and nothing has been for a while.
    fn burst(&mut self, burst: &Burst) -> Result<Times, UserError>;

    /// How long computing takes that is asked for as so many nanoseconds.
    fn compute(&mut self, delay: u64) -> Result<f64, UserError>;

    /// Requests have so many bytes from now on.
    fn resize(&mut self, size: u64) -> Result<(), UserError>;

    /// The largest request, bytes.
    fn largest(&self) -> u64;
}
