//! Spread memory, and memory of one rank that others map.

use crate::carrier::Carrier;
use crate::fault::Fault;
use crate::layout::{MOST, OWN};
use crate::number::Plain;
use crate::pieces::Piece;
use crate::pointer::SpreadArray;
use crate::world::World;
use cci::{Endpoint, Import, Registration, Rights, RmaHandle, SharedMemory};
use cci_mem::meminfo::available;
use std::sync::Arc;

/// The least by which spread memory grows, bytes.
const STEP: u64 = 1 << 20;

/// How a rank's attempt to grow went.
const READY: u64 = 0;
const TOO_LARGE: u64 = 1;
const NO_MEMORY: u64 = 2;

/// Memory of the library, registered for the ranks of the job.
pub(crate) fn register(
    endpoint: &Endpoint,
    memory: &Arc<SharedMemory>,
) -> Result<Registration<Arc<SharedMemory>>, cci::RegisterError> {
    endpoint.register(Arc::clone(memory), Rights::READ_WRITE)
}

impl World {
    /// Allocates an array of zeroes that is spread over all ranks. All ranks call it with the same
    /// length.
    ///
    /// # Errors
    ///
    /// The lengths differ, no memory holds so many elements, or as [`World::barrier`].
    pub fn spread<T: Plain>(&self, len: u64) -> Result<SpreadArray<T>, Fault> {
        let rows = len.div_ceil(u64::from(self.procs));
        let bytes = rows.saturating_mul(size_of::<T>() as u64);
        let address = self.allocate_spread(bytes)?;
        Ok(SpreadArray::new(address, len, self.procs))
    }

    /// Frees an array. All ranks call it.
    ///
    /// # Errors
    ///
    /// The ranks free different arrays, or as [`World::barrier`].
    pub fn free<T: Plain>(&self, array: SpreadArray<T>) -> Result<(), Fault> {
        self.free_spread(array.first().global().address())
    }

    /// Allocates `bytes` zero bytes in each rank, and returns their address, the same in all. All
    /// ranks call it with the same size.
    ///
    /// # Errors
    ///
    /// As [`World::spread`].
    pub fn allocate_spread(&self, bytes: u64) -> Result<u64, Fault> {
        self.check_equal(bytes)?;
        let free = self.spread.borrow_mut().take(bytes);
        let offset = match free {
            Some(offset) => offset,
            None => {
                self.grow(bytes)?;
                self.spread.borrow_mut().take(bytes).ok_or(Fault::NoMemory { rank: self.me, bytes })?
            }
        };
        let used = self.spread.borrow_mut().wipe(offset);
        self.windows.wipe(OWN + offset, used);
        // Nobody writes before all have wiped.
        self.barrier()?;
        Ok(OWN + offset)
    }

    /// Frees what [`World::allocate_spread`] has returned. All ranks call it.
    ///
    /// # Errors
    ///
    /// As [`World::free`]; or nothing was allocated there.
    pub fn free_spread(&self, address: u64) -> Result<(), Fault> {
        self.check_equal(address)?;
        let is_freed = address.checked_sub(OWN).is_some_and(|offset| self.spread.borrow_mut().give(offset));
        if is_freed { Ok(()) } else { Err(Fault::NotAllocated { address }) }
    }

    /// Makes spread memory longer, in all ranks or in none.
    fn grow(&self, bytes: u64) -> Result<(), Fault> {
        let offset = self.end.get();
        let need = bytes.max(STEP).checked_next_multiple_of(STEP).unwrap_or(u64::MAX);
        let room = self.room(offset);
        let fresh = if need <= room { self.fresh(need) } else { None };
        let mut line = [READY, room, 0, 0, 0, 0, 0, 0];
        match &fresh {
            Some((_, registered)) => line[2..6].copy_from_slice(&registered.handle().words()),
            None => line[0] = if need <= room { NO_MEMORY } else { TOO_LARGE },
        }
        let lines = self.gather(line)?;
        if let Some((rank, line)) = (0..).zip(&lines).find(|(_, line)| line[0] != READY) {
            let available = line[1];
            return Err(if line[0] == TOO_LARGE {
                Fault::TooLarge { bytes, available }
            } else {
                Fault::NoMemory { rank, bytes }
            });
        }
        let handles: Vec<_> =
            lines.iter().map(|line| RmaHandle::from_words([line[2], line[3], line[4], line[5]])).collect();
        let is_mapped = fresh.is_some_and(|fresh| self.map(fresh, &handles, offset));
        let outcomes = self.gather([if is_mapped { READY } else { NO_MEMORY }; 8])?;
        if let Some((rank, _)) = (0..).zip(&outcomes).find(|(_, line)| line[0] != READY) {
            return Err(Fault::NoMemory { rank, bytes });
        }
        self.spread.borrow_mut().add(offset, need);
        self.end.set(offset + need);
        Ok(())
    }

    /// The most bytes by which each rank's spread memory can grow.
    fn room(&self, offset: u64) -> u64 {
        let here = u64::from(self.job.local().size.max(1));
        available().map_or(u64::MAX, |bytes| bytes / here).min(MOST - offset)
    }

    fn fresh(&self, len: u64) -> Option<Fresh> {
        let memory = Arc::new(SharedMemory::new(usize::try_from(len).ok()?).ok()?);
        let registered = register(&self.endpoint, &memory).ok()?;
        Some((memory, registered))
    }

    fn map(&self, (memory, registered): Fresh, handles: &[RmaHandle], offset: u64) -> bool {
        let (start, len) = (OWN + offset, registered.len());
        let is_mapped = (0..self.procs).filter(|rank| *rank != self.me).all(|rank| {
            let handle = handles[rank as usize];
            if !self.windows.is_mapped(rank) {
                // By a carrier no memory is reached by RMA.
                if self.carrier.borrow().is_some() {
                    return true;
                }
                self.peers[rank as usize].pieces.borrow_mut().push(Piece { start, len, handle });
                return true;
            }
            self.import(rank, &handle).is_some_and(|import| self.windows.add(rank, import, offset).is_ok())
        });
        self.registered.borrow_mut().push(Piece { start, len, handle: *registered.handle() });
        self.register_with_carrier(start, &memory.memory());
        is_mapped && self.windows.add_own(registered, memory.memory().start(), offset).is_ok()
    }

    /// Has a carrier that can take payloads from registered memory know of it.
    pub(crate) fn register_with_carrier(&self, start: u64, memory: &cci::Memory) {
        if let Some(Carrier::Vi(interfaces)) = &mut *self.carrier.borrow_mut() {
            interfaces.register(start, memory);
        }
    }

    fn import(&self, rank: u32, handle: &RmaHandle) -> Option<Import> {
        self.endpoint.import(self.peers[rank as usize].connection.get()?, handle).ok()
    }

    /// Allocates memory of this rank alone, which the ranks of its host reach as they reach spread
    /// memory. None: there is no room for it.
    #[must_use]
    pub fn allocate_local(&self, bytes: u64) -> Option<u64> {
        self.local.borrow_mut().take(bytes).map(|offset| OWN + offset)
    }

    /// Frees what [`World::allocate_local`] has returned. False: nothing was allocated there.
    pub fn free_local(&self, address: u64) -> bool {
        address.checked_sub(OWN).is_some_and(|offset| self.local.borrow_mut().give(offset))
    }

    /// Returns how long an allocation of [`World::allocate_local`] is, if there is one at this
    /// address.
    #[must_use]
    pub fn len_of_local(&self, address: u64) -> Option<u64> {
        self.local.borrow().len_of(address.checked_sub(OWN)?)
    }
}

/// Memory that is not mapped at its place yet.
type Fresh = (Arc<SharedMemory>, Registration<Arc<SharedMemory>>);
