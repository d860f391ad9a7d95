//! The progress thread: does what is due while the program makes no calls (`docs/design/reliable.md`). A process has one, for all of
//! its endpoints.

mod alarm;
mod attachment;
mod thread;

use crate::{Endpoint, monotonic};
use attachment::{NOTHING, PARKED, STANDS_IN, Seat};
use cci_mem::guarded::Threading;
use cci_mem::sync::Ordering;
use cci_proto::Time;
use rustix::event::{Timespec, epoll};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use thread::Helper;

/// A program that has neither sent nor taken frames for so long is away.
const ABSENCE: Duration = Duration::from_micros(1300);
/// A program that takes frames puts off the thread's alarm when it has not done so for this long: that takes it 1 to 5 microseconds,
/// a look of the thread 10 to 20 where both share a processor.
const RENEWAL: u64 = 1_100_000;

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

/// Where an endpoint is with the thread.
enum Life {
    /// None is wanted: the endpoint belongs to one thread.
    Unwanted,
    /// Nothing has needed one yet.
    NotYet,
    /// Something needs one.
    Wanted,
    Running(Arc<Helper>, Arc<Seat>),
    /// It could not be started.
    Failed,
}

/// The progress thread, as an endpoint's transport sees it.
pub(super) struct Away {
    life: Life,
    calls: u32,
    /// When a program last put off the alarm, as far as this endpoint knows.
    renewed: Time,
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
        if let Life::Running(_, seat) = &self.life {
            self.calls = self.calls.wrapping_add(1);
            seat.calls.store(self.calls, Ordering::Relaxed);
        }
    }

    /// The program sends, at this time.
    #[inline(always)]
    pub(super) fn note_sent(&self, now: Time) {
        if let Life::Running(_, seat) = &self.life {
            seat.present.store(now.0, Ordering::Relaxed);
        }
    }

    /// The program takes frames, at this time.
    #[inline(always)]
    pub(super) fn note_polled(&mut self, now: Time) {
        if let Life::Running(helper, seat) = &self.life {
            seat.present.store(now.0, Ordering::Relaxed);
            seat.polled.store(now.0, Ordering::Relaxed);
            if now.since(self.renewed) >= RENEWAL && seat.state() != PARKED {
                self.renewed = helper.put_off(now, RENEWAL);
            }
        }
    }

    /// A connection, or memory for peers: from now on there may be something to be done.
    pub(super) fn need(&mut self) {
        if matches!(self.life, Life::NotYet) {
            self.life = Life::Wanted;
        }
    }

    /// Whether the thread is to be had.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        matches!(self.life, Life::Wanted)
    }

    /// Whether the program's next call has to do something for the thread.
    #[inline(always)]
    pub(super) fn is_waiting(&self) -> bool {
        matches!(&self.life, Life::Running(_, seat) if seat.state() != NOTHING)
    }

    /// Has the thread leave the endpoint alone until it is needed; with the endpoint's lock held.
    pub(super) fn park(&self) {
        self.enter(PARKED);
    }

    /// Has the next call tell the thread, which waits for what is due now: the call may make more due, and sooner. With the endpoint's
    /// lock held.
    pub(super) fn stand_in(&self) {
        self.enter(STANDS_IN);
    }

    fn enter(&self, state: u32) {
        if let Life::Running(_, seat) = &self.life {
            seat.state.store(state, Ordering::Relaxed);
        }
    }

    /// The program has made a call, and leaves something to be done if `needed`. With the endpoint's lock held.
    #[cold]
    pub(super) fn call(&self, needed: bool) {
        let Life::Running(helper, seat) = &self.life else { return };
        match seat.state() {
            PARKED if needed => {
                seat.state.store(NOTHING, Ordering::Relaxed);
                helper.need_again();
            }
            STANDS_IN => {
                seat.state.store(NOTHING, Ordering::Relaxed);
                helper.look_by(monotonic() + ABSENCE);
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

    /// Has the thread stand in for this endpoint, which has this handle.
    #[cold]
    pub(super) fn start(&mut self, handle: BorrowedFd<'_>) {
        self.life = match thread::join(self.endpoint, handle) {
            Some((helper, seat)) => Life::Running(helper, seat),
            None => Life::Failed,
        };
    }

    /// Has the thread leave the endpoint alone for ever. Not with the endpoint's lock held.
    pub(super) fn end(&mut self) {
        // In a forked child there is no such thread.
        if !self.endpoint.is_here() {
            return;
        }
        if let Life::Running(helper, seat) = std::mem::replace(&mut self.life, Life::Unwanted) {
            thread::leave(&helper, &seat);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_call_has_the_thread_look_and_does_not_wake_it() {
        let endpoint: &'static Endpoint = Box::leak(Box::new(Endpoint::default()));
        let handle = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor");
        let helper = Arc::new(Helper::new().expect("descriptors"));
        let seat = Arc::new(Seat::new(1, endpoint, handle));
        let life = Life::Running(Arc::clone(&helper), Arc::clone(&seat));
        let away = Away { life, calls: 0, renewed: Time(0), endpoint };
        let never = helper.alarm.rings_at();
        away.call(true);
        assert_eq!(helper.alarm.rings_at(), never, "it sees by itself that calls are made");
        for (state, needed) in [(STANDS_IN, false), (PARKED, true)] {
            helper.alarm.set(None);
            away.enter(state);
            assert!(away.is_waiting());
            let begin = monotonic();
            away.call(needed);
            assert!(!away.is_waiting(), "once");
            let rings = helper.alarm.rings_at();
            assert!(rings >= begin + ABSENCE, "the program is there for now");
            assert!(rings <= monotonic() + ABSENCE, "nothing may be due before");
        }
        helper.alarm.set(None);
        away.enter(PARKED);
        away.call(false);
        assert!(away.is_waiting() && helper.alarm.rings_at() == never, "nothing is left to be done");
    }
}
