//! What an endpoint has under way in the interface: its puts and gets, and the memory they use.

use crate::sys::{Bound, Code, Interface, Process, To, Wanted, options};
use crate::wire::{Address, Class, MESSAGES, NOBODY, REGISTRATIONS};
use cci_mem::memory::Memory;
use cci_over::{Buffer, Flights, Goal, Pool};
use std::sync::Arc;

/// Puts and gets of a program under way at a time: the event queue has room for their events.
const MOST: usize = 1_024;

/// The name of an operation's own memory in events, as [`BLOCK`](crate::blocks::BLOCK).
const OWN: u64 = 3;
/// Of the send memory: the token is in the match bits.
const POOL: u64 = 1;

/// What ends with a put or a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// What the shared part of the transport waits for.
    Of(Goal),
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
    aim: Aim,
    buffer: Option<u32>,
    bound: Option<Bound>,
    wants_ack: bool,
    is_sent: bool,
    /// The ack has come before the end of the send.
    acked: Option<bool>,
}

/// What has become of a put or a get.
pub(crate) struct Landed {
    pub(crate) aim: Aim,
    pub(crate) is_done: bool,
}

/// The part of an endpoint that talks to the interface.
pub(crate) struct Net {
    pub(crate) interface: Arc<Interface>,
    pub(crate) number: u32,
    pub(crate) queue: u32,
    flights: Flights<Flight>,
    /// Flights of the program's operations.
    busy: usize,
    pub(crate) pool: Pool,
    source: Option<Bound>,
    is_bind: bool,
    /// Memory that the library still uses though its operation is over.
    pub(crate) left: Vec<Bound>,
}

/// Where a put goes, and what it brings.
#[derive(Clone, Copy)]
pub(crate) struct Put {
    pub(crate) to: Address,
    pub(crate) class: Class,
    pub(crate) header: u64,
    /// A buffer with so many bytes.
    pub(crate) bytes: Option<Buffer>,
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
        (count, longest): (u32, usize),
        is_bind: bool,
    ) -> Result<Self, Code> {
        let pool = Pool::new(count, longest).map_err(|_| Code::NO_SPACE)?;
        let memory = pool.memory().clone();
        let mut net = Self {
            interface,
            number,
            queue,
            flights: Flights::new(MOST),
            busy: 0,
            pool,
            source: None,
            is_bind,
            left: Vec::new(),
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
        self.flights.iter().filter(|flight| !flight.is_sent).count()
    }

    fn enter(&mut self, aim: Aim, wants_ack: bool, buffer: Option<u32>) -> u32 {
        let flight = Flight { aim, buffer, bound: None, wants_ack, is_sent: false, acked: None };
        self.busy += usize::from(Self::is_operation(aim));
        self.flights.enter(flight)
    }

    fn is_operation(aim: Aim) -> bool {
        matches!(aim, Aim::Of(Goal::Message { .. } | Goal::Write { .. } | Goal::Read { .. }))
    }

    /// Takes a flight off the list, and frees what it had.
    fn leave(&mut self, token: u32) -> Option<Aim> {
        let flight = self.flights.leave(token)?;
        self.busy -= usize::from(Self::is_operation(flight.aim));
        if let Some(buffer) = flight.buffer {
            self.pool.give(buffer);
        }
        if let Some(bound) = flight.bound {
            self.left.extend(self.interface.release(bound).err());
        }
        Some(flight.aim)
    }

    /// Frees what was left while the library used it.
    pub(crate) fn sweep(&mut self) {
        let interface = &self.interface;
        let left = std::mem::take(&mut self.left);
        self.left = left.into_iter().filter_map(|bound| interface.release(bound).err()).collect();
    }

    /// Puts a message, or the header alone. An error, and nothing is under way: a buffer is still
    /// the caller's.
    pub(crate) fn put(&mut self, aim: Aim, put: &Put) -> Result<(), Code> {
        let Put { to, class, header, bytes, ack } = *put;
        if !self.flights.has_room() {
            return Err(Code::NO_SPACE);
        }
        let token = self.enter(aim, ack, bytes.map(|(buffer, _)| buffer));
        let bits = Address::bits(to.number, class, token);
        let to = To { process: to.process, portal: MESSAGES, bits, offset: 0, header };
        let (offset, len) = bytes.map_or((0, 0), |(buffer, len)| (self.pool.offset(buffer), len as u64));
        let sent = if self.is_bind && len > 0 {
            self.put_bound(token, (offset, len), ack, &to)
        } else {
            self.put_copy((offset, len), ack, &to)
        };
        sent.inspect_err(|_| {
            if let Some(flight) = self.flights.get_mut(token) {
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
        let memory = self.pool.memory().part(offset, len).ok_or(Code::NO_SPACE)?;
        let bound = self.bind(memory, OWN << 32 | u64::from(token))?;
        let sent = self.interface.put(&bound, (0, len), ack, to);
        self.keep(token, bound);
        sent
    }

    fn keep(&mut self, token: u32, bound: Bound) {
        if let Some(flight) = self.flights.get_mut(token) {
            flight.bound = Some(bound);
        }
    }

    /// Begins an RMA, or a probe, with this memory.
    pub(crate) fn transfer(
        &mut self,
        aim: Aim,
        memory: Memory,
        (process, bits, offset): (Process, u64, u64),
    ) -> Result<(), Code> {
        let is_get = matches!(aim, Aim::Of(Goal::Read { .. }));
        let token = self.enter(aim, !is_get, None);
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
    pub(crate) fn has(&self, aim: Aim) -> bool {
        self.flights.iter().any(|flight| flight.aim == aim)
    }

    /// Ends what a peer has dropped.
    pub(crate) fn cancel(&mut self, is_meant: impl Fn(Aim) -> bool) {
        for token in self.flights.tokens(|flight| is_meant(flight.aim)) {
            self.leave(token);
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
    pub(crate) fn on_sent(&mut self, token: u32, is_done: bool) -> Option<Landed> {
        let flight = self.flights.get_mut(token)?;
        if is_done && flight.wants_ack && flight.acked.is_none() {
            flight.is_sent = true;
            return None;
        }
        let is_done = is_done && flight.acked.unwrap_or(true);
        self.leave(token).map(|aim| Landed { aim, is_done })
    }

    /// The target has answered.
    #[inline]
    pub(crate) fn on_answered(&mut self, token: u32, is_done: bool) -> Option<Landed> {
        let flight = self.flights.get_mut(token)?;
        if flight.wants_ack && !flight.is_sent {
            flight.acked = Some(is_done);
            return None;
        }
        self.leave(token).map(|aim| Landed { aim, is_done })
    }

    /// Ends everything for the end of the endpoint.
    pub(crate) fn end(&mut self) {
        self.cancel(|_| true);
        self.left.extend(self.source.take());
        self.sweep();
    }
}
