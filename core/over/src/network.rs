//! What an API gives to a transport over it.

use crate::Registrations;
use crate::wire::Header;
use cci_mem::memory::Memory;
use cci_proto::{Rights, Time};
use cci_transport::Message;
use std::fmt;

/// What ends with a message or a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// A message of an operation.
    Message {
        /// The number of the connection.
        side: u32,
        /// The number of the operation.
        serial: u64,
    },
    /// What belongs to a connection, and nobody waits for.
    Control {
        /// The number of the connection.
        side: u32,
    },
    /// An answer to a stranger, or a wake-up.
    Stray,
    /// The data of a write.
    Write {
        /// The number of the connection.
        side: u32,
        /// The number of the operation.
        serial: u64,
    },
    /// The data of a read.
    Read {
        /// The number of the connection.
        side: u32,
        /// The number of the operation.
        serial: u64,
    },
}

/// How a message or a transfer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// As it should.
    Done,
    /// The target refuses the handle, the range or the right.
    Refused,
    /// The peer is gone.
    Gone,
}

/// The end of a message or a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// What it was.
    pub goal: Goal,
    /// How it has ended.
    pub fate: Fate,
}

/// For which part of an endpoint a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A connection: it must not be lost.
    Reliable,
    /// A connection: it may be lost.
    Unreliable,
    /// The endpoint: a request, or its end.
    Setup,
}

/// A message that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<O> {
    /// Who has sent it, by the word of the API.
    pub origin: O,
    /// The word that came with it.
    pub header: u64,
    /// For which part of the endpoint it is.
    pub class: Class,
    /// Where in the buffer its bytes begin.
    pub from: usize,
    /// How many bytes of it are in the buffer.
    pub len: usize,
    /// Its bytes are not whole: its sender has died.
    pub has_failed: bool,
}

impl<O> Arrival<O> {
    /// Its bytes in the buffer.
    #[inline]
    pub(crate) fn bytes<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        let bytes = buffer.get(self.from..).unwrap_or_default();
        &bytes[..self.len.min(bytes.len())]
    }
}

/// What has become of a request ([`Network::ask`]).
#[derive(Clone, Copy, Debug)]
pub enum Reply<P> {
    /// Nobody has that name.
    Nobody,
    /// There was no room for it at the peer: it is to be sent again.
    Again,
    /// The peer's place is this: it is to be sent there.
    Found(P),
}

/// What has happened.
#[derive(Clone, Copy, Debug)]
pub enum Event<P, O> {
    /// A message has come. Its bytes are in the buffer of [`Network::next`].
    Arrival(Arrival<O>),
    /// A message or a transfer has ended.
    Ended(Ended),
    /// A request was dropped, or goes on.
    Asked {
        /// The number of the connection that asks.
        side: u32,
        /// What has become of it.
        reply: Reply<P>,
    },
    /// Something was received that nobody sends by these rules.
    Stray,
    /// Nothing that concerns others.
    Nothing,
}

/// A buffer of the network: its number, and bytes of the message in it.
pub type Buffer = (u32, usize);

/// Where a message goes, and what it brings.
#[derive(Clone, Copy, Debug)]
pub struct Put<P> {
    /// The endpoint.
    pub to: P,
    /// For which part of it.
    pub class: Class,
    /// The word that comes with it.
    pub header: u64,
    /// The bytes, if there are any. The buffer is the network's from then on.
    pub bytes: Option<Buffer>,
    /// Whether its end is the peer's word that it is there.
    pub ack: bool,
}

/// What has become of a message ([`Network::put`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// There is no room, and the buffer is still the caller's.
    No,
    /// It is under way: an event reports its end.
    Begun,
    /// It has ended, as it should: no event follows.
    Over,
}

impl Sent {
    /// Whether there was room for it.
    #[must_use]
    pub fn has_begun(self) -> bool {
        self != Self::No
    }
}

/// The connection of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Way<P> {
    /// The peer.
    pub to: P,
    /// This side's number of the connection.
    pub number: u32,
    /// The peer's number of it.
    pub remote: u32,
    /// Its tag, which both know.
    pub tag: u64,
}

/// What a transfer moves.
#[derive(Clone, Debug)]
pub struct Part {
    /// Memory of this process.
    pub memory: Memory,
    /// Which registration of the peer: the word that it was attached with.
    pub bits: u64,
    /// Where in the registration.
    pub offset: u64,
}

/// How an API is called in reports.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The transport.
    pub name: &'static str,
    /// What messages are.
    pub messages: &'static str,
    /// What RMA is.
    pub rma: &'static str,
}

/// An endpoint's part of an API.
///
/// All calls are made under the endpoint's lock, and none waits.
pub trait Network: Send + Sized {
    /// Where an endpoint is.
    type Place: Copy + PartialEq + fmt::Debug + Send;
    /// What the API tells of a sender.
    type Origin: Copy;
    /// What keeps memory registered.
    type Bound: Send;

    /// How the API is called.
    const WORDS: Words;

    /// Where this endpoint is.
    fn own(&self) -> Self::Place;

    /// The number of this endpoint among those of its process.
    fn number(&self) -> u32;

    /// The endpoint that a URI names.
    fn of_uri(uri: &str) -> Option<Self::Place>;

    /// The URI of an endpoint.
    fn uri(place: Self::Place) -> String;

    /// The endpoint of a sender, by the sender's word of its number.
    fn at(&self, origin: Self::Origin, number: u32) -> Self::Place;

    /// Whether a sender may be this endpoint.
    fn is_from(place: Self::Place, origin: Self::Origin) -> bool;

    /// Makes progress, and returns what has happened next. The bytes of a message are in `bytes`,
    /// at the place that [`Arrival`] gives. `bytes` comes as the last call has left it, and at
    /// first as long as the longest message; a network may exchange it for memory of its own.
    fn next(
        &mut self,
        registrations: &Registrations<Self::Bound>,
        bytes: &mut Vec<u8>,
    ) -> Option<Event<Self::Place, Self::Origin>>;

    /// Whether [`Network::next`] may have something to return without asking the library. Then a
    /// call that has found something goes on.
    fn has_more(&self) -> bool {
        true
    }

    /// Makes progress. What has happened stays for [`Network::next`].
    fn progress(&mut self);

    /// Whether an operation of the program can begin.
    fn has_room(&self) -> bool;

    /// Whether [`Network::mend`] has something to do.
    fn is_short(&self) -> bool {
        false
    }

    /// Brings back what found no room in the library.
    fn mend(&mut self) {}

    /// Frees what the library has used longer than its operation lasted.
    fn sweep(&mut self) {}

    /// When a call must come though nothing arrives.
    fn deadline(&self, now: Time) -> Option<Time> {
        let _ = now;
        None
    }

    /// Makes room for so many messages of peers on the way. False: there is none.
    fn grant(&mut self, granted: usize) -> bool {
        let _ = granted;
        true
    }

    /// Messages that have not left.
    fn unsent(&self) -> usize;

    /// A buffer with a message; `None`: there is none.
    fn write_message(&mut self, message: &Message<'_>) -> Option<Buffer>;

    /// A buffer with these bytes, which fit.
    fn write(&mut self, bytes: &[u8]) -> Option<Buffer>;

    /// Gives a buffer back that was not sent.
    fn give(&mut self, buffer: u32);

    /// Sends a message. The buffer is the network's, unless there is no room.
    fn put(&mut self, goal: Goal, put: &Put<Self::Place>) -> Sent;

    /// Sends the request of a connection, which may be dropped: then, and where nobody has that
    /// name, [`Event::Asked`] follows. False: there is no room.
    fn ask(&mut self, side: u32, to: Self::Place, header: u64, request: &[u8]) -> bool;

    /// Begins to move data: a write or a read, as the goal has it. False: there is no room.
    fn transfer(&mut self, goal: Goal, way: &Way<Self::Place>, part: Part) -> bool;

    /// Asks the peer whether it has dropped a write, if writes can be dropped. False: there is no
    /// room.
    fn doubt(&mut self, side: u32, serial: u64, way: &Way<Self::Place>, part: &Part) -> bool {
        let _ = (side, serial, way, part);
        true
    }

    /// What a peer's network has sent to this one on a connection.
    fn on_own(
        &mut self,
        way: &Way<Self::Place>,
        registrations: &Registrations<Self::Bound>,
        header: Header,
        bytes: &[u8],
    ) -> Option<Ended> {
        let _ = (way, registrations, header, bytes);
        None
    }

    /// Ends what nobody waits for any more: no event follows.
    fn cancel(&mut self, is_meant: impl Fn(Goal) -> bool);

    /// Ends what a connection has under way for its peer.
    fn leave(&mut self, side: u32) {
        let _ = side;
    }

    /// Lets peers reach memory by a word. `None`: there is no room.
    fn attach(&mut self, bits: u64, memory: &Memory, rights: Rights) -> Option<Self::Bound>;

    /// Takes memory from peers. It comes back while one uses it.
    ///
    /// # Errors
    ///
    /// A peer uses it.
    fn release(&mut self, bound: Self::Bound) -> Result<(), Self::Bound>;

    /// Drains the waker of the OS handle, and has it written with the next event, though nobody
    /// calls. False: an event is there already, or there is no thread for it.
    fn watch(&mut self) -> bool;

    /// The program calls again.
    fn unwatch(&mut self);

    /// Gives everything back to the library. A second call does nothing.
    fn end(&mut self, registered: Vec<Self::Bound>);
}
