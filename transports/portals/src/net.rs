//! What an endpoint has under way in the interface: its puts and gets, and the memory they use.

use crate::sys::{Bound, Code, Interface, Process, To, Wanted, options};
use crate::wire::{Address, Class, Header, MESSAGES, NOBODY, REGISTRATIONS};
use cci_mem::memory::Memory;
use cci_mem::pages::SharedPages;
use cci_transport::Message;
use std::sync::Arc;

/// Puts and gets of a program under way at a time: the event queue has room for their events.
const MOST: usize = 1_024;

/// The name of an operation's own memory in events, as [`BLOCK`](crate::blocks::BLOCK).
const OWN: u64 = 3;
/// Of the send memory: the token is in the match bits.
const POOL: u64 = 1;

/// What ends with a put or a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A message of an operation.
    Message {
        side: u32,
        serial: u64,
    },
    /// What belongs to a connection, and nobody waits for.
    Control {
        side: u32,
    },
    /// An answer to a stranger, or a wake-up.
    Stray,
    /// A request for a connection.
    Request {
        side: u32,
    },
    /// An empty put to the same endpoint: somebody has that number.
    Here {
        side: u32,
    },
    /// The sentinel behind both.
    AfterRequest {
        side: u32,
    },
    /// The data of an RMA.
    Write {
        side: u32,
        serial: u64,
    },
    Read {
        side: u32,
        serial: u64,
    },
    /// An empty put at the end of a write, and the sentinel behind it.
    Probe {
        side: u32,
        serial: u64,
    },
    AfterProbe {
        side: u32,
        serial: u64,
    },
}

/// A put or a get under way.
#[derive(Debug)]
struct Flight {
    goal: Goal,
    buffer: Option<u32>,
    bound: Option<Bound>,
    wants_ack: bool,
    is_sent: bool,
    /// The ack has come before the end of the send.
    acked: Option<bool>,
}

/// What has become of a put or a get.
pub(crate) struct Ended {
    pub(crate) goal: Goal,
    pub(crate) is_done: bool,
}

/// Fixed-size buffers in memory that is bound once.
struct Pool {
    memory: Memory,
    stride: usize,
    free: Vec<u32>,
    /// The first that was never taken; its memory is still untouched.
    fresh: u32,
    count: u32,
}

impl Pool {
    fn take(&mut self) -> Option<u32> {
        if let Some(buffer) = self.free.pop() {
            return Some(buffer);
        }
        (self.fresh < self.count).then(|| {
            self.fresh += 1;
            self.fresh - 1
        })
    }

    fn offset(&self, buffer: u32) -> u64 {
        u64::from(buffer) * self.stride as u64
    }
}

/// The part of an endpoint that talks to the interface.
pub(crate) struct Net {
    pub(crate) interface: Arc<Interface>,
    pub(crate) number: u32,
    pub(crate) queue: u32,
    flights: Vec<Option<Flight>>,
    lives: Vec<u16>,
    free: Vec<u16>,
    /// Flights of the program's operations.
    busy: usize,
    pool: Pool,
    source: Option<Bound>,
    is_bind: bool,
    /// Memory that the library still uses though its operation is over.
    pub(crate) left: Vec<Bound>,
    scratch: Vec<u8>,
}

/// Where a put goes, and what it brings.
#[derive(Clone, Copy)]
pub(crate) struct Put {
    pub(crate) to: Address,
    pub(crate) class: Class,
    pub(crate) header: u64,
    /// A buffer with so many bytes.
    pub(crate) bytes: Option<(u32, usize)>,
    pub(crate) ack: bool,
}

impl Put {
    /// An empty put to the entry that is there as long as the process has an endpoint.
    pub(crate) fn sentinel(process: Process) -> Self {
        let to = Address { process, number: NOBODY };
        Self { to, class: Class::Sentinel, header: 0, bytes: None, ack: true }
    }
}

impl Net {
    pub(crate) fn new(
        (interface, number, queue): (Arc<Interface>, u32, u32),
        (count, stride): (u32, usize),
        is_bind: bool,
    ) -> Result<Self, Code> {
        // Whole lines, so that two messages never share one.
        let stride = stride.next_multiple_of(64);
        let len = stride * count as usize;
        let pages = SharedPages::new(len).map_err(|_| Code::NO_SPACE)?;
        let memory = Memory::of_pages(&Arc::new(pages), len);
        let pool = Pool { memory: memory.clone(), stride, free: Vec::with_capacity(count as usize), fresh: 0, count };
        let mut net = Self {
            interface,
            number,
            queue,
            flights: Vec::with_capacity(MOST),
            lives: Vec::with_capacity(MOST),
            free: Vec::with_capacity(MOST),
            busy: 0,
            pool,
            source: None,
            is_bind,
            left: Vec::new(),
            scratch: vec![0; stride],
        };
        net.source = Some(net.bind(memory, POOL << 32)?);
        Ok(net)
    }

    fn bind(&self, memory: Memory, user: u64) -> Result<Bound, Code> {
        let queue = Some(self.queue);
        self.interface.bind(memory, &Wanted { options: options::NO_START, threshold: None, max_size: 0, user, queue })
    }

    /// Whether an operation of the program could begin.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.busy < MOST
    }

    /// Puts and gets under way that send something.
    pub(crate) fn unsent(&self) -> usize {
        self.flights.iter().flatten().filter(|flight| !flight.is_sent).count()
    }

    /// A buffer with a message.
    pub(crate) fn write_message(&mut self, message: &Message<'_>) -> Option<(u32, usize)> {
        let buffer = self.pool.take()?;
        let len = message.len();
        let mut scratch = std::mem::take(&mut self.scratch);
        message.copy_to(&mut scratch[..len]);
        let is_in = self.pool.memory.copy_in(self.pool.offset(buffer), &scratch[..len]);
        self.scratch = scratch;
        debug_assert!(is_in, "the facade checks lengths");
        Some((buffer, len))
    }

    /// A buffer with these bytes, which fit.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Option<(u32, usize)> {
        let buffer = self.pool.take()?;
        if bytes.len() > self.pool.stride || !self.pool.memory.copy_in(self.pool.offset(buffer), bytes) {
            self.give(buffer);
            return None;
        }
        Some((buffer, bytes.len()))
    }

    pub(crate) fn give(&mut self, buffer: u32) {
        self.pool.free.push(buffer);
    }

    fn enter(&mut self, goal: Goal, wants_ack: bool, buffer: Option<u32>) -> u32 {
        let flight = Flight { goal, buffer, bound: None, wants_ack, is_sent: false, acked: None };
        self.busy += usize::from(Self::is_operation(goal));
        let index = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.lives.push(0);
            (self.flights.len() - 1) as u16
        });
        self.flights[usize::from(index)] = Some(flight);
        u32::from(self.lives[usize::from(index)]) << 16 | u32::from(index)
    }

    fn is_operation(goal: Goal) -> bool {
        matches!(goal, Goal::Message { .. } | Goal::Write { .. } | Goal::Read { .. })
    }

    /// The index of a flight that is under way.
    #[inline]
    fn index(&self, token: u32) -> Option<usize> {
        let index = (token & 0xffff) as usize;
        (*self.lives.get(index)? == (token >> 16) as u16 && self.flights[index].is_some()).then_some(index)
    }

    /// Takes a flight off the list, and frees what it had.
    fn leave(&mut self, token: u32) -> Option<Goal> {
        let index = self.index(token)?;
        let flight = self.flights[index].take()?;
        self.lives[index] = self.lives[index].wrapping_add(1);
        self.free.push(index as u16);
        self.busy -= usize::from(Self::is_operation(flight.goal));
        if let Some(buffer) = flight.buffer {
            self.give(buffer);
        }
        if let Some(bound) = flight.bound {
            self.left.extend(self.interface.release(bound).err());
        }
        Some(flight.goal)
    }

    /// Frees what was left while the library used it.
    pub(crate) fn sweep(&mut self) {
        let interface = &self.interface;
        let left = std::mem::take(&mut self.left);
        self.left = left.into_iter().filter_map(|bound| interface.release(bound).err()).collect();
    }

    /// Puts a message, or the header alone. An error, and nothing is under way: a buffer is still
    /// the caller's.
    pub(crate) fn put(&mut self, goal: Goal, put: &Put) -> Result<(), Code> {
        let Put { to, class, header, bytes, ack } = *put;
        // The counts of tokens are as many as their halves have bits.
        if self.flights.len() > usize::from(u16::MAX) - 1 && self.free.is_empty() {
            return Err(Code::NO_SPACE);
        }
        let token = self.enter(goal, ack, bytes.map(|(buffer, _)| buffer));
        let bits = Address::bits(to.number, class, token);
        let to = To { process: to.process, portal: MESSAGES, bits, offset: 0, header };
        let (offset, len) = bytes.map_or((0, 0), |(buffer, len)| (self.pool.offset(buffer), len as u64));
        let sent = if self.is_bind && len > 0 {
            self.put_bound(token, (offset, len), ack, &to)
        } else {
            self.put_copy((offset, len), ack, &to)
        };
        sent.inspect_err(|_| {
            if let Some(index) = self.index(token)
                && let Some(flight) = &mut self.flights[index]
            {
                flight.buffer = None;
            }
            self.leave(token);
        })
    }

    #[inline]
    fn put_copy(&self, at: (u64, u64), ack: bool, to: &To) -> Result<(), Code> {
        let source = self.source.as_ref().ok_or(Code::NO_SPACE)?;
        self.interface.put(source, at, ack, to)
    }

    /// The strategy `bind`: binds the message, and puts it. It is unlinked at its end.
    fn put_bound(&mut self, token: u32, (offset, len): (u64, u64), ack: bool, to: &To) -> Result<(), Code> {
        let memory = self.pool.memory.part(offset, len).ok_or(Code::NO_SPACE)?;
        let bound = self.bind(memory, OWN << 32 | u64::from(token))?;
        let sent = self.interface.put(&bound, (0, len), ack, to);
        self.keep(token, bound);
        sent
    }

    fn keep(&mut self, token: u32, bound: Bound) {
        if let Some(index) = self.index(token)
            && let Some(flight) = &mut self.flights[index]
        {
            flight.bound = Some(bound);
        }
    }

    /// Begins an RMA, or a probe, with this memory.
    pub(crate) fn transfer(
        &mut self,
        goal: Goal,
        memory: Memory,
        (process, bits, offset): (Process, u64, u64),
    ) -> Result<(), Code> {
        let is_get = matches!(goal, Goal::Read { .. });
        let token = self.enter(goal, !is_get, None);
        let to = To { process, portal: REGISTRATIONS, bits, offset, header: 0 };
        let len = memory.len();
        let begun = self.bind(memory, OWN << 32 | u64::from(token)).and_then(|bound| {
            let begun =
                if is_get { self.interface.get(&bound, &to) } else { self.interface.put(&bound, (0, len), true, &to) };
            self.keep(token, bound);
            begun
        });
        begun.inspect_err(|_| {
            self.leave(token);
        })
    }

    /// Whether this is under way.
    pub(crate) fn has(&self, goal: Goal) -> bool {
        self.flights.iter().flatten().any(|flight| flight.goal == goal)
    }

    /// Ends what a peer has dropped.
    pub(crate) fn cancel(&mut self, is_meant: impl Fn(Goal) -> bool) {
        for index in 0..self.flights.len() {
            if self.flights[index].as_ref().is_some_and(|flight| is_meant(flight.goal)) {
                self.leave(u32::from(self.lives[index]) << 16 | index as u32);
            }
        }
    }

    /// The token of a flight in an event.
    #[inline]
    pub(crate) fn token(user: u64, bits: u64) -> Option<u32> {
        match user >> 32 {
            POOL => Some(bits as u32),
            OWN => Some(user as u32),
            _ => None,
        }
    }

    /// The bytes have left.
    #[inline]
    pub(crate) fn on_sent(&mut self, token: u32, is_done: bool) -> Option<Ended> {
        let index = self.index(token)?;
        let flight = self.flights[index].as_mut()?;
        if is_done && flight.wants_ack && flight.acked.is_none() {
            flight.is_sent = true;
            return None;
        }
        let is_done = is_done && flight.acked.unwrap_or(true);
        self.leave(token).map(|goal| Ended { goal, is_done })
    }

    /// The target has answered.
    #[inline]
    pub(crate) fn on_answered(&mut self, token: u32, is_done: bool) -> Option<Ended> {
        let index = self.index(token)?;
        let flight = self.flights[index].as_mut()?;
        if flight.wants_ack && !flight.is_sent {
            flight.acked = Some(is_done);
            return None;
        }
        self.leave(token).map(|goal| Ended { goal, is_done })
    }

    /// Ends everything for the end of the endpoint.
    pub(crate) fn end(&mut self) {
        self.cancel(|_| true);
        self.left.extend(self.source.take());
        self.sweep();
    }
}

/// The header of a control message.
pub(crate) fn header(to: u32, verb: crate::wire::Verb, sequence: u8, tag: u64) -> u64 {
    Header { to, verb, sequence, tag: crate::wire::short_tag(tag) }.word()
}
