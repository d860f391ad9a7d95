//! Reading and writing the global address space.

use crate::fault::Fault;
use crate::frame::Ask;
use crate::layout::count_of;
use crate::messages::Request;
use crate::number::Plain;
use crate::pointer::Global;
use crate::requests::MOST;
use crate::rma::Local;
use crate::sys::{self, Change, Target, view};
use crate::world::World;
use cci_mem::sync::{Ordering, fence};
use std::collections::VecDeque;

/// Requests that a call waits for, and whose outcomes it has not taken, at most: each keeps its
/// place until then, and some are left for what is served meanwhile.
pub(crate) const AWAITED: usize = MOST / 2;

/// How an operation on the memory of a rank goes on.
pub(crate) enum Under {
    /// It is complete.
    Done,
    /// The ends of these requests are to come.
    Way(Numbers),
}

/// The numbers of requests of one operation: of most it is one.
#[derive(Default)]
pub(crate) struct Numbers {
    first: Option<u32>,
    others: VecDeque<u32>,
}

impl Numbers {
    fn of(number: u32) -> Self {
        Self { first: Some(number), others: VecDeque::new() }
    }

    fn push(&mut self, number: u32) {
        if self.first.is_none() {
            self.first = Some(number);
        } else {
            self.others.push_back(number);
        }
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    fn take_oldest(&mut self) -> Option<u32> {
        let next = self.others.pop_front();
        std::mem::replace(&mut self.first, next)
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        self.first.into_iter().chain(self.others.iter().copied())
    }
}

impl World {
    /// Reads a value. Returns once it is here.
    ///
    /// # Errors
    ///
    /// There is no such rank, or the pointer does not lead into spread memory; or the rank is gone.
    #[inline]
    pub fn read<T: Plain>(&self, from: Global<T>) -> Result<T, Fault> {
        let mut value = T::default();
        self.read_bulk(std::slice::from_mut(&mut value), from)?;
        Ok(value)
    }

    /// Writes a value. Returns once every rank can read it.
    ///
    /// # Errors
    ///
    /// As [`World::read`].
    #[inline]
    pub fn write<T: Plain>(&self, to: Global<T>, value: T) -> Result<(), Fault> {
        self.write_bulk(to, &[value])
    }

    /// Reads values that follow each other on one rank.
    ///
    /// # Errors
    ///
    /// As [`World::read`].
    #[inline]
    pub fn read_bulk<T: Plain>(&self, into: &mut [T], from: Global<T>) -> Result<(), Fault> {
        let (rank, address) = self.safe_parts(from, into.len())?;
        let under = self.start_read(rank, address, Target::of(into), true)?;
        self.finish(under)
    }

    /// Writes values that follow each other on one rank.
    ///
    /// # Errors
    ///
    /// As [`World::read`].
    #[inline]
    pub fn write_bulk<T: Plain>(&self, to: Global<T>, values: &[T]) -> Result<(), Fault> {
        let (rank, address) = self.safe_parts(to, values.len())?;
        let under = self.start_write(rank, address, view(values), true)?;
        fence(Ordering::SeqCst);
        self.finish(under)
    }

    /// Stores a value: its rank waits for it by [`World::store_sync`] or [`World::all_store_sync`].
    ///
    /// # Errors
    ///
    /// As [`World::read`].
    #[inline]
    pub fn store<T: Plain>(&self, to: Global<T>, value: T) -> Result<(), Fault> {
        self.store_bulk(to, &[value])
    }

    /// Stores values that follow each other on one rank.
    ///
    /// # Errors
    ///
    /// As [`World::read`].
    #[inline]
    pub fn store_bulk<T: Plain>(&self, to: Global<T>, values: &[T]) -> Result<(), Fault> {
        let (rank, address) = self.safe_parts(to, values.len())?;
        self.start_store(rank, address, view(values))
    }

    /// Changes a word of 4 or 8 bytes by one atomic operation, and returns its old value.
    ///
    /// # Errors
    ///
    /// As [`World::read`]; or the word has another size, or is not aligned.
    pub fn change<T: Plain>(&self, at: Global<T>, change: Change) -> Result<u64, Fault> {
        let (rank, address) = self.safe_parts(at, 1)?;
        self.start_change(rank, address, size_of::<T>() as u32, change)
    }

    /// Adds to a word by one atomic operation, and returns its old value.
    ///
    /// # Errors
    ///
    /// As [`World::change`].
    pub fn fetch_add(&self, at: Global<u64>, value: u64) -> Result<u64, Fault> {
        self.change(at, Change::Add(value))
    }

    /// Stores `desired` in a word that is `expected` by one atomic operation, and returns its old
    /// value.
    ///
    /// # Errors
    ///
    /// As [`World::change`].
    pub fn compare_swap(&self, at: Global<u64>, expected: u64, desired: u64) -> Result<u64, Fault> {
        self.change(at, Change::CompareSwap { expected, desired })
    }

    /// Rank and address of values that a safe program may reach.
    #[inline]
    pub(crate) fn safe_parts<T: Plain>(&self, pointer: Global<T>, count: usize) -> Result<(u32, u64), Fault> {
        let (rank, address) = self.parts(pointer.to_bits())?;
        let len = (count * size_of::<T>()) as u64;
        if len == 0 || self.is_spread(address, len) {
            Ok((rank, address))
        } else {
            Err(Fault::Unmapped { rank, address, len })
        }
    }

    #[inline]
    pub(crate) fn start_read(&self, rank: u32, address: u64, to: Target, is_awaited: bool) -> Result<Under, Fault> {
        if self.windows.read(rank, address, to) || to.len() == 0 {
            return Ok(Under::Done);
        }
        self.request_read(rank, address, to, is_awaited)
    }

    #[cold]
    fn request_read(&self, rank: u32, address: u64, to: Target, is_awaited: bool) -> Result<Under, Fault> {
        if rank == self.me {
            let mut bytes = vec![0; to.len()];
            self.own(sys::copy_from(address, &mut bytes), address, to.len())?;
            to.fill(&bytes);
            return Ok(Under::Done);
        }
        match self.read_few(rank, address, to, is_awaited)? {
            Some(number) => Ok(Under::Way(Numbers::of(number))),
            None => self.request_parts(rank, address, Local::ReadInto(to), Ask::Read(0), is_awaited),
        }
    }

    /// Starts a read or a write in as many parts as it needs.
    fn request_parts(
        &self,
        rank: u32,
        address: u64,
        whole: Local<'_>,
        ask: Ask,
        is_awaited: bool,
    ) -> Result<Under, Fault> {
        let mut numbers = Numbers::default();
        let mut from = 0;
        while from < whole.len() {
            let part_at = address.wrapping_add(from as u64);
            let room = self.take_some(&mut numbers, is_awaited);
            match room.and_then(|()| self.request_part(rank, part_at, whole.rest(from), ask, is_awaited)) {
                Ok((number, len)) => {
                    numbers.push(number);
                    from += len;
                }
                Err(fault) => {
                    // Nobody takes outcomes, and what is still to come must not write to the
                    // caller's memory.
                    if is_awaited || matches!(whole, Local::ReadInto(_)) {
                        self.forget(&numbers);
                    }
                    return Err(fault);
                }
            }
        }
        Ok(Under::Way(numbers))
    }

    /// Starts a part of a read or a write, the first bytes of it, and returns how many: by RMA,
    /// where the rank has registered the memory, else by a message. A store is a message.
    fn request_part(
        &self,
        rank: u32,
        address: u64,
        local: Local<'_>,
        ask: Ask,
        is_awaited: bool,
    ) -> Result<(u32, usize), Fault> {
        if ask != Ask::Store
            && let Some(started) = self.rma(rank, address, local, is_awaited)?
        {
            return Ok(started);
        }
        let len = local.len().min(self.longest(rank));
        let number = match local {
            Local::ReadInto(target) => {
                let (ask, target) = (Ask::Read(len as u64), Some(target.part(0, len)));
                self.ask(&Request { rank, address, ask, payload: &[], target, is_awaited })
            }
            Local::Write(bytes) => {
                self.ask(&Request { rank, address, ask, payload: &bytes[..len], target: None, is_awaited })
            }
        };
        Ok((number?, len))
    }

    /// Waits for the oldest of the requests that a call waits for, where they are many.
    fn take_some(&self, numbers: &mut Numbers, is_awaited: bool) -> Result<(), Fault> {
        let is_over = is_awaited && numbers.len() >= AWAITED;
        let oldest = if is_over { numbers.take_oldest() } else { None };
        oldest.map_or(Ok(()), |number| self.outcome(number).map(|_| ()))
    }

    fn forget(&self, numbers: &Numbers) {
        let mut traffic = self.traffic.borrow_mut();
        numbers.iter().for_each(|number| traffic.requests.forget(number));
    }

    #[inline]
    pub(crate) fn start_write(&self, rank: u32, address: u64, bytes: &[u8], is_awaited: bool) -> Result<Under, Fault> {
        if self.windows.write(rank, address, bytes) || bytes.is_empty() {
            return Ok(Under::Done);
        }
        self.request_write(rank, address, bytes, Ask::Write, is_awaited)
    }

    #[cold]
    fn request_write(&self, rank: u32, address: u64, bytes: &[u8], ask: Ask, is_awaited: bool) -> Result<Under, Fault> {
        if rank == self.me {
            self.own(sys::copy_to(address, bytes), address, bytes.len())?;
            if ask == Ask::Store {
                self.count_stored(rank, address, bytes.len());
            }
            return Ok(Under::Done);
        }
        self.request_parts(rank, address, Local::Write(bytes), ask, is_awaited)
    }

    #[inline]
    pub(crate) fn start_store(&self, rank: u32, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.windows.write(rank, address, bytes) {
            self.count_stored(rank, address, bytes.len());
            self.pairing.light();
            return self.wake(rank);
        }
        self.request_write(rank, address, bytes, Ask::Store, false).map(|_| ())
    }

    /// Counts bytes that this rank has stored in mapped memory of a rank.
    #[inline]
    fn count_stored(&self, rank: u32, address: u64, len: usize) {
        if let Some(count) = self.windows.word(rank, count_of(self.me, address)) {
            // This rank alone writes the word, after the bytes that it counts.
            count.store(count.load(Ordering::Relaxed) + len as u64, Ordering::Release);
        }
    }

    pub(crate) fn start_change(&self, rank: u32, address: u64, size: u32, change: Change) -> Result<u64, Fault> {
        if !matches!(size, 4 | 8) {
            return Err(Fault::WordSize { size });
        }
        if !address.is_multiple_of(u64::from(size)) {
            return Err(Fault::Misaligned { rank, address, size });
        }
        if rank == self.me {
            self.serve_at_times()?;
        }
        if let Some(old) = self.windows.change(rank, address, size as usize, change) {
            return Ok(old);
        }
        if rank == self.me {
            let old = sys::change_checked(address, size as usize, change);
            return old.ok_or(Fault::Unmapped { rank, address, len: size.into() });
        }
        let ask = Ask::Change(size as u8, change);
        let number = self.ask(&Request { rank, address, ask, payload: &[], target: None, is_awaited: true })?;
        self.outcome(number).map_err(|fault| match fault {
            Fault::Unmapped { rank, address, .. } => Fault::Unmapped { rank, address, len: size.into() },
            other => other,
        })
    }

    /// Serves others in one atomic operation on this rank's own memory of sixteen: who tries again
    /// and again to take a lock there waits for a rank whose release may be a message.
    #[inline]
    fn serve_at_times(&self) -> Result<(), Fault> {
        let count = self.own_changes.get().wrapping_add(1);
        self.own_changes.set(count);
        if !count.is_multiple_of(16) || self.is_all_mapped.get() { Ok(()) } else { self.poll() }
    }

    /// Of an access to this rank's own memory outside of its windows: whether it was done.
    fn own(&self, is_done: bool, address: u64, len: usize) -> Result<(), Fault> {
        if is_done { Ok(()) } else { Err(Fault::Unmapped { rank: self.me, address, len: len as u64 }) }
    }

    /// Waits for the answers of an operation.
    #[inline]
    pub(crate) fn finish(&self, under: Under) -> Result<(), Fault> {
        let Under::Way(numbers) = under else { return Ok(()) };
        let all = numbers.iter().try_for_each(|number| self.outcome(number).map(|_| ()));
        if all.is_err() {
            // What is still to come must not write to the caller's memory.
            self.forget(&numbers);
        }
        all
    }
}
