//! What the engine asks of whoever drives it: the owner of slots, events and memory.

use crate::wire::Crc;
use crate::{Address, Attribute, Failure};

/// Index of a connection in the engine's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub u32);

/// The host's number of one of its operations (a send or an RMA), below `Config::operations`. The host says it when the
/// operation begins and hears it once, when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(pub u32);

/// The host's number of a buffer in which a message is reassembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageBuffer(pub u32);

/// Registered memory as an initiator names it to its target: what a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The two words of the handle that identify a registration and prove that it was given.
    pub handle: [u64; 2],
    /// Where the whole operation begins in the registration, bytes.
    pub offset: u64,
    /// Bytes of the whole operation.
    pub len: u64,
}

/// Where the bytes come from that an RMA frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This side's write: the local memory of the operation.
    Local(Op),
    /// A peer's read, served here: registered memory, to be checked each time.
    Served(Target),
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A client asks; to be answered with `accept`, `reject` or `redirect`. `host_cookie` is 0.
    Request {
        /// What it asks for.
        attribute: Attribute,
        /// Its payload.
        payload: &'a [u8],
    },
    /// A client that `expect` foretold has come; answer with `accept`. `host_cookie` is 0.
    Expected {
        /// What it asks for.
        attribute: Attribute,
        /// The token that it showed.
        token: u64,
    },
    /// A connect was accepted, or an accept was confirmed: messages may be sent. Nothing was delivered before this.
    Open {
        /// Largest message that may be sent, bytes; does not change any more.
        max_send_size: u32,
        /// The peer's address, which it has proved to receive at.
        peer: Address,
    },
    /// A connect ended without a connection; the index is free.
    Refused(Failure),
    /// The peer asks the client to go elsewhere: `follow` with the address, or `close`.
    Redirected {
        /// The other endpoint's URI.
        uri: &'a [u8],
        /// What it expects.
        token: u64,
    },
    /// The connection is broken: its peer closed it, has forgotten it, or did not answer in time. Operations that were open
    /// have ended. The index stays taken until `close`.
    Broken(Failure),
    /// Nothing was heard from the peer for the keepalive timeout; the connection is as it was.
    Silent,
}

/// The owner of slots, events and memory. Its methods are called from within the engine's `handle_*`, `poll_transmit` and
/// application calls, and call none of them.
pub trait Host {
    /// Bytes that a link can send from where they lie.
    type Piece;

    /// Messages, of any size, that `begin` would take now without fail: what peers are told they may send.
    fn room(&self) -> u32;

    /// Returns a buffer for a message of `len` bytes whose first part arrived, or `None` if no slot is free now.
    fn begin(&mut self, host_cookie: u64, len: u32) -> Option<MessageBuffer>;

    /// Bytes of the message in `buffer`, at this offset.
    fn fill(&mut self, buffer: MessageBuffer, at: u32, bytes: &[u8]);

    /// The message in `buffer` is complete: to be shown to the program.
    fn deliver(&mut self, host_cookie: u64, buffer: MessageBuffer);

    /// The message in `buffer` will not be completed.
    fn abandon(&mut self, buffer: MessageBuffer);

    /// A message in one piece: `begin`, `fill`, `deliver`. False: no slot is free now.
    fn message(&mut self, host_cookie: u64, bytes: &[u8]) -> bool {
        let Some(buffer) = self.begin(host_cookie, u32::try_from(bytes.len()).unwrap_or(u32::MAX)) else {
            return false;
        };
        self.fill(buffer, 0, bytes);
        self.deliver(host_cookie, buffer);
        true
    }

    /// A peer writes to registered memory: checks handle, right and the whole operation's range, then copies `bytes` to
    /// `target.offset + at`.
    ///
    /// # Errors
    ///
    /// Refused; nothing was written.
    fn write(&mut self, target: &Target, at: u64, bytes: &[u8]) -> Result<(), Failure>;

    /// As `write`, for a frame whose CRC is not verified yet. Copies the bytes and returns the CRC continued over them, in one
    /// pass. The frame continues a write, so a broken frame overwrites no accepted bytes. Returns `None` if the write is
    /// refused and nothing was written.
    fn write_checked(&mut self, target: &Target, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        self.write(target, at, bytes).ok().map(|()| crc.update(bytes))
    }

    /// Called instead of `write` once the frame that `write_checked` copied has passed its CRC and been accepted.
    fn written(&mut self, _target: &Target, _at: u64, _bytes: &[u8]) {}

    /// Bytes that an RMA frame is to carry, `len` of them from `at` in the operation. A served read is checked as in `write`.
    ///
    /// # Errors
    ///
    /// Refused, or the memory is not registered any more.
    fn source(&mut self, source: &Source, at: u64, len: u32) -> Result<Self::Piece, Failure>;

    /// A frame with these bytes, of which `source` is asked for next, is sent again: they may have changed while it left.
    fn resent(&mut self, _source: &Source, _len: u32) {}

    /// Address of an operation's first byte here, modulo 64, so that frames are cut between its words.
    fn phase(&mut self, _source: &Source) -> u8 {
        0
    }

    /// Whether a peer may read this: handle, right and range.
    ///
    /// # Errors
    ///
    /// Refused.
    fn may_read(&mut self, target: &Target) -> Result<(), Failure>;

    /// Bytes that this side's read brought, at this offset of the operation.
    fn place(&mut self, op: Op, at: u64, bytes: &[u8]);

    /// As `place`, for a frame whose CRC is not verified yet, as in `write_checked`. Returns `None` if nothing was placed.
    fn place_checked(&mut self, op: Op, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        self.place(op, at, bytes);
        Some(crc.update(bytes))
    }

    /// Called instead of `place` once the frame that `place_checked` copied has passed its CRC and been accepted.
    fn placed(&mut self, _op: Op, _at: u64, _bytes: &[u8]) {}

    /// An operation has ended; its number is the host's again.
    fn ended(&mut self, op: Op, outcome: Result<(), Failure>);

    /// Strangers that there may be at a time: requests without an answer, and accepted clients that have not confirmed. One
    /// network has at most a quarter of them ([`Address::network`](crate::Address::network)).
    fn strangers(&self) -> u32 {
        1 << 10
    }

    /// Something happened to a connection. The answer is false when the host has no room for it now. It matters for `Request`
    /// and `Expected`, whose client asks again, and for `Open` after `accept`, which comes again.
    fn event(&mut self, index: Index, host_cookie: u64, event: Event<'_>) -> bool;
}
