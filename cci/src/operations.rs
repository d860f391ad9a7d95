//! What operations are asked for with.

use cci_proto::{Access, Atomic, Attribute, Flags, RmaHandle};
use std::time::Duration;

/// Which ends of an operation are reported by an event, and the program's context in it.
///
/// A number converts into [`Notify::Always`].
///
/// # Example
///
/// ```
/// # fn send(endpoint: &cci::Endpoint, connection: cci::Connection) -> Result<(), cci::SendError> {
/// use cci::Notify;
///
/// endpoint.send(connection, b"reported", 7)?;
/// endpoint.send(connection, b"reported if it fails", Notify::OnFailure(8))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notify {
    /// The end is reported, with this context.
    Always(u64),
    /// Only a failure is reported, with this context.
    OnFailure(u64),
}

impl Notify {
    #[inline(always)]
    pub(crate) fn parts(self) -> (u64, Flags) {
        match self {
            Self::Always(context) => (context, Flags::NONE),
            Self::OnFailure(context) => (context, Flags::SILENT),
        }
    }
}

impl From<u64> for Notify {
    #[inline(always)]
    fn from(context: u64) -> Self {
        Self::Always(context)
    }
}

/// A connection to be made: the peer's URI, and what else differs from the defaults.
///
/// # Example
///
/// ```
/// use cci::{Attribute, Connect};
/// use std::time::Duration;
///
/// # fn connect(endpoint: &cci::Endpoint, uri: &str) -> Result<(), cci::ConnectError> {
/// endpoint.connect(&Connect::to(uri).timeout(Duration::from_secs(10)))?;
/// endpoint.connect(&Connect::to(uri).attribute(Attribute::Unreliable).payload(b"who I am").context(1))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "pass it to `connect`"]
pub struct Connect<'a>(pub(crate) cci_transport::Connect<'a>);

impl<'a> Connect<'a> {
    /// A reliable, ordered connection to the endpoint at `uri`, without payload, with context 0,
    /// which waits for ever.
    pub fn to(uri: &'a str) -> Self {
        let attribute = Attribute::ReliableOrdered;
        Self(cci_transport::Connect { uri, payload: &[], attribute, context: 0, timeout: None })
    }

    /// What the server sees in the request: at most 1,024 bytes ([`crate::CONN_REQ_LEN`]). Copied
    /// by the call.
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.0.payload = payload;
        self
    }

    /// What the connection promises.
    pub fn attribute(mut self, attribute: Attribute) -> Self {
        self.0.attribute = attribute;
        self
    }

    /// The program's context: in the event that reports the end of this connect, and of the
    /// connection from then on.
    pub fn context(mut self, context: u64) -> Self {
        self.0.context = context;
        self
    }

    /// How long the connect may take; `None`: for ever.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.0.timeout = timeout.into();
        self
    }
}

/// An RMA: which bytes go between a registration of this endpoint and one of the peer's.
/// [`crate::EndpointFor::read`] and [`crate::EndpointFor::write`] give the direction;
/// [`crate::EndpointFor::atomic`] changes one word of the peer's.
///
/// # Example
///
/// ```
/// use cci::{Connection, Endpoint, Registration, Rma, RmaError, RmaHandle};
///
/// /// Writes the second half of `local` to the beginning of the peer's memory, and tells the peer.
/// fn write(endpoint: &Endpoint, to: Connection, local: &Registration<Vec<u8>>, remote: &RmaHandle) -> Result<(), RmaError> {
///     let half = local.len() / 2;
///     let rma = Rma::new(local.handle(), remote, half).local_offset(half).message(&b"written"[..]);
///     endpoint.write(to, &rma, 1)
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "pass it to `read`, `write` or `atomic`"]
pub struct Rma<'a>(cci_transport::Rma<'a>);

impl<'a> Rma<'a> {
    /// An RMA of `len` bytes, at least 1, at the beginning of both registrations.
    pub fn new(local: &'a RmaHandle, remote: &'a RmaHandle, len: u64) -> Self {
        let (local_offset, remote_offset) = (0, 0);
        let (access, fence, message) = (Access::Write, false, None);
        Self(cci_transport::Rma { local, local_offset, remote, remote_offset, len, access, fence, message })
    }

    /// Names another local registration.
    pub fn local(mut self, local: &'a RmaHandle) -> Self {
        self.0.local = local;
        self
    }

    /// Names another registration of the peer.
    pub fn remote(mut self, remote: &'a RmaHandle) -> Self {
        self.0.remote = remote;
        self
    }

    /// Where the bytes begin in the local registration, in bytes.
    pub fn local_offset(mut self, offset: u64) -> Self {
        self.0.local_offset = offset;
        self
    }

    /// Where the bytes begin in the peer's registration, in bytes.
    pub fn remote_offset(mut self, offset: u64) -> Self {
        self.0.remote_offset = offset;
        self
    }

    /// A message that the peer receives after the bytes: at most the connection's largest message.
    /// Copied by the call.
    pub fn message(mut self, message: impl Into<Option<&'a [u8]>>) -> Self {
        self.0.message = message.into().map(Into::into);
        self
    }

    /// Begins after all earlier operations of the connection have ended; all later ones wait for
    /// its end.
    pub fn fence(mut self) -> Self {
        self.0.fence = true;
        self
    }

    /// An atomic operation in place of a read or a write: on the peer's word where this RMA begins,
    /// whose length is that of this RMA, 4 or 8 bytes.
    pub fn atomic(self, atomic: Atomic) -> AtomicRma<'a> {
        AtomicRma(self.with(Access::Atomic(atomic)))
    }

    /// As the transport takes it.
    pub(crate) fn with(&self, access: Access) -> cci_transport::Rma<'a> {
        cci_transport::Rma { access, ..self.0 }
    }
}

/// An atomic operation on one word of a peer's registered memory, for
/// [`crate::EndpointFor::atomic`]. [`Rma::atomic`] makes it. It borrows what its RMA borrowed.
///
/// # Example
///
/// ```
/// use cci::{Atomic, AtomicRma, Registration, Rma, RmaHandle};
///
/// /// Adds one to the peer's counter of 8 bytes; the old value comes to the beginning of `old`.
/// fn increment<'a>(old: &'a Registration<Vec<u8>>, counter: &'a RmaHandle) -> AtomicRma<'a> {
///     Rma::new(old.handle(), counter, 8).atomic(Atomic::FetchAdd(1))
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "pass it to `atomic`"]
pub struct AtomicRma<'a>(pub(crate) cci_transport::Rma<'a>);
