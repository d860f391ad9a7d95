//! The lock of a host, and waits.

use crate::claims;
use crate::errors::Error;
use crate::names::Names;
use crate::nodes::Nodes;
use crate::notices::Source;
use crate::state::State;
use crate::types::deadline;
use cci::{Endpoint, OpenError, PollError};
use cci_ground::{BATCH, Changing, Driven, Entered, Held};
use cci_mem::fork::Mark;
use cci_mem::handover::Handover;
use cci_mem::sync::{AtomicU64, Ordering};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// The pause between two looks of a callback that waits.
const NAP: Duration = Duration::from_micros(100);

/// What the objects of a host share.
pub(crate) struct Shared {
    /// Its eventfd wakes the thread of the host.
    pub(crate) driven: Driven<State>,
    pub(crate) nodes: Nodes,
    /// Answers other hosts, as long as this one is open.
    pub(crate) names: Mutex<Option<Names>>,
    /// Ready when somebody asks for a claimed name.
    pub(crate) asked: OwnedFd,
    /// Until when since `begun` nobody who asks is taken, because the system had no descriptor, ns;
    /// 0: now.
    deaf: AtomicU64,
    introduction: Vec<u8>,
    mark: Mark,
    /// When this was made: the begin of the clock of `handover`, ns.
    pub(crate) begun: Instant,
    /// Whether a thread of the program drives the endpoint, and whether the thread of the host naps
    /// because of that.
    pub(crate) handover: Handover,
    pub(crate) thread: OnceLock<ThreadId>,
}

impl Changing for State {
    const ALTERNATES: bool = true;

    fn changes(&self) -> u64 {
        self.waits.changes()
    }
}

impl Shared {
    pub(crate) fn new(
        endpoint: Endpoint,
        nodes: Nodes,
        state: State,
        asked: OwnedFd,
        introduction: Vec<u8>,
    ) -> Result<Self, OpenError> {
        let (mark, driven) = (state.mark, Driven::new(endpoint, state)?);
        let (names, thread) = (Mutex::new(None), OnceLock::new());
        let (begun, handover) = (Instant::now(), Handover::default());
        let deaf = AtomicU64::new(0);
        Ok(Self { driven, nodes, names, asked, deaf, introduction, mark, begun, handover, thread })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.driven.endpoint()
    }

    pub(crate) fn enter(&self) -> Entered<'_, State> {
        self.driven.lock()
    }

    pub(crate) fn lock(&self) -> Result<Entered<'_, State>, Error> {
        // The lock of a forked child may be held for ever.
        if !self.mark.is_here() {
            return Err(Error::NotInitialized);
        }
        let state = self.enter();
        if state.is_closed { Err(Error::NotInitialized) } else { Ok(state) }
    }

    /// Whether the host has ended, here or by a fork.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_err()
    }

    /// Whether other hosts can be reached.
    pub(crate) fn is_networked(&self) -> bool {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether this process has opened the host.
    pub(crate) fn is_here(&self) -> bool {
        self.mark.is_here()
    }

    pub(crate) fn is_own_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    /// Runs a call under the lock.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State) -> Result<R, Error>) -> Result<R, Error> {
        self.with_quietly(|state| {
            let result = act(state);
            self.finish(state);
            result
        })
    }

    /// As [`Shared::with`], for a call that leaves the thread nothing to do: it is not woken.
    pub(crate) fn with_quietly<R>(&self, act: impl FnOnce(&mut State) -> Result<R, Error>) -> Result<R, Error> {
        let mut state = self.lock()?;
        let result = act(&mut state);
        self.tell(&mut state);
        let retired = std::mem::take(&mut state.callbacks.retired);
        drop(state);
        drop(retired);
        result
    }

    /// As [`Shared::with`], for a call that begins operations: takes the ends of those that have
    /// ended at once. The thread is woken only for what is left. `takes`: how long the call may
    /// copy.
    pub(crate) fn with_events<R>(
        &self,
        takes: Duration,
        act: impl FnOnce(&mut State) -> Result<R, Error>,
        has_ended: impl FnOnce(&State) -> bool,
    ) -> Result<R, Error> {
        self.with_quietly(|state| {
            let timer = state.links.peers.poll_timeout();
            // The thread would wake up for each end, and wait for the lock.
            self.set_driven(Some(Instant::now() + takes));
            let result = act(state);
            self.set_driven(Some(Instant::now()));
            let is_quiet = self.take_events(state);
            state.take_changes(self.endpoint());
            state.serve_self(self.endpoint());
            let is_left = !state.callbacks.ready.is_empty()
                || state.links.is_backlogged()
                || state.has_starved_queue()
                || state.links.peers.poll_timeout() != timer;
            if !is_quiet || is_left || !has_ended(state) {
                self.set_driven(None);
                self.wake();
            }
            result
        })
    }

    /// Does what a call has left to do: messages of the host to itself, callbacks, timers. Those
    /// who wait are its caller's.
    fn finish(&self, state: &mut State) {
        state.serve_self(self.endpoint());
        if !self.is_own_thread() {
            self.wake();
        }
    }

    /// Has those who wait look again. Without any it makes no system call.
    pub(crate) fn tell(&self, state: &mut Held<State>) {
        if state.waits.take_change() {
            self.driven.wake(state);
        }
    }

    /// Wakes the thread of the host.
    pub(crate) fn wake(&self) {
        // Full means woken already.
        let _ = rustix::io::write(self.driven.waker(), &1_u64.to_ne_bytes());
    }

    /// Refuses a wait on the thread of the host, which would be for ever.
    pub(crate) fn check_wait(&self) -> Result<(), Error> {
        if self.is_own_thread() { Err(Error::IllegalOperation) } else { Ok(()) }
    }

    /// Waits until `ready` gives something, at most for `limit`.
    pub(crate) fn wait_for<R>(
        &self,
        limit: Option<Duration>,
        ready: impl FnMut(&mut State) -> Option<Result<R, Error>>,
    ) -> Result<R, Error> {
        self.wait_until(deadline(limit), limit == Some(Duration::ZERO), ready)
    }

    pub(crate) fn wait_until<R>(
        &self,
        deadline: Option<Instant>,
        is_poll: bool,
        mut ready: impl FnMut(&mut State) -> Option<Result<R, Error>>,
    ) -> Result<R, Error> {
        let mut state = self.lock()?;
        let mut is_left_to_thread = false;
        loop {
            if let Some(found) = ready(&mut state) {
                self.finish(&mut state);
                self.tell(&mut state);
                return found;
            }
            if state.is_closed {
                return Err(Error::Cancelled);
            }
            if state.has_failed {
                return Err(Error::System);
            }
            if is_poll {
                return Err(Error::Timeout);
            }
            self.check_wait()?;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Error::Timeout);
            }
            if !std::mem::replace(&mut is_left_to_thread, true) {
                self.leave_to_thread();
            }
            state = self.driven.sleep_beside(state, left, || self.enter());
        }
    }

    /// As [`Shared::wait_for`], also in a callback: there it takes what comes, as the thread would,
    /// and calls no other one. For what ends soon.
    pub(crate) fn wait_or_progress<R>(
        &self,
        deadline: Option<Instant>,
        mut ready: impl FnMut(&mut State) -> Option<Result<R, Error>>,
    ) -> Result<R, Error> {
        if !self.is_own_thread() {
            return self.wait_until(deadline, false, ready);
        }
        loop {
            let mut state = self.lock()?;
            let is_quiet = self.progress(&mut state);
            state.links.pump(self.endpoint());
            let found = ready(&mut state);
            let retired = std::mem::take(&mut state.callbacks.retired);
            let has_failed = state.has_failed;
            drop(state);
            drop(retired);
            if let Some(found) = found {
                return found;
            }
            if has_failed {
                return Err(Error::System);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(Error::Timeout);
            }
            if is_quiet {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Has the thread take events, for a call that takes none while it sleeps.
    pub(crate) fn leave_to_thread(&self) {
        if self.handover.leave() {
            self.wake();
        }
    }

    /// Waits until the callback of an object that is removed has returned.
    pub(crate) fn settle(&self, source: Source) {
        // On the thread of the host it is the callback itself that removes.
        let _ = self.wait_for(None, |state| (!state.callbacks.will_call(source)).then_some(Ok(())));
    }

    /// Enters a claimed name; the number by which it is removed.
    pub(crate) fn enter_claim(&self, state: &mut State, claim: OwnedFd) -> Result<u64, Error> {
        let number = state.next();
        let data = epoll::EventData::new_u64(number);
        epoll::add(&self.asked, &claim, data, epoll::EventFlags::IN).map_err(|_| Error::NoSpace)?;
        state.claims.insert(number, claim);
        Ok(number)
    }

    /// Frees a claimed name.
    pub(crate) fn free_claim(&self, state: &mut State, number: u64) {
        if let Some(claim) = state.claims.remove(&number) {
            // The system forgets one that is closed.
            let _ = epoll::delete(&self.asked, &claim);
        }
    }

    /// Answers who asks for names.
    fn introduce(&self, state: &State) {
        if self.deaf_for().is_some() {
            return;
        }
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 16];
        let Ok(count) = epoll::wait(&self.asked, &mut events, Some(&Timespec::default())) else { return };
        for event in &events[..count] {
            let number = event.data.u64();
            let Some(claim) = state.claims.get(&number) else { continue };
            let answered = match state.member_of_claim(number, &self.introduction) {
                Some((words, file)) => claims::introduce_member(claim, &words, file),
                None => claims::introduce(claim, &self.introduction),
            };
            if answered.is_err() {
                let until = self.begun.elapsed().saturating_add(cci_admission::PAUSE);
                // It publishes nothing.
                self.deaf.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
                return;
            }
        }
    }

    /// How long nobody who asks for a name is taken yet. Names stay readable meanwhile, and a sleep
    /// on them would end at once.
    pub(crate) fn deaf_for(&self) -> Option<Duration> {
        // As in `introduce`.
        let until = self.deaf.load(Ordering::Relaxed);
        if until == 0 {
            return None;
        }
        let left = Duration::from_nanos(until).saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            self.deaf.store(0, Ordering::Relaxed);
            return None;
        }
        Some(left)
    }

    /// Ends waits, those of later calls too: nothing more can be trusted to come.
    fn fail(&self) {
        let mut state = self.enter();
        state.has_failed = true;
        state.callbacks.running = None;
        self.driven.wake(&state);
    }

    /// Ends the host for this process and for others.
    pub(crate) fn close(&self) {
        let mut state = self.enter();
        state.close(self.endpoint());
        let retired = std::mem::take(&mut state.callbacks.retired);
        let comparing = state.mirrors.close();
        self.driven.wake(&state);
        drop(state);
        drop(retired);
        self.wake();
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(names);
        if let Some(thread) = comparing {
            // It runs nothing of the program.
            let _ = thread.join();
        }
    }

    /// Takes events of the endpoint. False: there may be more.
    pub(crate) fn take_events(&self, state: &mut State) -> bool {
        let mut is_quiet = false;
        for _ in 0..BATCH {
            match self.endpoint().get_event() {
                Ok(Some(event)) => {
                    state.waits.moves += 1;
                    state.take(self.endpoint(), event);
                }
                Ok(None) | Err(PollError::NoBuffers) => {
                    is_quiet = true;
                    break;
                }
                Err(_) => {
                    (state.has_failed, state.waits.has_changed, is_quiet) = (true, true, true);
                    break;
                }
            }
        }
        is_quiet
    }

    /// Looks after links whose time has come.
    pub(crate) fn serve_timers(&self, state: &mut State, now: Instant) {
        if state.links.peers.poll_timeout().is_some_and(|at| at <= now) {
            state.links.peers.handle_timeout(self.endpoint(), now);
            state.take_changes(self.endpoint());
        }
    }

    /// Takes what has come. False: there may be more.
    pub(crate) fn progress(&self, state: &mut Held<State>) -> bool {
        let is_quiet = self.take_events(state);
        self.serve_timers(state, Instant::now());
        state.take_changes(self.endpoint());
        state.serve_self(self.endpoint());
        self.introduce(state);
        self.tell(state);
        is_quiet
    }
}

/// Dropped by a panic of a thread of the host: waits end, and so do later ones.
pub(crate) struct EndByPanic<'s>(pub(crate) &'s Shared);

impl Drop for EndByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Nodes, Options};
    use std::sync::Arc;

    /// The mask of blocked signals of each thread of this process whose name begins so.
    fn blocked(name: &str) -> Vec<u64> {
        let threads = std::fs::read_dir("/proc/self/task").expect("Linux").filter_map(Result::ok);
        let statuses = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
        let of = |status: &str, key| status.lines().find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()));
        let named = statuses.filter(|status| of(status, "Name:").is_some_and(|found| found.starts_with(name)));
        let mask = |status: String| u64::from_str_radix(&of(&status, "SigBlk:")?, 16).ok();
        named.filter_map(mask).collect()
    }

    #[test]
    fn no_thread_of_a_host_takes_a_signal_of_the_program() {
        let _host = Host::open(&Options::new().nodes(Nodes::new())).expect("a host");
        // A thread names itself.
        while blocked("cci-sci").is_empty() {
            std::thread::yield_now();
        }
        let usr1 = 1 << (libc::SIGUSR1 - 1);
        assert!(blocked("cci-sci").iter().all(|mask| mask & usr1 != 0));
    }

    /// A panic of the thread that takes events would leave those who wait to it for ever.
    #[test]
    fn a_panic_of_a_thread_ends_waits() {
        let host = Host::open(&Options::new().nodes(Nodes::new())).expect("a host");
        let shared = Arc::clone(&host.shared);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| shared.wait_for(None, |_| None::<Result<(), Error>>));
            let fails = scope.spawn(|| {
                let _end = EndByPanic(&shared);
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(fails.join().is_err());
            assert_eq!(waits.join().expect("no panic"), Err(Error::System));
        });
        assert_eq!(shared.wait_for(None, |_| None::<Result<(), Error>>), Err(Error::System), "a later one");
    }
}
