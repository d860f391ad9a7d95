//! A host with the keys of a sealed endpoint. It records what reaches its program, and holds the
//! engine to its promises about ends and buffers.

use super::content::{self, SERVED};
use crate::config::MAX_SEND;
use cci_proto::engine::{Event, Host, Index, MessageBuffer, Op, Sealer, Source, Target, ToySealer};
use cci_proto::{Attribute, Failure};
use std::collections::BTreeMap;

/// The handle of the registered memory.
pub(super) const HANDLE: [u64; 2] = [7, 7];

/// An operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Running {
    Send,
    /// A write whose content has this number.
    Write(u32),
    /// A read from this offset of the peer's memory, and its length.
    Read(u64, u64),
}

/// The state of a connection as its host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// This side asks.
    Asking,
    /// A client waits for the answer.
    Requested,
    /// The client has not confirmed yet.
    Accepted,
    /// The server named another endpoint.
    Redirected,
    Open,
    Broken,
}

/// A connection as its host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The cookie of the host; 0 before a request is accepted.
    pub(super) cookie: u32,
    pub(super) attribute: Attribute,
    pub(super) standing: Standing,
}

/// What a call of the engine has released to the program.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// Messages, with the cookies of their connections.
    pub(super) messages: Vec<(u32, Vec<u8>)>,
    /// Writes to registered memory: the operation, the offset in it, and bytes.
    pub(super) writes: Vec<(Target, u64, Vec<u8>)>,
    /// Answers to reads: offset in the peer's memory, and bytes.
    pub(super) reads: Vec<(u64, Vec<u8>)>,
    /// Payloads of requests.
    pub(super) requests: Vec<Vec<u8>>,
    /// Events of connections, whatever they were.
    pub(super) events: u32,
    /// Operations that ended, and how many of them failed.
    pub(super) ended: u32,
    pub(super) failed: u32,
    /// Bytes of messages that may be incomplete.
    pub(super) filled: usize,
}

impl Released {
    /// Whether the program has got nothing, and knows nothing new.
    pub(super) fn is_nothing(&self) -> bool {
        self.writes.is_empty() && self.reads.is_empty() && self.filled + (self.events + self.ended) as usize == 0
    }
}

/// The program of one side.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) sealer: ToySealer,
    /// Messages for which there is room.
    pub(super) slots: u32,
    /// Operations in progress.
    pub(super) running: BTreeMap<u32, Running>,
    /// Connections, by the engine's index.
    pub(super) connections: BTreeMap<u32, Known>,
    /// What was released since this was last taken.
    pub(super) released: Released,
    /// Connections that broke.
    pub(super) broken: u32,
    /// Which side this is: its memory has a content of its own.
    side: usize,
    /// Messages that are incomplete: cookie of the connection, and bytes.
    buffers: BTreeMap<u32, (u32, Vec<u8>)>,
    next_buffer: u32,
}

impl Program {
    pub(super) fn new(side: usize, sealer: ToySealer, slots: u32) -> Self {
        Self {
            sealer,
            slots,
            running: BTreeMap::new(),
            connections: BTreeMap::new(),
            released: Released::default(),
            broken: 0,
            side,
            buffers: BTreeMap::new(),
            next_buffer: 0,
        }
    }

    /// Nothing is left: every operation has ended, every buffer was delivered or abandoned, and no
    /// key is kept.
    pub(super) fn assert_closed(&self) {
        assert!(self.running.is_empty(), "operations that never ended: {:?}", self.running);
        assert!(self.buffers.is_empty(), "messages neither delivered nor abandoned: {:?}", self.buffers.keys());
        assert!(self.sealer.is_empty(), "{} keys are left", self.sealer.len());
    }

    /// Indices of the connections with this standing.
    pub(super) fn with(&self, standing: Standing) -> Vec<u32> {
        let is_it = |(index, known): (&u32, &Known)| (known.standing == standing).then_some(*index);
        self.connections.iter().filter_map(is_it).collect()
    }

    /// The attribute of an open connection with this cookie.
    pub(super) fn attribute_of(&self, cookie: u32) -> Attribute {
        let is_it = |known: &&Known| known.cookie == cookie && known.standing == Standing::Open;
        let known = self.connections.values().find(is_it);
        known.unwrap_or_else(|| panic!("released to {cookie}, which is not open: {:?}", self.connections)).attribute
    }

    fn is_served(target: &Target) -> bool {
        target.handle == HANDLE && target.offset.checked_add(target.len).is_some_and(|end| end <= SERVED)
    }
}

impl Host for Program {
    type Piece = Vec<u8>;

    fn sealer(&mut self) -> Option<&mut dyn Sealer> {
        Some(&mut self.sealer)
    }

    fn credit(&self) -> u32 {
        self.slots
    }

    fn begin(&mut self, cookie: u32, len: u32) -> Option<MessageBuffer> {
        self.attribute_of(cookie);
        assert!(len <= MAX_SEND, "a message of {len} bytes");
        self.slots = self.slots.checked_sub(1)?;
        self.next_buffer += 1;
        self.buffers.insert(self.next_buffer, (cookie, vec![0; len as usize]));
        Some(MessageBuffer(self.next_buffer))
    }

    fn fill(&mut self, buffer: MessageBuffer, at: u32, bytes: &[u8]) {
        let (_, message) = self.buffers.get_mut(&buffer.0).expect("a buffer that was begun");
        message[at as usize..][..bytes.len()].copy_from_slice(bytes);
        self.released.filled += 1 + bytes.len();
    }

    fn deliver(&mut self, cookie: u32, buffer: MessageBuffer) {
        let (begun_by, message) = self.buffers.remove(&buffer.0).expect("a buffer that was begun");
        assert_eq!(begun_by, cookie, "begun for one connection and delivered to another");
        self.slots += 1;
        self.released.messages.push((cookie, message));
    }

    fn abandon(&mut self, buffer: MessageBuffer) {
        self.buffers.remove(&buffer.0).expect("a buffer that was begun");
        self.slots += 1;
    }

    fn write(&mut self, cookie: u32, target: &Target, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.attribute_of(cookie);
        self.released.writes.push((*target, at, bytes.to_vec()));
        if Self::is_served(target) { Ok(()) } else { Err(Failure::RemoteHandle) }
    }

    fn source(&mut self, source: &Source, at: u64, len: u32) -> Result<Vec<u8>, Failure> {
        match source {
            Source::Local(op) => match self.running.get(&op.0) {
                Some(Running::Write(number)) => Ok(content::write(*number, at, len.into())),
                other => panic!("memory of {op:?} is read, which is {other:?}"),
            },
            Source::Served(target) if Self::is_served(target) => {
                Ok(content::memory(self.side, target.offset + at, len.into()))
            }
            Source::Served(_) => Err(Failure::RemoteHandle),
        }
    }

    fn may_read(&mut self, cookie: u32, target: &Target) -> Result<(), Failure> {
        self.attribute_of(cookie);
        if Self::is_served(target) { Ok(()) } else { Err(Failure::RemoteHandle) }
    }

    fn place(&mut self, op: Op, at: u64, bytes: &[u8]) {
        let Some(Running::Read(offset, len)) = self.running.get(&op.0).copied() else {
            panic!("bytes for {op:?}, which is no read in progress")
        };
        assert!(at + bytes.len() as u64 <= len, "{} bytes at {at} of {len}", bytes.len());
        self.released.reads.push((offset + at, bytes.to_vec()));
    }

    fn ended(&mut self, op: Op, outcome: Result<(), Failure>) {
        self.running.remove(&op.0).unwrap_or_else(|| panic!("{op:?} ended, and was not in progress"));
        self.released.ended += 1;
        self.released.failed += u32::from(outcome.is_err());
    }

    fn event(&mut self, index: Index, cookie: u32, event: Event<'_>) -> bool {
        use Standing::*;
        self.released.events += 1;
        let known = self.connections.get(&index.0).copied();
        let found = known.map(|known| known.standing);
        assert!(known.is_none_or(|known| known.cookie == cookie), "the cookie of another connection");
        let (expected, next): (&[Option<Standing>], _) = match event {
            Event::Request { attribute, payload } => {
                assert_eq!(known, None, "a request at an index that is taken");
                self.released.requests.push(payload.to_vec());
                self.connections.insert(index.0, Known { cookie: 0, attribute, standing: Requested });
                return true;
            }
            Event::Expected { .. } => panic!("nobody is expected"),
            Event::Open { .. } => (&[Some(Asking), Some(Accepted), Some(Redirected)], Some(Open)),
            Event::Refused { .. } => (&[Some(Asking), Some(Requested), Some(Accepted), Some(Redirected)], None),
            Event::Redirected { .. } => (&[Some(Asking), Some(Redirected)], Some(Redirected)),
            Event::Broken(_) => {
                self.broken += 1;
                (&[Some(Open)], Some(Broken))
            }
            Event::Silent => (&[Some(Open)], Some(Open)),
        };
        assert!(expected.contains(&found), "{event:?} of what is {found:?}");
        match (next, known) {
            (Some(standing), Some(known)) => self.connections.insert(index.0, Known { standing, ..known }),
            _ => self.connections.remove(&index.0),
        };
        true
    }
}
