//! Sends and receives under way in the library, and the memory of messages.

use crate::sys::{End, Finished, Lent, RequestEnd};
use crate::wire::{Address, Place};
use cci_mem::memory::Memory;
use cci_over::{Buffer, Flights, Goal, Pool};
use cci_transport::OpenError;
use std::sync::Arc;

/// Messages and transfers of a program under way at a time.
const MOST: usize = 1_024;

/// What keeps memory registered: each transfer for a peer has another count.
pub(crate) type Bound = Arc<()>;

/// What a request is for.
#[derive(Clone, Debug)]
pub(crate) enum Aim {
    /// What the shared part of the transport waits for.
    Of(Goal),
    /// The address of an endpoint for the request of a connection.
    Find { side: u32, place: Place },
    /// A transfer for a peer.
    Serve { side: u32, _uses: Bound },
    /// Nobody waits for it any more.
    Nobody,
}

/// A request under way, or a write whose target has not said where to.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) aim: Aim,
    pub(crate) buffer: Option<u32>,
    /// The data of a write that is to be sent.
    pub(crate) data: Option<Memory>,
    /// Bytes that are to come.
    pub(crate) len: u64,
    pub(crate) lent: Option<Lent>,
}

impl Flight {
    pub(crate) fn new(aim: Aim) -> Self {
        Self { aim, buffer: None, data: None, len: 0, lent: None }
    }
}

/// A message that the library has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// Its request has ended.
    Ended(RequestEnd),
    /// Its end is to come.
    Entered,
}

/// The requests of an endpoint.
pub(crate) struct Requests {
    pub(crate) flights: Flights<Flight>,
    pub(crate) pool: Pool,
    /// Those of the program's operations.
    busy: usize,
}

fn is_operation(aim: &Aim) -> bool {
    matches!(aim, Aim::Of(Goal::Message { .. } | Goal::Write { .. } | Goal::Read { .. }))
}

impl Requests {
    /// So many buffers for messages of at most `longest` bytes.
    pub(crate) fn new(count: u32, longest: usize) -> Result<Self, OpenError> {
        let pool = Pool::new(count, longest)
            .map_err(|source| OpenError::system("no memory for messages over MX; lower send_buffers", source))?;
        Ok(Self { flights: Flights::new(MOST), pool, busy: 0 })
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.busy < MOST && self.flights.has_room()
    }

    /// Messages that the library has not taken.
    pub(crate) fn unsent(&self) -> usize {
        self.flights.iter().filter(|flight| flight.buffer.is_some()).count()
    }

    #[inline]
    pub(crate) fn enter(&mut self, flight: Flight) -> u32 {
        self.busy += usize::from(is_operation(&flight.aim));
        self.flights.enter(flight)
    }

    /// Takes a flight off the list, with its memory if the library still has it.
    #[inline]
    pub(crate) fn leave(&mut self, token: u32) -> Option<Flight> {
        let mut flight = self.flights.leave(token)?;
        self.busy -= usize::from(is_operation(&flight.aim));
        if let Some(buffer) = flight.buffer.take() {
            self.pool.give(buffer);
        }
        Some(flight)
    }

    /// Sends a message from a buffer. `None`: there is no room, and the buffer is the caller's.
    #[inline]
    pub(crate) fn send(
        &mut self,
        end: &End,
        goal: Goal,
        to: (Address, u64),
        bytes: Option<Buffer>,
        is_sync: bool,
    ) -> Option<Begun> {
        if !self.flights.has_room() {
            return None;
        }
        let part = bytes.map_or((0, 0), |(buffer, len)| (self.pool.offset(buffer), len));
        let sending = end.send_message(part, to, self.flights.next(), is_sync).ok()?;
        let buffer = bytes.map(|(buffer, _)| buffer);
        // The library has taken the bytes of most messages before it returns: then nothing is
        // entered, and no later call looks for the end.
        if !is_sync && let Some(ended) = end.test(&sending) {
            buffer.into_iter().for_each(|buffer| self.pool.give(buffer));
            return Some(Begun::Ended(ended));
        }
        self.enter(Flight { buffer, lent: Some(sending.into()), ..Flight::new(Aim::Of(goal)) });
        Some(Begun::Entered)
    }

    /// Notes the request of a flight. False: there is none, and the flight is gone.
    #[inline]
    pub(crate) fn begin(&mut self, token: u32, lent: Option<Lent>) -> bool {
        let begun = lent.is_some();
        if let Some(flight) = self.flights.get_mut(token) {
            flight.lent = lent;
            if !begun {
                // Still the caller's.
                flight.buffer = None;
            }
        }
        if !begun {
            self.leave(token);
        }
        begun
    }

    /// A request has ended: its flight, whose memory is free.
    #[inline]
    pub(crate) fn finish(&mut self, finished: &Finished) -> Option<Flight> {
        let mut flight = self.leave(finished.token)?;
        if let Some(lent) = flight.lent.take() {
            lent.free();
        }
        Some(flight)
    }

    /// Gives up what is meant: no event follows. What the library still moves keeps its memory.
    pub(crate) fn cancel(&mut self, end: &End, is_meant: impl Fn(&Aim) -> bool) {
        for token in self.flights.tokens(|flight| is_meant(&flight.aim)) {
            let Some(flight) = self.flights.get_mut(token) else { continue };
            flight.lent = flight.lent.take().and_then(|lent| end.cancel(lent).err());
            if flight.lent.is_none() {
                self.leave(token);
            } else if is_operation(&flight.aim) {
                flight.aim = Aim::Nobody;
                self.busy -= 1;
            }
        }
    }

    /// The library touches no memory any more.
    pub(crate) fn free_all(&mut self) {
        for token in self.flights.tokens(|_| true) {
            if let Some(lent) = self.leave(token).and_then(|mut flight| flight.lent.take()) {
                lent.free();
            }
        }
    }
}
