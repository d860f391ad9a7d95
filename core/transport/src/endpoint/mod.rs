//! An endpoint: its cell with the lock (`cell`), and behind the lock the state that every endpoint
//! has whatever its transport. A part of that state with rules of its own has a file, which knows
//! nothing of [`Core`], and beside it a folder with `core.rs`: the methods of [`Core`] for that
//! part. No other file sees its fields.

mod cell;
mod connection;
mod connections;
mod endings;
mod events;
mod gauges;
mod landings;
mod memory;
mod options;
mod os_handle;
mod rooms;
mod runs;
mod settings;
mod shortage;
mod sleepers;
mod slots;
mod waits;
mod ways;

pub use cell::globals::{Globals, globals};
pub use cell::{Endpoint, Entered, Outside, Popped};
pub use connection::{Connection, ConnectionState, Counters};
pub use gauges::Gauge;
pub use landings::{Asked, Landing, Landings, Placed};
pub use options::CoreOptions;
pub use rooms::{Held, Origin, Room, Rooms};
pub use waits::WaitFor;
pub use ways::Outcome;

use crate::{OpenError, Slot, Timeout};
use cci_mem::counters::Home;
use cci_mem::sync::Ordering;
use cci_proto::Places;
use events::Events;
use memory::SharedWithPeers;
use os_handle::OsHandle;
use runs::cells::Cells;
use shortage::Shortage;
use sleepers::Sleepers;
use slots::Slots;
use std::collections::BTreeMap;
use waits::Waits;
use ways::{Current, Ways};

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

/// Connections whose pointers get memory together.
const TOGETHER: usize = 128;

/// The connections of an endpoint.
#[derive(Default)]
struct Connections {
    /// Those that are not free, by their places.
    open: Places<&'static Connection, TOGETHER>,
    cells: Cells,
}

/// Why connects failed, by the address of the slot of the event; at most one for each send slot.
#[derive(Default)]
struct ConnectReasons(BTreeMap<usize, String>);

/// Why connections broke that the program has not disconnected, by their places.
#[derive(Default)]
struct BreakReasons(BTreeMap<u32, String>);

/// The settings of an endpoint.
#[derive(Default)]
struct Settings {
    send_timeout: Timeout,
    keepalive: Timeout,
    disconnect_events: bool,
    present: bool,
    patient: bool,
    rights_are_open: bool,
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
            settings: Settings::new(options),
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
