//! Endpoints in programs of `tokio`; with the feature `tokio`.
//!
//! # Example
//!
//! Echo over two transports, of which either may be missing on a host:
//!
//! ```
//! # use cci::tokio::AsyncEndpoint;
//! # use cci::{Connect, Context, Endpoint, EndpointOptions, Event};
//! # type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
//! async fn serve(server: AsyncEndpoint) -> Outcome<()> {
//!     loop {
//!         match server.next_event().await? {
//!             Event::Request(request) => request.accept(0)?,
//!             Event::Received(message) => server.send(message.connection().ok_or("closed")?, &message.to_vec(), 0)?,
//!             Event::Disconnected(_) => return Ok(()),
//!             _ => {}
//!         }
//!     }
//! }
//!
//! async fn call(client: AsyncEndpoint, uri: &str) -> Outcome<Vec<u8>> {
//!     client.connect(&Connect::to(uri))?;
//!     loop {
//!         match client.next_event().await? {
//!             Event::Connected(connected) => client.send(connected.connection().ok_or("closed")?, b"hello", 0)?,
//!             Event::Received(answer) => return Ok(answer.to_vec()),
//!             event => event.outcome()?,
//!         }
//!     }
//! }
//!
//! # fn main() -> Outcome<()> {
//! # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
//! for device in Context::new()?.devices().iter().filter(|device| ["sm", "sock"].contains(&&*device.transport) && device.up) {
//!     let open = || AsyncEndpoint::new(Endpoint::open(device, &EndpointOptions::new().disconnect_events(true))?);
//!     let (server, client) = (open()?, open()?);
//!     let uri = server.uri().to_owned();
//!     let served = tokio::spawn(serve(server));
//!     assert_eq!(call(client, &uri).await?, b"hello");
//!     served.await??;
//! }
//! # Ok(())
//! # })
//! # }
//! ```

mod room;
mod senders;

use crate::endpoint::Endpoint;
use crate::event::Event;
use cci_proto::PollError;
use cci_transport::OpenError;
use senders::Senders;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Why an event could not be awaited.
///
/// # Example
///
/// ```
/// use cci::PollError;
/// use cci::tokio::WaitError;
///
/// fn must_return_events(error: &WaitError) -> bool {
///     matches!(error, WaitError::Poll(PollError::NoBuffers))
/// }
/// assert!(must_return_events(&PollError::NoBuffers.into()));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum WaitError {
    /// The endpoint has nothing to report and the program holds every receive buffer, or the
    /// endpoint cannot be used here.
    Poll(PollError),
    /// The runtime refuses to wait: it is shutting down.
    Runtime(io::Error),
}

impl std::fmt::Display for WaitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Poll(why) => why.fmt(f),
            Self::Runtime(why) => write!(f, "the runtime does not wait for the endpoint: {why}"),
        }
    }
}

impl std::error::Error for WaitError {}

impl From<PollError> for WaitError {
    fn from(why: PollError) -> Self {
        Self::Poll(why)
    }
}

/// An endpoint whose events are awaited. It has the methods of [`Endpoint`], none of which blocks
/// but those whose name says so.
///
/// The module has an example of a whole program.
///
/// # Example
///
/// ```
/// use cci::tokio::{AsyncEndpoint, WaitError};
///
/// async fn next_kind(endpoint: &AsyncEndpoint) -> Result<cci::EventKind, WaitError> {
///     Ok(endpoint.next_event().await?.kind())
/// }
/// ```
pub struct AsyncEndpoint(AsyncFd<Watched>);

/// An endpoint as the runtime knows it: by its descriptor.
struct Watched {
    endpoint: Endpoint,
    senders: Senders,
    descriptor: RawFd,
}

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor
    }
}

impl std::fmt::Debug for AsyncEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Async{:?}", &**self)
    }
}

impl AsyncEndpoint {
    /// Has the runtime of the caller watch an endpoint.
    ///
    /// # Errors
    ///
    /// The system has no room for another watched descriptor.
    ///
    /// # Panics
    ///
    /// Called outside of a runtime, or in one without I/O.
    #[expect(unsafe_code, reason = "the descriptor must stay open while the runtime watches it")]
    pub fn new(endpoint: Endpoint) -> Result<Self, OpenError> {
        let watched = Watched { descriptor: endpoint.as_fd().as_raw_fd(), endpoint, senders: Senders::default() };
        // SAFETY: an endpoint's descriptor is the same, and open, as long as the endpoint, which
        // `Watched` owns.
        let watched = unsafe { AsyncFd::register_with_interest(watched, Interest::READABLE) };
        watched
            .map(Self)
            .map_err(|refused| OpenError::system("the runtime cannot watch an endpoint", std::io::Error::from(refused)))
    }

    /// Waits until [`crate::EndpointFor::get_event`] should be called. It may come without an
    /// event.
    ///
    /// Cancel safe: nothing is lost when the future is dropped.
    ///
    /// # Errors
    ///
    /// The runtime is shutting down.
    pub async fn readable(&self) -> io::Result<()> {
        // Cleared before the caller looks: what comes after that look gives another edge.
        self.0.readable().await?.clear_ready();
        Ok(())
    }

    /// Waits for the next event.
    ///
    /// Cancel safe: an event is taken only when it is returned.
    ///
    /// # Errors
    ///
    /// Nothing to report and the program holds every receive buffer, the endpoint cannot be used
    /// here, or the runtime is shutting down.
    pub async fn next_event(&self) -> Result<Event<'_>, WaitError> {
        loop {
            let event = self.get_event()?;
            self.senders().on_look();
            if let Some(event) = event {
                return Ok(event);
            }
            self.readable().await.map_err(WaitError::Runtime)?;
        }
    }

    fn senders(&self) -> &Senders {
        &self.0.get_ref().senders
    }

    /// Ends the watching, and returns the endpoint.
    #[must_use]
    pub fn into_inner(self) -> Endpoint {
        self.0.into_inner().endpoint
    }
}

impl Deref for AsyncEndpoint {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.0.get_ref().endpoint
    }
}
