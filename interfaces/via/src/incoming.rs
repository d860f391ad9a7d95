//! Clients of a NIC as Rust programs hold them.

use crate::engine::Core;
use crate::errors::Error;
use crate::nic::Nic;
use crate::region::Work;
use crate::rendezvous::{Address, Asking};
use crate::vi::{Connected, Idle, Vi};
use std::sync::Arc;
use std::time::Duration;

/// A client that asks for a connection. A drop leaves it without an answer: it goes on looking, and
/// finds no match.
///
/// # Example
///
/// ```
/// use cci_via::{Connected, Idle, Incoming, Vi};
///
/// fn take(mut incoming: Incoming, vi: Vi<Idle>) -> Option<Vi<Connected>> {
///     match incoming.accept(vi) {
///         Ok(vi) => Some(vi),
///         Err(_) => {
///             incoming.reject();
///             None
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Incoming {
    core: Arc<Core<Work>>,
    asking: Asking,
}

impl Nic {
    /// Waits for a client that asks for a discriminator.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`], [`Error::Resource`], [`Error::Timeout`].
    pub fn listen(&self, local: &Address, limit: Option<Duration>) -> Result<Incoming, Error> {
        self.0.listen(local, limit).map(|asking| Incoming { core: Arc::clone(&self.0), asking })
    }
}

impl Incoming {
    /// Returns what asks: attributes and address.
    #[must_use]
    pub fn asking(&self) -> &Asking {
        &self.asking
    }

    /// Accepts the client with an idle VI of the same NIC. Waits until it is connected, at most
    /// 10 s, and not once the client hangs up.
    ///
    /// # Errors
    ///
    /// The VI comes back, and the client notices nothing: it can be accepted by another VI, or
    /// rejected. The attribute that differs, or [`Error::Timeout`]: the client is gone.
    pub fn accept(&mut self, vi: Vi<Idle>) -> Result<Vi<Connected>, (Vi<Idle>, Error)> {
        match self.core.accept(&mut self.asking, vi.number()) {
            Ok(()) => Ok(vi.into_state()),
            Err(why) => Err((vi, why)),
        }
    }

    /// Rejects the client.
    pub fn reject(self) {
        self.core.reject(self.asking);
    }
}
