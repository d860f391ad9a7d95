//! Active Messages straight over CCI: a channel is a connection that is reliable and ordered.

use crate::mapping::{Arrived, Asking, Incoming, Mapping, Outcome, Refused, Room, Transfer};
use crate::message::Payload;
use crate::waker::{Waker, Wakes};
use cci::{
    Connect, Connection, Device, Endpoint, EndpointOptions, Event, Failure, Memory, Notify, OpenError, OptionError,
    PollError, RegisterError, Registration, Request, Reserved, Rights, Rma, RmaError, RmaHandle, SendError, wait_any,
};
use std::borrow::Cow;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

/// The mapping over one endpoint of CCI: a connection for each direction of requests, replies by
/// the endpoint's answer buffers, bulk data by RMA with a message.
///
/// # Example
///
/// ```
/// use cci_am::{CciMapping, Mapping};
/// use std::time::Duration;
///
/// let device = cci::Context::new()?.default_device()?.clone();
/// let mapping = CciMapping::open(&device, 64, Duration::from_secs(30))?;
/// assert!(!mapping.name().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CciMapping {
    endpoint: Endpoint,
    wakes: Arc<Wakes>,
    timeout: Duration,
}

impl CciMapping {
    /// Opens an endpoint with answer buffers for so many replies. What a peer does not take within
    /// `timeout` breaks its connections.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::open`], or the timeout is zero or too long for CCI.
    pub fn open(device: &Device, replies: u32, timeout: Duration) -> Result<Self, OpenError> {
        let plain = EndpointOptions::new();
        let send_buffers = plain.send_buffers.max(replies.saturating_mul(2));
        let recv_buffers = plain.recv_buffers.max(replies.saturating_mul(2));
        let options = plain.disconnect_events(true).send_buffers(send_buffers).recv_buffers(recv_buffers);
        let endpoint = Endpoint::open(device, &options)?;
        let set = |why: OptionError| OpenError::new(why.status(), why.to_string());
        endpoint.set_answer_buffers(replies).map_err(set)?;
        endpoint.set_send_timeout(timeout).map_err(set)?;
        Ok(Self { endpoint, wakes: Arc::default(), timeout })
    }

    /// What ends a wait from another thread.
    pub(crate) fn waker(&self) -> Result<Waker, OpenError> {
        self.wakes.waker(&self.endpoint)
    }
}

/// What no buffer now is to be told apart from.
fn refused(why: SendError) -> Refused {
    match why {
        SendError::NoBuffers => Refused::NoRoom,
        SendError::Unusable(_) => Refused::Unusable,
        _ => Refused::Gone,
    }
}

fn refused_rma(why: RmaError) -> Refused {
    match why {
        RmaError::NoBuffers => Refused::NoRoom,
        RmaError::Unusable(_) => Refused::Unusable,
        _ => Refused::Gone,
    }
}

impl Mapping for CciMapping {
    type Channel = Connection;
    type Region = Registration<Memory>;
    type Room<'e> = Reserved<'e>;
    type Asking<'e> = Request<'e>;

    fn name(&self) -> &str {
        self.endpoint.uri()
    }

    fn resolve<'n>(&self, name: &'n str) -> Result<Cow<'n, str>, String> {
        self.endpoint.resolve(name).map_err(|why| why.to_string())
    }

    fn connect(&self, name: &str, hello: &[u8], context: u64) -> Result<(), String> {
        let connect = Connect::to(name).payload(hello).context(context).timeout(self.timeout);
        self.endpoint.connect(&connect).map_err(|why| why.to_string())
    }

    fn close(&self, channel: Connection) {
        // Refused where it is closed already.
        let _ = self.endpoint.disconnect(channel);
    }

    fn longest(&self, channel: Connection) -> usize {
        channel.max_send_size().map_or(0, |bytes| bytes as usize)
    }

    #[inline]
    fn send(&self, channel: Connection, message: &[u8], context: u64) -> Result<(), Refused> {
        self.endpoint.send(channel, message, Notify::OnFailure(context)).map_err(refused)
    }

    #[inline]
    fn send_vectored(&self, channel: Connection, parts: &[IoSlice<'_>], context: u64) -> Result<(), Refused> {
        self.endpoint.send_vectored(channel, parts, Notify::OnFailure(context)).map_err(refused)
    }

    #[inline]
    fn reply(&self, channel: Connection, message: &[u8], context: u64) -> Result<(), Refused> {
        // A plain send has a fast path; what is set aside is for when it finds no buffer.
        match self.endpoint.send(channel, message, Notify::OnFailure(context)) {
            Err(SendError::NoBuffers) => {
                self.endpoint.answer(channel, message, Notify::OnFailure(context)).map_err(refused)
            }
            sent => sent.map_err(refused),
        }
    }

    fn reserve(&self, channel: Connection, len: usize) -> Result<Reserved<'_>, Refused> {
        self.endpoint.reserve(channel, len).map_err(refused)
    }

    fn register(&self, memory: &Memory, rights: Rights) -> Result<Registration<Memory>, RegisterError> {
        self.endpoint.register(memory.clone(), rights)
    }

    fn handle(region: &Registration<Memory>) -> &RmaHandle {
        region.handle()
    }

    fn deregister(&self, region: Registration<Memory>) -> Result<(), (Registration<Memory>, RegisterError)> {
        region.deregister().map(drop).map_err(|still| (still.registration, still.why))
    }

    fn write(&self, channel: Connection, transfer: &Transfer<'_>, message: &[u8], context: u64) -> Result<(), Refused> {
        self.endpoint.write(channel, &rma(transfer).message(message), context).map_err(refused_rma)
    }

    fn read(&self, channel: Connection, transfer: &Transfer<'_>, context: u64) -> Result<(), Refused> {
        self.endpoint.read(channel, &rma(transfer), context).map_err(refused_rma)
    }

    #[inline]
    fn poll<'e>(
        &'e self,
        most: usize,
        mut take: impl FnMut(Incoming<'_, Connection, Request<'e>>),
    ) -> Result<usize, PollError> {
        match self.endpoint.poll(most, |event| hand_over(event, &mut take)) {
            // Nothing is held here but in the midst of a call: what is missing comes back by
            // itself.
            Err(PollError::NoBuffers) => Ok(0),
            polled => polled,
        }
    }

    fn wait<'e>(
        &'e self,
        limit: Duration,
        mut take: impl FnMut(Incoming<'_, Connection, Request<'e>>),
    ) -> Result<usize, PollError> {
        let event = self.endpoint.wait(Some(limit))?;
        Ok(usize::from(event.map(|event| hand_over(event, &mut take)).is_some()))
    }

    fn take_wake(&self) -> bool {
        self.wakes.take()
    }

    fn wait_any<'e>(
        mappings: &[&'e Self],
        limit: Duration,
        mut take: impl FnMut(usize, Incoming<'_, Connection, Request<'e>>),
    ) -> Result<usize, PollError> {
        let endpoints: Vec<&'e Endpoint> = mappings.iter().map(|mapping| &mapping.endpoint).collect();
        let found = wait_any(&endpoints, Some(limit))?;
        Ok(usize::from(found.map(|(at, event)| hand_over(event, &mut |incoming| take(at, incoming))).is_some()))
    }
}

fn rma<'a>(transfer: &Transfer<'a>) -> Rma<'a> {
    Rma::new(transfer.local, transfer.remote, transfer.len)
        .local_offset(transfer.local_offset)
        .remote_offset(transfer.remote_offset)
}

/// Hands a message over in place; its buffer goes back afterwards.
#[inline]
fn hand_over<'e>(event: Event<'e>, take: &mut impl FnMut(Incoming<'_, Connection, Request<'e>>)) {
    let Event::Received(message) = event else { return hand_over_control(event, take) };
    // A connection that was closed here has no context any more.
    if let Some(context) = message.connection().and_then(|connection| connection.context()) {
        let bytes = message.bytes().map_or_else(|| Payload::of_view(message.view()), Payload::of_bytes);
        take(Incoming::Message(context, Arrived::new(bytes)));
    }
}

#[inline(never)]
fn hand_over_control<'e>(event: Event<'e>, take: &mut impl FnMut(Incoming<'_, Connection, Request<'e>>)) {
    let opened = |context, connection: Option<Connection>| {
        connection.map_or(Incoming::Closed(context), |connection| Incoming::Opened(context, connection))
    };
    let closed = |connection: Option<Connection>| Some(Incoming::Closed(connection?.context()?));
    let incoming = match event {
        Event::Completed(ended) => Some(Incoming::Ended(ended.context(), outcome(ended.outcome()))),
        Event::Connected(connected) => Some(opened(connected.context(), connected.connection())),
        Event::Accepted(accepted) => Some(opened(accepted.context(), accepted.connection())),
        Event::ConnectFailed(failed) => Some(Incoming::Closed(failed.context())),
        Event::AcceptFailed(failed) => Some(Incoming::Closed(failed.context())),
        Event::Disconnected(gone) => closed(gone.connection()),
        Event::Keepalive(silent) => closed(silent.connection()),
        Event::Request(request) => Some(Incoming::Asks(request)),
        _ => None,
    };
    if let Some(incoming) = incoming {
        take(incoming);
    }
}

fn outcome(ended: Result<(), Failure>) -> Outcome {
    match ended {
        Ok(()) => Outcome::Done,
        Err(why) if why.breaks_connection() => Outcome::Broken,
        Err(_) => Outcome::Rejected,
    }
}

impl Room for Reserved<'_> {
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> bool {
        Reserved::write_at(self, offset, bytes)
    }

    fn send(self, context: u64) -> Result<(), (Refused, Self)> {
        Reserved::send(self, Notify::OnFailure(context)).map_err(|unsent| (refused(unsent.why), unsent.message))
    }
}

impl Asking for Request<'_> {
    fn hello(&self) -> Vec<u8> {
        self.payload()
    }

    fn accept(self, context: u64) -> bool {
        // A request that could not be answered is rejected by its drop.
        Request::accept(self, context).is_ok()
    }

    fn reject(self) {
        // The client is gone, or hears it by the drop.
        let _ = Request::reject(self);
    }
}
