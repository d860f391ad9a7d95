//! Blocks that are protected until a store comes, and stores that wait.

use crate::mirror::memory::{BLOCK, Block, Mirror};
use crate::mirror::sys::Faults;
use cci_ground::{readable, sleep_until_ready};
use cci_mem::descriptors;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A mirror, and whether its pages can be protected.
type Area = (Arc<Mirror>, bool);

/// What the thread and the host share without the lock of the host.
pub(crate) struct Watch {
    faults: Option<Faults>,
    wake: OwnedFd,
    areas: Mutex<Vec<Area>>,
    /// Held while a block is protected or opened, so that its state is that of its pages.
    gate: Mutex<()>,
}

impl Watch {
    pub(crate) fn new(is_protecting: bool) -> rustix::io::Result<Self> {
        let faults = is_protecting.then(Faults::open).flatten();
        let wake = descriptors::eventfd(0)?;
        Ok(Self { faults, wake, areas: Mutex::new(Vec::new()), gate: Mutex::new(()) })
    }

    fn areas(&self) -> MutexGuard<'_, Vec<Area>> {
        self.areas.lock().unwrap_or_else(PoisonError::into_inner)
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
    }

    fn unprotect(&self, mirror: &Mirror, block: usize) {
        mirror.set_block(block, Block::Fresh);
        if let Some(faults) = &self.faults {
            // Refused once the mirror is not watched any more: then its pages are writable.
            let _ = faults.protect(&mirror.region, mirror.span(block), false);
        }
    }

    /// Protects a block. The thread lets first stores through.
    pub(super) fn protect(&self, mirror: &Mirror, block: usize) -> bool {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        mirror.set_block(block, Block::Quiet);
        let faults = self.faults.as_ref();
        let is_protected = faults.is_some_and(|faults| faults.protect(&mirror.region, mirror.span(block), true));
        if !is_protected {
            self.unprotect(mirror, block);
        }
        is_protected
    }

    /// Lets all stores through that wait. Whether there was one.
    pub(super) fn serve(&self) -> bool {
        let Some(faults) = &self.faults else { return false };
        let mut any = false;
        while let Some(address) = faults.next() {
            let areas = self.areas();
            let offset =
                |mirror: &Mirror| address.checked_sub(mirror.region.start()).filter(|at| *at < mirror.region.len());
            let found = areas.iter().find_map(|(mirror, _)| Some((mirror, offset(mirror)?)));
            if let Some((mirror, offset)) = found {
                self.open(mirror, offset / BLOCK);
                any = true;
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
