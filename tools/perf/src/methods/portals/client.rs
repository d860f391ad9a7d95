//! The end that measures: blocks by Portals and by CCI's own in turn.

use super::shots::{BESIDE, MESSAGES, Shot, WRITES, shots};
use super::side::{Mode, Side, Sides, Strategy, Turn};
use crate::interrupt;
use crate::measure::driver::DriverOptions;
use crate::methods::am::{Own, Way};
use crate::methods::blocks::{LEAST, Sample, in_turn, nanoseconds, size};
use crate::methods::footprint::processor_time;
use crate::methods::middle;
use crate::methods::over::{Kind, Over};
use crate::probe::Probe;
use cci_report::{UserError, while_doing};
use std::time::{Duration, Instant};

/// How long a server makes no calls.
const AWAY: Duration = Duration::from_millis(50);
/// Puts to a server that is away or asleep.
const TRIES: usize = 11;
/// Processors for two programs and their engines.
const ENGINES: usize = 4;
/// A wait for nothing: in figures' times, at least, and at most.
const IDLE: u32 = 10;
const LEAST_IDLE: Duration = Duration::from_millis(200);
const MOST_IDLE: Duration = Duration::from_secs(10);
/// Between two puts to a server that is to be asleep.
const PAUSE: Duration = Duration::from_millis(2);

/// By what the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Portals(Mode),
    Own(Way),
    Over,
}

impl At {
    fn name(self) -> &'static str {
        match self {
            Self::Portals(mode) => mode.name(),
            Self::Own(_) | Self::Over => "cci",
        }
    }
}

/// The end.
pub(super) struct Client<'p> {
    sides: Sides,
    own: Own,
    over: Option<Over>,
    probe: &'p Probe,
    /// Of the run; this process has one of them.
    processors: usize,
    at: At,
}

/// How a message, or an RMA, goes in the measurements of CCI over Portals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Native(Strategy),
    Over(Kind),
}

impl Beside {
    const ALL: [Self; 4] = [
        Self::Native(Strategy::Copy),
        Self::Native(Strategy::Bind),
        Self::Over(Kind::Unreliable),
        Self::Over(Kind::Reliable),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Native(strategy) => strategy.name(),
            Self::Over(Kind::Unreliable) => "cci uu",
            Self::Over(Kind::Reliable) => "cci",
        }
    }

    fn at(self) -> At {
        match self {
            Self::Native(_) => At::Portals(Mode::Generic),
            Self::Over(_) => At::Over,
        }
    }
}

impl<'p> Client<'p> {
    pub(super) fn new(sides: Sides, own: Own, over: Option<Over>, probe: &'p Probe, processors: usize) -> Self {
        Self { sides, own, over, probe, processors, at: At::Portals(Mode::Generic) }
    }

    /// Measures all figures for so long each, and lets the server go.
    /// `beside` opens an engine that nobody uses, beside which the generic interface is measured.
    pub(super) fn measure(mut self, time: Duration, beside: Option<DriverOptions>) -> Result<Vec<Sample>, UserError> {
        let mut samples = Vec::new();
        let has_engine = self.sides.accelerated.is_some();
        if let Some(opening) = beside {
            self.beside(&opening, time, &mut samples)?;
        }
        let mode = if has_engine { Mode::Accelerated } else { Mode::Generic };
        // A program and its engine that share a processor measure its scheduler.
        if !has_engine || self.processors >= ENGINES {
            for shot in shots() {
                self.shot(&shot, mode, time, &mut samples)?;
            }
        }
        if self.over.is_some() {
            for bytes in MESSAGES {
                self.messages(bytes, time, &mut samples)?;
            }
            for bytes in WRITES {
                self.writes(bytes, time, &mut samples)?;
            }
        }
        self.turn_to(At::Portals(mode))?;
        let mut add = |experiment: &str, x, value| {
            samples.push(Sample::new(experiment, x, mode.name(), value));
        };
        let side = self.sides.of(mode)?;
        add("bypass", 8, middle(while_away(side)?));
        let [mut woken, mut bare] = [Vec::new(), Vec::new()];
        for _ in 0..LEAST {
            woken.extend(while_asleep(side)?);
            bare.extend(by_futexes(side, self.probe)?);
        }
        add("waking", 8, middle(woken));
        add("idle", 1, idle(side, (IDLE * time).clamp(LEAST_IDLE, MOST_IDLE))?);
        if self.processors >= ENGINES {
            add("availability", 1 << 20, available(side)?);
        }
        side.turn_to(Turn::End)?;
        samples.push(Sample::new("waking", 8, "bare", middle(bare)));
        Ok(samples)
    }

    /// The generic interface while both processes have an engine that nobody uses, and while none
    /// has one, in turn.
    fn beside(&mut self, opening: &DriverOptions, time: Duration, samples: &mut Vec<Sample>) -> Result<(), UserError> {
        let times = in_turn(&[true, false], time, |is_there, count| {
            self.sides.generic.turn_to(Turn::Unused(is_there))?;
            self.sides.have_unused(opening, is_there)?;
            self.block(&BESIDE, At::Portals(Mode::Generic), count)
        })?;
        for (way, times) in ["generic", "without"].into_iter().zip(times) {
            let value = middle(times.into_iter().map(|ns| BESIDE.value(ns)).collect());
            samples.push(Sample::new(BESIDE.experiment, BESIDE.x, way, value));
        }
        Ok(())
    }

    fn shot(&mut self, shot: &Shot, mode: Mode, time: Duration, samples: &mut Vec<Sample>) -> Result<(), UserError> {
        let own = shot.own.map(|own| At::Own(own.ways()[1]));
        let first = At::Portals(mode);
        let ways: Vec<_> = [first].into_iter().chain(own).collect();
        let times = in_turn(&ways, time, |way, count| self.block(shot, way, count))?;
        for (way, times) in ways.iter().zip(times) {
            let value = middle(times.into_iter().map(|ns| shot.value(ns)).collect());
            samples.push(Sample::new(shot.experiment, shot.x, way.name(), value));
        }
        Ok(())
    }

    fn over(&self) -> Result<&Over, UserError> {
        self.over.as_ref().ok_or_else(|| UserError::new("there is no end of CCI over Portals"))
    }

    /// Blocks of each way in turn. Returns what `block` gives of one operation, by ways.
    fn in_turn<const N: usize>(
        &mut self,
        ways: [Beside; N],
        time: Duration,
        mut block: impl FnMut(&mut Self, Beside, u64) -> Result<[Duration; 2], UserError>,
    ) -> Result<[[f64; 2]; N], UserError> {
        let mut timed = |client: &mut Self, way: Beside, count: u64| {
            client.turn_to(way.at())?;
            block(client, way, count.div_ceil(10))?;
            block(client, way, count)
        };
        let count = size(time, |count| timed(self, ways[0], count).map(|[took, _]| took))?;
        let mut values = [const { [const { Vec::<f64>::new() }; 2] }; N];
        let begin = Instant::now();
        while values[0][0].len() < LEAST || begin.elapsed() < time && !interrupt::is_asked() {
            for (way, values) in ways.iter().zip(&mut values) {
                for (took, values) in timed(self, *way, count)?.into_iter().zip(values) {
                    values.push(nanoseconds(took, count));
                }
            }
        }
        Ok(values.map(|values| values.map(middle)))
    }

    /// Messages there and back: native puts by both strategies, and CCI over Portals.
    fn messages(&mut self, bytes: u64, time: Duration, samples: &mut Vec<Sample>) -> Result<(), UserError> {
        let found = self.in_turn(Beside::ALL, time, |client, way, count| {
            let begin = Instant::now();
            match way {
                Beside::Native(strategy) => client.sides.of(Mode::Generic)?.echo_by(strategy, bytes, count)?,
                Beside::Over(kind) => client.over()?.echo(kind, bytes as usize, count)?,
            }
            Ok([begin.elapsed(), Duration::ZERO])
        })?;
        let mut add = |experiment: &str, way: Beside, value| {
            samples.push(Sample::new(experiment, bytes, way.name(), value));
        };
        for (way, [time, _]) in Beside::ALL.into_iter().zip(found) {
            add("over", way, time / 2.0);
            #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
            add("over-bandwidth", way, bytes as f64 * 2e9 / time);
        }
        Ok(())
    }

    /// Puts with ack, and RMA writes over Portals, one at a time.
    fn writes(&mut self, bytes: u64, time: Duration, samples: &mut Vec<Sample>) -> Result<(), UserError> {
        let ways = [Beside::Native(Strategy::Copy), Beside::Over(Kind::Reliable)];
        let found = self.in_turn(ways, time, |client, way, count| {
            let begin = Instant::now();
            let overhead = match way {
                Beside::Native(_) => client.sides.of(Mode::Generic)?.write(bytes, count)?,
                Beside::Over(_) => client.over()?.write(bytes, count)?,
            };
            Ok([begin.elapsed(), overhead])
        })?;
        for (way, values) in ["put", "cci"].into_iter().zip(found) {
            for (experiment, value) in ["over-rma", "over-overhead"].into_iter().zip(values) {
                samples.push(Sample::new(experiment, bytes, way, value));
            }
        }
        Ok(())
    }

    /// So many exchanges by this way, after some that are not timed.
    fn block(&mut self, shot: &Shot, at: At, count: u64) -> Result<Duration, UserError> {
        self.turn_to(at)?;
        self.run(shot, at, count.div_ceil(10))?;
        let begin = Instant::now();
        self.run(shot, at, count)?;
        Ok(begin.elapsed())
    }

    fn run(&mut self, shot: &Shot, at: At, count: u64) -> Result<(), UserError> {
        match (at, &shot.own) {
            (At::Own(way), Some(own)) => self.own.run(own, way, count),
            (At::Own(_), None) | (At::Over, _) => Ok(()),
            (At::Portals(mode), _) => self.sides.of(mode)?.run(shot.load, count),
        }
    }

    fn turn_to(&mut self, next: At) -> Result<(), UserError> {
        if self.at == next {
            return Ok(());
        }
        if let At::Own(now) = self.at {
            let next = if let At::Own(next) = next { Some(next) } else { None };
            self.own.turn_to(now, next)?;
            // Where it goes from the end of CCI's own.
            self.at = next.map_or(At::Portals(Mode::Generic), At::Own);
        }
        if self.at == At::Over {
            self.over()?.leave()?;
            self.at = At::Portals(Mode::Generic);
        }
        if let At::Portals(mode) = self.at
            && self.at != next
        {
            let turn = match next {
                At::Portals(mode) => Turn::Portals(mode),
                At::Own(way) => Turn::Own(way as u8),
                At::Over => Turn::Over,
            };
            self.sides.of(mode)?.turn_to(turn)?;
        }
        self.at = next;
        Ok(())
    }
}

/// How long acks of puts take while the server makes no calls.
fn while_away(side: &mut Side) -> Result<Vec<f64>, UserError> {
    let mut times = Vec::new();
    for _ in 0..LEAST {
        side.turn_to(Turn::Away(u32::try_from(AWAY.as_millis()).unwrap_or(u32::MAX)))?;
        // It is away by then, and its engine asleep.
        std::thread::sleep(PAUSE);
        let begin = Instant::now();
        side.acknowledged()?;
        times.push(nanoseconds(begin.elapsed(), 1));
        // It comes back.
        std::thread::sleep(AWAY);
    }
    Ok(times)
}

/// How long acks of puts take while the server sleeps in a wait. This end polls.
fn while_asleep(side: &mut Side) -> Result<Vec<f64>, UserError> {
    side.turn_to(Turn::Sleep)?;
    let mut times = Vec::new();
    for _ in 0..TRIES {
        std::thread::sleep(PAUSE);
        let begin = Instant::now();
        side.acknowledged()?;
        times.push(nanoseconds(begin.elapsed(), 1));
    }
    Ok(times)
}

/// What is left of the server's processor while 1 MiB after the other arrives: what it computes
/// then, as a part of what it computes alone.
fn available(side: &mut Side) -> Result<f64, UserError> {
    let mut parts = Vec::new();
    for _ in 0..LEAST {
        let [alone, beside] = [side.computed(AWAY, 0)?, side.computed(AWAY, 1 << 20)?];
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        parts.push(beside as f64 / alone.max(1) as f64);
    }
    Ok(middle(parts))
}

/// The same by two bare futexes: the server sleeps on one, and this end on the other.
fn by_futexes(side: &mut Side, probe: &Probe) -> Result<Vec<f64>, UserError> {
    side.turn_to(Turn::Bare(TRIES as u32))?;
    let times = probe.wake_by_futexes(TRIES, PAUSE).map_err(while_doing("cannot sleep on a word"))?;
    Ok(times.into_iter().map(|time| nanoseconds(time, 1)).collect())
}

/// Processor time of a wait for nothing, as a part of the time; the server sleeps too.
fn idle(side: &Side, time: Duration) -> Result<f64, UserError> {
    let (begin, before) = (Instant::now(), processor_time());
    side.idle(time)?;
    Ok(processor_time().saturating_sub(before).as_secs_f64() / begin.elapsed().as_secs_f64())
}
