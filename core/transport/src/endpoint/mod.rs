//! An endpoint: its cell with the lock (`cell`), and behind the lock the state that every endpoint
//! has whatever its transport. Each other file has one part of that state, whose fields no other
//! file sees, and the methods of [`Core`] for that part.

mod cell;
mod connection;
mod connections;
mod endings;
mod events;
mod gauges;
mod landings;
mod memory;
mod os_handle;
mod rooms;
mod runs;
mod settings;
mod shortage;
mod sleepers;
mod slots;
mod waits;
mod ways;

pub use cell::{Body, Endpoint, Entered, Globals, Outside, Popped, globals};
pub use connection::{Connection, ConnectionState, Counters};
pub use gauges::Gauge;
pub use landings::{Asked, Landing, Landings, Placed};
pub use rooms::{Held, Origin, Room, Rooms};
pub use waits::WaitFor;
pub use ways::Outcome;

use crate::{OpenError, Slot};
use cci_mem::counters::Home;
use cci_mem::sync::Ordering;
use connections::Connections;
use endings::{BreakReasons, ConnectReasons};
use events::Events;
use memory::SharedWithPeers;
use os_handle::OsHandle;
use settings::Settings;
use shortage::Shortage;
use sleepers::Sleepers;
use slots::Slots;
use waits::Waits;
use ways::{Current, Ways};

/// What an endpoint is opened with.
#[derive(Clone, Copy, Debug)]
pub struct CoreOptions {
    /// Receive slots.
    pub recv_count: usize,
    /// Send slots.
    pub send_count: usize,
    /// RMA descriptors, beside the send slots.
    pub rma_count: usize,
    /// Whether to raise an event when a peer disconnects or dies.
    pub disconnect_events: bool,
    /// Ways ([`Core::enter_way`]), for a transport that stands over so many others; 0: none.
    pub ways: u8,
}

impl Default for CoreOptions {
    fn default() -> Self {
        // Programs keep 8,192 sends and 8,192 RMAs outstanding on one connection and treat ENOBUFS
        // as fatal.
        Self { recv_count: 4096, send_count: 8192, rma_count: 16384, disconnect_events: false, ways: 0 }
    }
}

/// The private part of an endpoint that does not depend on its transport.
pub struct Core {
    endpoint: &'static Endpoint,
    slots: Slots,
    events: Events,
    connections: Connections,
    reasons: ConnectReasons,
    break_reasons: BreakReasons,
    shortage: Shortage,
    counters: Home,
    waits: Box<Waits>,
    settings: Settings,
    handle: OsHandle,
    sleepers: Sleepers,
    peers: SharedWithPeers,
    rooms: Rooms,
    landings: Box<Landings>,
    current: Current,
    ways: Option<Box<Ways>>,
}

impl Core {
    /// The core of an endpoint.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn new(endpoint: &'static Endpoint, options: &CoreOptions) -> Result<Self, OpenError> {
        let system = |source: rustix::io::Errno| OpenError::system("no memory for the slots of an endpoint", source);
        let counters = Home::new().map_err(system)?;
        let (slots, ways) = Slots::new(endpoint, options)?;
        Ok(Self {
            endpoint,
            events: Events::new(slots.all()),
            slots,
            connections: Connections::default(),
            reasons: ConnectReasons::default(),
            break_reasons: BreakReasons::default(),
            shortage: Shortage::default(),
            counters,
            waits: Box::default(),
            settings: Settings::new(options.disconnect_events),
            handle: OsHandle::default(),
            sleepers: Sleepers::default(),
            peers: SharedWithPeers::default(),
            rooms: Rooms::default(),
            landings: Box::default(),
            current: Current::default(),
            ways: ways.map(|pools| Box::new(Ways::new(pools, options.recv_count))),
        })
    }

    /// The rooms for messages that the program has.
    pub fn rooms(&mut self) -> &mut Rooms {
        &mut self.rooms
    }

    /// The large messages that arrive.
    #[inline]
    pub fn landings(&mut self) -> &mut Landings {
        &mut self.landings
    }

    /// The endpoint of this core.
    #[inline(always)]
    #[must_use]
    pub fn endpoint(&self) -> &'static Endpoint {
        self.endpoint
    }
}

/// Tags an event with a connection and its generation, so that a kept event never refers to a later
/// connection in the same cell.
#[inline(always)]
pub fn tag_event(slot: &Slot, connection: &'static Connection) {
    slot.connection.set(Some(connection));
    slot.mark.store(connection.generation(), Ordering::Relaxed);
}

impl Drop for Core {
    fn drop(&mut self) {
        // In a forked child the slabs are the parent's, or the child's own: neither is to get
        // these.
        if !self.endpoint.is_here() {
            return;
        }
        self.end_connections();
        if let Ok((_, globals)) = globals() {
            globals.slots.give(self.slots.all());
        }
    }
}
