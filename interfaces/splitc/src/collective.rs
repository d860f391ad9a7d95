//! What all ranks do together.

use crate::access::AWAITED;
use crate::fault::Fault;
use crate::frame::Ask;
use crate::layout::{BLAMED, LINE, LINE_WORDS, OWN, flag, left, slot, stored};
use crate::messages::Request;
use crate::number::{Number, Op, Plain};
use crate::sys::{Target, view};
use crate::wait::Ends;
use crate::world::World;
use cci_mem::sync::{Ordering, spin};
use std::collections::VecDeque;

/// Bytes that a sender stores, word for word, while a waiting rank pauses once.
const BYTES_A_SPIN: u64 = 256;
/// Pauses between two looks, at most.
const MOST_SPINS: u64 = 32;

/// What a rank contributes to a gathering.
pub(crate) type Line = [u64; LINE_WORDS];

impl World {
    /// Waits until all ranks have come here.
    ///
    /// # Errors
    ///
    /// A rank has ended, or cannot be reached.
    pub fn barrier(&self) -> Result<(), Fault> {
        let epoch = self.epoch.get() + 1;
        self.epoch.set(epoch);
        let mut round = 0;
        while 1 << round < self.procs {
            self.signal((self.me + (1 << round)) % self.procs, flag(round), epoch)?;
            let own = self.windows.own_word(flag(round));
            // What partners have written before they came is visible now: their flags publish it.
            self.wait_until(Ends::Announced, || own.load(Ordering::Acquire) >= epoch)?;
            round += 1;
        }
        self.poll_if_asked()
    }

    /// Writes a word of the control area of a rank, and wakes the rank.
    fn signal(&self, rank: u32, offset: u64, value: u64) -> Result<(), Fault> {
        let Some(word) = self.windows.word(rank, offset) else {
            let payload = &value.to_ne_bytes();
            let address = OWN + offset;
            return self
                .ask(&Request { rank, address, ask: Ask::Write, payload, target: None, is_awaited: false })
                .map(|_| ());
        };
        word.store(value, Ordering::Release);
        self.pairing.light();
        self.wake(rank)
    }

    /// Names a rank to all others as the one because of which this one ends. Those that are gone
    /// need not learn of it.
    pub(crate) fn blame(&self, lost: u32) {
        for rank in (0..self.procs).filter(|rank| !self.peers[*rank as usize].gone.get() && *rank != self.me) {
            let _ = self.signal(rank, BLAMED, u64::from(lost) + 1);
        }
    }

    /// Gives a line to all ranks, and returns that of each.
    pub(crate) fn gather(&self, mine: Line) -> Result<Vec<Line>, Fault> {
        let turn = self.turn.get();
        self.turn.set(turn + 1);
        let at = slot(self.procs, turn, self.me);
        let bytes = view(&mine);
        let mut ways = VecDeque::new();
        let started = (0..self.procs).try_for_each(|rank| {
            let oldest = if ways.len() < AWAITED { None } else { ways.pop_front() };
            oldest.map_or(Ok(()), |under| self.finish(under))?;
            ways.push_back(self.start_write(rank, OWN + at, bytes, true)?);
            Ok(())
        });
        // A barrier's flags may come by other ranks, and overtake what is still on its way.
        ways.into_iter().fold(started, |all, under| all.and(self.finish(under)))?;
        // The lines of the last gathering but one are free: this rank has passed the barrier of the
        // last one, to which all came after they had read them.
        self.barrier()?;
        Ok((0..self.procs).map(|rank| self.windows.own_line(slot(self.procs, turn, rank))).collect())
    }

    /// Returns what the operation makes of the values of all ranks, in the order of ranks, so that
    /// all get the same bits.
    ///
    /// # Errors
    ///
    /// As [`World::barrier`].
    pub fn reduce<T: Number>(&self, op: Op, value: T) -> Result<T, Fault> {
        self.fold(op, value, self.procs)
    }

    /// Returns what the operation makes of the values of ranks 0 to this one.
    ///
    /// # Errors
    ///
    /// As [`World::barrier`].
    pub fn scan<T: Number>(&self, op: Op, value: T) -> Result<T, Fault> {
        self.fold(op, value, self.me + 1)
    }

    fn fold<T: Number>(&self, op: Op, value: T, ranks: u32) -> Result<T, Fault> {
        let lines = self.gather(line_of(value))?;
        let values = lines.iter().take(ranks as usize).map(value_of::<T>);
        Ok(values.reduce(|a, b| T::fold(op, a, b)).unwrap_or(value))
    }

    /// Returns the value of rank `from`.
    ///
    /// # Errors
    ///
    /// There is no such rank, or as [`World::barrier`].
    pub fn broadcast<T: Plain>(&self, from: u32, value: T) -> Result<T, Fault> {
        if from >= self.procs {
            return Err(Fault::NoRank { rank: from, procs: self.procs });
        }
        Ok(value_of(&self.gather(line_of(value))?[from as usize]))
    }

    /// Fills `values` of all ranks with those of rank `from`.
    ///
    /// # Errors
    ///
    /// As [`World::broadcast`]; or the ranks give slices of different lengths.
    pub fn broadcast_bulk<T: Plain>(&self, from: u32, values: &mut [T]) -> Result<(), Fault> {
        if from >= self.procs {
            return Err(Fault::NoRank { rank: from, procs: self.procs });
        }
        self.check_equal(size_of_val(values) as u64)?;
        let (len, step) = (size_of_val(values), LINE as usize);
        for at in (0..len).step_by(step) {
            let mut line = [0; LINE_WORDS];
            let bytes = &view(values)[at..len.min(at + step)];
            Target::of(&mut line).fill(bytes);
            let lines = self.gather(line)?;
            Target::of(values).part(at, step).fill(view(&lines[from as usize]));
        }
        Ok(())
    }

    /// Whether all ranks have come with the same number.
    pub(crate) fn check_equal(&self, here: u64) -> Result<(), Fault> {
        let lines = self.gather(line_of(here))?;
        let numbers = lines.iter().map(value_of::<u64>);
        match (0..).zip(numbers).find(|(_, bytes)| *bytes != here) {
            Some((rank, bytes)) => Err(Fault::Unequal { rank, bytes, here }),
            None => Ok(()),
        }
    }

    /// Bytes that others have stored here, in all.
    fn arrived(&self) -> u64 {
        let count = |sender| self.windows.own_line(stored(sender)).into_iter().fold(0, u64::wrapping_add);
        (0..self.procs).map(count).fold(0, u64::wrapping_add)
    }

    /// Waits until `bytes` more bytes have been stored here than earlier waits have counted off.
    ///
    /// # Errors
    ///
    /// A rank has ended, or cannot be reached.
    pub fn store_sync(&self, bytes: u64) -> Result<(), Fault> {
        let wanted = self.consumed.get().saturating_add(bytes);
        self.wait_until(Ends::Unfenced, || {
            let missing = wanted.saturating_sub(self.arrived());
            // A look takes the line with the counts from its sender, which is slower for that: the
            // more is missing, the longer until the next one.
            (0..(missing / BYTES_A_SPIN).min(MOST_SPINS)).for_each(|_| spin());
            missing == 0
        })?;
        self.consumed.set(wanted);
        Ok(())
    }

    /// Counts off all that has been stored here.
    pub fn reset_store_sync(&self) {
        self.consumed.set(self.arrived());
    }

    /// Waits until all that any rank has stored has arrived, and counts it off. All ranks call it.
    ///
    /// # Errors
    ///
    /// As [`World::sync`] and [`World::barrier`].
    pub fn all_store_sync(&self) -> Result<(), Fault> {
        self.sync()?;
        self.barrier()?;
        self.reset_store_sync();
        // Nobody stores anything new before all have counted.
        self.barrier()
    }

    /// Ends this rank's part together with all others, so that no memory goes while somebody needs
    /// it.
    pub(crate) fn leave(&self) -> Result<(), Fault> {
        self.sync()?;
        self.is_leaving.set(true);
        for rank in 0..self.procs {
            self.signal(rank, left(self.procs, self.me), 1)?;
        }
        self.barrier()?;
        // What is left is for ranks that have the barrier behind them.
        let _ = self.sync();
        self.poll()
    }
}

fn line_of<T: Plain>(value: T) -> Line {
    let mut line = [0; LINE_WORDS];
    Target::of(&mut line).fill(view(&[value]));
    line
}

fn value_of<T: Plain>(line: &Line) -> T {
    let mut value = T::default();
    Target::of(std::slice::from_mut(&mut value)).fill(view(line));
    value
}
