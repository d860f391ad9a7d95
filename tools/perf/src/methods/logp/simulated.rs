//! Both ends in this process over a virtual network, in virtual time: each acts when its virtual
//! processor is idle.

use super::machine::{Burst, Machine, Times};
use super::requester::{CONTEXT, look};
use crate::measure::driver::{Driver, DriverError, DriverEvent, DriverOptions, PostError};
use crate::measure::facade::Facade;
use cci::{Attribute, Connection};
use cci_report::{UserError, while_doing};
use cci_sim::Clock;
use std::time::Duration;

/// Virtual time before a burst in which nothing is sent, nanoseconds; as in real time.
const REST: u64 = 150_000;
/// Steps after which a connection, or a reply, is not waited for any more: far more than any takes.
const STEPS: u32 = 1_000_000;

/// The two ends.
pub(super) struct Simulated {
    here: End,
    there: End,
    message: Vec<u8>,
    reply: Vec<u8>,
}

struct End {
    driver: Facade,
    connection: Connection,
    clock: Clock,
    silent: bool,
}

impl End {
    fn send(&self, bytes: &[u8]) -> Result<bool, DriverError> {
        match self.driver.send(self.connection, bytes, self.silent) {
            Ok(()) => Ok(true),
            Err(PostError::Full) => Ok(false),
            Err(PostError::Driver(error)) => Err(error),
        }
    }

    /// Looks for a message. Costs no virtual time.
    fn look(&self) -> Result<bool, DriverError> {
        look(&self.driver)
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        // An endpoint that closes waits until everything is acknowledged.
        self.here.clock.release();
    }
}

impl Simulated {
    /// Opens and connects both ends, and holds time from then on. `reply`: bytes of a reply.
    pub(super) fn new(
        opening: &DriverOptions,
        attribute: Attribute,
        silent: bool,
        reply: u64,
    ) -> Result<Self, UserError> {
        let (here, there) = (Facade::open(opening)?, Facade::open(opening)?);
        let clock = |driver: &Facade| {
            Clock::of(&driver.uri()).ok_or_else(|| UserError(format!("{} is not on a virtual network", driver.uri())))
        };
        let (here_clock, there_clock) = (clock(&here)?, clock(&there)?);
        here.connect(&there.uri(), b"", attribute, CONTEXT, Duration::from_secs(5))?;
        let (mut ours, mut theirs, mut bytes) = (None, None, Vec::new());
        for _ in 0..STEPS {
            match here.poll_event(&mut bytes, |_| CONTEXT)? {
                DriverEvent::Open(connection, _) => ours = Some(connection),
                DriverEvent::NotOpen(status, _) => {
                    return Err(UserError(format!("the ends did not connect: {status}")));
                }
                _ => {}
            }
            if let DriverEvent::Open(connection, _) = there.poll_event(&mut bytes, |_| CONTEXT)? {
                theirs = Some(connection);
            }
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                here_clock.hold();
                return Ok(Self {
                    here: End { driver: here, connection: ours, clock: here_clock, silent },
                    there: End { driver: there, connection: theirs, clock: there_clock, silent },
                    message: Vec::new(),
                    reply: vec![1; usize::try_from(reply).map_err(while_doing("the size is too large"))?],
                });
            }
        }
        Err(UserError::new("the ends did not connect over the virtual network: give a lower loss"))
    }

    /// The end that issues requests.
    pub(super) fn driver(&self) -> (&Facade, Connection) {
        (&self.here.driver, self.here.connection)
    }

    /// The time that the requester's program sees, nanoseconds.
    fn now(&self) -> u64 {
        self.here.clock.busy_until().0
    }

    /// The other end answers what has come, or time goes on.
    fn step(&mut self) -> Result<(), UserError> {
        let mut answered = false;
        while self.there.look()? {
            answered = true;
            while !self.there.send(&self.reply)? {
                self.here.clock.advance();
                self.there.look()?;
            }
        }
        if !answered {
            self.here.clock.advance();
        }
        Ok(())
    }

    /// Goes on until the requester's processor is idle: what came meanwhile has been taken in.
    fn until_idle(&mut self) -> Result<(), UserError> {
        while self.here.clock.now() < self.here.clock.busy_until() {
            self.step()?;
        }
        Ok(())
    }

    /// Waits for a reply.
    fn wait(&mut self) -> Result<(), UserError> {
        for _ in 0..STEPS {
            if self.here.look()? {
                return Ok(());
            }
            self.step()?;
        }
        Err(UserError::new("no reply arrived: the network loses messages; use --attribute ro, which retransmits"))
    }

    fn rest(&mut self) -> Result<(), UserError> {
        let end = self.now() + REST;
        while self.now() < end {
            self.here.look()?;
            self.step()?;
        }
        Ok(())
    }
}

impl Machine for Simulated {
    fn burst(&mut self, burst: &Burst) -> Result<Times, UserError> {
        self.rest()?;
        let begin = self.now();
        let mut waiting = 0;
        for _ in 0..burst.length {
            if waiting >= burst.window {
                self.wait()?;
                waiting -= 1;
            }
            while !self.here.send(&self.message)? {
                self.wait()?;
                waiting -= 1;
            }
            waiting += 1;
            self.here.clock.charge(burst.delay);
            self.until_idle()?;
            if burst.looks && self.here.look()? {
                waiting -= 1;
            }
        }
        let issued = self.now() - begin;
        for _ in 0..waiting {
            self.wait()?;
        }
        Ok(Times { issued: ns(issued), answered: ns(self.now() - begin) })
    }

    fn compute(&mut self, delay: u64) -> Result<f64, UserError> {
        Ok(ns(delay))
    }

    fn resize(&mut self, size: u64) -> Result<(), UserError> {
        let size = usize::try_from(size).map_err(while_doing("the size is too large"))?;
        self.message.resize(size, 1);
        Ok(())
    }

    fn largest(&self) -> u64 {
        self.here.driver.max_send_size(self.here.connection)
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn ns(time: u64) -> f64 {
    time as f64
}
