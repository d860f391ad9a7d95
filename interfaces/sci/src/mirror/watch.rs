//! Blocks that are protected until a store comes, and stores that wait.

use crate::mirror::memory::{BLOCK, Block, Mirror};
use crate::mirror::sys::Faults;
use cci_ground::{readable, sleep_until_ready};
use cci_mem::descriptors;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A mirror, and whether its pages can be protected.
type Area = (Arc<Mirror>, bool);
/// A block to which a first store waits: the token of its mirror, its number, since when.
pub(super) type Store = (u64, usize, Instant);
/// A block of a mirror, by its token.
pub(super) type Place = (u64, usize);

/// What the thread and the host share without the lock of the host.
pub(crate) struct Watch {
    faults: Option<Faults>,
    wake: OwnedFd,
    areas: Mutex<Vec<Area>>,
    /// First stores that wait for owners.
    stores: Mutex<Vec<Store>>,
    /// Blocks whose first stores went on at once, behind a block that is stored to as well.
    streaks: Mutex<Vec<Place>>,
    /// Held while a block is protected or opened, so that its state is that of its pages.
    gate: Mutex<()>,
}

impl Watch {
    pub(crate) fn new(is_protecting: bool) -> rustix::io::Result<Self> {
        let faults = is_protecting.then(Faults::open).flatten();
        let wake = descriptors::eventfd(0)?;
        let (areas, stores, streaks) = (Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Self { faults, wake, areas, stores, streaks, gate: Mutex::default() })
    }

    fn areas(&self) -> MutexGuard<'_, Vec<Area>> {
        self.areas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// First stores that wait for owners.
    pub(super) fn stores(&self) -> MutexGuard<'_, Vec<Store>> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the blocks whose first stores went on at once, behind a block that is stored to.
    pub(super) fn take_streaks(&self) -> Vec<Place> {
        std::mem::take(&mut self.streaks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a first store to a block waits for the owner.
    pub(super) fn has_store(&self, place: Place) -> bool {
        self.stores().iter().any(|(token, block, _)| (*token, *block) == place)
    }

    pub(crate) fn wake(&self) {
        // Full means woken already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    pub(crate) fn enter(&self, mirror: &Arc<Mirror>) {
        let is_watched = self.faults.as_ref().is_some_and(|faults| faults.register(&mirror.region));
        self.areas().push((Arc::clone(mirror), is_watched));
    }

    /// All pages of a mirror are writable from now on.
    pub(crate) fn leave(&self, token: u64) {
        let left: Vec<_> = self.areas().extract_if(.., |(mirror, _)| mirror.token == token).collect();
        self.stores().retain(|(of, ..)| *of != token);
        if let Some(faults) = &self.faults {
            left.iter().filter(|(_, is_watched)| *is_watched).for_each(|(mirror, _)| faults.unregister(&mirror.region));
        }
    }

    pub(super) fn is_watched(&self, token: u64) -> bool {
        self.areas().iter().any(|(mirror, is_watched)| mirror.token == token && *is_watched)
    }

    /// Lets stores to a block through.
    pub(crate) fn open(&self, mirror: &Mirror, block: usize) {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.unprotect(mirror, block);
        self.stores().retain(|(token, of, _)| (*token, *of) != (mirror.token, block));
    }

    /// Protects a block that was just made. Its pages are there.
    pub(super) fn protect_first(&self, mirror: &Mirror, block: usize) -> bool {
        let faults = self.faults.as_ref().filter(|_| self.is_watched(mirror.token));
        let is_registered = faults.is_some_and(|faults| faults.register_pages(&mirror.region, mirror.span(block)));
        is_registered && self.protect(mirror, block, Block::Quiet)
    }

    /// Replaces a page of a block that is protected, and stays so: no store comes in between.
    /// False: a first store has come before, and the page is as it was.
    pub(super) fn replace(&self, mirror: &Mirror, offset: usize, words: &[u64]) -> bool {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if !mirror.block(offset / BLOCK).is_protected() {
            return false;
        }
        let faults = self.faults.as_ref();
        let is_replaced = faults.is_some_and(|faults| faults.replace_page(&mirror.region, offset, words));
        drop(gate);
        if !is_replaced {
            // Without memory for the page: it is stored to, as nobody watches it any more.
            self.leave(mirror.token);
            mirror.set_block(offset / BLOCK, Block::Fresh);
            let first = offset / size_of::<u64>();
            words.iter().enumerate().for_each(|(at, word)| mirror.region.set(first + at, *word));
        }
        true
    }

    /// Gives a protected block another state. False: it has not the first one.
    pub(super) fn turn(&self, mirror: &Mirror, block: usize, [from, to]: [Block; 2]) -> bool {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let is_so = mirror.block(block) == from;
        if is_so {
            mirror.set_block(block, to);
        }
        is_so
    }

    fn unprotect(&self, mirror: &Mirror, block: usize) {
        mirror.set_block(block, Block::Fresh);
        if let Some(faults) = &self.faults {
            // Refused once the mirror is not watched any more: then its pages are writable.
            let _ = faults.protect(&mirror.region, mirror.span(block), false);
        }
    }

    /// Protects a block, whose state is one of those that are. The thread lets first stores
    /// through.
    pub(super) fn protect(&self, mirror: &Mirror, block: usize, state: Block) -> bool {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        mirror.set_block(block, state);
        let faults = self.faults.as_ref();
        let is_protected = faults.is_some_and(|faults| faults.protect(&mirror.region, mirror.span(block), true));
        if !is_protected {
            self.unprotect(mirror, block);
        }
        is_protected
    }

    /// Takes first stores. Those that wait for no owner go on. Whether there was one.
    pub(super) fn serve(&self) -> bool {
        let Some(faults) = &self.faults else { return false };
        let mut any = false;
        while let Some(address) = faults.next() {
            let areas = self.areas();
            let offset =
                |mirror: &Mirror| address.checked_sub(mirror.region.start()).filter(|at| *at < mirror.region.len());
            let found = areas.iter().find_map(|(mirror, _)| Some((mirror, offset(mirror)?)));
            let Some((mirror, block)) = found.map(|(mirror, offset)| (mirror, offset / BLOCK)) else { continue };
            any = true;
            let place = (mirror.token, block);
            if !mirror.is_waiting() || mirror.block(block) != Block::Quiet {
                self.open(mirror, block);
                if mirror.is_waiting() && block > 0 && mirror.block(block - 1).is_open() {
                    self.streaks.lock().unwrap_or_else(PoisonError::into_inner).push(place);
                }
            } else if !self.has_store(place) {
                self.stores().push((mirror.token, block, Instant::now()));
            }
        }
        any
    }

    pub(super) fn sleep(&self, pause: Option<Duration>) {
        let mut descriptors = vec![readable(self.wake.as_fd())];
        descriptors.extend(self.faults.as_ref().map(|faults| readable(faults.descriptor().as_fd())));
        sleep_until_ready(&mut descriptors, pause);
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

/// Dropped by a panic of the thread: stores that wait, and later ones, go through.
pub(super) struct OpenByPanic<'w>(pub(super) &'w Watch);

impl Drop for OpenByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let left: Vec<_> = self.0.areas().drain(..).collect();
            if let Some(faults) = &self.0.faults {
                left.iter()
                    .filter(|(_, is_watched)| *is_watched)
                    .for_each(|(mirror, _)| faults.unregister(&mirror.region));
            }
        }
    }
}
