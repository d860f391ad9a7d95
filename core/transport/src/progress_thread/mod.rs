//! The progress thread makes progress while the program makes no calls (`docs/design/reliable.md`).
//! A process has one for all of its endpoints.

mod alarm;
mod attachment;
mod thread;
mod work;

pub use work::BackgroundWork;

use crate::{Core, Endpoint, monotonic};
use attachment::{ABSENT_AFTER, ACTING, Attachment, PARKED, WATCHING};
use cci_mem::guarded::Threading;
use cci_mem::sync::Ordering;
use cci_proto::Time;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use thread::ProgressThread;

/// A program that receives frames postpones the thread's alarm at this interval, nanoseconds. That
/// costs 1 to 5 microseconds; a check by the thread costs 10 to 20 where both share a processor.
const POSTPONE_EVERY: u64 = 1_100_000;

/// Whether an endpoint uses the progress thread.
enum ThreadUse {
    /// The endpoint never uses it: it belongs to one thread.
    Unused,
    /// No connection or registration has needed it yet, and the endpoint is not present.
    Unneeded,
    /// The endpoint needs it; the end of the call attaches the endpoint.
    Needed,
    Running(Arc<ProgressThread>, Arc<Attachment>),
    /// The thread could not be started.
    Failed,
}

/// An endpoint's use of the progress thread. Protected by the endpoint's lock.
pub struct Background {
    thread: ThreadUse,
    calls: u32,
    /// When a program last postponed the alarm, as far as this endpoint knows.
    postponed: Time,
    endpoint: &'static Endpoint,
    way: u8,
}

impl Background {
    /// Creates the state of an endpoint with this core that is not attached yet.
    pub fn new(core: &Core, threading: Threading) -> Self {
        let thread = match threading {
            Threading::One => ThreadUse::Unused,
            // Peers may be answered that have no connection yet.
            _ if core.is_present() => ThreadUse::Needed,
            _ => ThreadUse::Unneeded,
        };
        Self { thread, calls: 0, postponed: Time(0), endpoint: core.endpoint(), way: core.opening_way() }
    }

    /// Counts a call of the program.
    #[inline(always)]
    pub fn on_call(&mut self) {
        if let ThreadUse::Running(_, attachment) = &self.thread {
            self.calls = self.calls.wrapping_add(1);
            attachment.calls.store(self.calls, Ordering::Relaxed);
        }
    }

    /// Records that the program sends now.
    #[inline(always)]
    pub fn on_sent(&self, now: Time) {
        if let ThreadUse::Running(_, attachment) = &self.thread {
            attachment.present.store(now.0, Ordering::Relaxed);
        }
    }

    /// Records that the program receives now, and postpones the thread's alarm when it is time.
    #[inline(always)]
    pub fn on_polled(&mut self, now: Time) {
        if let ThreadUse::Running(progress, attachment) = &self.thread {
            attachment.present.store(now.0, Ordering::Relaxed);
            attachment.polled.store(now.0, Ordering::Relaxed);
            if now.since(self.postponed) >= POSTPONE_EVERY && attachment.state() != PARKED {
                self.postponed = progress.postpone(now, POSTPONE_EVERY);
            }
        }
    }

    /// Records that there is a connection or exposed memory, so that background work is possible
    /// from now on.
    pub fn require(&mut self) {
        if matches!(self.thread, ThreadUse::Unneeded) {
            self.thread = ThreadUse::Needed;
        }
    }

    /// Whether the endpoint is to be attached to the thread.
    #[inline]
    pub fn must_start(&self) -> bool {
        matches!(self.thread, ThreadUse::Needed)
    }

    /// Whether the program's next call has to notify the thread ([`Background::act_on_call`]).
    #[inline(always)]
    pub fn expects_call(&self) -> bool {
        matches!(&self.thread, ThreadUse::Running(_, attachment) if attachment.state() != WATCHING)
    }

    /// Parks the endpoint: the thread skips it until a call activates it. Requires the endpoint's
    /// lock.
    pub fn park(&self) {
        self.set_state(PARKED);
    }

    /// Records that the thread acts for the endpoint and waits for the deadline known now. The next
    /// call notifies the thread, because it may create an earlier deadline. Requires the endpoint's
    /// lock.
    pub fn set_acting(&self) {
        self.set_state(ACTING);
    }

    fn set_state(&self, state: u32) {
        if let ThreadUse::Running(_, attachment) = &self.thread {
            attachment.state.store(state, Ordering::Relaxed);
        }
    }

    /// Notifies the thread of a call of the program; `needed`: the call leaves work. Requires the
    /// endpoint's lock.
    #[cold]
    pub fn act_on_call(&self, needed: bool) {
        let ThreadUse::Running(progress, attachment) = &self.thread else { return };
        match attachment.state() {
            PARKED if needed => {
                attachment.state.store(WATCHING, Ordering::Relaxed);
                progress.activate();
            }
            ACTING => {
                attachment.state.store(WATCHING, Ordering::Relaxed);
                progress.check_by(monotonic() + ABSENT_AFTER);
            }
            _ => {}
        }
    }

    /// Returns why the endpoint has no background progress, if it has none.
    pub fn limitation(&self) -> Option<&'static str> {
        match self.thread {
            ThreadUse::Unused => Some("the endpoint is for one thread, so that everything proceeds by its calls only"),
            ThreadUse::Failed => {
                Some("the progress thread could not be started, so that everything proceeds by calls only")
            }
            ThreadUse::Unneeded | ThreadUse::Needed | ThreadUse::Running(..) => None,
        }
    }

    /// Attaches the endpoint, whose OS handle this is, to the progress thread.
    #[cold]
    pub fn start(&mut self, handle: BorrowedFd<'_>) {
        self.thread = match thread::attach(self.endpoint, self.way, handle) {
            Some((progress, attachment)) => ThreadUse::Running(progress, attachment),
            None => ThreadUse::Failed,
        };
    }

    /// Detaches the endpoint from the thread for good. The caller must not hold the endpoint's
    /// lock.
    pub fn detach(&mut self) {
        // A forked child has no progress thread.
        if !self.endpoint.is_here() {
            return;
        }
        if let ThreadUse::Running(progress, attachment) = std::mem::replace(&mut self.thread, ThreadUse::Unused) {
            thread::detach(&progress, &attachment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_call_schedules_a_check_and_does_not_wake_the_thread() {
        let endpoint: &'static Endpoint = Box::leak(Box::new(Endpoint::default()));
        let handle = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor");
        let progress = Arc::new(ProgressThread::new().expect("descriptors"));
        let attachment = Arc::new(Attachment::new(1, (endpoint, 0), handle));
        let thread = ThreadUse::Running(Arc::clone(&progress), Arc::clone(&attachment));
        let background = Background { thread, calls: 0, postponed: Time(0), endpoint, way: 0 };
        let never = progress.alarm.fires_at();
        background.act_on_call(true);
        assert_eq!(progress.alarm.fires_at(), never, "the thread reads the count of calls by itself");
        for (state, needed) in [(ACTING, false), (PARKED, true)] {
            progress.alarm.begin();
            progress.alarm.plan(None);
            background.set_state(state);
            assert!(background.expects_call());
            let begin = monotonic();
            background.act_on_call(needed);
            assert!(!background.expects_call(), "once");
            let fires = progress.alarm.fires_at();
            assert!(fires >= begin + ABSENT_AFTER, "the program is present for now");
            assert!(fires <= monotonic() + ABSENT_AFTER, "a deadline may be that early");
        }
        progress.alarm.begin();
        progress.alarm.plan(None);
        background.set_state(PARKED);
        background.act_on_call(false);
        assert!(background.expects_call() && progress.alarm.fires_at() == never, "there is no work");
    }
}
