//! Clients that another endpoint of this process redirects here ([`Transport::expect`]).
//!
//! [`Transport::expect`]: crate::Transport::expect

use crate::{Core, Slot};
use cci_proto::{EventKind, Failure, RequestError};

/// A client that the endpoint accepts when it presents its token.
#[derive(Clone, Copy)]
pub struct ExpectedClient<T> {
    /// What the client presents.
    pub token: u64,
    deadline: T,
    /// The program's context of the ACCEPT event.
    pub context: u64,
    /// Reserved for the ACCEPT event.
    pub slot: &'static Slot,
}

/// The expected clients of an endpoint, with deadlines by the transport's clock.
pub struct ExpectedClients<T>(Vec<ExpectedClient<T>>);

impl<T> Default for ExpectedClients<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy + Ord> ExpectedClients<T> {
    /// Expects a client, and reserves a slot for its event.
    ///
    /// # Errors
    ///
    /// No slot is free.
    pub fn expect(&mut self, core: &mut Core, token: u64, context: u64, deadline: T) -> Result<(), RequestError> {
        let slot = core.take_send().ok_or(RequestError::NoBuffers)?;
        self.0.push(ExpectedClient { token, deadline, context, slot });
        Ok(())
    }

    /// Takes the client that presents this token, if it is expected. The slot is the caller's.
    pub fn take(&mut self, token: u64) -> Option<ExpectedClient<T>> {
        let at = self.0.iter().position(|expected| expected.token == token)?;
        Some(self.0.swap_remove(at))
    }

    /// Cancels an expectation, without event. False: there is none with this token.
    pub fn forget(&mut self, core: &mut Core, token: u64) -> bool {
        let client = self.take(token);
        if let Some(client) = &client {
            core.release(client.slot);
        }
        client.is_some()
    }

    /// Takes a client that has not come in time. The slot is the caller's.
    pub fn take_late(&mut self, now: T) -> Option<ExpectedClient<T>> {
        let at = self.0.iter().position(|expected| expected.deadline <= now)?;
        Some(self.0.swap_remove(at))
    }

    /// Ends the expectation of a client that has not come in time, with a failed ACCEPT event.
    /// Returns its token. To be called until it returns `None`.
    pub fn expire(&mut self, core: &mut Core, now: T) -> Option<u64> {
        let late = self.take_late(now)?;
        core.finish_opening(late.slot, EventKind::Accept, late.context, Err(Failure::TimedOut));
        Some(late.token)
    }

    /// The earliest deadline.
    #[must_use]
    pub fn deadline(&self) -> Option<T> {
        self.0.iter().map(|expected| expected.deadline).min()
    }

    /// Whether no client is expected.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
