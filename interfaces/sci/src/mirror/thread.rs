//! The thread that lets first stores through and compares what changes.

use crate::driving::Looks;
use crate::mirror::memory::Block;
use crate::mirror::pass::Step;
use crate::mirror::state::{SHORT, Twin};
use crate::mirror::watch::{OpenByPanic, Watch};
use crate::shared::{EndByPanic, Shared};
use crate::state::State;
use cci_mem::quiet_thread;
use std::io::ErrorKind;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a block does not change before it is protected.
const QUIET: Duration = Duration::from_millis(1);
/// The longest pause where blocks cannot be protected, and its least multiple of a comparison.
const LONG: Duration = Duration::from_millis(10);
const SHARE: u32 = 200;
/// The pause between two looks while a first store waits and this thread alone can take the answer:
/// this part of the time that it has waited. The longest one is also the pause where the thread of
/// the host takes the answer: that may begin a callback meanwhile, which stores.
const SHARE_OF_STORE: u32 = 4;
const SHORTEST: Duration = Duration::from_micros(10);
const LONGEST: Duration = Duration::from_millis(1);
/// How late the system may wake the thread, ns.
const SLACK: Option<NonZeroU64> = NonZeroU64::new(1000);

/// Starts the thread.
fn start(host: Arc<Shared>, watch: Arc<Watch>) -> std::io::Result<JoinHandle<()>> {
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

impl Shared {
    /// Lets hosts have mirrors.
    pub(crate) fn begin_mirrors(self: &Arc<Self>, is_protecting: bool) {
        if let Ok(mut state) = self.lock() {
            let host = Arc::downgrade(self);
            // Called under the lock of the host, which is there.
            let run = move |watch| start(host.upgrade().ok_or(ErrorKind::NotFound)?, watch);
            state.mirrors.set_start(Box::new(run), is_protecting);
        }
    }

    /// Serves first stores that wait for owners; the pause until it looks again. `None`: the host
    /// has ended.
    fn serve_stores(&self, watch: &Watch) -> Option<Option<Duration>> {
        let (stores, streaks) = (watch.stores().clone(), watch.take_streaks());
        if stores.is_empty() && streaks.is_empty() {
            return Some(None);
        }
        let mut state = self.lock().ok()?;
        // It may itself be the one that waits, in a callback.
        let is_left = state.callbacks.running.is_none();
        self.take_events(&mut state);
        self.serve_timers(&mut state, Instant::now());
        state.links.pump(self.endpoint());
        state.advance_all(self.endpoint());
        let mut pause = None;
        for (token, block, since) in stores {
            let serve =
                |state: &mut State, twin: &mut Twin| state.serve_store(self.endpoint(), twin, watch, (block, since));
            // Without a twin the store has gone on.
            if let Some(is_asked) = state.with_twin(token, serve) {
                let look = (since.elapsed() / SHARE_OF_STORE).clamp(SHORTEST, LONGEST);
                let look = if is_asked && is_left { LONGEST } else { look };
                pause = Some(pause.map_or(look, |pause: Duration| pause.min(look)));
            }
        }
        for (token, block) in streaks {
            state.with_twin(token, |state, twin| state.ask_ahead(self.endpoint(), twin, block));
        }
        self.finish_driving(state);
        if is_left && pause.is_some() {
            self.leave_to_thread();
        }
        Some(pause)
    }

    /// Compares what is due; the pause until something is. `None`: the host has ended.
    fn tend(&self, watch: &Watch, looks: &mut Looks) -> Option<Option<Duration>> {
        let mut pause = self.serve_stores(watch)?;
        // A thread of the program compares meanwhile, and would have to wait for this one.
        if let Some(look) = self.next_look(looks) {
            return Some(Some(pause.map_or(look, |pause| pause.min(look))));
        }
        let tokens: Vec<_> = self.lock().ok()?.mirrors.all.keys().copied().collect();
        for token in tokens {
            // Others may have the lock in between, and stores that wait go on. One may be in a
            // mirror that was found quiet just now.
            let has_opened = watch.serve();
            pause = [pause, has_opened.then_some(SHORT)].into_iter().flatten().min();
            let mut state = self.lock().ok()?;
            let due = state.with_twin(token, |state, twin| state.tend(self.endpoint(), twin, watch)).flatten();
            pause = [pause, due].into_iter().flatten().min();
            if state.links.is_backlogged() {
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
            self.give_up_reads(endpoint, twin, watch);
            self.advance_read(endpoint, twin);
            return Some(LONG);
        }
        if twin.pass.is_none() {
            if !twin.is_due() {
                return self.unwatch_quiet(endpoint, twin, watch);
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
            let watched = self.unwatch_quiet(endpoint, twin, watch);
            return [twin.is_due().then_some(twin.pause), watched].into_iter().flatten().min();
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
        let is_open = states().any(Block::is_open);
        is_open || self.pass.is_some() || !self.failed.is_empty() || !self.unsure.is_empty()
    }

    /// Protects what has not changed for a while. False: nothing was.
    fn protect(&mut self, watch: &Watch, now: Instant) -> bool {
        let mut any = false;
        for block in self.loaded.clone() {
            let is_quiet = now.saturating_duration_since(self.changed[block]) >= QUIET;
            // The owner goes on to send what changes, for a while.
            let state = if self.is_answered(block) { Block::Watched } else { Block::Quiet };
            if is_quiet && self.mirror.block(block) == Block::Open && watch.protect(&self.mirror, block, state) {
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
