//! Events as programs hold them.

pub(crate) mod detached;
mod held;
mod kinds;
mod received;
mod request;

pub use kinds::{
    AcceptFailed, Accepted, Completed, ConnectFailed, Connected, Disconnected, EndpointFailed, ImportEnded, Keepalive,
};
pub use received::Received;
pub use request::{Request, Unanswered};

use crate::binding;
use crate::connection::Connection;
use cci_proto::{EventKind, Failure, Status};
use cci_transport::Slot;
use held::Held;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// What an endpoint reports. It borrows a buffer of the endpoint until it is dropped: in any order,
/// on any thread.
///
/// A connection request is accepted or rejected; dropping it unanswered rejects it.
///
/// # Example
///
/// ```
/// use cci::{Endpoint, Event};
///
/// fn handle(event: Event<'_>) -> Result<(), Box<dyn std::error::Error>> {
///     match event {
///         Event::Received(message) => println!("{} bytes", message.len()),
///         Event::Completed(operation) => operation.outcome()?,
///         Event::Request(request) => request.accept(0)?,
///         Event::ConnectFailed(connect) => return Err(connect.failure().into()),
///         // Later versions may have more.
///         _ => {}
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A message has arrived.
    Received(Received<'e>),
    /// A send or an RMA has ended.
    Completed(Completed<'e>),
    /// A connect has succeeded.
    Connected(Connected<'e>),
    /// A connect has failed.
    ConnectFailed(ConnectFailed<'e>),
    /// A peer asks for a connection.
    Request(Request<'e>),
    /// An accepted connection is open.
    Accepted(Accepted<'e>),
    /// An accepted connection did not open.
    AcceptFailed(AcceptFailed<'e>),
    /// The peer was silent for the keepalive time.
    Keepalive(Keepalive<'e>),
    /// The peer has disconnected or died; reported where
    /// [`crate::EndpointOptions::disconnect_events`] asks for it.
    Disconnected(Disconnected<'e>),
    /// An [`crate::Import`] is current no more.
    ImportEnded(ImportEnded<'e>),
    /// The endpoint's device has failed: no operation succeeds any more.
    EndpointFailed(EndpointFailed<'e>),
}

/// Does the same with what every variant holds.
macro_rules! with_held {
    ($event:expr, $held:ident => $act:expr) => {
        match $event {
            Event::Received(Received($held))
            | Event::Completed(Completed($held))
            | Event::Connected(Connected($held))
            | Event::ConnectFailed(ConnectFailed($held))
            | Event::Request(Request($held))
            | Event::Accepted(Accepted($held))
            | Event::AcceptFailed(AcceptFailed($held))
            | Event::Keepalive(Keepalive($held))
            | Event::Disconnected(Disconnected($held))
            | Event::ImportEnded(ImportEnded($held))
            | Event::EndpointFailed(EndpointFailed($held)) => $act,
        }
    };
}

impl<'e> Event<'e> {
    /// The event in a slot that `get_event` has just handed out.
    #[inline(always)]
    pub(crate) fn of(slot: &'static Slot) -> Self {
        let held = Held { slot, endpoint: PhantomData };
        let kind = slot.kind();
        if kind == EventKind::Recv as u32 {
            Self::Received(Received(held))
        } else if kind == EventKind::Send as u32 {
            Self::Completed(Completed(held))
        } else {
            Self::of_control(held, kind)
        }
    }

    /// Apart from messages and completions, which need fewer registers without it.
    #[inline(never)]
    fn of_control(held: Held<'e>, kind: u32) -> Self {
        let succeeded = held.slot.detail() == Status::Success as u32;
        match EventKind::from_u32(kind) {
            Some(EventKind::Connect) if succeeded => Self::Connected(Connected(held)),
            Some(EventKind::Connect) => Self::ConnectFailed(ConnectFailed(held)),
            Some(EventKind::Accept) if succeeded => Self::Accepted(Accepted(held)),
            Some(EventKind::Accept) => Self::AcceptFailed(AcceptFailed(held)),
            Some(EventKind::ConnectRequest) => Self::Request(Request(held)),
            Some(EventKind::KeepaliveTimedOut) => Self::Keepalive(Keepalive(held)),
            Some(EventKind::Disconnect) => Self::Disconnected(Disconnected(held)),
            Some(EventKind::ImportEnded) => Self::ImportEnded(ImportEnded(held)),
            _ => Self::EndpointFailed(EndpointFailed(held)),
        }
    }

    #[inline(always)]
    fn held(&self) -> &Held<'e> {
        with_held!(self, held => held)
    }

    fn into_held(self) -> Held<'e> {
        with_held!(self, held => held)
    }

    /// Returns what the event reports, without its contents.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Received(_) => EventKind::Recv,
            Self::Completed(_) => EventKind::Send,
            Self::Connected(_) | Self::ConnectFailed(_) => EventKind::Connect,
            Self::Request(_) => EventKind::ConnectRequest,
            Self::Accepted(_) | Self::AcceptFailed(_) => EventKind::Accept,
            Self::Keepalive(_) => EventKind::KeepaliveTimedOut,
            Self::Disconnected(_) => EventKind::Disconnect,
            Self::ImportEnded(_) => EventKind::ImportEnded,
            Self::EndpointFailed(_) => EventKind::DeviceFailed,
        }
    }

    /// Returns how the operation ended that the event reports: a send, an RMA, a connect or an
    /// accept. Other events succeed.
    ///
    /// # Errors
    ///
    /// The operation failed.
    #[inline]
    pub fn outcome(&self) -> Result<(), Failure> {
        match self {
            Self::Completed(Completed(held))
            | Self::ConnectFailed(ConnectFailed(held))
            | Self::AcceptFailed(AcceptFailed(held)) => held.outcome(),
            _ => Ok(()),
        }
    }

    /// Returns why a connect failed, as a sentence: the peer's own words when it refused the
    /// handshake, for one, and that of [`Event::outcome`] where no more is known. Of a peer that is
    /// lost or silent: the frames of it that came from another address, or the call that the system
    /// refuses. `None` for other events.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        binding::reason(self.held().slot)
    }

    /// Returns the context of the operation that the event reports; 0 for events without one.
    #[inline]
    #[must_use]
    pub fn context(&self) -> u64 {
        let [second, third] = self.held().slot.words();
        match self {
            Self::Completed(_) => third,
            Self::Connected(_) | Self::ConnectFailed(_) | Self::Accepted(_) | Self::AcceptFailed(_) => second,
            _ => 0,
        }
    }

    /// Returns the connection that the event is about; `None` for requests, and for connects and
    /// accepts that failed.
    #[inline]
    #[must_use]
    pub fn connection(&self) -> Option<Connection> {
        match self {
            Self::Request(_) => None,
            _ => self.held().connection(),
        }
    }

    /// Returns the message of a received event.
    #[inline]
    #[must_use]
    pub fn received(&self) -> Option<&Received<'e>> {
        match self {
            Self::Received(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the request of a connection request.
    #[must_use]
    pub fn request(&self) -> Option<&Request<'e>> {
        match self {
            Self::Request(request) => Some(request),
            _ => None,
        }
    }

    /// Returns the request of a connection request, to be answered.
    #[must_use]
    pub fn into_request(self) -> Option<Request<'e>> {
        match self {
            Self::Request(request) => Some(request),
            _ => None,
        }
    }

    pub(crate) fn into_slot(self) -> NonNull<Slot> {
        NonNull::from(self.into_held().keep())
    }
}
