//! What callers pass to an engine, and what they get from it.

use super::connection::moved::Moved;
use super::host::{Op, Target};
use super::sealer::Seal;
use crate::{Access, Address, Attribute};
use core::time::Duration;

/// Configuration of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Largest frame that the link can carry on any path, bytes.
    pub mtu: u16,
    /// Largest frame that every path carries, to begin with, unless `Engine::set_path` gives
    /// another.
    pub base_mtu: u16,
    /// Largest message, bytes.
    pub max_send_size: u32,
    /// Size of this endpoint's receive buffer, bytes of frames.
    pub recv_buffer: u32,
    /// Frames of messages that may wait or be in flight, whole endpoint.
    pub frames: u32,
    /// Frames held back (out of order, or waiting for a slot), whole endpoint.
    pub holds: u32,
    /// Operations that the [`Host`](super::Host) numbers, at most 2^20.
    pub operations: u32,
    /// Number of the machine on which this endpoint runs; 0 = unknown.
    pub machine: u64,
    /// Whether payload checks may be left out between two endpoints of one machine that both set
    /// this.
    pub unchecked_on_host: bool,
    /// Whether a peer that owes acknowledgements is waited for until the network says that nobody
    /// is there, and not for a minute only.
    pub patient: bool,
    /// First sequence number, so that tests reach every wrap; `None`: at random.
    pub first_seq: Option<u32>,
}

/// What the path to a peer carries, bytes of frame. Sizes in between are probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtu {
    /// The largest frame that it carries for certain.
    pub base: u16,
    /// The largest that it may carry; at most [`Config::mtu`] counts.
    pub largest: u16,
}

impl Config {
    /// What a path carries of which nothing else is known.
    #[must_use]
    pub fn path(&self) -> PathMtu {
        PathMtu { base: self.base_mtu, largest: self.mtu }
    }
}

/// A connection to be made.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a> {
    /// The peer's endpoint.
    pub to: Address,
    /// Attribute of the connection.
    pub attribute: Attribute,
    /// Payload of the request.
    pub payload: &'a [u8],
    /// Cookie of the host, passed with every call of [`Host`](super::Host). Not the cookie of the
    /// handshake.
    pub host_cookie: u32,
    /// Time to wait for the answer; `None`: 30 s.
    pub timeout: Option<Duration>,
    /// Token that the peer expects after a redirection; otherwise 0.
    pub token: u64,
}

/// An RMA that is to begin.
#[derive(Clone, Copy, Debug)]
pub struct Rma<'a> {
    /// The host's number of the operation.
    pub op: Op,
    /// The peer's memory.
    pub target: Target,
    /// What it does with the peer's memory.
    pub access: Access,
    /// Whether it begins after all earlier operations of the connection and ends before all later
    /// ones begin.
    pub fence: bool,
    /// Delivered to the peer after the data.
    pub message: Option<&'a [u8]>,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a, M: ?Sized> {
    /// Its bytes, one part after the other. The engine copies them.
    pub parts: &'a M,
    /// The host's number of the operation.
    pub op: Op,
    /// Whether the peer is asked to acknowledge at once.
    pub prompt: bool,
}

/// One frame to be sent: bytes at the start of the buffer, then registered memory. The engine
/// driver fills in its length and check by [`seal`](crate::wire::seal).
#[derive(Clone, Copy, Debug)]
pub struct Transmit<P> {
    /// Destination.
    pub to: Address,
    /// Bytes in the buffer.
    pub len: usize,
    /// Registered memory that follows.
    pub piece: Option<P>,
    /// Bytes of that memory.
    pub piece_len: u32,
    /// Whether the check covers that memory.
    pub checked: bool,
    /// Whether this is a path probe for a larger MTU. It must not be fragmented, and its loss is no
    /// sign of congestion.
    pub probe: bool,
    /// How the frame is to be sealed; `None`: it gets length and check. Before it calls the engine
    /// again, the driver writes the header by [`begin_seal`](crate::wire::begin_seal) and encrypts
    /// what follows it by [`Sealer::seal`](super::Sealer::seal).
    pub seal: Option<Seal>,
}

/// How a connection is protected on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Not at all.
    #[default]
    Plain,
    /// Every frame is sealed.
    Sealed {
        /// The lowest bit of the phase of the key of what is sent.
        send_phase: bool,
        /// The same of what is received.
        receive_phase: bool,
    },
}

/// State of a connection, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Smoothed round-trip time; `None`: not measured.
    pub rtt: Option<Duration>,
    /// Frames that may be in flight.
    pub window: u32,
    /// Estimated rate of the path, bytes per second; 0 = not measured.
    pub rate: u64,
    /// Largest frame of the path, bytes.
    pub mtu: u16,
    /// Frames in flight.
    pub in_flight: u32,
    /// Frames retransmitted.
    pub resent: u64,
    /// Times that the peer had no slot.
    pub not_ready: u32,
    /// Frames of the peer that came from another address, if there were some. They were dropped.
    pub moved: Option<Moved>,
    /// How it is protected.
    pub protection: Protection,
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames sent.
    pub sent: u64,
    /// Frames received whose connection is known.
    pub received: u64,
    /// Frames retransmitted.
    pub resent: u64,
    /// Duplicate frames.
    pub duplicates: u64,
    /// Frames for no known connection.
    pub strays: u64,
    /// Malformed frames.
    pub malformed: u64,
    /// Spurious losses.
    pub spurious: u64,
    /// Frames dropped because nothing more could be held back.
    pub unheld: u64,
    /// Frames that this side refused for lack of a slot.
    pub refused: u64,
    /// Times that a peer had no slot.
    pub not_ready: u64,
    /// Frames in clear for sealed connections, and answers in clear to sealed requests. They were
    /// dropped.
    pub clear: u64,
    /// Frames, shares and rejections with a wrong tag or token. They were dropped.
    pub forged: u64,
    /// Sealed frames that had come before, or may have. They were dropped.
    pub replayed: u64,
}
