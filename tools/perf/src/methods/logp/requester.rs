//! The end that issues requests in real time, and the end that answers in a process beside it.

use super::computing;
use super::computing::Computing;
use super::machine::{Burst, Machine, Times};
use crate::measure::driver::{Completion, Driver, DriverError, DriverEvent, PostError, await_event};
use crate::measure::ends::OPERATIONS;
use crate::measure::loops::{Act, Lane, pong};
use crate::methods::am::Active;
use cci_am::Mapping;
use cci_report::statistics::median;
use cci_report::{UserError, while_doing};
use std::time::{Duration, Instant};

/// How long nothing is sent before a burst. Over sockets the first messages after a pause of 100 µs
/// leave one by one (`docs/design/reliable.md`): a short burst shall not depend on the one before
/// it.
const REST: Duration = Duration::from_micros(150);
/// How long a reply may take.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Looks between two looks at the clock while a reply is waited for.
const LOOKS: u32 = 1 << 20;
/// How long a requester may take to come.
const ARRIVAL: Duration = Duration::from_secs(60);

/// What it takes to issue requests.
struct Requester {
    message: Vec<u8>,
    computing: Computing,
    /// Time of one reading of the clock, nanoseconds.
    clock: f64,
}

impl Requester {
    /// Knows the clock and the processor that it runs on.
    fn calibrated() -> Self {
        Self { message: Vec::new(), computing: Computing::calibrated(), clock: clock() }
    }

    /// A burst of requests; over silent lanes without SEND events.
    #[inline(always)]
    fn burst(&mut self, line: &mut impl Line, burst: &Burst) -> Result<Times, UserError> {
        rest(line)?;
        let steps = self.computing.steps(burst.delay);
        let mut waiting = 0;
        let begin = Instant::now();
        for _ in 0..burst.length {
            if waiting >= burst.window {
                wait(line, &mut waiting, burst.window - 1)?;
            }
            while !line.issue(&self.message)? {
                waiting -= line.look()?;
            }
            waiting += 1;
            if steps > 0 {
                computing::run(steps);
            }
            if burst.looks {
                waiting -= line.look()?;
            }
        }
        let issued = begin.elapsed();
        wait(line, &mut waiting, 0)?;
        let answered = begin.elapsed();
        Ok(Times { issued: ns(issued) - self.clock, answered: ns(answered) - 2.0 * self.clock })
    }

    fn compute(&mut self, delay: u64) -> f64 {
        if delay == 0 { 0.0 } else { self.computing.measure(delay) }
    }

    fn resize(&mut self, size: u64) -> Result<(), UserError> {
        let size = usize::try_from(size).map_err(while_doing("the size is too large"))?;
        self.message.resize(size, 1);
        Ok(())
    }
}

/// What requests travel by.
pub(in crate::methods) trait Line {
    /// Sends a request. False: no room now.
    fn issue(&mut self, message: &[u8]) -> Result<bool, UserError>;

    /// Looks once; how many replies there were.
    fn look(&mut self) -> Result<u64, UserError>;
}

impl<P: Driver> Line for Lane<'_, P> {
    #[inline(always)]
    fn issue(&mut self, message: &[u8]) -> Result<bool, UserError> {
        match self.driver.send(self.connection, message, self.silent) {
            Ok(()) => Ok(true),
            Err(PostError::Full) => Ok(false),
            Err(PostError::Driver(error)) => Err(error.into()),
        }
    }

    #[inline(always)]
    fn look(&mut self) -> Result<u64, UserError> {
        Ok(u64::from(look(self.driver)?))
    }
}

impl<M: Mapping> Line for Active<M> {
    #[inline(always)]
    fn issue(&mut self, message: &[u8]) -> Result<bool, UserError> {
        self.try_request(message)
    }

    #[inline(always)]
    fn look(&mut self) -> Result<u64, UserError> {
        self.replies()
    }
}

/// Looks once; whether there was a message.
#[inline(always)]
pub(super) fn look(driver: &impl Driver) -> Result<bool, DriverError> {
    loop {
        match driver.poll::<false>()? {
            Completion::Received(_) => return Ok(true),
            // The end of a request, which is no part of LogP.
            Completion::Sent | Completion::Other => {}
            Completion::Nothing => return Ok(false),
        }
    }
}

/// Waits until at most `most` replies are missing.
#[inline(always)]
fn wait(line: &mut impl Line, waiting: &mut u64, most: u64) -> Result<(), UserError> {
    let mut looks = 0_u32;
    let mut since = None;
    while *waiting > most {
        let replies = line.look()?;
        if replies > 0 {
            *waiting -= replies;
            continue;
        }
        looks += 1;
        if looks.is_multiple_of(LOOKS) && since.get_or_insert_with(Instant::now).elapsed() > LONGEST_WAIT {
            return Err(UserError::new(
                "no reply arrived: the other end hangs, or the connection loses messages; use --attribute ro",
            ));
        }
    }
    Ok(())
}

/// So many requests, each issued when the one before has been answered.
pub(in crate::methods) fn exchanges(line: &mut impl Line, message: &[u8], count: u64) -> Result<(), UserError> {
    for _ in 0..count {
        while !line.issue(message)? {
            line.look()?;
        }
        wait(line, &mut 1, 0)?;
    }
    Ok(())
}

/// Lets everything come to rest: what acknowledges, and what collects messages for a common frame.
fn rest(line: &mut impl Line) -> Result<(), UserError> {
    let begin = Instant::now();
    while begin.elapsed() < REST {
        line.look()?;
    }
    Ok(())
}

/// The end that answers, as a requester meets it.
pub(super) trait Answerer {
    /// What the requester sends by.
    type Driver: Driver;

    /// So many requests are about to come.
    fn expect(&mut self, requests: u64) -> Result<(), UserError>;

    /// Where they go.
    fn lane(&self) -> Lane<'_, Self::Driver>;
}

/// A process of the same run, which answers whatever comes.
pub(super) struct Beside<P: Driver> {
    pub(super) driver: P,
    pub(super) connection: P::Connection,
    /// Without SEND events, which only ordered connections can do.
    pub(super) silent: bool,
}

impl<P: Driver> Answerer for Beside<P> {
    type Driver = P;

    fn expect(&mut self, _: u64) -> Result<(), UserError> {
        Ok(())
    }

    fn lane(&self) -> Lane<'_, P> {
        Lane { driver: &self.driver, connection: self.connection, silent: self.silent }
    }
}

/// A requester and the end that answers it.
pub(super) struct Pair<A> {
    pub(super) answerer: A,
    requester: Requester,
}

impl<A: Answerer> Pair<A> {
    /// Over an open connection.
    pub(super) fn new(answerer: A) -> Self {
        Self { answerer, requester: Requester::calibrated() }
    }
}

impl<A: Answerer> Machine for Pair<A> {
    fn burst(&mut self, burst: &Burst) -> Result<Times, UserError> {
        self.answerer.expect(burst.length)?;
        self.requester.burst(&mut self.answerer.lane(), burst)
    }

    fn compute(&mut self, delay: u64) -> Result<f64, UserError> {
        Ok(self.requester.compute(delay))
    }

    fn resize(&mut self, size: u64) -> Result<(), UserError> {
        self.requester.resize(size)
    }

    fn largest(&self) -> u64 {
        let Lane { driver, connection, .. } = self.answerer.lane();
        driver.max_send_size(connection)
    }
}

/// A requester by a line that is open, and requests of so many bytes at most.
pub(super) struct LinePair<'l, L> {
    line: &'l mut L,
    longest: u64,
    requester: Requester,
}

impl<'l, L: Line> LinePair<'l, L> {
    pub(super) fn new(line: &'l mut L, longest: u64) -> Self {
        Self { line, longest, requester: Requester::calibrated() }
    }
}

impl<L: Line> Machine for LinePair<'_, L> {
    fn burst(&mut self, burst: &Burst) -> Result<Times, UserError> {
        self.requester.burst(self.line, burst)
    }

    fn compute(&mut self, delay: u64) -> Result<f64, UserError> {
        Ok(self.requester.compute(delay))
    }

    fn resize(&mut self, size: u64) -> Result<(), UserError> {
        self.requester.resize(size)
    }

    fn largest(&self) -> u64 {
        self.longest
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn ns(time: Duration) -> f64 {
    time.as_nanos() as f64
}

/// Time of one reading of the clock, nanoseconds.
fn clock() -> f64 {
    let trial = |_| {
        let begin = Instant::now();
        for _ in 0..63 {
            std::hint::black_box(Instant::now());
        }
        ns(begin.elapsed()) / 64.0
    };
    median(&(0..31).map(trial).collect::<Vec<_>>())
}

/// Waits for a requester and answers each of its requests by as many bytes, until it leaves.
pub(super) fn respond<P: Driver>(driver: &P, size: u64, silent: bool) -> Result<(), UserError> {
    let connection = await_event(driver, &mut Vec::new(), ARRIVAL, |event, _| match event {
        DriverEvent::Open(connection, _) => Some(connection),
        _ => None,
    })?;
    let connection = connection.ok_or_else(|| UserError::new("the requesting end did not connect"))?;
    let size =
        usize::try_from(size.min(driver.max_send_size(connection))).map_err(while_doing("the size is too large"))?;
    let reply = vec![1; size];
    let lane = Lane { driver, connection, silent };
    match pong::<P, false>(&lane, &Act::Message(&reply), u64::MAX) {
        // It is told nothing else at the end of a run.
        Err(DriverError::PeerLost) | Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Context of the connection that requests travel on.
pub(super) const CONTEXT: u64 = OPERATIONS;
