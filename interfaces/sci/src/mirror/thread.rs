//! The thread that lets first stores through and compares what changes.

use crate::mirror::calls::Looks;
use crate::mirror::memory::{Block, Mirror};
use crate::mirror::pass::Step;
use crate::mirror::state::{SHORT, Twin};
use crate::mirror::sys::Faults;
use crate::shared::{EndByPanic, Shared};
use crate::state::State;
use cci_mem::descriptors;
use cci_mem::quiet_thread;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a block does not change before it is protected.
const QUIET: Duration = Duration::from_millis(1);
/// The longest pause where blocks cannot be protected, and its least multiple of a comparison.
const LONG: Duration = Duration::from_millis(10);
const SHARE: u32 = 200;
/// How late the system may wake the thread, ns.
const SLACK: Option<NonZeroU64> = NonZeroU64::new(1000);

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

    fn is_watched(&self, token: u64) -> bool {
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
    fn protect(&self, mirror: &Mirror, block: usize) -> bool {
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
    fn serve(&self) -> bool {
        let Some(faults) = &self.faults else { return false };
        let mut any = false;
        while let Some(address) = faults.next() {
            let areas = self.areas();
            let offset =
                |mirror: &Mirror| address.checked_sub(mirror.region.start()).filter(|at| *at < mirror.region.len());
            let found = areas.iter().find_map(|(mirror, _)| Some((mirror, offset(mirror)?)));
            if let Some((mirror, offset)) = found {
                self.open(mirror, offset / super::memory::BLOCK);
                any = true;
            }
        }
        any
    }

    fn sleep(&self, pause: Option<Duration>) {
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        let mut descriptors = vec![PollFd::new(&self.wake, PollFlags::IN)];
        descriptors.extend(self.faults.as_ref().map(|faults| PollFd::new(faults.descriptor(), PollFlags::IN)));
        // A signal ends it early, and the thread looks again.
        let _ = poll(&mut descriptors, pause.as_ref());
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

/// Starts the thread.
pub(crate) fn start(host: Arc<Shared>, watch: Arc<Watch>) -> std::io::Result<JoinHandle<()>> {
    quiet_thread::spawn("cci-sci-mirror", quiet_thread::STACK, move || {
        let _end = EndByPanic(&host);
        let _open = OpenByPanic(&watch);
        // Refused, the thread only wakes later.
        let _ = rustix::thread::set_current_timer_slack(SLACK);
        let mut looks = Looks::default();
        loop {
            watch.serve();
            let Some(pause) = host.tend(&watch, &mut looks) else { return };
            watch.sleep(pause);
        }
    })
}

/// Dropped by a panic of the thread: stores that wait, and later ones, go through.
struct OpenByPanic<'w>(&'w Watch);

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

impl Shared {
    /// Compares what is due; the pause until something is. `None`: the host has ended.
    fn tend(&self, watch: &Watch, looks: &mut Looks) -> Option<Option<Duration>> {
        // A thread of the program compares meanwhile, and would have to wait for this one.
        let look = self.next_look(looks);
        if look.is_some() {
            return Some(look);
        }
        let tokens: Vec<_> = self.lock().ok()?.mirrors.all.keys().copied().collect();
        let mut pause = None;
        for token in tokens {
            // Others may have the lock in between, and stores that wait go on. One may be in a
            // mirror that was found quiet just now.
            let has_opened = watch.serve();
            pause = pause.or(has_opened.then_some(SHORT));
            let mut state = self.lock().ok()?;
            let due = state.with_twin(token, |state, twin| state.tend(&self.endpoint, twin, watch)).flatten();
            pause = [pause, due].into_iter().flatten().min();
            if state.is_backlogged() {
                self.wake();
            }
        }
        Some(pause)
    }
}

impl State {
    /// Compares a mirror and reads it again, if that is due; the pause until something is again.
    pub(crate) fn tend(&mut self, endpoint: &cci::Endpoint, twin: &mut Twin, watch: &Watch) -> Option<Duration> {
        let read = self.reread(endpoint, twin);
        let compared = self.tend_changes(endpoint, twin, watch);
        [read, compared].into_iter().flatten().min()
    }

    fn tend_changes(&mut self, endpoint: &cci::Endpoint, twin: &mut Twin, watch: &Watch) -> Option<Duration> {
        let is_watched = watch.is_watched(twin.mirror.token);
        if twin.reading.is_some() {
            self.advance_read(endpoint, twin);
            return Some(LONG);
        }
        if twin.pass.is_none() {
            if !twin.is_due() {
                return None;
            }
            let left = twin.next.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Some(left);
            }
            twin.begin_pass(false);
        }
        let begun = Instant::now();
        if self.advance_pass(endpoint, twin) != Step::Ended {
            // Who does not answer is looked after the more rarely the longer it takes.
            let since = twin.pass.as_ref().map_or(SHORT, |pass| pass.begun.elapsed());
            return Some(since.clamp(SHORT, LONG));
        }
        let now = Instant::now();
        if is_watched {
            twin.pause = SHORT.max(2 * (now - begun));
            if twin.protect(watch, now) {
                // What was stored meanwhile; nothing more can be.
                twin.begin_pass(false);
                self.advance_pass(endpoint, twin);
            }
            return twin.is_due().then_some(twin.pause);
        }
        let is_quiet = twin.changed.iter().all(|changed| now.saturating_duration_since(*changed) > QUIET);
        twin.pause = if is_quiet { (2 * twin.pause).min(LONG).max(SHARE * (now - begun)) } else { SHORT };
        twin.next = now + twin.pause;
        Some(twin.pause)
    }
}

impl Twin {
    /// Whether there is something to compare.
    pub(crate) fn is_due(&self) -> bool {
        let states = || self.loaded.clone().map(|block| self.mirror.block(block));
        let is_open = states().any(|state| matches!(state, Block::Open | Block::Fresh));
        is_open || self.pass.is_some() || !self.failed.is_empty() || !self.unsure.is_empty()
    }

    /// Protects what has not changed for a while. False: nothing was.
    fn protect(&mut self, watch: &Watch, now: Instant) -> bool {
        let mut any = false;
        for block in self.loaded.clone() {
            let is_quiet = now.saturating_duration_since(self.changed[block]) >= QUIET;
            if is_quiet && self.mirror.block(block) == Block::Open && watch.protect(&self.mirror, block) {
                self.unsure.insert(block);
                any = true;
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use crate::Access;
    use crate::mirror::fixture::connected;
    use cci_conformance::LIMIT;
    use std::time::{Duration, Instant};

    /// A call that would take long ends soon: the thread had looked meanwhile.
    #[test]
    fn the_end_of_a_call_that_drives_is_noticed_soon() {
        let (_owner, segment, other, far) = connected();
        let own = segment.map(0..4096, Access::ReadWrite).expect("mapped");
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        let until = |value: u64| {
            let begun = Instant::now();
            while own.load(0) != Ok(value) {
                assert!(begun.elapsed() < LIMIT, "{value} was not sent");
                std::thread::yield_now();
            }
        };
        window.store(0, 1_u64).expect("inside");
        until(1);
        let long = 2 * LIMIT;
        other.shared.set_driven(Some(Instant::now() + long));
        window.store(0, 2_u64).expect("inside");
        // The thread has looked by then; if it has not, it finds that nobody drives.
        std::thread::sleep(Duration::from_millis(20));
        other.shared.set_driven(None);
        until(2);
    }
}
