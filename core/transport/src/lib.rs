//! The trait [`Transport`], and the state that every endpoint has whatever its transport.
//!
//! An [`Endpoint`] owns its slots, its queue of events ([`Core`]) and a [`Transport`], all behind
//! one lock. A transport gets the core with each call: it takes slots from it and pushes events
//! into it, and never calls back.

#![forbid(unsafe_code)]

mod batch;
mod call_handle;
mod clock;
mod closing;
mod connection_report;
mod connection_table;
mod copies;
mod driver;
mod edge_policy;
mod endpoint;
mod expected;
mod holder;
mod host_and_port;
mod local_address;
mod open;
mod operation;
mod oversubscription;
mod pending_events;
mod pending_requests;
mod poll_set;
#[cfg(feature = "tracing")]
mod printer;
mod progress_thread;
mod readiness;
mod receive_slots;
mod registrations;
mod resolver;
mod security;
mod service;
mod snapshot;
mod spin_policy;
mod telemetry;
mod timeout;
#[cfg(feature = "trace")]
pub mod trace;
mod wait_policy;
mod wakers;

#[cfg(feature = "tracing")]
#[doc(hidden)]
pub use printer::begin_log;
#[cfg(feature = "tracing")]
#[doc(hidden)]
pub use tracing as __tracing;

pub use call_handle::CallHandle;
pub use cci_mem::mutex::lock;
pub use clock::{coarse, monotonic};
pub use closing::{Unsent, send_rest};
pub use connection_report::ConnectionReport;
pub use connection_table::ConnectionTable;
pub use copies::{PeerCopy, keep_copies, wait_for_copies};
pub use driver::{
    Arguments, Check, Condition, Discovered, Driver, Drivers, Key, Keys, Open, Over, Scope, TransportOptions,
};
pub use endpoint::{
    Asked, Connection, ConnectionState, Core, CoreOptions, Counters, Endpoint, Entered, Gauge, Globals, Held, Landing,
    Landings, Origin, Outcome, Outside, Placed, Popped, Room, Rooms, WaitFor, globals, tag_event,
};
pub use expected::{ExpectedClient, ExpectedClients};
pub use holder::{child_holds, child_holds_port, retry_in_use, within_one_open};
pub use host_and_port::HostAndPort;
pub use local_address::{LocalAddress, interface_index, is_endpoint_ip, is_link_local, source_address};
pub use open::{CallError, NameCall, OpenError, room_for};
pub use operation::{Connect, Imported, Message, Peer, Posted, Rma};
pub use oversubscription::{is_oversubscribed, set_oversubscribed};
pub use pending_events::PendingEvents;
pub use pending_requests::PendingRequests;
pub use poll_set::PollSet;
pub use progress_thread::{Background, BackgroundWork};
pub use readiness::{Arming, HandleCheck, Readiness};
pub use receive_slots::ReceiveSlots;
pub use registrations::{Registered, RegistrationTable};
pub use resolver::{Found, HostAnswer, Resolver};
pub use security::{Protect, Security};
pub use service::Service;
pub use snapshot::{Snapshot, Unreadable, WaitShown};
pub use timeout::Timeout;

pub use cci_mem::quiet_thread::spawn as spawn_quiet_thread;
pub use cci_mem::random::random;

use cci_mem::descriptors;
use cci_mem::memory::Memory;
use cci_mem::source::Source;
use cci_proto::{
    Alignment, ConnectError, Flags, ImportError, PauseError, RegisterError, RequestError, Rights, RmaError, RmaHandle,
    SendError,
};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// A slot of an endpoint.
pub type Slot = cci_mem::slot::Slot<Connection, Endpoint>;

/// What is behind an endpoint's lock.
pub struct Body {
    /// The device. Dropped first: it may still touch slots.
    pub transport: Box<dyn Transport>,
    /// Slots, events, options.
    pub core: Core,
}

/// What an endpoint does through its device, behind the endpoint's lock.
///
/// Control path (may allocate and make system calls): everything but `send`, `rma` and `progress`.
/// Fast path (no allocation, no blocking, no precise clock, no log): those three. The facade has
/// checked arguments that do not depend on the transport: flags, lengths against the connection's
/// maximum, the connection's state.
pub trait Transport: Send {
    /// The URI to which clients connect.
    fn uri(&self) -> &str;

    /// The OS handle: readable while there may be something to do, and from opening until it is
    /// first armed. Nothing arms it when it is handed out: the first call that returns EAGAIN comes
    /// to [`Transport::leave_edge`]. Level-triggered. For edge-triggered programs, every call that
    /// returns EAGAIN leaves the handle armed or gives an edge later.
    fn handle(&self) -> BorrowedFd<'_>;

    /// Starts a connection; its CONNECT event comes later.
    ///
    /// # Errors
    ///
    /// Refused: nothing happened, no event comes.
    fn connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError>;

    /// Accepts a request; its ACCEPT event comes later. The facade has seen that `request` is an
    /// unanswered request.
    ///
    /// # Errors
    ///
    /// Refused: the request can still be answered.
    fn accept(&mut self, core: &mut Core, request: &'static Slot, context: u64) -> Result<(), RequestError>;

    /// Who asks: `None` when its client is gone. The facade has seen that `request` is an
    /// unanswered request.
    fn peer(&self, request: &'static Slot) -> Option<Peer> {
        let _ = request;
        None
    }

    /// Rejects a request.
    ///
    /// # Errors
    ///
    /// Refused: the request can still be answered.
    fn reject(&mut self, core: &mut Core, request: &'static Slot) -> Result<(), RequestError>;

    /// Makes this endpoint accept the one client that will present `token`; its ACCEPT event comes
    /// then, or a failure after `limit`.
    ///
    /// # Errors
    ///
    /// Refused: no event comes.
    fn expect(&mut self, core: &mut Core, token: u64, context: u64, limit: Duration) -> Result<(), RequestError>;

    /// Takes [`Transport::expect`] back, without event: the client was not sent here after all.
    /// False: the client is not expected, since it has come, or has not come in time. A transport
    /// that refuses every `expect` has nothing to take back.
    fn forget_expected(&mut self, core: &mut Core, token: u64) -> bool {
        let _ = (core, token);
        false
    }

    /// Answers a request by sending its client to the endpoint at `uri`, which expects `token`.
    ///
    /// # Errors
    ///
    /// Refused: the request can still be answered.
    fn redirect(&mut self, core: &mut Core, request: &'static Slot, uri: &str, token: u64) -> Result<(), RequestError>;

    /// Closes a connection at once: its open operations end with failure events.
    fn disconnect(&mut self, core: &mut Core, connection: &'static Connection);

    /// Takes no more messages of a connection, which is open and reliable, until
    /// [`Transport::resume`]. The peer keeps them: what it may have under way is bounded. A second
    /// call changes nothing, and the end of the connection ends the pause.
    ///
    /// # Errors
    ///
    /// This transport does not.
    fn pause(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        let _ = (core, connection);
        Err(PauseError::NotImplemented)
    }

    /// Takes the messages of a connection again, paused or not.
    ///
    /// # Errors
    ///
    /// As [`Transport::pause`].
    fn resume(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        let _ = (core, connection);
        Err(PauseError::NotImplemented)
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent, no event comes.
    fn send(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError>;

    /// The program has changed [`Core::answer_count`].
    fn answers_reserved(&mut self, core: &Core) {
        let _ = core;
    }

    /// Sends a message that answers another one: [`Transport::send`], with what the endpoint has
    /// set aside for answers ([`Core::answer_count`]). An answer of at most one frame is not
    /// refused for lack of buffers while fewer answers than that are open.
    ///
    /// # Errors
    ///
    /// As [`Transport::send`].
    fn answer(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        core.answering(|core| self.send(core, connection, message, posted))
    }

    /// Sends a message in one piece: [`Transport::send`], with less to pass on. `flags`: SILENT, or
    /// none. The arguments come in the order in which a C program passes its own.
    ///
    /// # Errors
    ///
    /// As [`Transport::send`].
    #[inline]
    fn post(
        &mut self,
        message: Source<'_>,
        context: u64,
        connection: &'static Connection,
        core: &mut Core,
        flags: Flags,
    ) -> Result<(), SendError> {
        let posted = if flags.has(Flags::SILENT) { Posted::Silent(context) } else { Posted::Event(context) };
        self.send(core, connection, Message::One(message), posted).map(drop)
    }

    /// Room for a message of `len` bytes where it need not be copied from when it is sent, and the
    /// transport's name for it; `None`: the program writes elsewhere, and the message is sent as
    /// any other. The memory stays writable until the room is taken by [`Transport::commit`] or
    /// given back by [`Transport::cancel`], whatever becomes of the connection, or the endpoint
    /// closes.
    fn reserve(&mut self, core: &mut Core, connection: &'static Connection, len: usize) -> Option<(Memory, u64)> {
        let _ = (core, connection, len);
        None
    }

    /// Sends the first `len` bytes of a room that [`Transport::reserve`] has given for this
    /// connection.
    ///
    /// # Errors
    ///
    /// As [`Transport::send`]; the room is still the program's.
    fn commit(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        (room, len): (u64, usize),
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let _ = (core, connection, room, len, posted);
        Err(SendError::NoRoom)
    }

    /// Takes back a room that [`Transport::reserve`] has given.
    fn cancel(&mut self, core: &mut Core, room: u64) {
        let _ = (core, room);
    }

    /// Sends this memory as a message that is longer than the connection's maximum, on an open and
    /// reliable connection: asks the peer for memory, and writes it there. On an ordered connection
    /// it takes its place among the messages. The memory stays as it is until the operation has
    /// ended.
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent, no event comes. Or this transport does not.
    fn send_large(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        memory: Memory,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let _ = (core, connection, memory, posted);
        Err(SendError::TooLong)
    }

    /// Starts an RMA.
    ///
    /// # Errors
    ///
    /// Refused: nothing was copied, no event comes.
    fn rma(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError>;

    /// Registers memory, for operations of all connections or of `only` one, which is open and
    /// reliable. The end of that connection takes the memory from everybody; the registration lives
    /// until it is deregistered.
    ///
    /// # Errors
    ///
    /// Refused: nothing is registered.
    fn register(
        &mut self,
        core: &mut Core,
        memory: Memory,
        rights: Rights,
        only: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError>;

    /// Registers memory, for operations of all connections, by a handle that another way of this
    /// endpoint has given: its first two words name the memory here too.
    ///
    /// # Errors
    ///
    /// As [`Transport::register`]; or this transport gives handles only.
    fn adopt(
        &mut self,
        core: &mut Core,
        handle: &RmaHandle,
        memory: Memory,
        rights: Rights,
    ) -> Result<(), RegisterError> {
        let _ = (core, handle, memory, rights);
        Err(RegisterError::NoMemory)
    }

    /// Ends a registration. When it returns without error nobody touches the memory any more.
    ///
    /// # Errors
    ///
    /// No such registration, or a peer that was stopped in the midst of copying holds it.
    fn deregister(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError>;

    /// As [`Transport::deregister`], without waiting. `Busy`: the registration takes no new
    /// transfer, a peer still copies, and the memory must stay until a later call succeeds.
    ///
    /// # Errors
    ///
    /// As [`Transport::deregister`].
    fn retire(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.deregister(core, handle)
    }

    /// Maps memory that a peer has registered, of an open connection. When the registration ends,
    /// or the connection, the program is told by an event
    /// ([`EventKind::ImportEnded`](cci_proto::EventKind::ImportEnded)), unless it has dropped the
    /// import.
    ///
    /// # Errors
    ///
    /// This transport does not, or cannot map this memory; or handle and rights do not allow it.
    fn import(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        handle: &RmaHandle,
    ) -> Result<Imported, ImportError> {
        let _ = (core, connection, handle);
        Err(ImportError::NotImplemented)
    }

    /// Alignment that RMA needs.
    fn alignment(&self) -> Alignment {
        Alignment::default()
    }

    /// Makes progress without waiting, and queues the events that result.
    fn progress(&mut self, core: &mut Core);

    /// [`Transport::progress`], and then the oldest event, which is the program's from now on.
    /// Called while no event waits and the handle is not in use, so that a message may go to the
    /// program without a turn in the queue.
    #[inline]
    fn poll(&mut self, core: &mut Core) -> Option<&'static Slot> {
        self.progress(core);
        core.pop()
    }

    /// Makes progress for a program that makes no calls. Called by the progress thread, with the
    /// endpoint's lock held.
    fn step_in_background(&mut self, core: &mut Core) -> BackgroundWork {
        let _ = core;
        BackgroundWork::Done
    }

    /// Prepares for a wait on [`Transport::handle`]: from now on it becomes readable when there is
    /// something to do. Ends adaptive spin and spinning. False when there is something to do
    /// already.
    fn arm(&mut self, core: &mut Core) -> bool;

    /// Undoes [`Transport::arm`]: the program polls, and nobody waits on the handle, so that calls
    /// need not settle it. Changes nothing where the handle is not armed.
    fn disarm(&mut self, core: &mut Core) {
        let _ = core;
    }

    /// Whether a call would find something, as far as a look at memory tells; true where only a
    /// call can. What it misses is found by one of the next calls all the same.
    fn has_news(&self) -> bool {
        true
    }

    /// Prepares for a wait inside a call, on the descriptor that it gives: it becomes readable when
    /// `progress` could move something. Events that wait for the program do not count, because
    /// nobody takes them meanwhile. None when there is something to do already, or no descriptor is
    /// left. A transport keeps its descriptor and gives it again for the next wait.
    fn arm_in_call(&mut self, core: &mut Core) -> Option<Arc<OwnedFd>> {
        if self.arm(core) { descriptors::duplicate(self.handle()).ok().map(Arc::new) } else { None }
    }

    /// Makes the handle readable if there is something to do. Called at the end of every call while
    /// [`Core::is_armed`]. If the call returned an event ([`Core::take_popped`]), clearing the
    /// handle may be deferred to the next call, to keep that cost off the reply. If the call
    /// returned EAGAIN ([`Core::take_empty`]), the handle is armed and every descriptor was
    /// checked, or the call gives an edge.
    fn settle(&mut self, core: &mut Core);

    /// Gives an edge, now or later, or arms the handle. Called when a call returns EAGAIN while the
    /// handle is in use and not armed.
    fn leave_edge(&mut self, core: &mut Core) {
        let _ = core;
        let _ = rustix::io::write(&*self.waker(), &1u64.to_ne_bytes());
    }

    /// A descriptor that makes the handle readable when written to, from outside the endpoint's
    /// lock.
    fn waker(&self) -> Arc<OwnedFd>;

    /// Lets peers continue that were refused for lack of slots. Called when the program returns an
    /// event while [`Core::is_starving`].
    fn refill(&mut self, core: &mut Core);

    /// Applies the options of a connection, of which the program has set one: deadlines may have
    /// moved.
    fn options_changed(&mut self, core: &mut Core, connection: &'static Connection);

    /// Path, window, counters of a connection, and why this path.
    fn report(&self, core: &Core, connection: &'static Connection) -> ConnectionReport;

    /// Closes all connections and ends all operations, without events. Waits at most `limit` until
    /// sent messages have left this process and peers have ended their copies. Copies that have not
    /// ended then are passed to [`Core::keep_unfinished`].
    fn close(&mut self, core: &mut Core, limit: Duration);
}
