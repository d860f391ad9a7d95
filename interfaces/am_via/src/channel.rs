//! Channels: one or three pipes between two endpoints, and how far they are.

use crate::pipe::Pipe;
use crate::transfers::Bulk;
use cci_via::Address;

/// A channel of a [`crate::ViaMapping`]: a small value that names it. One that is closed is refused
/// by every call.
///
/// # Example
///
/// ```
/// use cci_am::Mapping;
/// use cci_am_via::{ViaChannel, ViaMapping};
///
/// fn longest(mapping: &ViaMapping, channel: ViaChannel) -> usize {
///     mapping.longest(channel)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViaChannel {
    pub(crate) place: u32,
    pub(crate) generation: u32,
}

/// How far a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its VIs connect.
    Connecting,
    /// They are connected. The client waits for the answer, the server for what the client says.
    Waiting,
    /// The program of the server decides.
    Asked,
    Open,
    /// It ends as soon as its descriptors have come back.
    Closing,
}

/// What names a channel to both sides while its VIs connect.
pub(crate) const NONCE: usize = 8;

pub(crate) struct Channel {
    pub(crate) generation: u32,
    pub(crate) phase: Phase,
    /// The engine's name for it, if it has one.
    pub(crate) context: Option<u64>,
    pub(crate) is_client: bool,
    pub(crate) nonce: [u8; NONCE],
    /// What the client says when its VIs are connected.
    pub(crate) hello: Vec<u8>,
    /// Of a client: where the server is.
    pub(crate) remote: Option<Address>,
    pub(crate) pipes: Vec<Pipe>,
    /// Of v1: order among pipes, and bulk data under way.
    pub(crate) bulk: Option<Box<Bulk>>,
}

impl Channel {
    /// The pipe of a message of so many bytes.
    #[inline]
    pub(crate) fn pipe_for(&self, len: usize) -> usize {
        match &self.pipes[..] {
            [short, ..] if self.bulk.is_some() && len > short.longest() => crate::pipe::MEDIUM,
            _ => 0,
        }
    }

    /// The pipe of the handshake, which has the longest buffers.
    pub(crate) fn last(&self) -> usize {
        self.pipes.len() - 1
    }

    /// The number of the next message in this direction; only v1 counts them.
    #[inline]
    pub(crate) fn next_order(&self) -> u16 {
        self.bulk.as_ref().map_or(0, |bulk| bulk.order)
    }

    /// That number has been used.
    #[inline]
    pub(crate) fn advance_order(&mut self) {
        if let Some(bulk) = &mut self.bulk {
            bulk.order = bulk.order.wrapping_add(1);
        }
    }

    /// Whether messages wait until bulk data of v1 has gone before them.
    #[inline]
    pub(crate) fn is_held_up(&self) -> bool {
        self.bulk.as_ref().is_some_and(|bulk| !bulk.queue.is_empty())
    }
}
