//! A node: the protocol engine, and a program that accepts everybody and takes what it is sent.

use cci_proto::engine::{Config, Engine, Event, Host, Index, MessageBuffer, Op, Source, Target};
use cci_proto::{Failure, Time};
use cci_sim::Random;

/// Messages that a node's program always has room for: it takes each at once.
const ROOM: u32 = 1 << 15;

/// What was delivered to a program since it was last examined.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// A connection of this number is asked for.
    Request(Index, u32),
    /// A connection that this side asked for is open.
    Opened(Index, u32),
    /// A connection of this number is no more.
    Ended(u32, Failure),
    /// A message has been delivered on the connection of this number.
    Message(u32),
}

/// Set in the cookie of a connection at the side that accepted it.
pub(crate) const ACCEPTED: u32 = 1 << 31;

/// The program of a node. The cookie of a connection is its number among all of the world, with
/// [`ACCEPTED`] or without.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) deliveries: Vec<Delivery>,
    /// Messages that come in parts: their connection.
    parts: Vec<u32>,
    free_parts: Vec<u32>,
    pub(crate) free_ops: Vec<u32>,
    next_op: u32,
    operations: u32,
}

impl Program {
    /// A number for an operation; none while all are open.
    pub(crate) fn op(&mut self) -> Option<Op> {
        if let Some(op) = self.free_ops.pop() {
            return Some(Op(op));
        }
        (self.next_op < self.operations).then(|| {
            self.next_op += 1;
            Op(self.next_op - 1)
        })
    }
}

/// The connection of a cookie: far fewer than 2^31 are simulated.
fn number(user: u32) -> u32 {
    user & !ACCEPTED
}

impl Host for Program {
    type Piece = ();

    fn credit(&self) -> u32 {
        ROOM
    }

    fn begin(&mut self, user: u32, _: u32) -> Option<MessageBuffer> {
        let buffer = self.free_parts.pop().unwrap_or_else(|| {
            self.parts.push(0);
            u32::try_from(self.parts.len() - 1).unwrap_or(u32::MAX)
        });
        self.parts[buffer as usize] = user;
        Some(MessageBuffer(buffer))
    }

    fn fill(&mut self, _: MessageBuffer, _: u32, _: &[u8]) {}

    fn deliver(&mut self, user: u32, buffer: MessageBuffer) {
        self.free_parts.push(buffer.0);
        self.deliveries.push(Delivery::Message(number(user)));
    }

    fn abandon(&mut self, buffer: MessageBuffer) {
        self.free_parts.push(buffer.0);
    }

    fn message(&mut self, user: u32, _: &[u8]) -> bool {
        self.deliveries.push(Delivery::Message(number(user)));
        true
    }

    fn write(&mut self, _: u32, _: &Target, _: u64, _: &[u8]) -> Result<(), Failure> {
        Err(Failure::RemoteHandle)
    }

    fn source(&mut self, _: &Source, _: u64, _: u32) -> Result<(), Failure> {
        Err(Failure::RemoteHandle)
    }

    fn may_read(&mut self, _: u32, _: &Target) -> Result<(), Failure> {
        Err(Failure::RemoteHandle)
    }

    fn place(&mut self, _: Op, _: u64, _: &[u8]) {}

    fn ended(&mut self, op: Op, _: Result<(), Failure>) {
        self.free_ops.push(op.0);
    }

    fn event(&mut self, index: Index, user: u32, event: Event<'_>) -> bool {
        let delivery = match event {
            Event::Request { payload, .. } => {
                let Some(own) = payload.first_chunk() else { return false };
                Delivery::Request(index, u32::from_be_bytes(*own))
            }
            Event::Open { .. } if user & ACCEPTED == 0 => Delivery::Opened(index, number(user)),
            Event::Refused { failure, .. } | Event::Broken(failure) => Delivery::Ended(number(user), failure),
            Event::Open { .. } | Event::Expected { .. } | Event::Silent | Event::Redirected { .. } => return true,
        };
        self.deliveries.push(delivery);
        true
    }
}

/// A node at work.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) program: Program,
    /// When its program wants to be woken.
    pub(crate) wake: Option<Time>,
}

impl Node {
    pub(crate) fn new(config: &Config, seed: u64, number: u32) -> Self {
        let mut random = Random::of(seed, u64::from(number), 0);
        let engine = Engine::new(config, std::array::from_fn(|_| random.next()));
        let program = Program {
            deliveries: Vec::new(),
            parts: Vec::new(),
            free_parts: Vec::new(),
            free_ops: Vec::new(),
            next_op: 0,
            operations: config.operations,
        };
        Self { engine, program, wake: None }
    }
}
