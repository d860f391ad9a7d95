//! What endpoints bring and threads wait for: the entries of a queue, the values of a counter.

use crate::code::Code;
use cci::Endpoint;
use cci_ground::{readable, sleep_until_ready};
use cci_mem::barrier::prepare;
use cci_mem::descriptors;
use cci_mem::guarded::{Guard, Guarded};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The longest sleep beside an endpoint that has failed.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a wait looks before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
/// Where threads outnumber processors, one lets others run that has read in vain so often within
/// such a time: a loop that computes between its reads does not.
const IN_VAIN: u32 = 32;
const WITHIN: Duration = Duration::from_micros(50);

/// What changes a value: an endpoint, as queues and counters see it.
pub(crate) trait Source: Send + Sync {
    /// Takes what has come, and goes on with what waits: a call of the program.
    fn progress(&self);
    /// The same by a thread of the library. Returns how many calls the program has made so far.
    fn drive(&self) -> u64;
    /// What its sleepers wait for.
    fn endpoint(&self) -> &Endpoint;
    /// How long a thread may sleep without an event.
    fn left(&self) -> Option<Duration>;
}

/// A value that endpoints change, the endpoints, and who sleeps until they have.
pub(crate) struct Watch<T> {
    held: Guarded<Held<T>>,
    /// A thread that has this list may enter an endpoint, and one in an endpoint not this list.
    endpoints: Guarded<Vec<Arc<dyn Source>>>,
    /// Written where somebody sleeps; made for the first who does.
    wake: OnceLock<OwnedFd>,
    /// The descriptor of programs: a set of `wake`, `timer` and the endpoints' descriptors.
    set: OnceLock<Set>,
    yields: bool,
}

pub(crate) struct Held<T> {
    pub(crate) value: T,
    sleepers: usize,
    /// Counts rings, and the sleepers who have not seen the last one.
    rings: u64,
    unseen: usize,
    /// A program may sleep on the descriptor.
    is_armed: bool,
    signals: u64,
    /// One has come that nobody waited for: it ends the next wait.
    is_signalled: bool,
    in_vain: u32,
    since: Option<Instant>,
}

struct Set {
    epoll: OwnedFd,
    timer: OwnedFd,
}

fn code_of(why: Errno) -> Code {
    match why {
        Errno::MFILE | Errno::NFILE => Code::TooManyFiles,
        Errno::NOMEM => Code::NoMemory,
        _ => Code::Other,
    }
}

impl<T> Watch<T> {
    pub(crate) fn new(value: T, yields: bool) -> Self {
        let held = Held {
            value,
            sleepers: 0,
            rings: 0,
            unseen: 0,
            is_armed: false,
            signals: 0,
            is_signalled: false,
            in_vain: 0,
            since: None,
        };
        Self {
            held: Guarded::new(held, prepare()),
            endpoints: Guarded::new(Vec::new(), prepare()),
            wake: OnceLock::new(),
            set: OnceLock::new(),
            yields,
        }
    }

    #[inline]
    pub(crate) fn enter(&self) -> Guard<'_, Held<T>> {
        self.held.enter().unwrap_or_else(|_| unreachable!("nothing under this lock takes it again"))
    }

    fn endpoints(&self) -> Guard<'_, Vec<Arc<dyn Source>>> {
        self.endpoints.enter().unwrap_or_else(|_| unreachable!("progress takes no list again"))
    }

    /// Changes the value, and wakes who sleeps.
    #[inline]
    pub(crate) fn change<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let mut held = self.enter();
        let result = act(&mut held.value);
        if held.sleepers > 0 || held.is_armed {
            self.ring(held);
        }
        result
    }

    #[cold]
    #[inline(never)]
    fn ring(&self, mut held: Guard<'_, Held<T>>) {
        held.is_armed = false;
        held.rings += 1;
        held.unseen = held.sleepers;
        drop(held);
        self.write();
    }

    fn write(&self) {
        if let Some(wake) = self.wake.get() {
            // Full means woken already.
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
        }
    }

    /// Has those look again who sleep: something is due earlier, or an endpoint has gone.
    pub(crate) fn nudge(&self) {
        let held = self.enter();
        if held.sleepers > 0 || held.is_armed {
            self.ring(held);
        }
    }

    /// An endpoint brings something from now on.
    pub(crate) fn attach(&self, core: &Arc<dyn Source>) -> Result<(), Code> {
        let mut endpoints = self.endpoints();
        if endpoints.iter().any(|other| Arc::ptr_eq(other, core)) {
            return Ok(());
        }
        if let Some(set) = self.set.get() {
            add(&set.epoll, core.endpoint().as_fd())?;
        }
        endpoints.push(Arc::clone(core));
        Ok(())
    }

    pub(crate) fn detach(&self, core: &Arc<dyn Source>) {
        let mut endpoints = self.endpoints();
        if let Some(set) = self.set.get()
            && endpoints.iter().any(|other| Arc::ptr_eq(other, core))
        {
            let _ = epoll::delete(&set.epoll, core.endpoint().as_fd());
        }
        endpoints.retain(|other| !Arc::ptr_eq(other, core));
        drop(endpoints);
        // Sleepers keep the endpoints that they sleep on.
        self.nudge();
    }

    /// Has the endpoints go on.
    #[inline]
    pub(crate) fn progress(&self) {
        for core in self.endpoints().iter() {
            core.progress();
        }
    }

    /// Has the endpoints go on by a thread of the library. Returns how many calls the program has
    /// made on them so far.
    pub(crate) fn drive(&self) -> u64 {
        self.endpoints().iter().fold(0, |calls, core| calls.wrapping_add(core.drive()))
    }

    /// Sleeps for so long, whatever the endpoints do; a ring ends it.
    pub(crate) fn rest<R>(&self, limit: Duration) -> Result<Option<R>, Code> {
        self.sleep_on(&[], Some(limit), |_| None)
    }

    /// A thread has read in vain.
    #[inline]
    pub(crate) fn in_vain(&self) {
        if self.yields {
            self.let_others_run();
        }
    }

    #[cold]
    #[inline(never)]
    fn let_others_run(&self) {
        let mut held = self.enter();
        held.in_vain += 1;
        if held.in_vain < IN_VAIN {
            return;
        }
        let now = Instant::now();
        let before = held.since.replace(now);
        held.in_vain = 0;
        drop(held);
        if before.is_some_and(|before| now.duration_since(before) < WITHIN) {
            rustix::thread::sched_yield();
            // Those who ran meanwhile do not count.
            self.enter().since = Some(Instant::now());
        }
    }

    /// Ends the waits that have begun, or else the next one.
    pub(crate) fn signal(&self) {
        let mut held = self.enter();
        held.signals += 1;
        held.is_signalled = held.sleepers == 0;
        if held.sleepers > 0 || held.is_armed {
            self.ring(held);
        }
    }

    /// Makes progress until `take` gives something, at most for `limit`: looks for a while, then
    /// sleeps.
    ///
    /// # Errors
    ///
    /// [`Code::Again`]: the time is over; [`Code::Canceled`]: [`Watch::signal`]; no descriptor.
    pub(crate) fn wait<R>(
        &self,
        limit: Option<Duration>,
        mut take: impl FnMut(&mut T) -> Option<R>,
    ) -> Result<R, Code> {
        let begun = Instant::now();
        let deadline = limit.and_then(|limit| begun.checked_add(limit));
        let mut held = self.enter();
        let signals = held.signals - u64::from(std::mem::take(&mut held.is_signalled));
        drop(held);
        loop {
            self.progress();
            let mut held = self.enter();
            if let Some(found) = take(&mut held.value) {
                return Ok(found);
            }
            if held.signals != signals {
                held.is_signalled = false;
                return Err(Code::Canceled);
            }
            drop(held);
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(Code::Again);
            }
            if now.duration_since(begun) >= SPIN {
                let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
                if let Some(found) = self.sleep(left, |held| {
                    let found = take(&mut held.value);
                    if found.is_none() && held.signals == signals { None } else { Some(found) }
                })? {
                    return found.ok_or(Code::Canceled);
                }
            }
        }
    }

    /// Sleeps until the value has changed or an endpoint has something to do, unless `take` has
    /// something.
    pub(crate) fn sleep<R>(
        &self,
        left: Option<Duration>,
        take: impl FnOnce(&mut Held<T>) -> Option<R>,
    ) -> Result<Option<R>, Code> {
        // Kept open while this thread sleeps.
        let cores: Vec<Arc<dyn Source>> = self.endpoints().clone();
        self.sleep_on(&cores, left, take)
    }

    /// As [`Watch::sleep`], on these endpoints.
    fn sleep_on<R>(
        &self,
        cores: &[Arc<dyn Source>],
        left: Option<Duration>,
        take: impl FnOnce(&mut Held<T>) -> Option<R>,
    ) -> Result<Option<R>, Code> {
        let wake = self.wake()?;
        let mut held = self.enter();
        if let Some(found) = take(&mut held) {
            return Ok(Some(found));
        }
        held.sleepers += 1;
        let rings = held.rings;
        drop(held);
        let left = cores.iter().filter_map(|core| core.left()).chain(left).min();
        let sleepers: Vec<_> = cores.iter().filter_map(|core| core.endpoint().sleeper().ok()).collect();
        // One that cannot be slept on has failed, which the next look finds.
        let left = if sleepers.len() < cores.len() { Some(left.map_or(PAUSE, |left| left.min(PAUSE))) } else { left };
        let mut all: Vec<_> = sleepers.iter().map(|sleeper| readable(sleeper.as_fd())).collect();
        all.push(readable(wake.as_fd()));
        sleep_until_ready(&mut all, left);
        drop(all);
        drop(sleepers);
        let _ = rustix::io::read(wake, &mut [0; 8]);
        let mut held = self.enter();
        held.sleepers -= 1;
        if held.rings != rings {
            held.unseen = held.unseen.saturating_sub(1);
        }
        let has_unseen = held.unseen > 0;
        drop(held);
        if has_unseen {
            // This thread has taken what wakes others.
            self.write();
        }
        Ok(None)
    }

    /// The descriptor of sleepers, made at the first call.
    pub(crate) fn wake(&self) -> Result<&OwnedFd, Code> {
        if let Some(wake) = self.wake.get() {
            return Ok(wake);
        }
        // That of a thread that comes second is closed again.
        let made = descriptors::eventfd(0).map_err(code_of)?;
        Ok(self.wake.get_or_init(|| made))
    }

    /// The descriptor for programs, made at the first call.
    pub(crate) fn descriptor(&self) -> Result<BorrowedFd<'_>, Code> {
        if let Some(set) = self.set.get() {
            return Ok(set.epoll.as_fd());
        }
        let wake = self.wake()?;
        // Endpoints that come meanwhile wait for the list.
        let endpoints = self.endpoints();
        let (epoll, timer) = (descriptors::epoll().map_err(code_of)?, descriptors::timer().map_err(code_of)?);
        add(&epoll, wake.as_fd())?;
        add(&epoll, timer.as_fd())?;
        for core in endpoints.iter() {
            add(&epoll, core.endpoint().as_fd())?;
        }
        Ok(self.set.get_or_init(|| Set { epoll, timer }).epoll.as_fd())
    }

    /// Prepares a sleep of the program on the descriptor.
    ///
    /// # Errors
    ///
    /// [`Code::Again`]: `has_some` of the value.
    pub(crate) fn try_wait(&self, has_some: impl Fn(&T) -> bool) -> Result<(), Code> {
        let Some(set) = self.set.get() else { return Err(Code::NoSystemCall) };
        let wake = self.wake()?;
        let _ = rustix::io::read(wake, &mut [0; 8]);
        self.progress();
        let cores: Vec<Arc<dyn Source>> = self.endpoints().clone();
        // Between this and the sleep they are readable as soon as something comes.
        for core in &cores {
            let _ = core.endpoint().arm();
        }
        let mut held = self.enter();
        let has_unseen = held.unseen > 0;
        let result = if has_some(&held.value) { Err(Code::Again) } else { Ok(()) };
        held.is_armed = result.is_ok();
        drop(held);
        if has_unseen {
            // What was read above is for threads that sleep.
            self.write();
        }
        result?;
        set_timer(&set.timer, cores.iter().filter_map(|core| core.left()).min())
    }

    /// Whether a thread sleeps.
    #[cfg(test)]
    pub(crate) fn has_sleeper(&self) -> bool {
        self.enter().sleepers > 0
    }
}

fn add(epoll: &OwnedFd, descriptor: impl AsFd) -> Result<(), Code> {
    epoll::add(epoll, descriptor, EventData::new_u64(0), EventFlags::IN).map_err(code_of)
}

/// Sets the timer; `None`: it does not fire.
fn set_timer(timer: &OwnedFd, left: Option<Duration>) -> Result<(), Code> {
    use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Nothing is the text for none.
    let left = left.map(|left| left.max(Duration::from_nanos(1)));
    let value = left.and_then(|left| Timespec::try_from(left).ok()).unwrap_or(none);
    let _ = rustix::io::read(timer, &mut [0; 8]);
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: none, it_value: value })
        .map_err(code_of)
        .map(|_| ())
}
