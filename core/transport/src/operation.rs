//! Arguments of the operations of a transport.

use cci_mem::memory::Memory;
use cci_mem::source::{Source, Sources};
use cci_mem::sync::AtomicBool;
use cci_proto::{Access, Attribute, Cursor, Gather, Rights, RmaHandle};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

/// A message to send.
///
/// Its bytes are the program's, and stand perhaps in registered memory. So they are never borrowed,
/// only copied.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// In one piece.
    One(Source<'a>),
    /// In pieces, with their total length.
    Many(Sources<'a>, usize),
}

impl Message<'_> {
    /// Bytes of the message.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::One(bytes) => bytes.len(),
            Self::Many(_, len) => *len,
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the message to the start of `target`, which is long enough.
    #[inline]
    pub fn copy_to(&self, target: &mut [u8]) {
        self.copy(&mut Cursor::default(), target);
    }
}

impl Gather for Message<'_> {
    #[inline]
    fn total(&self) -> usize {
        self.len()
    }

    #[inline]
    fn copy_part(&self, part: usize, offset: usize, target: &mut [u8]) -> Option<usize> {
        let source = match self {
            Self::One(bytes) => (part == 0).then_some(*bytes),
            Self::Many(parts, _) => parts.get(part),
        };
        Some(source?.copy_to(offset, target))
    }
}

impl<'a> From<&'a [u8]> for Message<'a> {
    #[inline(always)]
    fn from(bytes: &'a [u8]) -> Self {
        Self::One(bytes.into())
    }
}

impl<'a> From<&'a [IoSlice<'a>]> for Message<'a> {
    #[inline]
    fn from(parts: &'a [IoSlice<'a>]) -> Self {
        Self::Many(parts.into(), parts.iter().map(|part| part.len()).sum())
    }
}

impl<'a> From<&'a [Source<'a>]> for Message<'a> {
    #[inline]
    fn from(parts: &'a [Source<'a>]) -> Self {
        Self::Many(parts.into(), parts.iter().map(Source::len).sum())
    }
}

/// How an operation reports its end. `send` and `rma` give a slot back only for
/// [`Posted::Waited`], and only if the operation is still open: its state becomes `Ended` with the
/// status in the event, and the caller releases it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// By a SEND event with this context.
    Event(u64),
    /// By a SEND event with this context if it fails, and not at all if it succeeds.
    Silent(u64),
    /// To a thread that waits.
    Waited,
}

/// Memory of a peer, mapped here.
#[derive(Debug)]
pub struct Imported {
    /// The bytes that the peer has registered. They stay mapped as long as this value or a copy of
    /// it.
    pub memory: Memory,
    /// What the peer allows.
    pub rights: Rights,
    /// Set once the registration or its connection has ended: the bytes are still mapped, and may
    /// be others by now.
    pub ended: Arc<AtomicBool>,
}

/// An RMA.
#[derive(Clone, Copy, Debug)]
pub struct Rma<'a> {
    /// The local registration.
    pub local: &'a RmaHandle,
    /// Offset in the local registration, bytes.
    pub local_offset: u64,
    /// The peer's registration.
    pub remote: &'a RmaHandle,
    /// Offset in the peer's registration, bytes.
    pub remote_offset: u64,
    /// Bytes to copy; at least 1.
    pub len: u64,
    /// What it does with the peer's memory. An atomic operation has a `len` of 4 or 8.
    pub access: Access,
    /// After all earlier operations of the connection, before all later ones.
    pub fence: bool,
    /// Delivered to the peer after the data.
    pub message: Option<Source<'a>>,
}

/// A connection to be made.
#[derive(Clone, Copy, Debug)]
pub struct Connect<'a> {
    /// The peer's endpoint.
    pub uri: &'a str,
    /// Payload of the request.
    pub payload: &'a [u8],
    /// What the connection promises.
    pub attribute: Attribute,
    /// The program's cookie.
    pub context: u64,
    /// How long to wait for the answer.
    pub timeout: Option<Duration>,
}

/// Who asks for a connection, as far as the system tells: nothing here is the peer's own word.
///
/// # Example
///
/// ```
/// fn is_trusted(peer: &cci_transport::Peer) -> bool {
///     peer.user == Some(0) || peer.address.starts_with("sock://192.0.2.")
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Its effective user when it connected, by the kernel of this host; `None` on a network.
    pub user: Option<u32>,
    /// Its process, likewise; `None` also where that has no number in this pid name space.
    pub process: Option<u32>,
    /// Where its frames come from, as a URI; empty on one host. A network may let others use an
    /// address.
    pub address: String,
    /// The key by which it has proved who it is. `None`: no transport does that yet.
    pub key: Option<[u8; 32]>,
}
