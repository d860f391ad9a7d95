//! The end that issues requests between two processes, in real time, and the end that answers.

use super::computing::{self, Computing};
use super::machine::{Burst, Machine, Times};
use crate::measure::ends::OPERATIONS;
use crate::measure::loops::{Act, Lane, pong};
use crate::measure::port::{Happening, Port, Refused, Seen, Trouble, await_happening};
use crate::measure::statistics::median;
use crate::measure::{Sentence, while_doing};
use std::time::{Duration, Instant};

/// How long nothing is sent before a burst. Over sockets the first messages after a pause of 100 µs leave one by one
/// (`docs/design/reliable.md`): a short burst shall not depend on the one before it.
const REST: Duration = Duration::from_micros(150);
/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Looks between two looks at the clock while a reply is waited for.
const LOOKS: u32 = 1 << 20;
/// How long a requester may take to come.
const ARRIVAL: Duration = Duration::from_secs(60);

/// A requester.
pub(super) struct Requester<P: Port> {
    port: P,
    connection: P::Connection,
    silent: bool,
    message: Vec<u8>,
    computing: Computing,
    /// Time of one reading of the clock, nanoseconds.
    clock: f64,
}

impl<P: Port> Requester<P> {
    /// Over an open connection. `silent`: without SEND events, which only ordered connections can do.
    pub(super) fn new(port: P, connection: P::Connection, silent: bool) -> Self {
        Self { port, connection, silent, message: Vec::new(), computing: Computing::calibrated(), clock: clock() }
    }

    pub(super) fn port(&self) -> (&P, P::Connection) {
        (&self.port, self.connection)
    }

    /// Whether there was a reply.
    #[inline(always)]
    fn look(&self) -> Result<bool, Trouble> {
        look(&self.port)
    }

    #[inline(always)]
    fn issue(&self, waiting: &mut u64) -> Result<(), Trouble> {
        loop {
            match self.port.send(self.connection, &self.message, self.silent) {
                Ok(()) => {
                    *waiting += 1;
                    return Ok(());
                }
                Err(Refused::Full) => *waiting -= u64::from(self.look()?),
                Err(Refused::Trouble(trouble)) => return Err(trouble),
            }
        }
    }

    /// Waits until at most `most` replies are missing.
    #[inline(always)]
    fn wait(&self, waiting: &mut u64, most: u64) -> Result<(), Sentence> {
        let mut looks = 0_u32;
        let mut since = None;
        while *waiting > most {
            if self.look()? {
                *waiting -= 1;
                continue;
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS) && since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(Sentence::new(
                    "a reply did not come: the other end is stuck, or the connection loses messages, which --attribute ro \
                     does not",
                ));
            }
        }
        Ok(())
    }

    /// Lets everything come to rest: what acknowledges, and what collects messages for a common frame.
    fn rest(&self) -> Result<(), Trouble> {
        let begin = Instant::now();
        while begin.elapsed() < REST {
            self.look()?;
        }
        Ok(())
    }
}

/// Looks once; whether there was a message.
#[inline(always)]
pub(super) fn look(port: &impl Port) -> Result<bool, Trouble> {
    loop {
        match port.poll::<false>()? {
            Seen::Received(_) => return Ok(true),
            // The end of a request, which is no part of LogP.
            Seen::Sent | Seen::Other => {}
            Seen::Nothing => return Ok(false),
        }
    }
}

impl<P: Port> Machine for Requester<P> {
    fn burst(&mut self, burst: &Burst) -> Result<Times, Sentence> {
        self.rest()?;
        let steps = self.computing.steps(burst.delay);
        let mut waiting = 0;
        let begin = Instant::now();
        for _ in 0..burst.length {
            if waiting >= burst.window {
                self.wait(&mut waiting, burst.window - 1)?;
            }
            self.issue(&mut waiting)?;
            if steps > 0 {
                computing::run(steps);
            }
            if burst.looks && self.look()? {
                waiting -= 1;
            }
        }
        let issued = begin.elapsed();
        self.wait(&mut waiting, 0)?;
        let answered = begin.elapsed();
        Ok(Times { issued: ns(issued) - self.clock, answered: ns(answered) - 2.0 * self.clock })
    }

    fn compute(&mut self, delay: u64) -> Result<f64, Sentence> {
        Ok(if delay == 0 { 0.0 } else { self.computing.measure(delay) })
    }

    fn resize(&mut self, size: u64) -> Result<(), Sentence> {
        let size = usize::try_from(size).map_err(while_doing("the size is too large"))?;
        self.message.resize(size, 1);
        Ok(())
    }

    fn largest(&self) -> u64 {
        self.port.max_send_size(self.connection)
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
pub(super) fn respond<P: Port>(port: &P, size: u64, silent: bool) -> Result<(), Sentence> {
    let connection = await_happening(port, &mut Vec::new(), ARRIVAL, |happening, _| match happening {
        Happening::Open(connection, _) => Some(connection),
        _ => None,
    })?;
    let connection = connection.ok_or_else(|| Sentence::new("the requesting end did not connect"))?;
    let size =
        usize::try_from(size.min(port.max_send_size(connection))).map_err(while_doing("the size is too large"))?;
    let reply = vec![1; size];
    let lane = Lane { port, connection, silent };
    match pong::<P, false>(&lane, &Act::Message(&reply), u64::MAX) {
        // It is told nothing else at the end of a run.
        Err(Trouble::PeerGone) | Ok(_) => Ok(()),
        Err(trouble) => Err(trouble.into()),
    }
}

/// Context of the connection that requests travel on.
pub(super) const CONTEXT: u64 = OPERATIONS;
