//! A machine that behaves exactly as LogP says: what the fit is held against, and what the method
//! is tested with.
//!
//! A processor is busy `o_s` for each message that it sends and `o_r` for each that it takes;
//! between two messages that leave a processor, and between two that are taken by it, lies at least
//! the gap; a message is on its way for `L`. The gap of a message is `g`, or what its bytes take at
//! `G` if that is longer (LogGP).

use super::machine::{Burst, Machine, Times};
use cci_report::UserError;

/// The parameters, nanoseconds (`bulk`: nanoseconds per byte).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Parameters {
    pub(crate) latency: f64,
    pub(crate) send: f64,
    pub(crate) receive: f64,
    pub(crate) gap: f64,
    pub(crate) bulk: f64,
}

/// The machine.
#[derive(Clone, Debug)]
pub(crate) struct Ideal {
    parameters: Parameters,
    size: u64,
}

/// A processor and its interface: until when each is taken.
#[derive(Clone, Copy, Debug, Default)]
struct Processor {
    busy: f64,
    sends: f64,
    takes: f64,
}

impl Processor {
    /// Sends at the earliest moment; when the message leaves.
    fn send(&mut self, parameters: &Parameters, gap: f64) -> f64 {
        self.busy += parameters.send;
        let departure = self.busy.max(self.sends);
        self.sends = departure + gap;
        departure
    }

    /// Takes a message that has come at this time.
    fn take(&mut self, parameters: &Parameters, arrival: f64, gap: f64) {
        let begin = arrival.max(self.busy).max(self.takes);
        self.takes = begin + gap;
        self.busy = begin + parameters.receive;
    }

    /// When a message that comes at this time can be taken at the earliest.
    fn ready(&self, arrival: f64) -> f64 {
        arrival.max(self.takes)
    }
}

impl Ideal {
    pub(crate) fn new(parameters: Parameters, size: u64) -> Self {
        Self { parameters, size }
    }

    /// How long a burst takes.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    pub(crate) fn times(&self, burst: &Burst) -> Times {
        let parameters = &self.parameters;
        let request_gap = parameters.gap.max(parameters.bulk * self.size as f64);
        let (mut here, mut there) = (Processor::default(), Processor::default());
        let mut replies = std::collections::VecDeque::new();
        let handle = |here: &mut Processor, replies: &mut std::collections::VecDeque<f64>| {
            if let Some(arrival) = replies.pop_front() {
                here.take(parameters, arrival, parameters.gap);
            }
        };
        for _ in 0..burst.length {
            if replies.len() as u64 >= burst.window {
                handle(&mut here, &mut replies);
            }
            let departure = here.send(parameters, request_gap);
            there.take(parameters, departure + parameters.latency, request_gap);
            replies.push_back(there.send(parameters, parameters.gap) + parameters.latency);
            here.busy += burst.delay as f64;
            if burst.looks && replies.front().is_some_and(|arrival| here.ready(*arrival) <= here.busy) {
                handle(&mut here, &mut replies);
            }
        }
        let issued = here.busy;
        while !replies.is_empty() {
            handle(&mut here, &mut replies);
        }
        Times { issued, answered: here.busy }
    }
}

impl Machine for Ideal {
    fn burst(&mut self, burst: &Burst) -> Result<Times, UserError> {
        Ok(self.times(burst))
    }

    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    fn compute(&mut self, delay: u64) -> Result<f64, UserError> {
        Ok(delay as f64)
    }

    fn resize(&mut self, size: u64) -> Result<(), UserError> {
        self.size = size;
        Ok(())
    }

    fn largest(&self) -> u64 {
        8192
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters =
        Parameters { latency: 5000.0, send: 1000.0, receive: 1500.0, gap: 3000.0, bulk: 1.0 };

    fn times(length: u64, delay: u64, window: u64, looks: bool) -> Times {
        Ideal::new(PARAMETERS, 8).times(&Burst { length, delay, window, looks })
    }

    #[test]
    fn a_lone_request_takes_two_overheads_and_the_latency_each_way() {
        let lone = times(1, 0, 8, false);
        assert_eq!(lone, Times { issued: 1000.0, answered: 2.0 * (1000.0 + 5000.0 + 1500.0) });
    }

    #[test]
    fn a_short_burst_takes_the_overhead_of_each_and_a_long_one_the_gap() {
        assert!((times(4, 0, 64, false).issued - 4000.0).abs() < 1e-9);
        let per_message = (times(1024, 0, 64, true).issued - times(512, 0, 64, true).issued) / 512.0;
        assert!((per_message - 3000.0).abs() < 1e-6, "{per_message}");
    }

    #[test]
    fn a_long_delay_hides_the_gap_and_shows_both_overheads() {
        let per_message = (times(512, 9000, 64, true).issued - times(256, 9000, 64, true).issued) / 256.0;
        assert!((per_message - (1000.0 + 9000.0 + 1500.0)).abs() < 1e-6, "{per_message}");
    }

    #[test]
    fn a_window_below_the_round_trip_is_what_limits() {
        let per_message = (times(1024, 0, 2, true).issued - times(512, 0, 2, true).issued) / 512.0;
        assert!((per_message - 15000.0 / 2.0).abs() < 1e-6, "{per_message}");
    }

    #[test]
    fn bytes_take_their_time_once_that_is_longer_than_the_gap() {
        let per_message = |size| {
            let machine = Ideal::new(PARAMETERS, size);
            let times = |length| machine.times(&Burst { length, delay: 0, window: 64, looks: true }).issued;
            (times(1024) - times(512)) / 512.0
        };
        assert!((per_message(2000) - 3000.0).abs() < 1e-6);
        assert!((per_message(8000) - 8000.0).abs() < 1e-6);
    }
}
