//! The helper thread: does what is due while the program makes no calls (`docs/design/reliable.md`).

use crate::{Endpoint, monotonic};
use cci_mem::guarded::Threading;
use cci_mem::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use cci_proto::Time;
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A program that has neither sent nor taken frames for so long is away.
const ABSENCE: Duration = Duration::from_micros(1300);
/// One that has sent, but not taken frames for so long, is away too: what peers want of this end it leaves where it is. Sending a window
/// full of bulk data takes some milliseconds.
const NEGLECT: Duration = Duration::from_millis(10);
/// A program that takes frames puts off the thread's alarm when it has not done so for this long: that takes it 1 to 5 microseconds,
/// a look of the thread 10 to 20 where both share a processor.
const RENEWAL: u64 = 1_100_000;
/// Where it is not known when the program took frames, looks at the number of its calls are so far apart. One that sleeps on its handle
/// is given so long to come by itself.
const PRESENCE: Duration = Duration::from_micros(700);
/// Nice value of the thread, where the program may choose it: nine of ten parts of a processor on which something computes, so
/// that what peers do one-sidedly keeps its speed meanwhile.
const URGENCY: i32 = -10;
/// Stack of the thread, bytes.
const STACK: usize = 256 << 10;

/// What [`Transport::while_away`](crate::Transport::while_away) leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Nothing is left to be done until the program makes a call.
    Over,
    /// Something is.
    Until {
        /// When it is due, whatever arrives; none: never by itself.
        limit: Option<Duration>,
        /// Whether frames are to be taken as they arrive.
        watches: bool,
        /// The program may be asleep on its handle, and is to be given the chance to come by itself.
        armed: bool,
    },
}

/// What the thread and the endpoint's callers share.
struct Shared {
    /// Calls of the program; written under the endpoint's lock, read at any time: only whether it has changed counts.
    calls: AtomicU32,
    /// When the program last sent or took frames, by the clock of [`monotonic`]; 0 = not known.
    present: AtomicU64,
    /// When it last took frames.
    polled: AtomicU64,
    /// What the program's next call has to do for the thread: [`NOTHING`], [`PARKED`] or [`STANDS_IN`]. Changed under the endpoint's
    /// lock, so that whoever holds it may trust it.
    state: AtomicU32,
    ended: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
    /// When the thread looks for the program next. One that takes frames all the time puts it off again and again, and it never rings.
    /// It also ends waits.
    alarm: OwnedFd,
}

/// The thread sees by itself that the program makes calls.
const NOTHING: u32 = 0;
/// The thread sleeps until [`Shared::rouse`].
const PARKED: u32 = 1;
/// The thread waits for what it knew to be due when nobody else made calls.
const STANDS_IN: u32 = 2;

/// What a look for the program finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Away,
    /// It is there; when to look again.
    Present(Duration),
}

impl Shared {
    fn new() -> rustix::io::Result<Self> {
        Ok(Self {
            calls: AtomicU32::new(0),
            present: AtomicU64::new(0),
            polled: AtomicU64::new(0),
            state: AtomicU32::new(NOTHING),
            ended: AtomicBool::new(false),
            lock: Mutex::new(()),
            changed: Condvar::new(),
            alarm: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?,
        })
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    fn state(&self) -> u32 {
        self.state.load(Ordering::Relaxed)
    }

    /// Looks for the program, which had made so many calls at the last look; `busy`: one of its threads is within a call.
    fn look(&self, before: u32, busy: bool) -> Look {
        let now = monotonic();
        let ago = |time: u64| Duration::from_nanos(now.since(Time(time)));
        match self.present.load(Ordering::Relaxed) {
            0 if self.calls() == before => Look::Away,
            0 => Look::Present(PRESENCE),
            _ if ago(self.polled.load(Ordering::Relaxed)) >= NEGLECT => Look::Away,
            // Calls that move much take longer than an absence. Waiting for the end of one, only to do the same, would take the
            // processor away from the program.
            _ if busy => Look::Present(ABSENCE),
            present => match ABSENCE.checked_sub(ago(present)) {
                Some(left) if !left.is_zero() => Look::Present(left),
                _ => Look::Away,
            },
        }
    }

    /// Has the alarm ring after this time, and not before.
    fn set_alarm(&self, after: Duration) {
        // None at all would stop the timer.
        let Ok(it_value) = Timespec::try_from(after.max(Duration::from_nanos(1))) else { return };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        // The descriptor is a timer and the time valid: nothing can fail.
        let _ = timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once);
    }

    /// Sleeps until the alarm rings.
    fn await_alarm(&self) {
        let mut rings = [0; 8];
        loop {
            match rustix::io::read(&self.alarm, &mut rings) {
                Ok(_) => return,
                Err(rustix::io::Errno::INTR) => {}
                // Somebody has closed what is not theirs.
                Err(_) => return self.pause(PRESENCE),
            }
        }
    }

    /// Sleeps until `watch` tells of something, the time is over, or the alarm rings. True: something is told.
    fn wait(&self, watch: Option<&OwnedFd>, limit: Option<Duration>) -> bool {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut both = [&self.alarm, watch.unwrap_or(&self.alarm)].map(|fd| PollFd::new(fd, PollFlags::IN));
        let count = if watch.is_some() { 2 } else { 1 };
        let _ = poll(&mut both[..count], limit.as_ref());
        let [rings, told] = both.map(|fd| !fd.revents().is_empty());
        if rings {
            self.await_alarm();
        }
        told
    }

    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends a wait; the word that it is about was changed before.
    fn rouse(&self) {
        // Taken and given back: whoever found the word unchanged is asleep by now.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Sleeps while parked.
    fn rest(&self) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while self.state() == PARKED && !self.is_ended() {
            guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sleeps for a time, or until the end.
    fn pause(&self, time: Duration) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_ended() {
            drop(self.changed.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Where the thread is in its life.
enum Life {
    /// None is wanted: the endpoint belongs to one thread.
    Unwanted,
    /// Nothing has needed one yet.
    NotYet,
    /// Something needs one.
    Wanted,
    Running(Arc<Shared>, Option<JoinHandle<()>>),
    /// It could not be started.
    Failed,
}

/// An endpoint's helper thread, as its transport sees it.
pub(super) struct Away {
    life: Life,
    calls: u32,
    /// When the program last put off the alarm.
    renewed: Time,
    /// Whose thread it is.
    endpoint: &'static Endpoint,
}

impl Away {
    /// Without a thread so far.
    pub(super) fn new(endpoint: &'static Endpoint, threading: Threading) -> Self {
        let life = if threading == Threading::One { Life::Unwanted } else { Life::NotYet };
        Self { life, calls: 0, renewed: Time(0), endpoint }
    }

    /// The program makes a call.
    #[inline(always)]
    pub(super) fn note(&mut self) {
        if let Life::Running(shared, _) = &self.life {
            self.calls = self.calls.wrapping_add(1);
            shared.calls.store(self.calls, Ordering::Relaxed);
        }
    }

    /// The program sends, at this time.
    #[inline(always)]
    pub(super) fn note_sent(&self, now: Time) {
        if let Life::Running(shared, _) = &self.life {
            shared.present.store(now.0, Ordering::Relaxed);
        }
    }

    /// The program takes frames, at this time.
    #[inline(always)]
    pub(super) fn note_polled(&mut self, now: Time) {
        if let Life::Running(shared, _) = &self.life {
            shared.present.store(now.0, Ordering::Relaxed);
            shared.polled.store(now.0, Ordering::Relaxed);
            if now.since(self.renewed) >= RENEWAL {
                self.put_off(now);
            }
        }
    }

    #[cold]
    fn put_off(&mut self, now: Time) {
        self.renewed = now;
        if let Life::Running(shared, _) = &self.life
            && shared.state() != PARKED
        {
            shared.set_alarm(ABSENCE);
        }
    }

    /// A connection, or memory for peers: from now on there may be something to be done.
    pub(super) fn need(&mut self) {
        if matches!(self.life, Life::NotYet) {
            self.life = Life::Wanted;
        }
    }

    /// Whether the thread is to be started.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        matches!(self.life, Life::Wanted)
    }

    /// Whether the program's next call has to do something for the thread.
    #[inline(always)]
    pub(super) fn is_waiting(&self) -> bool {
        matches!(&self.life, Life::Running(shared, _) if shared.state() != NOTHING)
    }

    /// Has the thread sleep until it is called; with the endpoint's lock held.
    pub(super) fn park(&self) {
        self.enter(PARKED);
    }

    /// Has the next call rouse the thread, which waits for what is due now: the call may make more due, and sooner. With the endpoint's
    /// lock held.
    pub(super) fn stand_in(&self) {
        self.enter(STANDS_IN);
    }

    fn enter(&self, state: u32) {
        if let Life::Running(shared, _) = &self.life {
            shared.state.store(state, Ordering::Relaxed);
        }
    }

    /// The program has made a call, and leaves something to be done if `needed`. With the endpoint's lock held.
    #[cold]
    pub(super) fn call(&self, needed: bool) {
        let Life::Running(shared, _) = &self.life else { return };
        match shared.state() {
            PARKED if needed => {
                shared.state.store(NOTHING, Ordering::Relaxed);
                shared.rouse();
            }
            STANDS_IN => {
                shared.state.store(NOTHING, Ordering::Relaxed);
                shared.set_alarm(ABSENCE);
            }
            _ => {}
        }
    }

    /// Why there is none, where there should be one.
    pub(super) fn complaint(&self) -> Option<&'static str> {
        match self.life {
            Life::Unwanted => Some("the endpoint is for one thread, so that everything proceeds by its calls only"),
            Life::Failed => Some("the helper thread could not be started, so that everything proceeds by calls only"),
            Life::NotYet | Life::Wanted | Life::Running(..) => None,
        }
    }

    /// Starts the thread, which watches `handle`.
    #[cold]
    pub(super) fn start(&mut self, handle: BorrowedFd<'_>) {
        self.life = match spawn(self.endpoint, handle) {
            Some((shared, thread)) => Life::Running(shared, Some(thread)),
            None => Life::Failed,
        };
    }

    /// Ends the thread and waits for its end. Not with the endpoint's lock held.
    pub(super) fn end(&mut self) {
        // In a forked child there is no such thread, and the alarm is the parent's.
        if !self.endpoint.is_here() {
            return;
        }
        if let Life::Running(shared, thread) = &mut self.life {
            shared.ended.store(true, Ordering::Relaxed);
            shared.rouse();
            shared.set_alarm(Duration::ZERO);
            if let Some(thread) = thread.take().filter(|thread| thread.thread().id() != std::thread::current().id()) {
                let _ = thread.join();
            }
        }
    }
}

/// Epoll over the handle that tells each arrival once, however long the handle stays readable.
pub(super) fn watch(handle: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&watch, handle, epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
    Ok(watch)
}

/// Takes what [`watch`] has told.
pub(super) fn drain(watch: &OwnedFd) {
    let mut told = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 1];
    let _ = epoll::wait(watch, &mut told[..], Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
}

fn spawn(endpoint: &'static Endpoint, handle: BorrowedFd<'_>) -> Option<(Arc<Shared>, JoinHandle<()>)> {
    let watch = watch(handle).ok()?;
    let shared = Arc::new(Shared::new().ok()?);
    // A thread begins with its creator's mask: no signal ever finds it unblocked.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).ok()?;
    let (theirs, life) = (Arc::clone(&shared), endpoint.generation());
    let thread = std::thread::Builder::new()
        .name("cci-away".into())
        .stack_size(STACK)
        .spawn(move || run(&theirs, endpoint, life, &watch));
    let _ = before.thread_set_mask();
    Some((shared, thread.ok()?))
}

fn run(shared: &Shared, endpoint: &'static Endpoint, life: u32, watch: &OwnedFd) {
    // Of this thread alone. Without the privilege it shares a processor with the computing program as an equal.
    let _ = rustix::process::setpriority_process(None, URGENCY);
    loop {
        shared.rest();
        // The program has made a call, or the thread would not be here.
        let mut before = shared.calls().wrapping_sub(1);
        while let Look::Present(left) = shared.look(before, endpoint.is_busy()) {
            before = shared.calls();
            shared.set_alarm(left);
            // Whoever ends this sets the alarm after that.
            if shared.is_ended() {
                return;
            }
            shared.await_alarm();
            if shared.is_ended() {
                return;
            }
        }
        let calls = shared.calls();
        if !stand_in(shared, endpoint, life, watch, calls) {
            return;
        }
    }
}

/// Does what is due until the program is back or nothing is left. False: the endpoint has ended.
fn stand_in(shared: &Shared, endpoint: &'static Endpoint, life: u32, watch: &OwnedFd, calls: u32) -> bool {
    // Why to stop: what to return.
    let ends = || match (shared.is_ended(), shared.calls() != calls) {
        (true, _) => Some(false),
        (false, is_back) => is_back.then_some(true),
    };
    // The program has let a chance pass to have the processor, and one to come by itself.
    let (mut has_yielded, mut is_gone) = (false, false);
    loop {
        drain(watch);
        let absence = endpoint.with(|core, transport| {
            // Another life of the cell is somebody else's.
            (endpoint.generation() == life && !shared.is_ended()).then(|| transport.while_away(core))
        });
        let Ok(Some(absence)) = absence else { return false };
        let Absence::Until { limit, watches, armed } = absence else { return true };
        if !has_yielded {
            // It may be absent only because it does not get its processor, which this thread is on: it would be kept from it for
            // as long as there is something to do.
            std::thread::yield_now();
            has_yielded = true;
            if let Some(result) = ends() {
                return result;
            }
        }
        let arrived = shared.wait(watches.then_some(watch), limit);
        if let Some(result) = ends() {
            return result;
        }
        if arrived && armed && !is_gone {
            shared.pause(PRESENCE);
            if let Some(result) = ends() {
                return result;
            }
            is_gone = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::timerfd_gettime;

    #[test]
    fn a_look_finds_whether_the_program_is_there() {
        let shared = Shared::new().expect("a timer");
        let look = |before| shared.look(before, false);
        assert_eq!(look(0), Look::Away, "it has made no call");
        shared.calls.store(5, Ordering::Relaxed);
        assert_eq!(look(4), Look::Present(PRESENCE), "calls of which the time is not known");
        assert_eq!(look(5), Look::Away, "and no more of them");
        let note = |present: u64, polled: u64| {
            shared.present.store(present, Ordering::Relaxed);
            shared.polled.store(polled, Ordering::Relaxed);
        };
        let (now, later) = (monotonic().0, monotonic().0 + 3_600_000_000_000);
        note(now - 2_000_000, now - 2_000_000);
        assert_eq!(look(4), Look::Away, "its last call was long ago");
        note(now - 2_000_000, later);
        assert_eq!(shared.look(4, true), Look::Present(ABSENCE), "it is not over yet");
        // An hour from now: this thread may be kept waiting in between.
        note(later, later);
        assert_eq!(look(5), Look::Present(ABSENCE), "just now");
        note(later, now - 5_000_000);
        assert_eq!(look(5), Look::Present(ABSENCE), "it begins many operations");
        note(later, now - 20_000_000);
        assert_eq!(look(4), Look::Away, "it only sends");
        assert_eq!(shared.look(4, true), Look::Away, "and does so now");
    }

    #[test]
    fn the_next_call_ends_a_wait_for_what_was_due_before() {
        let endpoint = crate::Endpoint::default();
        let endpoint: &'static Endpoint = Box::leak(Box::new(endpoint));
        let shared = Arc::new(Shared::new().expect("a timer"));
        let away = Away { life: Life::Running(Arc::clone(&shared), None), calls: 0, renewed: Time(0), endpoint };
        for state in [NOTHING, STANDS_IN] {
            away.enter(state);
            assert_eq!(away.is_waiting(), state != NOTHING);
            away.call(false);
            let (begin, limit) = (monotonic(), Duration::from_secs(if state == NOTHING { 0 } else { 60 }));
            assert!(!shared.wait(None, Some(limit)));
            assert!(monotonic().since(begin) < 30_000_000_000, "it waited until the end");
        }
        assert!(!away.is_waiting(), "once");
        // Not at once: the program is there for now. This thread may be kept waiting until the alarm has rung, but not every time.
        let puts_off = || {
            away.enter(STANDS_IN);
            away.call(false);
            timerfd_gettime(&shared.alarm).expect("a timer").it_value.tv_nsec > 0
        };
        assert!((0..1000).any(|_| puts_off()), "each call wakes the thread");
    }

    #[test]
    fn an_alarm_that_is_put_off_does_not_ring() {
        let shared = Shared::new().expect("a timer");
        let rings = |limit| {
            let limit = Timespec { tv_sec: limit, tv_nsec: 0 };
            poll(&mut [PollFd::new(&shared.alarm, PollFlags::IN)], Some(&limit)) == Ok(1)
        };
        shared.set_alarm(Duration::ZERO);
        assert!(rings(10));
        shared.set_alarm(Duration::from_secs(3600));
        assert!(!rings(0), "it rang before it was put off: that is over");
        shared.set_alarm(Duration::ZERO);
        shared.await_alarm();
        assert!(!rings(0));
    }
}
