//! Both ends of a breakdown: the same rounds in the same order, of three blocks each: bare, as it
//! is, and stamped.

use crate::interrupt;
use crate::measure::driver::{Completion, Driver, DriverError, PostError};
use crate::measure::facade::Facade;
use crate::measure::loops::{Act, Lane, ping, pong};
use crate::probe::Probe;
use crate::probe::ticks::{tick_ns, ticks};
use cci::Connection;
use cci::trace::{Layer, Spent, Stamps};
use cci_report::names::ProbeKind;
use cci_report::statistics::median;
use cci_report::{UserError, while_doing};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Round trips of a block.
const COUNT: u64 = 64;
/// Of a stamped block every so many-th is stamped, so that those between find everything as it is
/// without stamps.
const EVERY: u64 = 8;
/// Lengths of the messages by which the client says whether there is another round.
const AGAIN: usize = 1;
const OVER: usize = 0;

/// What an end spent on one message: nanoseconds in each layer, as in [`Layer::ALL`].
pub(super) type Layers = [f64; Layer::COUNT];

/// Medians of the samples of an end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Medians {
    /// A round trip, as it is, and bare: medians, nanoseconds; 0 of the server.
    pub(super) total: f64,
    pub(super) bare: f64,
    /// Sending a message, and receiving one: medians.
    pub(super) send: Layers,
    pub(super) receive: Layers,
}

/// An end.
pub(super) struct End<'a> {
    driver: Facade,
    connection: Connection,
    stamps: &'a Stamps,
    /// What one stamp takes, nanoseconds.
    stamp: f64,
    probe: &'a mut Probe,
    kind: ProbeKind,
    /// A request, or a reply.
    message: Vec<u8>,
    samples: Samples,
}

#[derive(Default)]
struct Samples {
    total: Vec<f64>,
    bare: Vec<f64>,
    send: [Vec<f64>; Layer::COUNT],
    receive: [Vec<f64>; Layer::COUNT],
}

/// Adds a call to its layers, without what the stamps themselves take.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn note(layers: &mut [Vec<f64>; Layer::COUNT], spent: &Spent, stamp: f64) {
    for ((layer, ticks), stamps) in layers.iter_mut().zip(spent.ticks).zip(spent.stamps) {
        layer.push(ticks as f64 * tick_ns() - stamps as f64 * stamp);
    }
}

impl<'a> End<'a> {
    pub(super) fn new(
        driver: Facade,
        connection: Connection,
        stamps: &'a Stamps,
        probe: &'a mut Probe,
        kind: ProbeKind,
        size: u64,
    ) -> Result<Self, UserError> {
        let message = vec![1; usize::try_from(size).map_err(while_doing("the size is too large"))?];
        let stamp = cost_of_stamp(stamps);
        Ok(Self { driver, connection, stamps, stamp, probe, kind, message, samples: Samples::default() })
    }

    /// Measures until the time is over, but so many rounds at least. A signal ends it after a
    /// round.
    pub(super) fn lead(mut self, time: Duration, rounds: u32) -> Result<Medians, UserError> {
        let (begin, mut round) = (Instant::now(), 0);
        while round == 0 || !interrupt::is_asked() && (round < rounds || begin.elapsed() < time) {
            round += 1;
            self.send(&self.message[..AGAIN])?;
            let bare = self.bare()?;
            self.samples.bare.push(per_round_trip(bare));
            let since = Instant::now();
            ping::<_, false>(&self.lane(), &Act::Message(&self.message), COUNT)?;
            self.samples.total.push(per_round_trip(since.elapsed()));
            self.stamped_block::<true>()?;
        }
        self.send(&self.message[..OVER])?;
        Ok(self.medians())
    }

    /// Takes part in rounds until there is none more.
    pub(super) fn follow(mut self) -> Result<Medians, UserError> {
        while self.receive()? != OVER {
            self.bare()?;
            pong::<_, false>(&self.lane(), &Act::Message(&self.message), COUNT)?;
            self.stamped_block::<false>()?;
        }
        Ok(self.medians())
    }

    fn lane(&self) -> Lane<'_, Facade> {
        Lane { driver: &self.driver, connection: self.connection, silent: true }
    }

    /// A block of which some round trips are stamped. The end that leads sends first.
    fn stamped_block<const LEADS: bool>(&mut self) -> Result<(), DriverError> {
        for number in 0..COUNT {
            let is_stamped = number % EVERY == 0;
            if !LEADS {
                self.receive_of_block(is_stamped)?;
            }
            if is_stamped {
                self.stamped_send()?;
            } else {
                self.send(&self.message)?;
            }
            if LEADS {
                self.receive_of_block(is_stamped)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn receive_of_block(&mut self, is_stamped: bool) -> Result<(), DriverError> {
        if is_stamped { self.stamped_receive() } else { self.receive().map(drop) }
    }

    fn bare(&mut self) -> Result<Duration, UserError> {
        self.probe.run(self.kind, self.message.len() as u64, COUNT).map_err(while_doing("the probe failed"))
    }

    #[inline(always)]
    fn send(&self, message: &[u8]) -> Result<(), DriverError> {
        loop {
            match self.driver.send(self.connection, message, true) {
                Ok(()) => return Ok(()),
                // Nothing comes before this message has gone.
                Err(PostError::Full) => {
                    self.driver.poll::<false>()?;
                }
                Err(PostError::Driver(error)) => return Err(error),
            }
        }
    }

    #[inline(always)]
    fn receive(&self) -> Result<usize, DriverError> {
        loop {
            if let Completion::Received(len) = self.driver.poll::<false>()? {
                return Ok(len);
            }
        }
    }

    fn stamped_send(&mut self) -> Result<(), DriverError> {
        self.stamps.begin();
        let sent = self.send(&self.message);
        let spent = self.stamps.end();
        note(&mut self.samples.send, &spent, self.stamp);
        sent
    }

    /// Only the call that found the message counts: those before it waited.
    fn stamped_receive(&mut self) -> Result<(), DriverError> {
        loop {
            self.stamps.begin();
            let seen = self.driver.poll::<false>();
            let spent = self.stamps.end();
            if let Completion::Received(_) = seen? {
                note(&mut self.samples.receive, &spent, self.stamp);
                return Ok(());
            }
        }
    }

    fn medians(&self) -> Medians {
        let layers = |of: &[Vec<f64>; Layer::COUNT]| std::array::from_fn(|layer| median(&of[layer]));
        let Samples { total, bare, send, receive } = &self.samples;
        Medians { total: median(total), bare: median(bare), send: layers(send), receive: layers(receive) }
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn per_round_trip(took: Duration) -> f64 {
    took.as_nanos() as f64 / COUNT as f64
}

/// What one stamp takes, nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn cost_of_stamp(stamps: &Stamps) -> f64 {
    const STAMPS: u64 = 64;
    let trial = |_| {
        stamps.begin();
        let begin = ticks();
        for _ in 0..STAMPS {
            stamps.enter(Layer::Semantics);
        }
        let took = ticks().wrapping_sub(begin);
        stamps.end();
        took as f64 * tick_ns() / STAMPS as f64
    };
    median(&(0..101).map(trial).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_costs_something_and_is_taken_off() {
        let cost = cost_of_stamp(&Stamps::new(ticks));
        assert!(cost > 0.0, "{cost}");
        let mut layers: [Vec<f64>; Layer::COUNT] = std::array::from_fn(|_| Vec::new());
        note(&mut layers, &Spent { ticks: [1000, 0, 2000, 0], stamps: [1, 0, 2, 0] }, 3.0);
        assert!((layers[0][0] - (1000.0 * tick_ns() - 3.0)).abs() < 1e-9);
        assert!((layers[2][0] - (2000.0 * tick_ns() - 6.0)).abs() < 1e-9);
        assert!(layers[1][0].abs() < 1e-9);
    }
}
