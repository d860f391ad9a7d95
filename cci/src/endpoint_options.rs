//! How an endpoint is opened.

use cci_mem::guarded::Threading;
use cci_proto::Status;
use cci_transport::{CoreOptions, OpenError};

/// How an endpoint is opened.
///
/// # Example
///
/// ```
/// use cci::{Context, Endpoint, EndpointOptions};
///
/// let options = EndpointOptions::new().disconnect_events(true).recv_buffers(256);
/// let endpoint = Endpoint::open(Context::new()?.default_device()?, &options)?;
/// assert_eq!(endpoint.recv_buffers(), Ok(256));
/// # Ok::<(), cci::OpenError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointOptions {
    /// A name of the transport's own: a port for `sock`, "pid/id" for `sm`.
    pub service: Option<String>,
    /// Whether an event reports that a peer disconnected or died.
    pub disconnect_events: bool,
    /// Whether peers are read and answered while the program makes no calls
    /// ([`EndpointOptions::present`]).
    pub present: bool,
    /// Whether silent peers are waited for until the network says that nobody is there
    /// ([`EndpointOptions::patient`]).
    pub patient: bool,
    /// Receive buffers, at most [`EndpointOptions::MAX_BUFFERS`]; options can lower it later.
    pub recv_buffers: u32,
    /// Send buffers, at most [`EndpointOptions::MAX_BUFFERS`]; options can lower it later.
    pub send_buffers: u32,
    /// Who may call it, as far as run time checks that.
    pub(crate) threading: Threading,
    /// Stamps of the time that each layer takes, of an endpoint that is measured; none for every
    /// other.
    #[cfg(feature = "trace")]
    pub(crate) stamps: Option<std::sync::Arc<cci_transport::trace::Stamps>>,
}

impl EndpointOptions {
    /// The largest number of receive buffers, and of send buffers, of an endpoint.
    pub const MAX_BUFFERS: u32 = 1 << 20;

    /// The defaults: no service, no events of peers that leave, neither present nor patient, 4,096
    /// receive and 8,192 send buffers.
    #[must_use]
    pub fn new() -> Self {
        let core = CoreOptions::default();
        Self {
            service: None,
            disconnect_events: false,
            present: false,
            patient: false,
            recv_buffers: u32::try_from(core.recv_count).unwrap_or(u32::MAX),
            send_buffers: u32::try_from(core.send_count).unwrap_or(u32::MAX),
            threading: Threading::Many,
            #[cfg(feature = "trace")]
            stamps: None,
        }
    }

    /// Sets the service.
    #[must_use]
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.service = Some(service.into());
        self
    }

    /// Sets whether an event reports that a peer disconnected or died.
    #[must_use]
    pub fn disconnect_events(mut self, wanted: bool) -> Self {
        self.disconnect_events = wanted;
        self
    }

    /// Sets whether the endpoint is present: from its first call on it reads what its peers send,
    /// acknowledges it and answers their keepalives, however long the program makes no call. So a
    /// program that computes is alive to its peers, and owes them no acknowledgement. Messages wait
    /// in the receive buffers; once these are full, their senders wait, and are answered still.
    ///
    /// Over `sock`, `tcp` and `sim` the progress thread does it, which sleeps while nothing comes.
    /// Over `sm` nobody has to: what is sent lies in memory that both map, and a peer counts as
    /// alive as long as its process and its endpoint are.
    ///
    /// An endpoint that is not present is silent while its program makes no calls, unless it has
    /// operations open or memory registered for peers, so that their timeouts notice a program that
    /// does not go on.
    ///
    /// ```
    /// # use cci::{Context, Endpoint, EndpointOptions};
    /// let options = EndpointOptions::new().present(true);
    /// let endpoint = Endpoint::open(Context::new()?.default_device()?, &options)?;
    /// # Ok::<(), cci::OpenError>(())
    /// ```
    #[must_use]
    pub fn present(mut self, wanted: bool) -> Self {
        self.present = wanted;
        self
    }

    /// Sets whether the endpoint is patient: a peer that owes acknowledgements is waited for until
    /// the network says that nobody is there, or its stream or its process has ended. So a job that
    /// is stopped goes on when it is continued, within a second or two: frames are retransmitted
    /// each second meanwhile.
    ///
    /// Any other endpoint gives up such a peer after a minute over `sock` and `sim`, and after 30 s
    /// without an answer of its kernel over `tcp`. Over `sm` no endpoint does. Timeouts that the
    /// program sets hold in any case: those of connects, of sends, and keepalives. So does the
    /// kernel's own limit of a stream of `tcp`: some 15 minutes without an answer of the peer's
    /// kernel.
    ///
    /// A host that loses its power says nothing. Its peers wait for it, unless they set a timeout.
    ///
    /// ```
    /// # use cci::{Context, Endpoint, EndpointOptions};
    /// let options = EndpointOptions::new().present(true).patient(true);
    /// let endpoint = Endpoint::open(Context::new()?.default_device()?, &options)?;
    /// # Ok::<(), cci::OpenError>(())
    /// ```
    #[must_use]
    pub fn patient(mut self, wanted: bool) -> Self {
        self.patient = wanted;
        self
    }

    /// Sets the number of receive buffers.
    #[must_use]
    pub fn recv_buffers(mut self, count: u32) -> Self {
        self.recv_buffers = count;
        self
    }

    /// Sets the number of send buffers.
    #[must_use]
    pub fn send_buffers(mut self, count: u32) -> Self {
        self.send_buffers = count;
        self
    }

    /// Refuses what no endpoint can have.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if self.present && self.threading == Threading::One {
            let what = "an endpoint for one thread has no progress thread, so that it cannot be present; open it for \
                        many threads";
            return Err(OpenError::new(Status::Inval, what));
        }
        let most = Self::MAX_BUFFERS;
        for (name, count) in [("recv_buffers", self.recv_buffers), ("send_buffers", self.send_buffers)] {
            if count > most {
                let what = format!("{name} is {count}, and an endpoint has at most {most}; lower {name}");
                return Err(OpenError::new(Status::Inval, what));
            }
        }
        Ok(())
    }
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self::new()
    }
}
