//! The progress thread of the process: looks for the programs of all endpoints, and stands in for those that are away.

use super::alarm::Alarm;
use super::attachment::{Look, PARKED, PRESENCE, Seat};
use super::{ABSENCE, Absence};
use crate::{Endpoint, monotonic};
use cci_mem::fork::PerProcess;
use cci_mem::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use cci_proto::Time;
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::event::{Timespec, epoll};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

/// Nice value of the thread, where the program may choose it: nine of ten parts of a processor on which something computes, so
/// that what peers do one-sidedly keeps its speed meanwhile.
const URGENCY: i32 = -10;
/// Stack of the thread, bytes.
const STACK: usize = 256 << 10;
/// How long the end of the last endpoint waits for the end of the thread. A thread that the system stops ends by itself later.
const END_LIMIT: Duration = Duration::from_secs(1);
/// Up to so many endpoints are looked at by a program that puts off the alarm.
const FEW: u32 = 16;
/// Arrivals taken from the epoll at a time.
const ARRIVALS: usize = 64;

/// The thread, as endpoints see it.
pub(super) struct Helper {
    seats: Mutex<Vec<Arc<Seat>>>,
    /// Counts changes of `seats`, and endpoints that need the thread again.
    news: AtomicU32,
    /// Endpoints that are not parked, about.
    active: AtomicU32,
    /// When a program last put off the alarm.
    renewed: AtomicU64,
    pub(super) alarm: Alarm,
    /// The handles of endpoints whose frames the thread takes; each arrival is told once.
    watch: OwnedFd,
    ended: AtomicBool,
    thread: OnceLock<ThreadId>,
    /// The thread has ended.
    is_over: Mutex<bool>,
    over: Condvar,
}

/// The thread of this process; none while no endpoint needs it.
#[derive(Default)]
struct Current {
    helper: Option<(Arc<Helper>, JoinHandle<()>)>,
    /// The number of the last seat.
    numbers: u64,
}

static CURRENT: PerProcess<Mutex<Current>> = PerProcess::new();

fn current() -> Option<MutexGuard<'static, Current>> {
    let (_, current) = CURRENT.get(Mutex::default).ok()?;
    Some(lock(current))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the thread of this process, which is started if there is none, stand in for an endpoint with this handle. None: it cannot be had.
pub(super) fn join(endpoint: &'static Endpoint, handle: BorrowedFd<'_>) -> Option<(Arc<Helper>, Arc<Seat>)> {
    let handle = handle.try_clone_to_owned().ok()?;
    let mut current = current()?;
    let helper = match &current.helper {
        Some((helper, _)) => Arc::clone(helper),
        None => {
            let helper = Arc::new(Helper::new().ok()?);
            let thread = spawn(Arc::clone(&helper))?;
            current.helper = Some((Arc::clone(&helper), thread));
            helper
        }
    };
    current.numbers += 1;
    let seat = Arc::new(Seat::new(current.numbers, endpoint, handle));
    lock(&helper.seats).push(Arc::clone(&seat));
    helper.need_again();
    Some((helper, seat))
}

/// The thread leaves an endpoint alone for ever, and ends with the last one. Not with the endpoint's lock held.
pub(super) fn leave(helper: &Arc<Helper>, seat: &Arc<Seat>) {
    let Some(mut current) = current() else { return };
    lock(&helper.seats).retain(|other| other.number != seat.number);
    helper.news.fetch_add(1, Ordering::SeqCst);
    let is_last = lock(&helper.seats).is_empty();
    let thread = if is_last { current.helper.take_if(|(here, _)| Arc::ptr_eq(here, helper)) } else { None };
    drop(current);
    if helper.is_own_thread() {
        // The library failed within a step of the thread, which holds the handle: it goes with the seat.
        helper.ended.store(is_last, Ordering::SeqCst);
        return;
    }
    // Waits while the thread is within this endpoint, which it leaves after one step.
    if let Some(handle) = seat.handle().take() {
        let _ = epoll::delete(&helper.watch, &handle);
    }
    if let Some((_, thread)) = thread {
        helper.end(thread);
    }
}

impl Helper {
    pub(super) fn new() -> rustix::io::Result<Self> {
        Ok(Self {
            seats: Mutex::default(),
            news: AtomicU32::new(0),
            active: AtomicU32::new(0),
            renewed: AtomicU64::new(0),
            alarm: Alarm::new()?,
            watch: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            ended: AtomicBool::new(false),
            thread: OnceLock::new(),
            is_over: Mutex::new(false),
            over: Condvar::new(),
        })
    }

    /// An endpoint needs the thread again, or for the first time.
    #[cold]
    pub(super) fn need_again(&self) {
        self.active.fetch_add(1, Ordering::SeqCst);
        // The thread looks at it after it has set its alarm: it sees this, or its alarm is seen here.
        self.news.fetch_add(1, Ordering::SeqCst);
        self.look_by(monotonic() + ABSENCE);
    }

    /// The thread looks by this time.
    #[cold]
    pub(super) fn look_by(&self, at: Time) {
        self.alarm.set_by(at);
    }

    /// A program takes frames: the alarm need not ring while all endpoints that need it are polled. Says when it was put off last.
    #[cold]
    pub(super) fn put_off(&self, now: Time, renewal: u64) -> Time {
        let renewed = Time(self.renewed.load(Ordering::Relaxed));
        if now.since(renewed) < renewal {
            return renewed;
        }
        self.renewed.store(now.0, Ordering::Relaxed);
        let at = match self.active.load(Ordering::Relaxed) {
            1 => Some(now + ABSENCE),
            2..=FEW => self.oldest().map(|oldest| oldest + ABSENCE),
            // The thread gives so many programs' turns more time than this.
            _ => None,
        };
        if let Some(at) = at {
            self.alarm.put_off(at);
        }
        now
    }

    /// When the endpoint was polled that was not for longest, of those that need the thread. None: it does not matter.
    fn oldest(&self) -> Option<Time> {
        let seats = self.seats.try_lock().ok()?;
        let active = seats.iter().filter(|seat| seat.state() != PARKED);
        active.map(|seat| Time(seat.present.load(Ordering::Relaxed))).min()
    }

    fn is_own_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Ends the thread, and waits for its end as long as that may take.
    fn end<T>(&self, thread: JoinHandle<T>) {
        self.ended.store(true, Ordering::SeqCst);
        self.alarm.ring();
        let over = lock(&self.is_over);
        let (over, _) =
            self.over.wait_timeout_while(over, END_LIMIT, |over| !*over).unwrap_or_else(PoisonError::into_inner);
        if *over {
            drop(over);
            let _ = thread.join();
        }
    }
}

const NAME: &str = "cci-away";

fn spawn(helper: Arc<Helper>) -> Option<JoinHandle<()>> {
    // A thread begins with its creator's mask: no signal ever finds it unblocked.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).ok()?;
    let thread = std::thread::Builder::new().name(NAME.into()).stack_size(STACK).spawn(move || run(&helper));
    let _ = before.thread_set_mask();
    thread.ok()
}

/// Tells that the thread has ended, however it did.
struct TellsEnd<'a>(&'a Helper);

impl Drop for TellsEnd<'_> {
    fn drop(&mut self) {
        *lock(&self.0.is_over) = true;
        self.0.over.notify_all();
    }
}

fn run(helper: &Helper) {
    let _tells = TellsEnd(helper);
    let _ = helper.thread.set(std::thread::current().id());
    // Of this thread alone. Without the privilege it shares a processor with the computing program as an equal.
    let _ = rustix::process::setpriority_process(None, URGENCY);
    let mut places: Vec<Place> = Vec::new();
    let mut news = helper.news.load(Ordering::SeqCst).wrapping_sub(1);
    loop {
        if helper.is_ended() {
            return;
        }
        let latest = helper.news.load(Ordering::SeqCst);
        if latest != news {
            news = latest;
            follow(helper, &mut places);
        }
        let next = round(helper, &mut places);
        helper.alarm.set(next.look);
        if helper.news.load(Ordering::SeqCst) == news && !helper.is_ended() {
            helper.alarm.wait(&helper.watch, next.due);
            take_arrivals(helper, &mut places);
        }
    }
}

/// Takes in endpoints that are new, and lets go of those that are closed; both lists are in the order of the numbers.
fn follow(helper: &Helper, places: &mut Vec<Place>) {
    let seats = lock(&helper.seats);
    places.retain(|place| seats.binary_search_by_key(&place.seat.number, |seat| seat.number).is_ok());
    let last = places.last().map_or(0, |place| place.seat.number);
    let new = seats.iter().filter(|seat| seat.number > last);
    places.extend(new.map(|seat| Place::new(Arc::clone(seat))));
}

/// When the thread is to wake.
#[derive(Default)]
struct Next {
    /// To look for a program: the alarm.
    look: Option<Time>,
    /// To do what is due.
    due: Option<Time>,
}

/// Looks for each program, and stands in where it is time.
fn round(helper: &Helper, places: &mut [Place]) -> Next {
    let mut next = Next::default();
    let now = monotonic();
    let polled = places.iter().filter(|place| place.seat.is_polled(now)).count();
    let polled = u32::try_from(polled).unwrap_or(u32::MAX);
    let mut active = 0;
    for place in places {
        place.go_on(helper, polled, &mut next);
        active += u32::from(place.seat.state() != PARKED);
    }
    helper.active.store(active, Ordering::Relaxed);
    next
}

fn take_arrivals(helper: &Helper, places: &mut [Place]) {
    let mut told = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; ARRIVALS];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    let count = epoll::wait(&helper.watch, &mut told[..], Some(&none)).unwrap_or(0);
    for event in &told[..count] {
        let number = event.data.u64();
        if let Ok(at) = places.binary_search_by_key(&number, |place| place.seat.number) {
            places[at].is_told = true;
        }
    }
}

/// What the thread does for an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing until a call needs it.
    Parked,
    /// The program was there at the last look, after so many calls.
    Present(u32),
    /// It was away, and had made so many calls.
    Away(u32),
    /// The endpoint is closed.
    Gone,
}

/// An endpoint, as the thread sees it.
struct Place {
    seat: Arc<Seat>,
    phase: Phase,
    /// When something is due; none: only what arrives is.
    due: Option<Time>,
    /// The handle is in the epoll.
    is_watched: bool,
    /// Something has arrived.
    is_told: bool,
    armed: bool,
    /// The program has let a chance pass to have the processor, and one to come by itself.
    has_yielded: bool,
    is_gone: bool,
}

impl Place {
    fn new(seat: Arc<Seat>) -> Self {
        let phase = Phase::Parked;
        let (is_watched, is_told, armed, has_yielded, is_gone) = (false, false, false, false, false);
        Self { seat, phase, due: None, is_watched, is_told, armed, has_yielded, is_gone }
    }

    fn go_on(&mut self, helper: &Helper, polled: u32, next: &mut Next) {
        let is_parked = self.seat.state() == PARKED;
        match self.phase {
            Phase::Gone => {}
            Phase::Parked if is_parked => {}
            // The program has made a call, or it would still be parked.
            Phase::Parked => self.look(helper, self.seat.calls().wrapping_sub(1), polled, next),
            Phase::Present(_) if is_parked => self.phase = Phase::Parked,
            Phase::Present(before) => self.look(helper, before, polled, next),
            Phase::Away(calls) if self.seat.calls() != calls => self.come_back(helper, polled, next),
            Phase::Away(_) => {
                if self.is_told && self.armed && !self.is_gone {
                    self.due = Some(monotonic() + PRESENCE);
                    self.is_gone = true;
                } else if self.is_told && !self.is_in_grace() || self.due.is_some_and(|due| due <= monotonic()) {
                    self.stand_in(helper, polled, next);
                }
                self.is_told = false;
                self.wait_for_due(next);
            }
        }
    }

    /// Whether a program that sleeps on its handle is given time to come by itself.
    fn is_in_grace(&self) -> bool {
        self.armed && self.is_gone && self.due.is_some_and(|due| due > monotonic())
    }

    fn wait_for_due(&self, next: &mut Next) {
        if let (Phase::Away(_), Some(due)) = (self.phase, self.due) {
            next.due = next.due.into_iter().chain([due]).min();
        }
    }

    fn come_back(&mut self, helper: &Helper, polled: u32, next: &mut Next) {
        self.watch(helper, false);
        if self.seat.state() == PARKED {
            self.phase = Phase::Parked;
        } else {
            self.look(helper, self.seat.calls().wrapping_sub(1), polled, next);
        }
    }

    fn look(&mut self, helper: &Helper, before: u32, polled: u32, next: &mut Next) {
        let calls = self.seat.calls();
        match self.seat.look(before, self.seat.endpoint.is_busy(), polled) {
            Look::Present(left) => {
                self.phase = Phase::Present(calls);
                let at = monotonic() + left;
                next.look = next.look.into_iter().chain([at]).min();
            }
            Look::Away => {
                self.phase = Phase::Away(calls);
                (self.has_yielded, self.is_gone, self.is_told) = (false, false, false);
                self.stand_in(helper, polled, next);
                self.wait_for_due(next);
            }
        }
    }

    /// Does what is due.
    fn stand_in(&mut self, helper: &Helper, polled: u32, next: &mut Next) {
        self.is_told = false;
        match self.step() {
            None => self.phase = Phase::Gone,
            Some(Absence::Over) => {
                self.watch(helper, false);
                self.phase = Phase::Parked;
            }
            Some(Absence::Until { limit, watches, armed }) => {
                self.watch(helper, watches);
                self.armed = armed;
                self.due = limit.map(|limit| monotonic() + limit);
                if !self.has_yielded {
                    // It may be absent only because it does not get its processor, which this thread is on: it would be kept
                    // from it for as long as there is something to do.
                    std::thread::yield_now();
                    self.has_yielded = true;
                    if matches!(self.phase, Phase::Away(calls) if calls != self.seat.calls()) {
                        self.come_back(helper, polled, next);
                    }
                }
            }
        }
    }

    /// None: the endpoint is closed.
    fn step(&self) -> Option<Absence> {
        let handle = self.seat.handle();
        handle.as_ref()?;
        let entered = self.seat.endpoint.with(|core, transport| {
            // Another life of the cell is somebody else's.
            (self.seat.endpoint.generation() == self.seat.life).then(|| transport.while_away(core))
        });
        entered.ok()?
    }

    /// Has frames that arrive wake the thread, or not.
    fn watch(&mut self, helper: &Helper, on: bool) {
        if on == self.is_watched {
            return;
        }
        let handle = self.seat.handle();
        let Some(handle) = handle.as_ref() else { return };
        let (number, flags) = (self.seat.number, epoll::EventFlags::IN | epoll::EventFlags::ET);
        let done = if on {
            epoll::add(&helper.watch, handle, epoll::EventData::new_u64(number), flags)
        } else {
            epoll::delete(&helper.watch, handle)
        };
        self.is_watched = if done.is_ok() { on } else { self.is_watched };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_waits_for_no_thread_that_does_not_end() {
        let helper = Arc::new(Helper::new().expect("descriptors"));
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        // Some thread of ours that is stopped, by a debugger or by the system.
        let thread = std::thread::spawn(move || receiver.recv().is_err());
        helper.end(thread);
        assert!(helper.is_ended());
        drop(sender);
    }

    #[test]
    fn the_thread_ends_though_the_system_sets_no_timer() {
        for _ in 0..10 {
            let helper = Arc::new(Helper::new().expect("descriptors"));
            helper.alarm.refuse();
            let thread = spawn(Arc::clone(&helper)).expect("a thread");
            helper.need_again();
            helper.end(thread);
            assert!(*lock(&helper.is_over), "it was given up");
        }
    }
}
