//! The blocks of a run, as the client's end runs them.

use super::client::{ANSWER, End, out_of_turn};
use super::control::{Answer, Command, What};
use super::driver::{Driver, DriverError};
use super::ends;
use super::loops;
use super::loops::{Lane, marker};
use crate::effort::per_operation;
use crate::probe::Probe;
use cci::Status;
use cci_report::names::{AttributeName, Measurement, ProbeKind, Target};
use cci_report::{UserError, while_doing};
use std::time::Duration;

/// Steps of computing that are timed to know what one takes.
const STEPS: u32 = 20_000;
/// Readings of the clock, as well.
const READINGS: u64 = 1000;

impl<P: Driver> End<'_, P> {
    pub(super) fn probed(&mut self, kind: ProbeKind, size: u64, count: u64) -> Result<Duration, UserError> {
        let no_memory = || UserError::new("the ends share no memory for a probe: use --local, or --no-probe");
        let failed = format!("the probe {} failed; use another by --probe, or none", kind.name());
        self.probe.as_mut().ok_or_else(no_memory)?.prepare(kind, size).map_err(while_doing(&failed))?;
        if Probe::needs_server(kind) {
            self.begin(What::Probe(kind), size, count)?;
        }
        self.probe.as_mut().ok_or_else(no_memory)?.run(kind, size, count).map_err(while_doing(&failed))
    }

    /// Tells the server of a block and waits until it is ready.
    pub(crate) fn begin(&mut self, what: What, size: u64, count: u64) -> Result<(), UserError> {
        self.number += 1;
        self.link.send(&Command::Block { what, size, count, number: self.number })?;
        match self.link.recv(ANSWER)? {
            Answer::Go => Ok(()),
            other => Err(out_of_turn(&other)),
        }
    }

    /// Runs a block: how long it took, and how many operations arrived. With work each operation is
    /// waited for after so many steps of computing.
    pub(super) fn measured(&mut self, size: u64, count: u64, work: Option<u64>) -> Result<(Duration, u64), UserError> {
        let session = &self.plan.session;
        let (measurement, exchange) = (session.measurement, session.measurement.is_exchange());
        let plain_rma = ends::is_passive(session);
        if !plain_rma || session.target == Target::Computing {
            self.begin(What::Measured, size, count)?;
        }
        let lane = Lane { driver: &self.link.driver, connection: self.link.operations, silent: session.silent };
        let act = ends::act(session, &self.buffer, self.handles.as_ref(), size, exchange);
        let window = if measurement.is_one_by_one() { Some(1) } else { session.window };
        let begin = self.link.driver.now();
        if session.bidirectional {
            let open = ends::duplex(&lane, session, &self.buffer, self.handles.as_ref(), size, count)?;
            self.link.settle(open)?;
            return Ok((self.link.driver.now() - begin, 2 * count));
        }
        if exchange {
            let open = match (measurement, session.touch) {
                (Measurement::Jitter, false) => loops::ping_each::<P, false>(&lane, &act, count, &mut self.singles)?,
                (Measurement::Jitter, true) => loops::ping_each::<P, true>(&lane, &act, count, &mut self.singles)?,
                (_, touch) => ends::exchange(&lane, &act, count, touch, true)?,
            };
            self.link.settle(open)?;
            return Ok((self.link.driver.now() - begin, count));
        }
        let one_by_one = measurement.is_one_by_one() && !session.silent;
        let started = match work {
            Some(work) => loops::transfer_working(&lane, &act, count, work),
            None if plain_rma || one_by_one => loops::transfer(&lane, &act, count, window),
            None => loops::stream(&lane, &act, count, window),
        };
        let outcome = started.and_then(|open| self.link.settle(open));
        if !plain_rma {
            outcome?;
            return self.finish_stream(begin, size);
        }
        let took = self.link.driver.now() - begin;
        if let (Target::Computing, Some(probe)) = (session.target, &self.probe) {
            probe.stop_computing(self.number);
        }
        Ok(outcome.map(|()| (took, count))?)
    }

    /// The steps of computing that take as long as one transfer, where computing is to hide
    /// transfers.
    pub(super) fn work_like_a_transfer(&mut self, size: u64, count: u64) -> Result<Option<u64>, UserError> {
        if self.plan.session.measurement != Measurement::Overlap {
            return Ok(None);
        }
        let (took, moved) = self.measured(size, count, None)?;
        let shortest = (0..5).map(|_| self.computed(STEPS)).min().unwrap_or_default();
        let steps = per_operation(took, moved, false) * f64::from(STEPS) / per_operation(shortest, 1, false).max(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and far below 2^52")]
        Ok(Some((steps as u64).max(1)))
    }

    /// Nanoseconds of an operation, and of its work, each alone; none without work.
    pub(super) fn alone(&mut self, size: u64, count: u64, work: Option<u64>) -> Result<Option<[f64; 2]>, UserError> {
        let Some(work) = work else { return Ok(None) };
        let (took, moved) = self.measured(size, count, None)?;
        let begin = self.link.driver.now();
        (0..count).for_each(|_| loops::compute(work));
        let computed = self.link.driver.now() - begin;
        Ok(Some([per_operation(took, moved, false), per_operation(computed, count, false)]))
    }

    fn computed(&self, steps: u32) -> Duration {
        let begin = self.link.driver.now();
        loops::compute(steps.into());
        self.link.driver.now() - begin
    }

    /// Nanoseconds of one reading of the clock.
    pub(super) fn cost_of_the_clock(&self) -> f64 {
        let begin = self.link.driver.now();
        for _ in 1..READINGS {
            std::hint::black_box(self.link.driver.now());
        }
        per_operation(self.link.driver.now() - begin, READINGS, false)
    }

    /// Waits until the server has everything that will arrive.
    fn finish_stream(&mut self, begin: Duration, size: u64) -> Result<(Duration, u64), UserError> {
        if self.plan.session.attribute == AttributeName::Uu {
            let lane = Lane { driver: &self.link.driver, connection: self.link.control, silent: true };
            loops::stream(&lane, &loops::Act::Message(&[0][..marker(size)]), 1, None)?;
        }
        match self.link.recv(ANSWER)? {
            Answer::Done { received: 0 } => Err(DriverError::Failed(Status::TimedOut).into()),
            Answer::Done { received } => Ok((self.link.driver.now() - begin, received)),
            other => Err(out_of_turn(&other)),
        }
    }
}
