//! Who asks a server for a connection.

use crate::rendezvous::{Answer, Asking, Listener};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Clients that ask for a discriminator, for a program that does not wait for them.
///
/// # Example
///
/// ```
/// use cci_via::engine::{Clients, Core, Token};
///
/// /// Turns away whoever asks now.
/// fn turn_away<T: Token>(core: &Core<T>, clients: &mut Clients) {
///     while let Some(asking) = clients.next() {
///         core.reject(asking);
///     }
/// }
/// ```
pub struct Clients(pub(crate) Listener);

impl Clients {
    /// Returns the next client that has asked, if there is one. Never waits.
    #[expect(clippy::should_implement_trait, reason = "it is not over when there is none")]
    pub fn next(&mut self) -> Option<Asking> {
        loop {
            let mut asking = self.0.poll()?;
            if !asking.is_peer {
                return Some(asking);
            }
            // It wants the other model; who does not take the answer learns nothing.
            let _ = asking.answer(&Answer::Other);
        }
    }

    /// Returns what becomes readable when there may be one.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.descriptors()
    }

    /// Returns how long a sleep on these descriptors may last; `None`: for ever.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.0.left()
    }
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clients")
    }
}
