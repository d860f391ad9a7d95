//! What endpoints are asked for.

use crate::requests::Space;
use crate::segments::Segments;
use std::net::SocketAddr;

/// How an endpoint is opened.
///
/// # Example
///
/// ```
/// assert!(!cci_fabric::EndpointOptions::default().source);
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the binding fills it")]
pub struct EndpointOptions {
    /// Whose failures are that have no context of their own.
    pub context: u64,
    /// Receives name their sources (`FI_DIRECTED_RECV`).
    pub directed: bool,
    /// Entries name the sources of messages (`FI_SOURCE`).
    pub source: bool,
    /// Where it is to listen; an address of zeroes: at those that it has.
    pub place: Option<SocketAddr>,
}

/// The bytes of a send.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "copied or not")]
pub enum What<'a> {
    /// Copied, at most 32; the send makes no entry when it ends well.
    Bytes(&'a [u8]),
    /// The program's memory, which is the endpoint's until the send has ended.
    Memory(Segments),
}

/// A send: [`crate::Endpoint::send`].
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the binding fills it")]
pub struct Send<'a> {
    /// The bytes.
    pub what: What<'a>,
    /// The number of the peer in the address vector.
    pub to: u64,
    /// Which kind of message.
    pub space: Space,
    /// The tag; of messages that have none 0.
    pub tag: u64,
    /// Remote data.
    pub data: Option<u64>,
    /// The program's, for the entry.
    pub context: u64,
    /// `INJECT` (at most 32 bytes), `COMPLETION`, and which level of completion
    /// ([`crate::bits`]).
    pub flags: u64,
}

/// A receive: [`crate::Endpoint::receive`].
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the binding fills it")]
pub struct Receive {
    /// The program's memory, which is the endpoint's until the receive has ended.
    pub segments: Segments,
    /// The number of the peer, [`crate::NOT_AVAILABLE`] for any. Counts where the endpoint is
    /// opened with [`EndpointOptions::directed`].
    pub from: u64,
    /// Which kind of message.
    pub space: Space,
    /// The tag, and which bits of it do not count.
    pub tag: u64,
    /// See `tag`.
    pub ignore: u64,
    /// The program's, for the entry.
    pub context: u64,
    /// `COMPLETION`, `MULTI_RECV`, `PEEK`, `CLAIM`, `DISCARD` ([`crate::bits`]).
    pub flags: u64,
}

/// An access to memory of a peer: [`crate::Endpoint::remote`].
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the binding fills it")]
pub struct Remote {
    /// This side's memory, which is the endpoint's until the access has ended.
    pub segments: Segments,
    /// The number of the peer in the address vector.
    pub to: u64,
    /// Bytes of the peer's: offset, length, key. As many as this side's.
    pub pieces: Vec<(u64, u64, u64)>,
    /// Whether this side writes.
    pub is_write: bool,
    /// Remote data, with a write.
    pub data: Option<u64>,
    /// The program's, for the entry.
    pub context: u64,
    /// As [`Send::flags`].
    pub flags: u64,
}
