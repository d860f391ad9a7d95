//! The wake-up of an endpoint that sleeps: its thread is asleep in poll() on the endpoint's handle
//! when a peer sends. Beside it a bare sleeper in the same thread, which is woken by an eventfd, by
//! a datagram or by bytes of a TCP stream.

use crate::device::STREAMS;
use crate::machine::{pin, two_processors};
use crate::measure::driver::{Completion, Driver, DriverOptions, join};
use crate::measure::facade::Facade;
use crate::meeting::{Caller, accept_from, receive_only_from};
use crate::methods::middle;
use crate::probe::{NAP, set_up};
use crate::reach::scope;
use cci::{Attribute, Connection, Scope};
use cci_report::names::Mode;
use cci_report::{UserError, while_doing};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Wake-ups of each kind, and those before that count for nothing.
pub const ROUNDS: u64 = 200;
const WARM_UP: u64 = 20;
/// How long the sleeper must have slept without a break before it is woken: longer than an adaptive
/// spin.
const SLEPT: Duration = Duration::from_millis(3);
/// How long a sleeper may take to fall asleep, or to wake.
const LIMIT: Duration = Duration::from_secs(10);
/// Nobody is asleep, or awake.
const NONE: u64 = 0;

/// Nanoseconds from the send to the return of the call that gave the message: of the library, and
/// of the bare sleeper.
type Times = [Vec<f64>; 2];

fn ratio([library, bare]: Times) -> f64 {
    middle(library) / middle(bare)
}

/// What the two threads have in common.
struct Shared {
    origin: Instant,
    /// The thread that sleeps.
    sleeper: AtomicI32,
    /// The wake-up that the sleeper waits for, from 1.
    awaited: AtomicU64,
    /// When it came, nanoseconds from the origin.
    woken: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// Tells the other thread that this one has ended, well or not.
struct Over<'a>(&'a Shared);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}

/// Both ends of a stream over this listener, whoever else connects to it.
fn streams(listener: &TcpListener) -> std::io::Result<[TcpStream; 2]> {
    let caller = Caller::new()?;
    let port = caller.port();
    let calling = caller.call(listener.local_addr()?.port())?;
    let to = accept_from(listener, |from| from == port, LIMIT, || Ok(()))?;
    Ok([calling.finish(LIMIT)?, to])
}

/// What wakes the bare sleeper.
enum Bell {
    Eventfd(OwnedFd),
    /// The socket that sends, and the one that receives.
    Sockets(UdpSocket, UdpSocket),
    /// The end of a stream that sends, and the one that receives.
    Streams(TcpStream, TcpStream),
}

impl Bell {
    fn new(transport: &str) -> std::io::Result<Self> {
        if scope(transport) == Some(Scope::Host) {
            return Ok(Self::Eventfd(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        }
        if transport == STREAMS {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let [from, to] = streams(&listener)?;
            [&from, &to].into_iter().try_for_each(set_up)?;
            return Ok(Self::Streams(from, to));
        }
        let [from, to] = [UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?];
        from.connect(to.local_addr()?)?;
        receive_only_from(&to, from.local_addr()?.port())?;
        Ok(Self::Sockets(from, to))
    }

    fn ring(&self) -> std::io::Result<()> {
        match self {
            Self::Eventfd(fd) => rustix::io::write(fd, &1_u64.to_ne_bytes()).map(drop).map_err(Into::into),
            Self::Sockets(from, _) => from.send(&[0; 8]).map(drop),
            Self::Streams(from, _) => (&*from).write_all(&[0; 8]),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Eventfd(fd) => fd.as_fd(),
            Self::Sockets(_, to) => to.as_fd(),
            Self::Streams(_, to) => to.as_fd(),
        }
    }

    /// Whether it has rung.
    fn has_rung(&self) -> bool {
        match self {
            Self::Eventfd(fd) => rustix::io::read(fd, &mut [0_u8; 8]).is_ok(),
            Self::Sockets(_, to) => to.recv(&mut [0_u8; 8]).is_ok(),
            Self::Streams(_, to) => (&*to).read_exact(&mut [0_u8; 8]).is_ok(),
        }
    }
}

/// The middle of so many wake-ups by the library, over that of the bare sleeper.
///
/// # Errors
///
/// An endpoint fails, or a sleeper does not fall asleep or wake.
pub fn measure(transport: &str, rounds: u64) -> Result<f64, UserError> {
    times(transport, rounds).map(ratio)
}

fn times(transport: &str, rounds: u64) -> Result<Times, UserError> {
    let opening = |mode| DriverOptions { mode, ends: 2, ..DriverOptions::on_loopback(transport) };
    let [waker, sleeper] = [Facade::open(&opening(Mode::Polling))?, Facade::open(&opening(Mode::Blocking))?];
    let connection = join(&waker, &sleeper, Attribute::ReliableOrdered)?;
    let bell = Bell::new(transport).map_err(while_doing("no descriptors for the bare sleeper"))?;
    let shared = Shared {
        origin: Instant::now(),
        sleeper: AtomicI32::new(0),
        awaited: AtomicU64::new(NONE),
        woken: AtomicU64::new(NONE),
        is_over: AtomicBool::new(false),
    };
    let [here, there] = two_processors();
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| {
            let _over = Over(&shared);
            pin(there).map_err(while_doing("cannot pin this process to its processor"))?;
            sleep_and_wake(&sleeper, &bell, &shared)
        });
        // A thread of its own: the caller stays where it may run.
        let waking = scope.spawn(|| {
            let _over = Over(&shared);
            pin(here).map_err(while_doing("cannot pin this process to its processor"))?;
            wake(&waker, connection, &bell, &shared, rounds)
        });
        let failed = || UserError::new("a measuring thread failed");
        let (slept, woken) = (sleeping.join(), waking.join());
        let times = woken.map_err(|_| failed())?;
        slept.map_err(|_| failed())??;
        times
    })
}

/// Sleeps until the endpoint has a message, then until the bell has rung, and so on.
fn sleep_and_wake(endpoint: &Facade, bell: &Bell, shared: &Shared) -> Result<(), UserError> {
    let id = rustix::thread::gettid();
    shared.sleeper.store(id.as_raw_nonzero().get(), Ordering::Release);
    for number in 1.. {
        shared.awaited.store(number, Ordering::Release);
        if number % 2 == 1 {
            while !matches!(endpoint.poll::<false>()?, Completion::Received(_)) {
                if shared.is_over() {
                    return Ok(());
                }
                endpoint.wait();
            }
        } else {
            while !bell.has_rung() {
                if shared.is_over() {
                    return Ok(());
                }
                // A signal ends it early, and it begins again.
                let _ = poll(&mut [PollFd::from_borrowed_fd(bell.fd(), PollFlags::IN)], Some(&NAP));
            }
        }
        shared.woken.store(shared.now(), Ordering::Release);
    }
    Ok(())
}

/// Wakes the sleeper again and again; how long it took each time.
fn wake(
    endpoint: &Facade,
    connection: Connection,
    bell: &Bell,
    shared: &Shared,
    rounds: u64,
) -> Result<Times, UserError> {
    let mut times = Times::default();
    for number in 1..=2 * (WARM_UP + rounds) {
        await_sleep(shared, number)?;
        shared.woken.store(NONE, Ordering::Release);
        let begin = shared.now();
        if number % 2 == 1 {
            if endpoint.send(connection, &[0; 8], true).is_err() {
                return Err(UserError::new("a message was refused"));
            }
        } else {
            bell.ring().map_err(while_doing("the bare sleeper cannot be woken"))?;
        }
        let took = await_waking(shared)?.saturating_sub(begin);
        // What comes of the message at this end.
        while endpoint.poll::<false>()? != Completion::Nothing {}
        if number > 2 * WARM_UP {
            #[expect(clippy::cast_precision_loss, reason = "far less than 2^52")]
            times[usize::from(number % 2 == 0)].push(took as f64);
        }
    }
    Ok(times)
}

/// Waits until the sleeper waits for this wake-up, and has slept for a while.
fn await_sleep(shared: &Shared, number: u64) -> Result<(), UserError> {
    let begin = Instant::now();
    let mut since = begin;
    while since.elapsed() < SLEPT || shared.awaited.load(Ordering::Acquire) != number {
        if shared.awaited.load(Ordering::Acquire) != number || !is_asleep(shared) {
            since = Instant::now();
        }
        if shared.is_over() || begin.elapsed() > LIMIT {
            return Err(UserError::new("the sleeping thread does not fall asleep"));
        }
    }
    Ok(())
}

/// Whether the system says that the sleeper sleeps.
fn is_asleep(shared: &Shared) -> bool {
    let path = format!("/proc/self/task/{}/stat", shared.sleeper.load(Ordering::Acquire));
    let text = fs::read_to_string(path).unwrap_or_default();
    // The name, which may hold anything, ends with the last parenthesis; the state follows.
    text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

fn await_waking(shared: &Shared) -> Result<u64, UserError> {
    let begin = Instant::now();
    loop {
        match shared.woken.load(Ordering::Acquire) {
            NONE if shared.is_over() || begin.elapsed() > LIMIT => {
                return Err(UserError::new("the sleeping thread was not woken"));
            }
            NONE => std::hint::spin_loop(),
            woken => return Ok(woken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_are_woken_on_either_transport() {
        for transport in ["sm", "sock"] {
            let [library, bare] = times(transport, 10).expect("figures");
            assert_eq!((library.len(), bare.len()), (10, 10), "{transport}");
            assert!(library.iter().chain(&bare).all(|time| *time > 0.0), "{transport}: {library:?} {bare:?}");
        }
    }

    #[test]
    fn a_bell_has_both_ends_of_its_stream_whoever_came_first() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let at = listener.local_addr().expect("an address");
        let _strangers: Vec<_> = (0..100).map(|_| TcpStream::connect(at).expect("a stranger")).collect();
        let [from, to] = streams(&listener).expect("both ends");
        let ends = [from.peer_addr(), to.peer_addr()].map(|end| end.expect("an address"));
        assert_eq!(ends, [to.local_addr().expect("an address"), from.local_addr().expect("an address")]);
    }

    #[test]
    fn a_bell_of_any_kind_has_rung_once_after_each_ring() {
        for transport in ["sm", "sock", STREAMS] {
            let bell = Bell::new(transport).expect("descriptors");
            for _ in 0..3 {
                assert!(!bell.has_rung(), "{transport}");
                bell.ring().expect("rings");
                let begin = Instant::now();
                while !bell.has_rung() {
                    assert!(begin.elapsed() < LIMIT, "{transport}");
                }
            }
        }
    }

    #[test]
    fn a_thread_that_computes_is_not_asleep() {
        let shared = Shared {
            origin: Instant::now(),
            sleeper: AtomicI32::new(rustix::thread::gettid().as_raw_nonzero().get()),
            awaited: AtomicU64::new(NONE),
            woken: AtomicU64::new(NONE),
            is_over: AtomicBool::new(false),
        };
        assert!(!is_asleep(&shared));
        shared.is_over.store(true, Ordering::Release);
        assert!(await_sleep(&shared, 1).is_err() && await_waking(&shared).is_err());
    }
}
