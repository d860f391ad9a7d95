//! The timer of the progress thread's next check of programs. A program that polls postpones it
//! repeatedly.

use crate::monotonic;
use cci_mem::descriptors;
use cci_mem::schedule::{NEVER, Schedule};
use cci_mem::sync::{AtomicBool, Ordering};
use cci_proto::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long a thread pauses where the system refuses to let it sleep.
const REFUSED: Duration = Duration::from_millis(1);

pub(super) struct Alarm {
    timer: OwnedFd,
    /// An eventfd that ends a wait at once.
    doorbell: OwnedFd,
    schedule: Schedule,
    /// The system refuses to set timers: waits have a timeout instead.
    refused: AtomicBool,
}

impl Alarm {
    pub(super) fn new() -> rustix::io::Result<Self> {
        Ok(Self {
            timer: descriptors::timer()?,
            doorbell: descriptors::eventfd(0)?,
            schedule: Schedule::default(),
            refused: AtomicBool::new(false),
        })
    }

    /// Begins a round of the thread: it sees what the programs did before their requests until now.
    pub(super) fn begin(&self) {
        self.schedule.begin();
    }

    /// Ends a round of the thread: sets the alarm to this time, `None`: never, or to the earliest
    /// request since [`Alarm::begin`].
    pub(super) fn plan(&self, at: Option<Time>) {
        self.schedule.plan(at.map_or(NEVER, |at| at.0.max(1)), |at| self.set_timer(at));
    }

    /// Sets the alarm to this time if it would fire later.
    pub(super) fn request(&self, at: Time) {
        self.schedule.request(at.0, |at| {
            self.set_timer(at);
            if self.refused.load(Ordering::Relaxed) {
                self.wake();
            }
        });
    }

    /// Sets the alarm to this time if it would fire earlier.
    pub(super) fn postpone(&self, at: Time) {
        self.schedule.postpone(at.0, |at| self.set_timer(at));
    }

    fn set_timer(&self, at: u64) {
        let part = |nanos: u64| i64::try_from(nanos).unwrap_or(i64::MAX);
        // Zero stops the timer.
        let set = if at == NEVER { 0 } else { at };
        let it_value = Timespec { tv_sec: part(set / 1_000_000_000), tv_nsec: part(set % 1_000_000_000) };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        if timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).is_err() {
            self.refused.store(true, Ordering::Relaxed);
        }
    }

    /// Ends a wait at once.
    pub(super) fn wake(&self) {
        let _ = rustix::io::write(&self.doorbell, &1_u64.to_ne_bytes());
    }

    /// Sleeps until the alarm fires, `watch` is readable, the doorbell is written, or `limit` has
    /// passed.
    pub(super) fn wait(&self, watch: &OwnedFd, limit: Option<Time>) {
        let fires = self.schedule.fires_at();
        let own = (self.refused.load(Ordering::Relaxed) && fires != NEVER).then_some(Time(fires));
        let limit = limit.into_iter().chain(own).min();
        let left = limit.map(|limit| Duration::from_nanos(limit.since(monotonic())));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut all = [&self.timer, &self.doorbell, watch].map(|fd| PollFd::new(fd, PollFlags::IN));
        if poll(&mut all, left.as_ref()).is_err_and(|error| error != Errno::INTR) {
            // Refused, which keeps the thread from sleeping: it must not spin.
            std::thread::sleep(REFUSED);
        }
        let [timer, doorbell, _] = all.map(|fd| !fd.revents().is_empty());
        let mut counter = [0; 8];
        if timer {
            let _ = rustix::io::read(&self.timer, &mut counter[..]);
        }
        if doorbell {
            let _ = rustix::io::read(&self.doorbell, &mut counter[..]);
        }
        if timer || self.schedule.fires_at() <= monotonic().0 {
            self.schedule.on_fired();
        }
    }

    #[cfg(test)]
    pub(super) fn fires_at(&self) -> Time {
        Time(self.schedule.fires_at())
    }

    #[cfg(test)]
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fires(alarm: &Alarm, seconds: i64) -> bool {
        let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
        poll(&mut [PollFd::new(&alarm.timer, PollFlags::IN)], Some(&limit)) == Ok(1)
    }

    #[test]
    fn an_alarm_that_is_put_off_does_not_ring() {
        let alarm = Alarm::new().expect("a timer");
        let hour = Duration::from_secs(3600);
        alarm.plan(Some(monotonic()));
        assert!(fires(&alarm, 10));
        let later = monotonic() + hour;
        alarm.postpone(later);
        assert!(!fires(&alarm, 0), "postponing cancels an alarm that has fired");
        alarm.postpone(monotonic());
        assert_eq!(alarm.fires_at(), later, "it is never set to an earlier time");
        alarm.request(later + hour);
        assert_eq!(alarm.fires_at(), later, "it fires before that");
        alarm.request(monotonic());
        assert!(fires(&alarm, 10));
    }

    #[test]
    fn a_wait_has_an_end_without_a_timer() {
        let (alarm, watch) = (Alarm::new().expect("a timer"), descriptors::eventfd(0).expect("a descriptor"));
        alarm.refuse();
        alarm.plan(Some(monotonic() + Duration::from_millis(1)));
        alarm.wait(&watch, None);
        alarm.plan(None);
        alarm.wake();
        alarm.wait(&watch, None);
    }
}
