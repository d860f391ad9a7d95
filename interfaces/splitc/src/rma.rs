//! RMA: memory of ranks that are not mapped here, as far as these have registered it.

use crate::fault::Fault;
use crate::pieces::{Part, part_of};
use crate::requests::{MOST, Pending, place_of};
use crate::sys::{Staging, Target};
use crate::world::World;
use cci::{Connection, Notify, Rma, RmaError};

/// The bit by which the context of an RMA differs from that of a message.
pub(crate) const RMA: u64 = 1 << 63;

/// Bytes of a place of the staging memory: the longest RMA from or to memory that is not
/// registered.
const PLACE: usize = 8192;
/// The longest RMA between registered memories.
const LONGEST: usize = 1 << 20;

/// What an RMA does with bytes of this rank.
#[derive(Clone, Copy)]
pub(crate) enum Local<'a> {
    ReadInto(Target),
    Write(&'a [u8]),
}

impl Local<'_> {
    fn address(&self) -> u64 {
        match self {
            Self::ReadInto(target) => target.address().expose_provenance() as u64,
            Self::Write(bytes) => bytes.as_ptr().expose_provenance() as u64,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::ReadInto(target) => target.len(),
            Self::Write(bytes) => bytes.len(),
        }
    }

    /// The same from this byte on.
    pub(crate) fn rest(&self, from: usize) -> Self {
        match self {
            Self::ReadInto(target) => Self::ReadInto(target.part(from, target.len() - from)),
            Self::Write(bytes) => Self::Write(&bytes[from..]),
        }
    }
}

impl World {
    /// Starts an RMA of as many of these bytes as one has room for: its number, and how many. None:
    /// the rank has registered none of that memory, and messages serve it.
    pub(crate) fn rma(
        &self,
        rank: u32,
        address: u64,
        local: Local<'_>,
        is_awaited: bool,
    ) -> Result<Option<(u32, usize)>, Fault> {
        let peer = &self.peers[rank as usize];
        let Some(remote) = part_of(&peer.pieces.borrow(), address, local.len().min(LONGEST)) else { return Ok(None) };
        let connection = peer.connection.get().filter(|_| !peer.gone.get()).ok_or(Fault::Gone { rank })?;
        // Bytes that are read go straight to registered memory. Those that are written are the
        // caller's again on return, and are copied.
        let direct = match local {
            Local::ReadInto(_) if local.len() > PLACE => {
                part_of(&self.registered.borrow(), local.address(), remote.len)
            }
            _ => None,
        };
        let len = direct.as_ref().map_or(remote.len.min(PLACE), |direct| direct.len);
        let target = match local {
            Local::ReadInto(target) if direct.is_none() => Some(target.part(0, len)),
            _ => None,
        };
        let pending = Pending { rank, address, len: len as u64, target, is_awaited, is_rma: true };
        let staging = self.staging()?;
        let number = self.begin(&pending)?;
        let offset = place_of(number) * PLACE;
        if let Local::Write(bytes) = local {
            staging.put(offset, &bytes[..len]);
        }
        let here = direct.unwrap_or(Part { handle: *staging.handle(), offset: offset as u64, len });
        let rma = Rma::new(&here.handle, &remote.handle, len as u64);
        let rma = rma.local_offset(here.offset).remote_offset(remote.offset);
        self.start_rma(rank, number, connection, &rma, matches!(local, Local::ReadInto(_)))?;
        Ok(Some((number, len)))
    }

    /// Starts a read of a word, or of as little as a place of the staging memory holds: its number.
    /// None: the rank has not registered all of that memory as one. It is what `rma` does with such
    /// a read, in half of the instructions.
    pub(crate) fn read_few(
        &self,
        rank: u32,
        address: u64,
        target: Target,
        is_awaited: bool,
    ) -> Result<Option<u32>, Fault> {
        let (peer, len) = (&self.peers[rank as usize], target.len());
        if len > PLACE {
            return Ok(None);
        }
        let Some(remote) = peer.pieces.borrow().iter().find(|piece| piece.has(address, len)).copied() else {
            return Ok(None);
        };
        let connection = peer.connection.get().filter(|_| !peer.gone.get()).ok_or(Fault::Gone { rank })?;
        let staging = self.staging()?;
        let pending = Pending { rank, address, len: len as u64, target: Some(target), is_awaited, is_rma: true };
        let number = self.begin(&pending)?;
        let rma = Rma::new(staging.handle(), &remote.handle, len as u64);
        let rma = rma.local_offset((place_of(number) * PLACE) as u64).remote_offset(address - remote.start);
        self.start_rma(rank, number, connection, &rma, true)?;
        Ok(Some(number))
    }

    /// Starts an RMA, and serves others while there is no room.
    fn start_rma(
        &self,
        rank: u32,
        number: u32,
        connection: Connection,
        rma: &Rma<'_>,
        is_read: bool,
    ) -> Result<(), Fault> {
        let notify = Notify::Always(RMA | u64::from(number));
        loop {
            let started = match is_read {
                true => self.endpoint.read(connection, rma, notify),
                false => self.endpoint.write(connection, rma, notify),
            };
            let fault = match started {
                Ok(()) => return Ok(()),
                Err(RmaError::NoBuffers) => match self.poll() {
                    Ok(()) => continue,
                    Err(fault) => fault,
                },
                Err(RmaError::Disconnected) => {
                    self.set_gone(rank);
                    Fault::Gone { rank }
                }
                Err(why) => Fault::Endpoint(why.to_string()),
            };
            // It was not started, and no event comes of it.
            self.traffic.borrow_mut().requests.give_back(number);
            return Err(fault);
        }
    }

    /// Ends an RMA.
    pub(crate) fn end_rma(&self, number: u32, outcome: Result<(), cci::Failure>) {
        let mut traffic = self.traffic.borrow_mut();
        let Some(pending) = traffic.requests.end(number) else { return };
        let rank = pending.rank;
        let outcome = match outcome {
            Ok(()) => {
                if let (Some(target), Some(staging)) = (pending.target, self.staging.get()) {
                    staging.fill(place_of(number) * PLACE, target);
                }
                Ok(0)
            }
            Err(why) if why.breaks_connection() => Err(Fault::Gone { rank }),
            Err(_) => Err(pending.fault()),
        };
        let is_gone = matches!(outcome, Err(Fault::Gone { .. }));
        traffic.settle(number, outcome);
        drop(traffic);
        if is_gone {
            self.set_gone(rank);
        }
    }

    /// The staging memory, which is made when it is needed first.
    #[inline]
    fn staging(&self) -> Result<&Staging, Fault> {
        self.staging.get().map_or_else(|| self.make_staging(), Ok)
    }

    #[cold]
    fn make_staging(&self) -> Result<&Staging, Fault> {
        let bytes = MOST * PLACE;
        let made = Staging::new(&self.endpoint, bytes);
        let made = made.ok_or(Fault::NoMemory { rank: self.me, bytes: bytes as u64 })?;
        Ok(self.staging.get_or_init(|| made))
    }
}
