//! The interface from the engine to its driver: the owner of slots, events and memory.

use super::sealer::Sealer;
use crate::wire::Crc;
use crate::{Address, Atomic, Attribute, Failure};

/// Index of a connection in the engine's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub u32);

/// The host's number of one of its operations (a send or an RMA), below `Config::operations`. The
/// host passes it when the operation begins and gets it back once, when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(pub u32);

/// The host's number of a buffer in which a message is reassembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageBuffer(pub u32);

/// Registered memory as an initiator names it to its target, and as a frame carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The two words of the handle that identify a registration and prove that it was given.
    pub handle: [u64; 2],
    /// Offset of the whole operation in the registration, bytes.
    pub offset: u64,
    /// Bytes of the whole operation.
    pub len: u64,
}

/// The origin of the bytes that an RMA frame carries.
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
    /// A client requests a connection. Answer with `accept`, `reject` or `redirect`. `host_cookie`
    /// is 0.
    Request {
        /// Attribute that it requests.
        attribute: Attribute,
        /// Its payload.
        payload: &'a [u8],
    },
    /// A client that `expect` announced requests a connection. Answer with `accept`. `host_cookie`
    /// is 0.
    Expected {
        /// What it asks for.
        attribute: Attribute,
        /// Token of its request.
        token: u64,
    },
    /// A connect was accepted, or an accept was confirmed: messages may be sent. Nothing was
    /// delivered before this.
    Open {
        /// Largest message that may be sent, bytes. Constant from now on.
        max_send_size: u32,
        /// The peer's address. The peer has proved that it receives there.
        peer: Address,
    },
    /// A connect, or an accept that was not confirmed, ended without a connection; the index is
    /// free.
    Refused {
        /// Why.
        failure: Failure,
        /// The peer has answered the CONNECT with a cookie, so that an endpoint is there.
        is_answered: bool,
        /// Somebody has answered in the peer's name that the two sides do not agree on the security
        /// of the connection. Only a hint: anybody on the path can say so.
        is_security: bool,
    },
    /// The peer asks the client to go elsewhere: `follow` with the address, or `close`.
    Redirected {
        /// The other endpoint's URI.
        uri: &'a [u8],
        /// Token that the other endpoint expects.
        token: u64,
    },
    /// The connection is broken: its peer closed it, has forgotten it, or did not answer in time.
    /// Its open operations have ended. The index stays in use until `close`.
    Broken(Failure),
    /// Nothing was received from the peer for the keepalive timeout. The connection is unchanged.
    Silent,
}

/// The owner of slots, events and memory. Its methods are called from within the engine's
/// `handle_*`, `poll_transmit` and application calls, and call none of them.
pub trait Host {
    /// Bytes that a link can send without a copy.
    type Piece;

    /// Returns the owner of the keys of sealed connections. `None`: all connections are plain.
    fn sealer(&mut self) -> Option<&mut dyn Sealer> {
        None
    }

    /// Returns how many messages, of any size, `begin` would accept now. Peers get this as their
    /// credit.
    fn credit(&self) -> u32;

    /// Returns a buffer for a message of `len` bytes whose first part arrived, or `None` if no slot
    /// is free now.
    fn begin(&mut self, host_cookie: u32, len: u32) -> Option<MessageBuffer>;

    /// Copies bytes of the message in `buffer` to offset `at`.
    fn fill(&mut self, buffer: MessageBuffer, at: u32, bytes: &[u8]);

    /// Delivers the message in `buffer`, which is complete, to the program.
    fn deliver(&mut self, host_cookie: u32, buffer: MessageBuffer);

    /// Frees `buffer`, whose message will not be completed.
    fn abandon(&mut self, buffer: MessageBuffer);

    /// Delivers a message in one piece: `begin`, `fill`, `deliver`. Returns false if no slot is
    /// free now.
    fn message(&mut self, host_cookie: u32, bytes: &[u8]) -> bool {
        let Some(buffer) = self.begin(host_cookie, u32::try_from(bytes.len()).unwrap_or(u32::MAX)) else {
            return false;
        };
        self.fill(buffer, 0, bytes);
        self.deliver(host_cookie, buffer);
        true
    }

    /// Writes to registered memory for the peer of a connection: checks handle, access right and
    /// the whole operation's range, then copies `bytes` to `target.offset + at`.
    ///
    /// # Errors
    ///
    /// Refused; nothing was written.
    fn write(&mut self, host_cookie: u32, target: &Target, at: u64, bytes: &[u8]) -> Result<(), Failure>;

    /// As `write`, for a frame whose CRC is not verified yet. Copies the bytes and returns the CRC
    /// continued over them, in one pass. The frame continues a write, so a broken frame overwrites
    /// no accepted bytes. Returns `None` if the write is refused and nothing was written.
    fn write_checked(&mut self, host_cookie: u32, target: &Target, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        self.write(host_cookie, target, at, bytes).ok().map(|()| crc.update(bytes))
    }

    /// Called instead of `write` once the frame that `write_checked` copied has passed its CRC and
    /// been accepted.
    fn written(&mut self, _target: &Target, _at: u64, _bytes: &[u8]) {}

    /// Returns the `len` bytes from offset `at` of an operation, for an RMA frame. Checks a served
    /// read again, which `may_read` has allowed to its connection.
    ///
    /// # Errors
    ///
    /// Refused, or the memory is not registered any more.
    fn source(&mut self, source: &Source, at: u64, len: u32) -> Result<Self::Piece, Failure>;

    /// Called before `source` when a frame with these bytes is retransmitted. The program may have
    /// changed them since the first transmission.
    fn resent(&mut self, _source: &Source, _len: u32) {}

    /// Returns the local address of an operation's first byte, modulo 64. Frames are cut between
    /// its words.
    fn phase(&mut self, _source: &Source) -> u8 {
        0
    }

    /// Checks whether the peer of a connection may read this memory: handle, access right and
    /// range.
    ///
    /// # Errors
    ///
    /// Refused.
    fn may_read(&mut self, host_cookie: u32, target: &Target) -> Result<(), Failure>;

    /// Changes a word of registered memory for the peer of a connection, as one operation of the
    /// processor, and returns its old value. Checks handle, both rights, range and alignment.
    /// `target.len` is 4 or 8. Called once for each operation, however often its frame arrives. A
    /// host without memory refuses all.
    ///
    /// # Errors
    ///
    /// Refused; nothing was changed.
    fn atomic(&mut self, _host_cookie: u32, _target: &Target, _atomic: Atomic) -> Result<u64, Failure> {
        Err(Failure::RemoteHandle)
    }

    /// Notes that the peer of a connection has a large message of `len` bytes.
    /// `Engine::answer_large` is to give its operation `op` memory to write it to, now or later. A
    /// host without memory refuses all.
    ///
    /// # Errors
    ///
    /// Refused: there is never memory for it.
    fn large(&mut self, _host_cookie: u32, _op: u32, _len: u64) -> Result<(), Failure> {
        Err(Failure::TooLong)
    }

    /// Reports that the peer's operation `op`, a write or a large message, has written all its
    /// bytes. The peer is told afterwards.
    fn written_whole(&mut self, _host_cookie: u32, _op: u32, _outcome: Result<(), ()>) {}

    /// Copies bytes that this side's read brought to offset `at` of the operation.
    fn place(&mut self, op: Op, at: u64, bytes: &[u8]);

    /// As `place`, for a frame whose CRC is not verified yet, as in `write_checked`. Returns `None`
    /// if nothing was placed.
    fn place_checked(&mut self, op: Op, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        self.place(op, at, bytes);
        Some(crc.update(bytes))
    }

    /// Called instead of `place` once the frame that `place_checked` copied has passed its CRC and
    /// been accepted.
    fn placed(&mut self, _op: Op, _at: u64, _bytes: &[u8]) {}

    /// Returns whether the host takes no message of a connection until it calls
    /// [`Engine::resume_paused`](super::Engine::resume_paused). Asked after a refusal.
    fn is_paused(&self, _host_cookie: u32) -> bool {
        false
    }

    /// Reports the end of an operation. Its number belongs to the host again.
    fn ended(&mut self, op: Op, outcome: Result<(), Failure>);

    /// Returns the most strangers at a time: requests without an answer, and accepted clients that
    /// have not confirmed. One network has at most a quarter of them
    /// ([`Address::network`](crate::Address::network)).
    fn strangers(&self) -> u32 {
        1 << 10
    }

    /// Reports an event of a connection. Returns false if the host has no room for it now. The
    /// result matters for `Request` and `Expected`, whose client asks again, and for `Open` after
    /// `accept`, which is reported again.
    fn event(&mut self, index: Index, host_cookie: u32, event: Event<'_>) -> bool;
}
