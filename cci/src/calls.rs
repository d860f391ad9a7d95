//! What a program asks of an open endpoint: events, connections, messages, RMA, registrations.

use crate::binding;
use crate::connection::Connection;
use crate::endpoint::EndpointFor;
use crate::errors::BlockingError;
use crate::event::Event;
use crate::import::Import;
use crate::operations::{AtomicRma, Connect, Notify, Rma};
use crate::registration::{Region, Registration};
use crate::reserved::Reserved;
use cci_mem::memory::Memory;
use cci_proto::{
    Access, ConnectError, Flags, ImportError, OptionError, PollError, RegisterError, Rights, RmaError, RmaHandle,
    SendError,
};
use cci_transport::ConnectionReport;
use std::borrow::Cow;
use std::io::IoSlice;

impl<T> EndpointFor<T> {
    /// Returns the next event, or `None` now. Makes progress and never blocks.
    ///
    /// # Errors
    ///
    /// Nothing to report and the program holds every receive buffer, or the endpoint cannot be used
    /// here.
    #[inline]
    pub fn get_event(&self) -> Result<Option<Event<'_>>, PollError> {
        Ok(self.cell.next_event()?.map(Event::of))
    }

    /// Asks the endpoint at the URI for a connection. Never blocks; one event, [`Event::Connected`]
    /// or [`Event::ConnectFailed`], reports the end. In place of a URI stands a name too, such as
    /// `job:3`, if the endpoint's context has names ([`crate::Context::set_names`]).
    ///
    /// # Errors
    ///
    /// Refused at once: no event comes.
    pub fn connect(&self, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let uri = self.names.uri_of(connect.0.uri)?;
        binding::connect(self.cell, &cci_transport::Connect { uri: &uri, ..connect.0 })
    }

    /// Returns the URI that a name such as `job:3` stands for, as [`EndpointFor::connect`] takes
    /// it. A URI stands for itself.
    ///
    /// # Errors
    ///
    /// As [`crate::Context::resolve`].
    pub fn resolve<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, ConnectError> {
        self.names.uri_of(text)
    }

    /// Closes a connection: local and immediate. Open operations end with
    /// [`cci_proto::Failure::Disconnected`].
    ///
    /// # Errors
    ///
    /// Closed already.
    pub fn disconnect(&self, connection: Connection) -> Result<(), OptionError> {
        binding::disconnect(self.cell, || connection.live(self.cell))
    }

    /// Sends a message of at most [`Connection::max_send_size`] bytes. The bytes are the caller's
    /// again on return. Never blocks; the end is reported as `notify` says: by
    /// [`Event::Completed`], after the peer's program or library has taken the message over
    /// (reliable connections), or once it has left (unreliable ones).
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent, and no event comes.
    #[inline]
    pub fn send(&self, connection: Connection, message: &[u8], notify: impl Into<Notify>) -> Result<(), SendError> {
        let (context, flags) = notify.into().parts();
        binding::send(self.cell, || connection.live(self.cell), message.into(), context, flags)
    }

    /// Sends a message that answers another one, as [`EndpointFor::send`], with the buffers that
    /// [`EndpointFor::set_answer_buffers`] has set aside. While fewer answers than that are open it
    /// is not refused for lack of buffers, whatever else the program sends; on `sock` and `sim`
    /// this holds for answers of up to one frame ([`ConnectionReport::mtu`]). So a handler of
    /// requests ([`EndpointFor::poll`]) need not wait for room, if no more requests than that are
    /// under way.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::send`].
    ///
    /// # Example
    ///
    /// ```
    /// # fn serve(endpoint: &cci::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// use cci::{Event, Notify};
    ///
    /// endpoint.poll(16, |event| {
    ///     if let Event::Received(request) = event
    ///         && let Some(client) = request.connection()
    ///     {
    ///         let answered = endpoint.answer(client, b"done", Notify::OnFailure(0));
    ///         answered.unwrap_or_else(|why| eprintln!("a client gets no answer: {why}"));
    ///     }
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn answer(&self, connection: Connection, message: &[u8], notify: impl Into<Notify>) -> Result<(), SendError> {
        let (context, flags) = notify.into().parts();
        binding::send_answer(self.cell, || connection.live(self.cell), message.into(), context, flags)
    }

    /// Gives room for a message of at most `len` bytes, to be written in place and then
    /// [sent](Reserved::send). On `sm` a message of more than 56 bytes is written where its
    /// receiver reads it, as long as the lane has slots to spare; any other is written into memory
    /// of this endpoint, and copied when it is sent, as by [`EndpointFor::send`]: on `sock` and
    /// `sim` because messages share frames.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::send`]: the message would be too long, the connection is not open, or the
    /// program has as many rooms as send buffers.
    pub fn reserve(&self, connection: Connection, len: usize) -> Result<Reserved<'_, T>, SendError> {
        Reserved::new(self, connection, len)
    }

    /// Sends this memory as one message of any length below 4 GiB - 1. Up to
    /// [`Connection::max_send_size`] it goes as any other, and is the caller's again on return. A
    /// longer one is not copied here: the peer is asked for memory
    /// ([`EndpointFor::set_large_limit`]) and its library written to, at whatever pace it has room;
    /// the memory must not change until the end is reported, or the peer may see the change. On an
    /// ordered connection it takes its place among the messages: what is sent after it arrives
    /// after it, and waits for it.
    ///
    /// The end is that of [`EndpointFor::send`]; [`cci_proto::Failure::TooLong`]: the peer does not
    /// allow messages of this length, and the connection lives on.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::send`]. Too long also: a connection that is not reliable takes messages of
    /// its maximum only.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci::{Connection, Endpoint, SendError};
    /// use cci::{HeapBytes, Memory};
    /// use std::sync::Arc;
    ///
    /// /// Sends a file's contents as one message; the library keeps them until they have arrived.
    /// fn publish(endpoint: &Endpoint, peer: Connection, contents: Vec<u8>) -> Result<(), SendError> {
    ///     endpoint.send_large(peer, &Memory::of_bytes(&Arc::new(HeapBytes::new(contents))), 1)
    /// }
    /// ```
    pub fn send_large(
        &self,
        connection: Connection,
        memory: &Memory,
        notify: impl Into<Notify>,
    ) -> Result<(), SendError> {
        let (context, flags) = notify.into().parts();
        binding::send_large(self.cell, || connection.live(self.cell), memory, context, flags)
    }

    /// As [`EndpointFor::send_large`], and waits for the end. Makes progress meanwhile, and leaves
    /// events to their program.
    ///
    /// # Errors
    ///
    /// Refused, or failed later: [`BlockingError`] tells which.
    pub fn send_large_blocking(&self, connection: Connection, memory: &Memory) -> Result<(), BlockingError<SendError>> {
        binding::send_large_blocking(self.cell, || connection.live(self.cell), memory, Flags::NONE)
    }

    /// Sends a message gathered from parts, as [`EndpointFor::send`].
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::send`].
    pub fn send_vectored(
        &self,
        connection: Connection,
        parts: &[IoSlice<'_>],
        notify: impl Into<Notify>,
    ) -> Result<(), SendError> {
        let (context, flags) = notify.into().parts();
        binding::send(self.cell, || connection.live(self.cell), parts.into(), context, flags)
    }

    /// Sends a message and waits for its end. Makes progress meanwhile, and leaves events to their
    /// program.
    ///
    /// # Errors
    ///
    /// Refused, or failed later: [`BlockingError`] tells which.
    pub fn send_blocking(&self, connection: Connection, message: &[u8]) -> Result<(), BlockingError<SendError>> {
        let live = || connection.live(self.cell);
        binding::send_blocking(self.cell, live, message.into(), Flags::NONE)
    }

    /// Reads from the peer's memory into memory of this endpoint. Never blocks; the end is reported
    /// as `notify` says.
    ///
    /// # Errors
    ///
    /// Refused: nothing was copied, and no event comes.
    pub fn read(&self, connection: Connection, rma: &Rma<'_>, notify: impl Into<Notify>) -> Result<(), RmaError> {
        let (context, flags) = notify.into().parts();
        binding::rma(self.cell, || connection.live(self.cell), &rma.with(Access::Read), context, flags)
    }

    /// Writes from memory of this endpoint into the peer's memory. Never blocks; the end is
    /// reported as `notify` says.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::read`].
    pub fn write(&self, connection: Connection, rma: &Rma<'_>, notify: impl Into<Notify>) -> Result<(), RmaError> {
        let (context, flags) = notify.into().parts();
        binding::rma(self.cell, || connection.live(self.cell), &rma.with(Access::Write), context, flags)
    }

    /// Changes one word of the peer's memory, and brings its old value: `atomic`, made by
    /// [`Rma::atomic`], names the peer's word, of 4 or 8 bytes, and where in local memory the old
    /// value goes. Never blocks; the end is reported as `notify` says. The peer has given both
    /// rights, and its word is aligned to its length; otherwise the operation ends with
    /// [`cci_proto::Failure::RemoteHandle`], and nothing is changed. After any other failure the
    /// word may have been changed, once. (An `Arc<[AtomicU64]>` is aligned, and so is
    /// [`crate::SharedMemory`]; a `Vec<u8>` is as the allocator happens to make it.)
    ///
    /// It happens exactly once, also where frames are lost, and is one operation of the processor
    /// that owns the memory: all that use the word by such operations, by whatever connection or
    /// transport, or in the peer's own program, see one order of changes.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::read`]; or the length is neither 4 nor 8.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci::{Connection, Endpoint, RmaError, RmaHandle};
    /// use cci::{Atomic, Registration, Rma};
    ///
    /// /// Takes a ticket from a counter of the peer; the event with context 1 says that it has come to `ticket`.
    /// fn take(
    ///     endpoint: &Endpoint,
    ///     peer: Connection,
    ///     counter: &RmaHandle,
    ///     ticket: &Registration<Vec<u8>>,
    /// ) -> Result<(), RmaError> {
    ///     let add = Rma::new(ticket.handle(), counter, 8).atomic(Atomic::FetchAdd(1));
    ///     endpoint.atomic(peer, &add, 1)
    /// }
    /// ```
    pub fn atomic(
        &self,
        connection: Connection,
        atomic: &AtomicRma<'_>,
        notify: impl Into<Notify>,
    ) -> Result<(), RmaError> {
        let (context, flags) = notify.into().parts();
        binding::rma(self.cell, || connection.live(self.cell), &atomic.0, context, flags)
    }

    /// Changes a word as [`EndpointFor::atomic`], and waits for the end.
    ///
    /// # Errors
    ///
    /// Refused, or failed later: [`BlockingError`] tells which.
    pub fn atomic_blocking(
        &self,
        connection: Connection,
        atomic: &AtomicRma<'_>,
    ) -> Result<(), BlockingError<RmaError>> {
        binding::rma_blocking(self.cell, || connection.live(self.cell), &atomic.0)
    }

    /// Reads as [`EndpointFor::read`], and waits for the end.
    ///
    /// # Errors
    ///
    /// Refused, or failed later: [`BlockingError`] tells which.
    pub fn read_blocking(&self, connection: Connection, rma: &Rma<'_>) -> Result<(), BlockingError<RmaError>> {
        binding::rma_blocking(self.cell, || connection.live(self.cell), &rma.with(Access::Read))
    }

    /// Writes as [`EndpointFor::write`], and waits for the end.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::read_blocking`].
    pub fn write_blocking(&self, connection: Connection, rma: &Rma<'_>) -> Result<(), BlockingError<RmaError>> {
        binding::rma_blocking(self.cell, || connection.live(self.cell), &rma.with(Access::Write))
    }

    /// Registers memory for RMA, and takes it over; `rights` are those of peers. This side may
    /// always use it.
    ///
    /// # Errors
    ///
    /// Empty memory, or no room for another registration; the memory is dropped.
    pub fn register<M: Region>(&self, memory: M, rights: Rights) -> Result<Registration<M>, RegisterError> {
        Registration::new(self.cell, self.life(), memory, rights, binding::ALL)
    }

    /// Registers memory as [`EndpointFor::register`], for RMA of one connection alone: its peer's,
    /// and this side's. Any other operation with the handle fails as one with an unknown handle,
    /// and touches nothing. When the connection ends, so does all use of the memory, and the
    /// registration is still to be dropped or deregistered.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::register`]; or the connection is not open, or not reliable.
    pub fn register_for<M: Region>(
        &self,
        connection: Connection,
        memory: M,
        rights: Rights,
    ) -> Result<Registration<M>, RegisterError> {
        let served = binding::Served::One(|| connection.live(self.cell));
        Registration::new(self.cell, self.life(), memory, rights, served)
    }

    /// Maps memory that the peer of a connection has registered with the right to read, as a whole:
    /// on `sm`, memory that the library has allocated ([`crate::SharedMemory`]). `handle` is the
    /// peer's.
    ///
    /// # Errors
    ///
    /// The transport maps none, or not this; the handle is unknown, stale, not for this connection
    /// or without the right; or the connection is not open.
    pub fn import(&self, connection: Connection, handle: &RmaHandle) -> Result<Import, ImportError> {
        binding::import(self.cell, || connection.live(self.cell), handle).map(Import::new)
    }

    /// Returns path, window and counters of a connection, and why this path.
    ///
    /// # Errors
    ///
    /// The connection is closed, or the endpoint cannot be used here.
    pub fn report(&self, connection: Connection) -> Result<ConnectionReport, OptionError> {
        binding::report(self.cell, || connection.live(self.cell))
    }
}
