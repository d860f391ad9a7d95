//! What the transports of CCI over the API of another library have in common: connections,
//! operations in order, credits, timeouts, requests, and the OS handle. What an API differs in is
//! a [`Network`] (`docs/design/over.md`).
//!
//! | file | part |
//! |---|---|
//! | `network` | what an API gives: messages, transfers of memory, completions |
//! | `wire` | the word that comes with each message, requests and answers |
//! | `setup` | connect, accept, reject, redirect, disconnect, close |
//! | `side`, `sides` | one end of a connection: operations, credits, timeouts; all of them |
//! | `arrivals` | what comes from peers, and what has ended |
//! | `inbox` | receive slots, and who waits for one |
//! | `registrations` | registered memory |
//! | `handle`, `watcher` | the OS handle, and the thread that waits for it |
//! | `transport` | the trait, and progress |
//! | `pool`, `flights` | for networks: memory of messages, and what is under way |
//! | `sys` | for networks: a library that is loaded |

#![deny(unsafe_code)]

mod arrivals;
mod flights;
mod handle;
mod inbox;
#[cfg(test)]
mod liars;
mod network;
mod pause;
mod pool;
mod registrations;
mod setup;
mod side;
mod sides;
mod sys;
mod transport;
mod watcher;
mod wire;

pub use flights::Flights;
pub use network::{Arrival, Buffer, Class, Ended, Event, Fate, Goal, Network, Part, Put, Reply, Sent, Way, Words};
pub use pool::Pool;
pub use registrations::Registrations;
pub use side::PATIENCE;
pub use sys::Loaded;
pub use watcher::{Wait, Watcher};
pub use wire::{Header, MOST_ENDPOINTS, Opening, Verb, short_tag, words};

use cci_proto::Time;
use cci_transport::{Core, ExpectedClients, PendingEvents, PollSet, Readiness, Transport, coarse, monotonic};
use inbox::Inbox;
use sides::Sides;
use std::collections::VecDeque;
use std::sync::Arc;

/// An endpoint over an API. The endpoint's lock protects it.
///
/// Its messages have credits, so that a receiver bounds what it keeps; each operation ends once and
/// in order.
pub struct Over<N: Network> {
    net: N,
    uri: String,
    handle: Arc<PollSet>,
    readiness: Readiness,
    inbox: Inbox<N::Place>,
    sides: Sides<N::Place>,
    registrations: Registrations<N::Bound>,
    /// Clients that another endpoint redirects here.
    expected: ExpectedClients<Time>,
    /// Events that found no free slot: they must not be lost.
    pending_events: PendingEvents,
    /// Connections that wait for room in the library.
    stalled: VecDeque<u32>,
    /// Control messages that found no room there.
    owed: VecDeque<(u32, Verb)>,
    /// Messages for connections that do not exist, or that no connection understands.
    strays: u64,
    max_send_size: u32,
    /// Sends since this side last looked for what has come.
    unheard: u32,
    /// When the clock was read last, and when something is due.
    now: Time,
    /// The tick of the system that [`Over::now`] was read in.
    tick: Time,
    alarm: Option<Time>,
    scratch: Vec<u8>,
}

impl<N: Network> std::fmt::Debug for Over<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Over({})", self.uri)
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Parts({})", self.max_send_size)
    }
}

/// What an endpoint is made of beside its [`Network`].
pub struct Parts {
    handle: Arc<PollSet>,
    inbox_slots: cci_transport::ReceiveSlots,
    max_send_size: u32,
}

impl Parts {
    /// The OS handle, and receive slots for messages of at most so many bytes.
    ///
    /// # Errors
    ///
    /// The system has no descriptor or no memory.
    pub fn new(core: &Core, max_send_size: u32) -> rustix::io::Result<Self> {
        let handle = Arc::new(PollSet::new()?);
        Ok(Self { handle, inbox_slots: cci_transport::ReceiveSlots::new(core, max_send_size)?, max_send_size })
    }

    /// The OS handle, which a thread may write.
    #[must_use]
    pub fn handle(&self) -> &Arc<PollSet> {
        &self.handle
    }

    /// Bytes of the longest message that the network carries: a request, or one of the program.
    #[must_use]
    pub fn longest(&self) -> usize {
        longest(self.max_send_size)
    }
}

/// As [`Parts::longest`].
fn longest(max_send_size: u32) -> usize {
    (cci_proto::MAX_REQUEST + Opening::LEN).max(max_send_size as usize)
}

impl<N: Network + 'static> Over<N> {
    /// The transport of an endpoint.
    #[must_use]
    pub fn open(net: N, parts: Parts) -> Box<dyn Transport> {
        Box::new(Self::new(net, parts))
    }

    fn new(net: N, parts: Parts) -> Self {
        let longest = parts.longest();
        let Parts { handle, inbox_slots, max_send_size } = parts;
        let mut over = Self {
            uri: N::uri(net.own()),
            net,
            handle,
            readiness: Readiness::default(),
            inbox: Inbox::new(inbox_slots),
            sides: Sides::new(),
            registrations: Registrations::default(),
            expected: ExpectedClients::default(),
            pending_events: PendingEvents::default(),
            stalled: VecDeque::new(),
            owed: VecDeque::new(),
            strays: 0,
            max_send_size,
            unheard: 0,
            now: monotonic(),
            tick: coarse(),
            alarm: None,
            scratch: vec![0; longest],
        };
        // The handle is readable until it is armed: a program that sleeps first must not miss an
        // event.
        Readiness::signal(&mut over);
        over
    }
}
