//! The progress thread of the process: checks whether the programs of all endpoints make calls, and
//! makes progress for endpoints whose program is absent.

use super::alarm::Alarm;
use super::attachment::{ABSENT_AFTER, Activity, Attachment, CHECK_EVERY, PARKED};
use crate::{BackgroundWork, Endpoint, lock, monotonic, spawn_quiet_thread};
use cci_mem::cancellation::Uncancelled;
use cci_mem::descriptors;
use cci_mem::fork::PerProcess;
use cci_mem::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use cci_proto::Time;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

/// Nice value of the thread, where the system permits it: nine tenths of a processor on which
/// another thread computes, so that RMA of peers keeps its speed meanwhile.
const NICE_VALUE: i32 = -10;
/// Stack of the thread, bytes.
const STACK: usize = 256 << 10;
/// How long the close of the last endpoint waits for the thread to end. A stopped thread ends by
/// itself later.
const END_LIMIT: Duration = Duration::from_secs(1);
/// Up to this many active endpoints, a program that postpones the alarm checks how old their last
/// poll is.
const FEW: u32 = 16;
/// How often all endpoints are looked at where the system refuses to report arrivals.
const UNREPORTED: Duration = Duration::from_millis(1);
/// Epoll events taken in one call.
const ARRIVALS: usize = 64;

/// The state that the thread shares with all endpoints of the process.
pub(super) struct ProgressThread {
    attachments: Mutex<Vec<Arc<Attachment>>>,
    /// Counts changes of `attachments` and activations of endpoints.
    changes: AtomicU32,
    /// Approximate number of endpoints that are not parked.
    active: AtomicU32,
    /// When a program last postponed the alarm, nanoseconds of [`monotonic`].
    postponed: AtomicU64,
    pub(super) alarm: Alarm,
    /// Edge-triggered epoll over the handles of endpoints for which the thread receives frames.
    watch: OwnedFd,
    ended: AtomicBool,
    thread: OnceLock<ThreadId>,
    /// Whether the thread has ended.
    has_ended: Mutex<bool>,
    end_signal: Condvar,
}

/// The thread of this process; `None` while no endpoint needs it.
#[derive(Default)]
struct Current {
    progress: Option<(Arc<ProgressThread>, JoinHandle<()>)>,
    /// The number of the last attachment.
    numbers: u64,
}

static CURRENT: PerProcess<Mutex<Current>> = PerProcess::new();

fn current() -> Option<MutexGuard<'static, Current>> {
    let (_, current) = CURRENT.get(Mutex::default).ok()?;
    Some(lock(current))
}

/// Attaches an endpoint, whose OS handle this is, to the progress thread of this process, and
/// starts the thread if there is none. `None`: the system refuses a thread or a descriptor.
pub(super) fn attach(
    endpoint: &'static Endpoint,
    way: u8,
    handle: BorrowedFd<'_>,
) -> Option<(Arc<ProgressThread>, Arc<Attachment>)> {
    let _uncancelled = Uncancelled::new();
    let handle = descriptors::duplicate(handle).ok()?;
    let mut current = current()?;
    let progress = match &current.progress {
        Some((progress, _)) => Arc::clone(progress),
        None => {
            let progress = Arc::new(ProgressThread::new().ok()?);
            let thread = spawn(Arc::clone(&progress))?;
            current.progress = Some((Arc::clone(&progress), thread));
            progress
        }
    };
    current.numbers += 1;
    let attachment = Arc::new(Attachment::new(current.numbers, (endpoint, way), handle));
    lock(&progress.attachments).push(Arc::clone(&attachment));
    progress.activate();
    Some((progress, attachment))
}

/// Detaches an endpoint for good; the thread ends with the last one. The caller must not hold the
/// endpoint's lock.
pub(super) fn detach(progress: &Arc<ProgressThread>, attachment: &Arc<Attachment>) {
    let (is_last, thread) = remove(progress, attachment);
    if progress.is_own_thread() {
        // A failure inside the thread's own step closes the endpoint. The step holds the handle,
        // which is dropped with the attachment.
        progress.ended.store(is_last, Ordering::SeqCst);
        return;
    }
    // Waits while the thread is inside this endpoint: one step at most.
    if let Some(handle) = attachment.handle().take() {
        let _ = epoll::delete(&progress.watch, &handle);
    }
    if let Some(thread) = thread {
        progress.end(thread);
    }
}

/// Detaches an endpoint that has failed inside a step of this thread, which ends with the last one.
fn leave_thread(progress: &ProgressThread, attachment: &Attachment) {
    let (is_last, _) = remove(progress, attachment);
    if is_last {
        progress.ended.store(true, Ordering::SeqCst);
    }
}

/// Removes an endpoint from the list. Returns whether it was the last one, and then the thread.
fn remove(progress: &ProgressThread, attachment: &Attachment) -> (bool, Option<JoinHandle<()>>) {
    // A new endpoint is attached to this thread, or finds none: never to one that is to end.
    let Some(mut current) = current() else { return (false, None) };
    let mut attachments = lock(&progress.attachments);
    attachments.retain(|other| other.number != attachment.number);
    let is_last = attachments.is_empty();
    drop(attachments);
    progress.changes.fetch_add(1, Ordering::SeqCst);
    let thread = current.progress.take_if(|(here, _)| is_last && std::ptr::eq(&raw const **here, progress));
    (is_last, thread.map(|(_, thread)| thread))
}

impl ProgressThread {
    pub(super) fn new() -> rustix::io::Result<Self> {
        Ok(Self {
            attachments: Mutex::default(),
            changes: AtomicU32::new(0),
            active: AtomicU32::new(0),
            postponed: AtomicU64::new(0),
            alarm: Alarm::new()?,
            watch: descriptors::epoll()?,
            ended: AtomicBool::new(false),
            thread: OnceLock::new(),
            has_ended: Mutex::new(false),
            end_signal: Condvar::new(),
        })
    }

    /// Activates an endpoint: it needs the thread for the first time, or again.
    #[cold]
    pub(super) fn activate(&self) {
        self.active.fetch_add(1, Ordering::SeqCst);
        // The thread reads `changes` after it has planned its alarm, and keeps requests that come
        // later.
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.check_by(monotonic() + ABSENT_AFTER);
    }

    /// Schedules a check of the programs at this time at the latest.
    #[cold]
    pub(super) fn check_by(&self, at: Time) {
        self.alarm.request(at);
    }

    /// Postpones the alarm, because a program receives frames: no check is needed while all active
    /// endpoints are polled. Returns when the alarm was last postponed.
    #[cold]
    pub(super) fn postpone(&self, now: Time, interval: u64) -> Time {
        let postponed = Time(self.postponed.load(Ordering::Relaxed));
        if now.since(postponed) < interval {
            return postponed;
        }
        self.postponed.store(now.0, Ordering::Relaxed);
        let at = match self.active.load(Ordering::Relaxed) {
            1 => Some(now + ABSENT_AFTER),
            2..=FEW => self.oldest().map(|oldest| oldest + ABSENT_AFTER),
            // Of this many endpoints each gets more time than that.
            _ => None,
        };
        if let Some(at) = at {
            self.alarm.postpone(at);
        }
        now
    }

    /// Returns when the least recently active endpoint was last used. `None`: not known now.
    fn oldest(&self) -> Option<Time> {
        let attachments = self.attachments.try_lock().ok()?;
        let active = attachments.iter().filter(|attachment| attachment.state() != PARKED);
        active.map(|attachment| Time(attachment.present.load(Ordering::Relaxed))).min()
    }

    fn is_own_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Asks the thread to end, and waits for that, [`END_LIMIT`] at most.
    fn end<T>(&self, thread: JoinHandle<T>) {
        self.ended.store(true, Ordering::SeqCst);
        self.alarm.wake();
        let over = lock(&self.has_ended);
        let (over, _) =
            self.end_signal.wait_timeout_while(over, END_LIMIT, |over| !*over).unwrap_or_else(PoisonError::into_inner);
        if *over {
            drop(over);
            let _ = thread.join();
        }
    }
}

const NAME: &str = "cci-progress";

fn spawn(progress: Arc<ProgressThread>) -> Option<JoinHandle<()>> {
    spawn_quiet_thread(NAME, STACK, move || run(&progress)).ok()
}

/// Signals the end of the thread, also after a panic.
struct EndNotifier<'a>(&'a ProgressThread);

impl Drop for EndNotifier<'_> {
    fn drop(&mut self) {
        *lock(&self.0.has_ended) = true;
        self.0.end_signal.notify_all();
    }
}

fn run(progress: &ProgressThread) {
    let _notifier = EndNotifier(progress);
    let _ = progress.thread.set(std::thread::current().id());
    // Affects this thread alone. Without the privilege it shares a processor with a computing
    // program as an equal.
    let _ = rustix::process::setpriority_process(None, NICE_VALUE);
    let mut tasks: Vec<Task> = Vec::new();
    let mut changes = progress.changes.load(Ordering::SeqCst).wrapping_sub(1);
    loop {
        if progress.is_ended() {
            return;
        }
        let latest = progress.changes.load(Ordering::SeqCst);
        if latest != changes {
            changes = latest;
            update_tasks(progress, &mut tasks);
        }
        progress.alarm.begin();
        let next = round(progress, &mut tasks);
        progress.alarm.plan(next.check);
        if progress.changes.load(Ordering::SeqCst) == changes && !progress.is_ended() {
            progress.alarm.wait(&progress.watch, next.due);
            take_arrivals(progress, &mut tasks);
        }
    }
}

/// Adds tasks for new endpoints, and drops those of closed ones. Both lists are in the order of the
/// numbers.
fn update_tasks(progress: &ProgressThread, tasks: &mut Vec<Task>) {
    let attachments = lock(&progress.attachments);
    tasks.retain(|task| {
        attachments.binary_search_by_key(&task.attachment.number, |attachment| attachment.number).is_ok()
    });
    let last = tasks.last().map_or(0, |task| task.attachment.number);
    let new = attachments.iter().filter(|attachment| attachment.number > last);
    tasks.extend(new.map(|attachment| Task::new(Arc::clone(attachment))));
}

/// When the thread is to wake.
#[derive(Default)]
struct Next {
    /// To check whether a program makes calls: the alarm.
    check: Option<Time>,
    /// To do work that is due.
    due: Option<Time>,
}

/// Checks each program, and does the work of endpoints whose program is absent.
fn round(progress: &ProgressThread, tasks: &mut [Task]) -> Next {
    let mut next = Next::default();
    let now = monotonic();
    let polled = tasks.iter().filter(|task| task.attachment.is_polled(now)).count();
    let polled = u32::try_from(polled).unwrap_or(u32::MAX);
    let mut active = 0;
    for task in tasks {
        task.advance(progress, polled, &mut next);
        active += u32::from(task.attachment.state() != PARKED);
    }
    progress.active.store(active, Ordering::Relaxed);
    next
}

fn take_arrivals(progress: &ProgressThread, tasks: &mut [Task]) {
    let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; ARRIVALS];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    let count = match epoll::wait(&progress.watch, &mut events[..], Some(&none)) {
        Ok(count) => count,
        Err(Errno::INTR) => 0,
        Err(_) => {
            // Arrivals are not reported one by one, and stay reported: each endpoint is looked at,
            // after a pause that keeps the thread from spinning.
            std::thread::sleep(UNREPORTED);
            tasks.iter_mut().for_each(|task| task.has_arrival |= task.is_watched);
            0
        }
    };
    for event in &events[..count] {
        let number = event.data.u64();
        if let Ok(at) = tasks.binary_search_by_key(&number, |task| task.attachment.number) {
            tasks[at].has_arrival = true;
        }
    }
}

/// What the thread does for an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The thread skips the endpoint until a call activates it.
    Parked,
    /// The program was present at the last check, after this many calls.
    Present(u32),
    /// The program was absent after this many calls: the thread acts for it.
    Acting(u32),
    /// The endpoint is closed.
    Closed,
}

/// The thread's own state of an endpoint.
struct Task {
    attachment: Arc<Attachment>,
    phase: Phase,
    /// When work is due; `None`: when a frame arrives.
    due: Option<Time>,
    /// The handle is in the epoll.
    is_watched: bool,
    /// The epoll has reported an arrival.
    has_arrival: bool,
    armed: bool,
    /// The thread has yielded the processor once in this absence, and has given the program time to
    /// wake up.
    has_yielded: bool,
    in_grace: bool,
}

impl Task {
    fn new(attachment: Arc<Attachment>) -> Self {
        let phase = Phase::Parked;
        let (is_watched, has_arrival, armed, has_yielded, in_grace) = (false, false, false, false, false);
        Self { attachment, phase, due: None, is_watched, has_arrival, armed, has_yielded, in_grace }
    }

    fn advance(&mut self, progress: &ProgressThread, polled: u32, next: &mut Next) {
        let is_parked = self.attachment.state() == PARKED;
        let calls = self.attachment.calls();
        match self.phase {
            Phase::Closed => {}
            Phase::Parked if is_parked => {}
            Phase::Present(before) => self.check_program(progress, before, polled, next),
            // A call of the program has activated it.
            Phase::Parked => self.check_program(progress, calls.wrapping_sub(1), polled, next),
            Phase::Acting(before) if calls != before => {
                self.check_program(progress, calls.wrapping_sub(1), polled, next);
            }
            Phase::Acting(_) => {
                if self.has_arrival && self.armed && !self.in_grace {
                    self.due = Some(monotonic() + CHECK_EVERY);
                    self.in_grace = true;
                } else if self.has_arrival && !self.waits_for_grace() || self.due.is_some_and(|due| due <= monotonic())
                {
                    self.step_in_background(progress, polled, next);
                }
                self.has_arrival = false;
                self.wait_for_due(next);
            }
        }
    }

    /// Whether a program that sleeps on its handle still has time to wake up and make the call
    /// itself.
    fn waits_for_grace(&self) -> bool {
        self.armed && self.in_grace && self.due.is_some_and(|due| due > monotonic())
    }

    fn wait_for_due(&self, next: &mut Next) {
        if let (Phase::Acting(_), Some(due)) = (self.phase, self.due) {
            next.due = next.due.into_iter().chain([due]).min();
        }
    }

    /// Steps for a program that is absent. `before`: its calls at the last check.
    fn check_program(&mut self, progress: &ProgressThread, before: u32, polled: u32, next: &mut Next) {
        let calls = self.attachment.calls();
        if self.is_absent(progress, before, polled, next) {
            self.phase = Phase::Acting(calls);
            (self.has_yielded, self.in_grace, self.has_arrival) = (false, false, false);
            self.step_in_background(progress, polled, next);
            self.wait_for_due(next);
        }
    }

    /// Whether the program is absent. Leaves the endpoint to it otherwise.
    fn is_absent(&mut self, progress: &ProgressThread, before: u32, polled: u32, next: &mut Next) -> bool {
        let calls = self.attachment.calls();
        if self.attachment.state() == PARKED {
            self.phase = Phase::Parked;
        } else {
            let now = monotonic();
            match self.attachment.activity(now, before, self.attachment.endpoint.is_busy(), polled) {
                Activity::Absent => return true,
                Activity::Present(left) => {
                    self.phase = Phase::Present(calls);
                    let at = now + left;
                    next.check = next.check.into_iter().chain([at]).min();
                }
            }
        }
        self.watch(progress, false);
        false
    }

    /// Makes one step for the endpoint, and schedules the next.
    fn step_in_background(&mut self, progress: &ProgressThread, polled: u32, next: &mut Next) {
        self.has_arrival = false;
        match self.step_or_abandon(progress) {
            None => self.phase = Phase::Closed,
            Some(BackgroundWork::Done) => {
                self.watch(progress, false);
                self.phase = Phase::Parked;
            }
            Some(BackgroundWork::Pending { limit, watches, armed }) => {
                self.watch(progress, watches);
                self.armed = armed;
                self.due = limit.map(|limit| monotonic() + limit);
                if !self.has_yielded {
                    // The program may be absent only because this thread occupies its processor.
                    // Without a yield it would wait as long as there is work.
                    std::thread::yield_now();
                    self.has_yielded = true;
                    let calls = self.attachment.calls();
                    if self.phase != Phase::Acting(calls) {
                        // A program that makes calls and does not poll stays absent. Its calls of
                        // this time have requested a check, which makes the next step.
                        self.is_absent(progress, calls.wrapping_sub(1), polled, next);
                    }
                }
            }
        }
    }

    /// As [`Task::step`]. After a panic the endpoint has failed, and the thread goes on for others.
    fn step_or_abandon(&mut self, progress: &ProgressThread) -> Option<BackgroundWork> {
        catch_unwind(AssertUnwindSafe(|| self.step())).unwrap_or_else(|payload| {
            // Its destructor could panic in turn.
            std::mem::forget(payload);
            self.watch(progress, false);
            self.attachment.endpoint.abandon();
            leave_thread(progress, &self.attachment);
            self.attachment.handle().take();
            None
        })
    }

    /// Makes one step inside the endpoint. `None`: the endpoint is closed.
    fn step(&self) -> Option<BackgroundWork> {
        let handle = self.attachment.handle();
        handle.as_ref()?;
        let entered = self.attachment.endpoint.with(|core, transport| {
            // A cell of another generation belongs to another endpoint.
            (self.attachment.endpoint.generation() == self.attachment.generation).then(|| {
                core.set_background_way(self.attachment.way);
                transport.step_in_background(core)
            })
        });
        entered.ok()?
    }

    /// Chooses whether arriving frames wake the thread.
    fn watch(&mut self, progress: &ProgressThread, on: bool) {
        if on == self.is_watched {
            return;
        }
        let handle = self.attachment.handle();
        let Some(handle) = handle.as_ref() else { return };
        let (number, flags) = (self.attachment.number, epoll::EventFlags::IN | epoll::EventFlags::ET);
        let done = if on {
            epoll::add(&progress.watch, handle, epoll::EventData::new_u64(number), flags)
        } else {
            epoll::delete(&progress.watch, handle)
        };
        self.is_watched = if done.is_ok() { on } else { self.is_watched };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_waits_for_no_thread_that_does_not_end() {
        let progress = Arc::new(ProgressThread::new().expect("descriptors"));
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        // A thread that is stopped, by a debugger or by the system.
        let thread = std::thread::spawn(move || receiver.recv().is_err());
        progress.end(thread);
        assert!(progress.is_ended());
        drop(sender);
    }

    #[test]
    fn the_thread_ends_though_the_system_sets_no_timer() {
        for _ in 0..10 {
            let progress = Arc::new(ProgressThread::new().expect("descriptors"));
            progress.alarm.refuse();
            let thread = spawn(Arc::clone(&progress)).expect("a thread");
            progress.activate();
            progress.end(thread);
            assert!(*lock(&progress.has_ended), "the wait timed out");
        }
    }
}
