//! Culler's method: bursts of growing length with growing delay between the requests tell the
//! parameters apart.
//!
//! | figure | from |
//! |---|---|
//! | `o_s` | what each further request of a short burst takes: no reply has come yet |
//! | `g` | what each further request of a long burst without delay takes: it waits for replies |
//! | `o_r` | what each further request takes when the delay is as long as the round trip: `o_s + delay + o_r` |
//! | `L` | half the round trip of a lone request, less both overheads |
//! | `G` | how much longer each further request of a long burst takes for each byte more |

use super::ideal::{Ideal, Parameters};
use super::machine::{Burst, Machine, Times};
use crate::interrupt;
use cci_report::UserError;
use cci_report::statistics::median;
use std::collections::BTreeMap;

/// Requests of the longest short burst.
const SHORT: u64 = 4;
/// Runs of a burst when it is looked what the machine is like.
const LOOKS: u32 = 5;
/// A window, in requests.
const WINDOWS: std::ops::RangeInclusive<u64> = 8..=512;
/// The longest burst with a delay of about the round trip: so few are in flight then that it is
/// soon steady.
const LONGEST_DELAYED: u64 = 64;
/// The longest burst, in windows: half of it is steady.
const LONGEST: u64 = 8;
/// Sizes from which the bulk gap is told, as eighths of the largest message, which itself may need
/// a second frame for its head.
const EIGHTHS: [u64; 3] = [3, 5, 7];

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Effort<'a> {
    /// Rounds of all bursts at least.
    pub(crate) rounds: u32,
    /// Whether there is time for another round.
    pub(crate) goes_on: &'a dyn Fn() -> bool,
}

/// A measured point of the signature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) burst: Burst,
    /// The delay as it really was, nanoseconds.
    pub(crate) delay: f64,
    pub(crate) times: Times,
}

impl Point {
    /// Nanoseconds per request until all were issued.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    pub(crate) fn per_message(&self) -> f64 {
        self.times.issued / self.burst.length.max(1) as f64
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) parameters: Parameters,
    /// Round trip of a lone request.
    pub(crate) round_trip: f64,
    pub(crate) window: u64,
    /// Root of the mean square of what the ideal machine with these parameters leaves over, as a
    /// part of the points.
    pub(crate) residual: f64,
    pub(crate) points: Vec<Point>,
}

impl Found {
    /// The delay at which the average turns from the gap to delay and overheads; none where the gap
    /// hides behind these.
    pub(crate) fn turn(&self) -> Option<f64> {
        let Parameters { send, receive, gap, .. } = self.parameters;
        Some(gap - send - receive).filter(|turn| *turn > 0.0)
    }

    /// Whether the window, and not the machine, was what limited long bursts.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    pub(crate) fn is_window_bound(&self) -> bool {
        self.parameters.gap * (self.window as f64) < self.round_trip
    }
}

/// Measures everything for requests of `size` bytes. A signal ends it after a round, and one round
/// is always measured.
pub(crate) fn measure<M: Machine>(machine: &mut M, size: u64, effort: &Effort<'_>) -> Result<Found, UserError> {
    machine.resize(size)?;
    let plan = Plan::new(machine)?;
    let mut runs = Runs::new(&plan, machine.largest());
    let mut round = 0;
    while round == 0 || !interrupt::is_asked() && (round < effort.rounds || (effort.goes_on)()) {
        round += 1;
        runs.round(machine, &plan)?;
        runs.round_of_bulk(machine, &plan)?;
        machine.resize(size)?;
    }
    Ok(plan.fit(runs.points(&plan), size, runs.bulk_gap()))
}

/// Which bursts are measured.
#[derive(Clone, Debug)]
struct Plan {
    window: u64,
    /// Bursts that do not look: for the overhead of a request, and the first of them for the round
    /// trip.
    short: Vec<Burst>,
    /// The signature: all lengths for each delay.
    long: Vec<Burst>,
    /// Delays from which the overheads are told, nanoseconds.
    turned: Vec<u64>,
}

impl Plan {
    /// Looks roughly what the machine is like.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of nanoseconds, at least 0")]
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    fn new<M: Machine>(machine: &mut M) -> Result<Self, UserError> {
        let mut fastest = |burst: Burst| {
            // What disturbs makes it slower only, and delays that follow from it would be without
            // measure.
            let runs = (0..LOOKS).map(|_| machine.burst(&burst)).collect::<Result<Vec<_>, _>>()?;
            let of = |time: fn(&Times) -> f64| runs.iter().map(time).fold(f64::INFINITY, f64::min);
            Ok::<_, UserError>(Times { issued: of(|times| times.issued), answered: of(|times| times.answered) })
        };
        let lone = fastest(Burst { length: 1, delay: 0, window: 1, looks: false })?;
        let send = lone.issued.max(1.0);
        // Twice as many as are on their way when each further request takes no longer than its
        // sending.
        let window = ((2.0 * lone.answered / send) as u64).next_power_of_two().clamp(*WINDOWS.start(), *WINDOWS.end());
        let steady = fastest(Burst { length: 4 * window, delay: 0, window, looks: true })?.issued / (4 * window) as f64;
        // No reply comes before the last of these is issued.
        let short = ((lone.answered / 2.0 / send) as u64).clamp(2, SHORT);
        let short = (1..=short).map(|length| Burst { length, delay: 0, window, looks: false }).collect();
        let round_trip = lone.answered as u64;
        let steady = steady as u64;
        let turned = vec![round_trip.max(2 * steady), (round_trip + round_trip / 2).max(3 * steady)];
        let mut delays = vec![0, steady / 2, steady, 2 * steady];
        delays.extend(&turned);
        delays.sort_unstable();
        delays.dedup();
        let mut long = Vec::new();
        for delay in delays {
            let is_turned = turned.contains(&delay);
            let longest = if is_turned { LONGEST_DELAYED.min(LONGEST * window) } else { LONGEST * window };
            let lengths = std::iter::successors(Some(1), |length| Some(2 * length)).take_while(|at| *at <= longest);
            long.extend(lengths.map(|length| Burst { length, delay, window, looks: true }));
        }
        Ok(Self { window, short, long, turned })
    }

    /// All of them.
    fn bursts(&self) -> impl Iterator<Item = &Burst> {
        self.short.iter().chain(&self.long)
    }

    /// The parameters that the points tell.
    fn fit(&self, points: Vec<Point>, size: u64, bulk: f64) -> Found {
        let short: Vec<_> = points.iter().filter(|point| !point.burst.looks).collect();
        let send = slope(short.iter().map(|point| (count(point.burst.length), point.times.issued)));
        let round_trip = short.first().map_or(0.0, |point| point.times.answered);
        let steady = |delay: u64| {
            let mut of: Vec<_> =
                points.iter().filter(|point| point.burst.looks && point.burst.delay == delay).collect();
            of.sort_by_key(|point| point.burst.length);
            let [.., half, whole] = of[..] else { return (0.0, 0.0) };
            let per_message = (whole.times.issued - half.times.issued) / count(whole.burst.length - half.burst.length);
            (per_message, whole.delay)
        };
        let gap = steady(0).0;
        let overheads: Vec<_> =
            self.turned.iter().map(|delay| steady(*delay)).map(|(all, delay)| all - delay).collect();
        let receive = median(&overheads) - send;
        let latency = round_trip / 2.0 - send - receive;
        let parameters = Parameters { latency, send, receive, gap, bulk };
        let long: Vec<_> = points.into_iter().filter(|point| point.burst.looks).collect();
        let residual = residual(parameters, size, &long);
        Found { parameters, round_trip, window: self.window, residual, points: long }
    }
}

/// Every burst in turn, again and again, so that what disturbs disturbs all alike.
struct Runs {
    /// Of each burst.
    times: Vec<Vec<Times>>,
    /// What each delay took.
    delays: BTreeMap<u64, Vec<f64>>,
    /// What each further request of a long burst took, of each size.
    bulk: Vec<(u64, Vec<f64>)>,
}

impl Runs {
    fn new(plan: &Plan, largest: u64) -> Self {
        let bulk = EIGHTHS.iter().map(|eighths| (largest * eighths / 8, Vec::new())).collect();
        Self { times: vec![Vec::new(); plan.bursts().count()], delays: BTreeMap::new(), bulk }
    }

    fn round<M: Machine>(&mut self, machine: &mut M, plan: &Plan) -> Result<(), UserError> {
        for (burst, times) in plan.bursts().zip(&mut self.times) {
            if burst.length == 1 && burst.looks {
                self.delays.entry(burst.delay).or_default().push(machine.compute(burst.delay)?);
            }
            times.push(machine.burst(burst)?);
        }
        Ok(())
    }

    fn round_of_bulk<M: Machine>(&mut self, machine: &mut M, plan: &Plan) -> Result<(), UserError> {
        let half = LONGEST / 2 * plan.window;
        let burst = |length| Burst { length, delay: 0, window: plan.window, looks: true };
        for (size, runs) in &mut self.bulk {
            machine.resize(*size)?;
            let (short, long) = (machine.burst(&burst(half))?, machine.burst(&burst(2 * half))?);
            runs.push((long.issued - short.issued) / count(half));
        }
        Ok(())
    }

    /// The medians.
    fn points(&self, plan: &Plan) -> Vec<Point> {
        let delay = |burst: &Burst| self.delays.get(&burst.delay).map_or(0.0, |delays| median(delays));
        let point =
            |(burst, times): (&Burst, &Vec<Times>)| Point { burst: *burst, delay: delay(burst), times: middle(times) };
        plan.bursts().zip(&self.times).map(point).collect()
    }

    /// How much longer each further request of a long burst takes for each byte more, nanoseconds.
    fn bulk_gap(&self) -> f64 {
        slope(self.bulk.iter().map(|(size, runs)| (count(*size), median(runs))))
    }
}

/// What the ideal machine leaves over.
fn residual(parameters: Parameters, size: u64, points: &[Point]) -> f64 {
    // What the size adds is in the measured latency and gap already.
    let ideal = Ideal::new(Parameters { bulk: 0.0, ..parameters }, size);
    let square = |point: &Point| {
        let expected = ideal.times(&point.burst).issued;
        (expected / point.times.issued.max(f64::MIN_POSITIVE) - 1.0).powi(2)
    };
    (points.iter().map(square).sum::<f64>() / count(points.len() as u64).max(1.0)).sqrt()
}

/// The median times of some runs.
fn middle(runs: &[Times]) -> Times {
    let of = |time: fn(&Times) -> f64| median(&runs.iter().map(time).collect::<Vec<_>>());
    Times { issued: of(|times| times.issued), answered: of(|times| times.answered) }
}

/// The slope of the line that fits best.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let total = points.clone().count().max(1) as f64;
    let (x, y) = points.clone().fold((0.0, 0.0), |(x, y), point| (x + point.0 / total, y + point.1 / total));
    let (above, below) = points.fold((0.0, 0.0), |(above, below), point| {
        (above + (point.0 - x) * (point.1 - y), below + (point.0 - x).powi(2))
    });
    if below > 0.0 { above / below } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn count(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once() -> Effort<'static> {
        Effort { rounds: 1, goes_on: &|| false }
    }

    /// Within 2 % of each.
    fn recovered(given: Parameters) {
        let found = measure(&mut Ideal::new(given, 8), 8, &once()).unwrap();
        let pairs = |it: &Parameters| [it.latency, it.send, it.receive, it.gap, it.bulk];
        for (given, found) in pairs(&given).into_iter().zip(pairs(&found.parameters)) {
            assert!((given - found).abs() <= 0.02 * given, "{given} was found as {found}");
        }
        assert!(found.residual < 0.02, "{}", found.residual);
        assert!(!found.is_window_bound());
    }

    #[test]
    fn the_parameters_of_a_machine_are_recovered() {
        for (latency, send, receive, gap, bulk) in [
            (5000.0, 1000.0, 1500.0, 3000.0, 1.0),
            (100.0, 40.0, 30.0, 90.0, 0.1),
            (45_000.0, 2700.0, 5300.0, 48_000.0, 25.0),
            (29_600.0, 3100.0, 2900.0, 30_000.0, 10.0),
            (1_000_000.0, 3000.0, 3000.0, 8000.0, 8.0),
        ] {
            recovered(Parameters { latency, send, receive, gap, bulk });
        }
    }

    #[test]
    fn the_average_turns_where_the_gap_equals_overheads_and_delay() {
        let given = Parameters { latency: 5000.0, send: 1000.0, receive: 1500.0, gap: 3000.0, bulk: 1.0 };
        let found = measure(&mut Ideal::new(given, 8), 8, &once()).unwrap();
        assert!((found.turn().unwrap() - 500.0).abs() < 10.0);
        // Overheads that are longer than the gap are what a long burst shows: there is no turn.
        let hidden = Parameters { gap: 2000.0, ..given };
        let found = measure(&mut Ideal::new(hidden, 8), 8, &once()).unwrap();
        assert!((found.parameters.gap - 2500.0).abs() < 10.0, "{found:?}");
        assert!(found.turn().is_none_or(|turn| turn < 10.0));
    }

    /// A machine that takes longer now and then, and whose delays are not what was asked for.
    struct Disturbed(Ideal, u32);

    impl Machine for Disturbed {
        fn burst(&mut self, burst: &Burst) -> Result<Times, UserError> {
            self.1 += 1;
            let late = if self.1.is_multiple_of(5) { 50_000.0 } else { 0.0 };
            let times = self.0.times(&Burst { delay: burst.delay * 11 / 10, ..*burst });
            Ok(Times { issued: times.issued + late, answered: times.answered + late })
        }

        fn compute(&mut self, delay: u64) -> Result<f64, UserError> {
            self.0.compute(delay * 11 / 10)
        }

        fn resize(&mut self, size: u64) -> Result<(), UserError> {
            self.0.resize(size)
        }

        fn largest(&self) -> u64 {
            self.0.largest()
        }
    }

    #[test]
    fn disturbances_and_inexact_delays_do_not_show() {
        let given = Parameters { latency: 500.0, send: 40.0, receive: 30.0, gap: 90.0, bulk: 0.1 };
        let effort = Effort { rounds: 11, goes_on: &|| false };
        let found = measure(&mut Disturbed(Ideal::new(given, 8), 0), 8, &effort).unwrap();
        for (given, found) in [
            (given.latency, found.parameters.latency),
            (given.send, found.parameters.send),
            (given.receive, found.parameters.receive),
            (given.gap, found.parameters.gap),
        ] {
            assert!((given - found).abs() <= 0.02 * given, "{given} was found as {found}");
        }
    }

    #[test]
    fn a_machine_that_is_no_logp_machine_leaves_much_over() {
        /// Every request takes longer than the one before it.
        struct Slowing(Ideal);
        impl Machine for Slowing {
            fn burst(&mut self, burst: &Burst) -> Result<Times, UserError> {
                let times = self.0.times(burst);
                let factor = 1.0 + count(burst.length) / 50.0;
                Ok(Times { issued: times.issued * factor, answered: times.answered * factor })
            }
            fn compute(&mut self, delay: u64) -> Result<f64, UserError> {
                self.0.compute(delay)
            }
            fn resize(&mut self, size: u64) -> Result<(), UserError> {
                self.0.resize(size)
            }
            fn largest(&self) -> u64 {
                self.0.largest()
            }
        }
        let given = Parameters { latency: 500.0, send: 40.0, receive: 30.0, gap: 90.0, bulk: 0.1 };
        let found = measure(&mut Slowing(Ideal::new(given, 8)), 8, &once()).unwrap();
        assert!(found.residual > 0.2, "{}", found.residual);
    }

    #[test]
    fn the_slope_of_points() {
        assert!((slope([(1.0, 5.0), (2.0, 7.0), (3.0, 9.0)].into_iter()) - 2.0).abs() < 1e-12);
        assert!(slope([(1.0, 5.0)].into_iter()).abs() < 1e-12);
    }
}
