//! Progress, the unexpected handler, and waiting.

use crate::errors::Error;
use crate::handler::{Answer, Handler, Unexpected};
use crate::incoming::Pending;
use crate::requests::{ContextBits, OWN};
use crate::state::State;
use crate::types::{Address, Buffer};
use crate::wire::EAGER;
use cci::{Endpoint, OpenError, PollError};
use cci_ground::{BATCH, Changing, Driven, Entered as Locked, may_spin};
use std::time::{Duration, Instant};

/// How often a wait polls before it looks at the clock.
const LOOKS: u32 = 64;

thread_local! {
    static ME: u8 = const { 0 };
}

/// A number of this thread that no other living thread has.
#[inline]
pub(crate) fn this_thread() -> usize {
    ME.with(|me| std::ptr::from_ref(me).addr())
}

/// What the threads of a program share.
pub(crate) struct Core<B> {
    driven: Driven<State<B>>,
    /// They do not change.
    pub(crate) context_bits: ContextBits,
}

type Entered<'a, B> = Locked<'a, State<B>>;

impl<B: Buffer> Changing for State<B> {
    #[inline]
    fn changes(&self) -> u64 {
        self.requests.changes
    }

    fn left(&self) -> Option<Duration> {
        let timer = self.next_time().map(|at| at.saturating_duration_since(Instant::now()));
        // What waits for room in CCI is tried again.
        let pause = (!self.blocked.is_empty()).then_some(Duration::from_millis(1));
        [timer, pause].into_iter().flatten().min()
    }
}

impl<B: Buffer> Core<B> {
    pub(crate) fn new(endpoint: Endpoint, state: State<B>) -> Result<Self, OpenError> {
        let context_bits = state.requests.context_bits;
        Ok(Self { driven: Driven::new(endpoint, state)?, context_bits })
    }

    #[inline(always)]
    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.driven.endpoint()
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> Entered<'_, B> {
        self.driven.lock()
    }

    /// Runs a call under the lock, and wakes those whom its changes may concern.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State<B>) -> Result<R, Error>) -> Result<R, Error> {
        self.driven.with(|state| if state.is_closed { Err(Error::BadEndpoint) } else { act(state) })
    }

    /// Takes what has come until `is_enough`, or until nothing comes; and wakes those whom it may
    /// concern. The lock is let go of while the unexpected handler runs.
    #[inline(always)]
    pub(crate) fn progress<'a>(
        &'a self,
        mut state: Entered<'a, B>,
        mut is_enough: impl FnMut(&mut State<B>) -> bool,
    ) -> Entered<'a, B> {
        if state.in_handler.is_some() || state.is_closed {
            return state;
        }
        let before = state.requests.changes;
        for _ in 0..BATCH {
            match self.endpoint().get_event() {
                Ok(Some(event)) => {
                    let mut place = None;
                    if state.take(self.endpoint(), event, &mut place)
                        && let Some(pending) = &place
                    {
                        state = self.call_handler(state, pending);
                    }
                }
                Ok(None) | Err(PollError::NoBuffers) => break,
                Err(_) => {
                    state.has_failed = true;
                    break;
                }
            }
            if is_enough(&mut state) {
                break;
            }
        }
        if state.has_deferred_work() {
            state = self.catch_up(state);
        }
        if state.requests.changes != before || state.has_failed {
            self.driven.wake(&state);
        }
        state
    }

    /// Goes on with what waited for room, and with what is due by the clock.
    #[cold]
    #[inline(never)]
    fn catch_up<'a>(&'a self, mut state: Entered<'a, B>) -> Entered<'a, B> {
        if state.next_time().is_some() {
            state.take_time(self.endpoint());
        }
        if state.peers.has_changes() {
            state.take_changes(self.endpoint());
        }
        if !state.blocked.is_empty() {
            state.pump_blocked(self.endpoint());
        }
        // What the handler sends to this endpoint meanwhile has its turn in the next call.
        for _ in 0..state.to_self.len() {
            let Some(request) = state.to_self.pop_front() else { break };
            if state.match_own(request) {
                continue;
            }
            let mut is_finished = false;
            if state.has_handler
                && let Some((bits, length, bytes)) = state.own_bytes(request)
            {
                let source = state.address(OWN, 0);
                let message = Unexpected { source, bits, length, data: bytes.as_deref() };
                let answered;
                (state, answered) = self.run_handler(state, &message);
                is_finished = answered == Answer::Finished;
                state.in_handler = None;
                state.requests.changes += 1;
                if is_finished {
                    state.counts.handled += 1;
                    state.finish_own(request, length);
                }
            }
            if !is_finished && !state.match_own(request) {
                state.keep_own(request);
            }
        }
        state
    }

    #[inline(never)]
    fn call_handler<'a>(&'a self, mut state: Entered<'a, B>, pending: &Pending<'_>) -> Entered<'a, B> {
        let head = &pending.head;
        let partner = state.partners.get(pending.number as usize).and_then(Option::as_ref);
        let (name, session, link) = partner.map_or((0, 0, 0), |of| (of.name, of.session, of.link));
        let mut message = Unexpected {
            source: Address::of(name, session),
            bits: head.header.long,
            length: head.header.word,
            data: None,
        };
        let answer;
        match pending.message.bytes() {
            None if head.header.kind == EAGER => {
                let mut scratch = std::mem::take(&mut state.scratch);
                let len = pending.message.len();
                // It only grows, as where messages are gathered.
                scratch.resize(scratch.len().max(len), 0);
                let len = pending.message.copy_to(&mut scratch[..len]);
                message.data = scratch[..len].get(head.from..);
                (state, answer) = self.run_handler(state, &message);
                state.scratch = scratch;
            }
            bytes => {
                // An offer has no bytes of the message.
                let bytes = bytes.filter(|_| head.header.kind == EAGER);
                message.data = bytes.and_then(|bytes| bytes.get(head.from..));
                (state, answer) = self.run_handler(state, &message);
            }
        }
        state.after_handler(self.endpoint(), pending, link, answer == Answer::Finished);
        state
    }

    /// Calls the handler without the lock. No other thread makes progress meanwhile.
    #[inline]
    fn run_handler<'a>(&'a self, mut state: Entered<'a, B>, message: &Unexpected<'_>) -> (Entered<'a, B>, Answer) {
        let Some(handler) = state.handler.take() else { return (state, Answer::Continue) };
        state.in_handler = Some(this_thread());
        let mut turn = HandlerTurn { core: self, handler: Some(handler), number: state.handler_number };
        drop(state);
        let answer = turn.handler.as_ref().map_or(Answer::Continue, |handler| handler(message));
        let mut state = self.lock();
        state.releases += 1;
        turn.put_back(&mut state);
        let replaced = turn.handler.take();
        std::mem::forget(turn);
        if replaced.is_some() {
            // What it has captured may call this endpoint as it goes.
            drop(state);
            drop(replaced);
            state = self.lock();
        }
        (state, answer)
    }

    /// Makes progress until `ready` finds something, at most for `limit`, or until a wake-up of the
    /// program; and returns what `take` makes of it. Sleeps meanwhile: one thread on the
    /// descriptors, others until it has found something.
    #[inline(always)]
    pub(crate) fn wait_for<F, R>(
        &self,
        limit: Option<Duration>,
        mut ready: impl FnMut(&mut State<B>) -> Option<F>,
        take: impl FnOnce(&mut State<B>, F) -> Result<Option<R>, Error>,
    ) -> Result<Option<R>, Error> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Error::BadEndpoint);
        }
        let mut found = ready(&mut state);
        if found.is_none() {
            let (is_look, handled) = (limit == Some(Duration::ZERO), state.counts.handled);
            let (before, releases, wakes) = (state.requests.changes, state.releases, state.wakes);
            // The handler of the program may take any time, which the limit counts.
            let ends = |begun: Instant| limit.and_then(|limit| begun.checked_add(limit));
            let deadline = (state.has_handler && !is_look).then(|| ends(Instant::now()));
            let is_late = || deadline.flatten().is_some_and(|deadline| Instant::now() >= deadline);
            state = self.progress(state, |state: &mut State<B>| {
                found = ready(state);
                // Where the handler has taken a message, its program goes on with that.
                found.is_some() || is_look && state.counts.handled != handled || state.releases != releases && is_late()
            });
            // What was deferred may have ended it. While the handler ran, another thread may have
            // consumed what was found, and have used its place again.
            if state.releases != releases || found.is_none() && state.requests.changes != before {
                found = ready(&mut state);
            }
            if found.is_none() && !is_look {
                let deadline = deadline.unwrap_or_else(|| ends(Instant::now()));
                (state, found) = self.wait_long(state, deadline, wakes, ready)?;
            }
        }
        // In one place, where the result is written once.
        match found {
            Some(found) => take(&mut state, found),
            None => Ok(None),
        }
    }

    /// As [`Core::wait_for`], after the first look, before which there had been so many wake-ups.
    /// With the lock, as long as that of the look. A handler that this thread runs ends before the
    /// wait does.
    #[inline(never)]
    fn wait_long<'a, F>(
        &'a self,
        mut state: Entered<'a, B>,
        deadline: Option<Instant>,
        wakes: u64,
        mut ready: impl FnMut(&mut State<B>) -> Option<F>,
    ) -> Result<(Entered<'a, B>, Option<F>), Error> {
        let me = this_thread();
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let (mut begun, mut looks) = (None, 0_u32);
        loop {
            let (mut found, releases) = (None, state.releases);
            state = self.progress(state, |state| {
                found = ready(state);
                found.is_some() || state.releases != releases && is_late()
            });
            let has_handled = state.releases != releases;
            // As in `wait_for`.
            if found.is_none() || has_handled {
                found = if state.is_closed { None } else { ready(&mut state) };
            }
            if found.is_some() {
                // One of those who wait takes over the sleep on the descriptors.
                self.driven.wake(&state);
                return Ok((state, found));
            }
            if state.is_closed {
                return Err(Error::BadEndpoint);
            }
            if state.has_failed {
                return Err(Error::NicDead);
            }
            looks = looks.wrapping_add(1);
            if !looks.is_multiple_of(LOOKS) && begun.is_none() && !has_handled && !cci::is_oversubscribed() {
                drop(state);
                std::hint::spin_loop();
                state = self.lock();
                continue;
            }
            let now = Instant::now();
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
            let is_over = left.is_some_and(|left| left.is_zero()) || state.wakes != wakes;
            // In its own handler it would wait for ever.
            if is_over || state.in_handler == Some(me) {
                self.driven.wake(&state);
                return Ok((state, None));
            }
            if may_spin(*begun.get_or_insert(now), now) {
                drop(state);
                std::hint::spin_loop();
                state = self.lock();
                continue;
            }
            // It is this call's to go on with what the handler has sent to this endpoint.
            if state.to_self.is_empty() || state.in_handler.is_some() {
                state = self.sleep(state, left);
            }
        }
    }

    fn sleep<'a>(&'a self, state: Entered<'a, B>, left: Option<Duration>) -> Entered<'a, B> {
        // Who is in the handler makes the progress.
        if state.in_handler.is_some() {
            return self.driven.sleep_beside(state, left, || self.lock());
        }
        self.driven.sleep(state, left)
    }
}

/// A handler that runs. Dropped: it has panicked.
struct HandlerTurn<'a, B: Buffer> {
    core: &'a Core<B>,
    handler: Option<Handler>,
    number: u64,
}

impl<B: Buffer> HandlerTurn<'_, B> {
    /// Gives the handler back, unless the program has set another one meanwhile.
    #[inline]
    fn put_back(&mut self, state: &mut State<B>) {
        if state.handler_number == self.number {
            state.handler = self.handler.take();
        }
    }
}

impl<B: Buffer> Drop for HandlerTurn<'_, B> {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        self.put_back(&mut state);
        state.in_handler = None;
        state.requests.changes += 1;
        self.core.driven.wake(&state);
    }
}
