//! What the library takes when it does nothing in particular: memory, time, allocations. Each is
//! measured in a process of its own, so that nothing else has touched it.

use crate::interrupt;
use crate::measure::driver::{Completion, Driver, DriverOptions, PostError, join};
use crate::measure::facade::Facade;
use crate::measure::usage::Usage;
use crate::task;
use crate::task::Task;
use cci::{Attribute, Connection};
use cci_instruments::allocations;
use cci_report::named;
use cci_report::names::Mode;
use cci_report::{UserError, while_doing};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Connections whose growth is measured.
const CONNECTIONS: u64 = 4096;
/// Endpoints whose growth is measured.
const ENDPOINTS: u32 = 8;
/// Messages over which allocations are counted.
const MESSAGES: u32 = 100_000;
/// How long two endpoints of this process may take to connect.
const LIMIT: Duration = Duration::from_secs(10);

/// What a child measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes, milliseconds or allocations.
    pub value: f64,
    /// Context switches of threads that the program has not made.
    pub switches: f64,
    /// Times that the program was woken.
    pub wakes: f64,
    /// Of the bytes those that are shared with nobody.
    pub private: f64,
    /// How long an idle process was watched.
    pub seconds: f64,
}

impl Figures {
    fn of(value: f64) -> Self {
        Self { value, ..Self::default() }
    }
}

named! {
    /// Measurements that need a process of their own.
    pub enum Footprint {
        /// Resident bytes of a fresh endpoint
        Endpoint = "endpoint",
        /// Resident bytes of an idle connection
        Connection = "connection",
        /// Time, context switches and wake-ups of an idle endpoint
        Idle = "idle",
        /// Time of a process that sleeps as long without an endpoint
        Asleep = "asleep",
        /// Allocations over 100,000 send, receive, return
        Allocations = "allocations",
    }
}

/// One of them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FootprintTask {
    what: Footprint,
    transport: String,
    /// Seconds to idle.
    seconds: u64,
}

/// Measures in a process of its own.
pub fn in_a_child(what: Footprint, transport: &str, seconds: u64) -> Result<Figures, UserError> {
    figures(task::command(&FootprintTask { what, transport: transport.into(), seconds })?)
}

/// What a process measures in which nothing else has happened.
pub(crate) fn figures<T: DeserializeOwned>(mut command: Command) -> Result<T, UserError> {
    let failed = while_doing("cannot start a process to measure in");
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let output = ended(started.map_err(&failed)?).map_err(&failed)?;
    if !output.status.success() {
        if interrupt::is_asked() {
            return Err(UserError::new(interrupt::ENDED));
        }
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(UserError(if why.is_empty() { format!("the process ended: {}", output.status) } else { why }));
    }
    serde_json::from_slice(&output.stdout).map_err(while_doing("the measuring process gave no figures"))
}

/// Waits for a child, and passes a signal that asks the run to end on to it.
fn ended(child: Child) -> std::io::Result<Output> {
    let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    // What it writes fits the pipes.
    while !is_woken(&end, interrupt::LOOK) {
        // Each time: a signal that comes between the look of a sleeping child and its sleep does
        // not end that sleep.
        if interrupt::is_asked() {
            interrupt::pass_on(&child);
        }
    }
    child.wait_with_output()
}

/// An idle endpoint, and a bare sleeper beside it, each in a process of its own: at the same time,
/// so that both meet the same machine.
pub fn idle_beside_a_sleeper(transport: &str, seconds: u64) -> [Result<Figures, UserError>; 2] {
    std::thread::scope(|scope| {
        let bare = scope.spawn(|| in_a_child(Footprint::Asleep, transport, seconds));
        let idle = in_a_child(Footprint::Idle, transport, seconds);
        [idle, bare.join().unwrap_or_else(|_| Err(UserError::new("the measuring thread failed")))]
    })
}

impl Task for FootprintTask {
    const NAME: &'static str = "footprint";

    fn run(&self) -> Result<(), Option<UserError>> {
        footprint(self).map_err(Some)
    }
}

/// Measures, in the child.
fn footprint(task: &FootprintTask) -> Result<(), UserError> {
    interrupt::watch_in_child()?;
    let opening = DriverOptions::on_loopback(&task.transport);
    let figures = match task.what {
        Footprint::Endpoint => endpoint(&opening),
        Footprint::Connection => connection(&opening),
        Footprint::Idle => idle(&opening, Duration::from_secs(task.seconds)),
        Footprint::Asleep => bare_sleep(Duration::from_secs(task.seconds)),
        Footprint::Allocations => allocations_of_messages(&opening),
    }?;
    let text = serde_json::to_string(&figures).map_err(while_doing("cannot write the figures"))?;
    writeln!(std::io::stdout(), "{text}").map_err(while_doing("cannot write the figures"))
}

fn endpoint(opening: &DriverOptions) -> Result<Figures, UserError> {
    // The first pays for what all share; and reading the figure takes memory too.
    let first = Facade::open(opening)?;
    Usage::now()?;
    let before = Usage::now()?;
    let more = (0..ENDPOINTS).map(|_| Facade::open(opening)).collect::<Result<Vec<_>, _>>()?;
    let added = Usage::now()?.since(before);
    drop((first, more));
    let private = added.private / f64::from(ENDPOINTS);
    Ok(Figures { private, ..Figures::of(added.resident / f64::from(ENDPOINTS)) })
}

/// Two endpoints of this process, to be connected.
struct Pair {
    client: Facade,
    server: Facade,
}

impl Pair {
    fn open(opening: &DriverOptions) -> Result<Self, UserError> {
        Ok(Self { client: Facade::open(opening)?, server: Facade::open(opening)? })
    }

    /// Makes one more connection; the client's side of it.
    fn connect(&self) -> Result<Connection, UserError> {
        join(&self.client, &self.server, Attribute::ReliableOrdered)
    }
}

fn connection(opening: &DriverOptions) -> Result<Figures, UserError> {
    let pair = Pair::open(opening)?;
    for _ in 0..CONNECTIONS {
        pair.connect()?;
    }
    Usage::now()?;
    let before = Usage::now()?;
    for _ in 0..CONNECTIONS {
        pair.connect()?;
    }
    let added = Usage::now()?.since(before);
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    // Both sides are in this process.
    let sides = (2 * CONNECTIONS) as f64;
    Ok(Figures::of(added.resident / sides))
}

fn allocations_of_messages(opening: &DriverOptions) -> Result<Figures, UserError> {
    let pair = Pair::open(opening)?;
    let connection = pair.connect()?;
    // One of each way that a message takes: in the entry, and in a slot.
    let messages = [&[1_u8; 8][..], &[2_u8; 2000][..]];
    exchange(&pair, connection, &messages, MESSAGES / 10)?;
    let before = allocations();
    exchange(&pair, connection, &messages, MESSAGES)?;
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let value = (allocations() - before) as f64;
    Ok(Figures::of(value))
}

/// Sends so many messages, receives each, and gives every event back.
fn exchange(pair: &Pair, connection: Connection, messages: &[&[u8]], count: u32) -> Result<(), UserError> {
    for message in messages.iter().cycle().take(count as usize) {
        match pair.client.send(connection, message, false) {
            Ok(()) => {}
            Err(PostError::Full) => return Err(UserError::new("no room for a single message")),
            Err(PostError::Driver(error)) => return Err(error.into()),
        }
        let (mut sent, mut received) = (false, false);
        while !(sent && received) {
            sent |= pair.client.poll::<false>()? == Completion::Sent;
            received |= matches!(pair.server.poll::<false>()?, Completion::Received(_));
        }
    }
    Ok(())
}

/// An event loop without events: sleeps in poll() on the endpoint's handle, and looks when it is
/// woken.
fn idle(opening: &DriverOptions, time: Duration) -> Result<Figures, UserError> {
    let endpoint = Facade::open(&DriverOptions { mode: Mode::Blocking, ..opening.clone() })?;
    let handle = endpoint.handle().ok_or_else(|| UserError::new("the endpoint has no handle"))?;
    // It may stay readable for a few looks before it goes to sleep.
    let quiet = Duration::from_millis(200);
    let begin = Instant::now();
    while begin.elapsed() < LIMIT && is_woken(handle, quiet) {
        endpoint.poll::<false>()?;
    }
    asleep(handle, time, || Ok(endpoint.poll::<false>().map(|_| ())?))
}

/// What sleeping itself costs here: a processor that idled, and memory that was given to others
/// meanwhile, make the first steps of whoever wakes slow.
fn bare_sleep(time: Duration) -> Result<Figures, UserError> {
    let failed = while_doing("cannot make a descriptor to sleep on");
    let never = eventfd(0, EventfdFlags::CLOEXEC).map_err(failed)?;
    asleep(never, time, || Ok(()))
}

/// Sleeps for this time in poll() on a descriptor, or until a signal comes; what wakes it is
/// counted and answered. A program that is not woken calls nothing, so that whatever is used is
/// used without its doing.
fn asleep(
    handle: impl AsFd,
    time: Duration,
    mut on_wake: impl FnMut() -> Result<(), UserError>,
) -> Result<Figures, UserError> {
    // Once for nothing: the first reading takes memory.
    switches_of_others()?;
    let (mut wakes, switches_before, begin) = (0_u32, switches_of_others()?, Instant::now());
    let before = processor_time();
    loop {
        let left = time.saturating_sub(begin.elapsed());
        if left.is_zero() || interrupt::is_asked() {
            break;
        }
        if is_woken(&handle, left) {
            wakes += 1;
            on_wake()?;
        }
    }
    let used = processor_time().saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let switches = switches_of_others()?.saturating_sub(switches_before) as f64;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Figures { value: used.as_secs_f64() * 1e3, switches, wakes: wakes.into(), seconds, ..Figures::default() })
}

/// Whether the descriptor becomes readable within this time. A signal ends it early, which callers
/// allow.
fn is_woken(handle: impl AsFd, limit: Duration) -> bool {
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit)).is_ok_and(|count| count > 0)
}

/// User and system time of this process.
pub(super) fn processor_time() -> Duration {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(clock.tv_sec).unwrap_or(0), u32::try_from(clock.tv_nsec).unwrap_or(0))
}

/// Voluntary context switches of every thread but the first.
fn switches_of_others() -> Result<u64, UserError> {
    let failed = while_doing("cannot read the threads of this process");
    let own = std::process::id().to_string();
    let mut switches = 0;
    for task in fs::read_dir("/proc/self/task").map_err(&failed)? {
        let task = task.map_err(&failed)?;
        if task.file_name().to_string_lossy() != own {
            let text = match fs::read_to_string(task.path().join("status")) {
                Ok(text) => text,
                // The thread has ended since the list was read.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => continue,
                Err(error) => return Err(failed(error)),
            };
            switches += voluntary(&text).ok_or_else(|| UserError::new("the kernel does not count context switches"))?;
        }
    }
    Ok(switches)
}

fn voluntary(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_counts_what_wakes_it_and_calls_nothing_otherwise() {
        let time = Duration::from_millis(50);
        let silent = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let figures = asleep(&silent, time, || panic!("not woken")).unwrap();
        assert!(figures.wakes == 0.0 && figures.value > 0.0, "{figures:?}");
        let event = eventfd(3, EventfdFlags::CLOEXEC).unwrap();
        let drain = || rustix::io::read(&event, &mut [0; 8]).map(|_| ()).map_err(while_doing("cannot read"));
        let figures = asleep(&event, time, drain).unwrap();
        assert!((figures.wakes - 1.0).abs() < f64::EPSILON, "{figures:?}");
    }

    #[test]
    fn switches_of_a_thread_that_sleeps_are_seen() {
        let before = switches_of_others().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let (done, ended) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            for () in receiver {
                done.send(()).unwrap();
            }
        });
        let begin = Instant::now();
        while switches_of_others().unwrap() <= before {
            assert!(begin.elapsed() < Duration::from_secs(20));
            sender.send(()).unwrap();
            ended.recv().unwrap();
        }
        drop(sender);
        sleeper.join().unwrap();
    }

    #[test]
    fn the_kernels_count_is_read() {
        assert_eq!(voluntary("Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"), Some(12));
        assert_eq!(voluntary(""), None);
    }
}
