//! Active Messages by several mappings, beside the native VI that most of them stand on.
//! `docs/design/perf-am.md` has the method.

mod native;
pub(super) mod parts;

use crate::device::Device;
use crate::interrupt;
use crate::machine;
use crate::measure::driver::DriverOptions;
use crate::measure::facade::device;
use crate::methods::am::{Active, Way};
use crate::methods::logp::{Line, LineParameters, exchanges, of_line};
use crate::methods::{Found, pairs};
use crate::probe::ticks::tick_ns;
use crate::workers::{Channel, Work, Workers};
use cci_am::Mapping;
use cci_am_via::{Buffers, Options, Unwatched, Variant, ViaMapping, Watch};
use cci_report::finding::{BulkPoint, Finding, MappingPart, MappingPoint, Mappings};
use cci_report::statistics::median;
use cci_report::{UserError, while_doing};
use cci_via::Part;
use native::{Card, Opened};
use parts::{Clock, Spent, Told, category};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Bytes of the payload of a request and of its reply.
const PAYLOAD: u64 = 8;
/// Bytes that the engine and a mapping over VI put before it.
const ENGINE: u64 = 8;
const FRAME: u64 = 8;
/// Bytes of bulk requests: those of the paper's Figure 5, and longer ones.
const BULK: [u64; 9] = [64, 256, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Bulk requests under way.
const WINDOW: u64 = 8;
/// Bytes of the paper's Table 5.
const COPIED: usize = 1 << 10;
/// Blocks of exchanges one after the other: how many at least, and how long each lasts.
const LEAST: usize = 9;
const BLOCK: Duration = Duration::from_micros(300);
/// Exchanges before parts are told, and at least while they are.
const FIRST: u64 = 1_000;

/// The mappings by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MappingName {
    /// Straight over CCI.
    Cci,
    /// The paper's three, and the one that it proposes.
    V1,
    /// The second: RDMA writes into a ring.
    V2,
    /// The third: one VI, one counter of credits.
    V3,
    /// The third with immediate data of 64 bits.
    V4,
}

impl MappingName {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::V1, Self::V2, Self::V3, Self::V4, Self::Cci];

    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.variant().map_or("cci", Variant::name)
    }

    /// The mapping with this name.
    ///
    /// # Errors
    ///
    /// There is none, with a sentence.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mapping| mapping.name() == name);
        found.ok_or_else(|| format!("{name} is no mapping; give v1, v2, v3, v4 or cci"))
    }

    fn variant(self) -> Option<Variant> {
        match self {
            Self::Cci => None,
            Self::V1 => Some(Variant::V1),
            Self::V2 => Some(Variant::V2),
            Self::V3 => Some(Variant::V3),
            Self::V4 => Some(Variant::V4),
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct MappingsOptions {
    /// The device of both ends.
    pub device: Device,
    /// The mappings, in the order of the table.
    pub mappings: Vec<MappingName>,
    /// Credits of a channel; the sweep has a line for each.
    pub credits: Vec<u16>,
    /// Messages after which credits go back, with a line for each; a quarter of the credits when
    /// empty.
    pub update_every: Vec<u16>,
    /// Buffers by the power of the credits, as the paper prints it.
    pub by_power: bool,
    /// Time for each line.
    pub time: Duration,
}

/// What a pair of processes measures.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum LineOf {
    Native,
    Active(Shape),
    /// What its time goes to, in place of how long it takes.
    Parts(Shape),
}

/// A mapping with its options.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Shape {
    mapping: MappingName,
    credits: u16,
    update_every: Option<u16>,
    by_power: bool,
}

impl Shape {
    /// Of a mapping over VI.
    fn options(&self, variant: Variant) -> Options {
        let mut options = Options::new(variant).credits(self.credits);
        if let Some(every) = self.update_every {
            options = options.update_every(every);
        }
        if self.by_power { options.buffers(Buffers::Power) } else { options }
    }
}

/// One end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    /// The one that sends requests.
    requests: bool,
    transport: Option<String>,
    keys: Vec<(String, String)>,
    line: LineOf,
    time: Duration,
}

/// What a pair has measured.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    transport: String,
    /// Half of a round trip of requests one after the other, nanoseconds.
    half: f64,
    parameters: LineParameters,
    /// A request that has no reply, of a stream of these, nanoseconds; none of native VI.
    store: Option<f64>,
    /// Megabytes per second, by the sizes of [`BULK`].
    bulk: Vec<f64>,
    /// Of native VI: a copy of [`COPIED`] bytes into registered memory, nanoseconds.
    copy: Option<f64>,
}

/// Measures, with both ends on this host. `warn` hears what the user should know before it begins.
///
/// # Errors
///
/// There is no such device, or an end failed.
pub fn measure(options: &MappingsOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (_, keys) = pairs::device("am", &options.device, warn)?;
    let mut environment = machine::here(None);
    environment.settings.clone_from(&keys);
    let mut start = |line| -> Result<Workers, UserError> {
        let transport = options.device.transport.clone();
        let role =
            |requests| Role { requests, transport: transport.clone(), keys: keys.clone(), line, time: options.time };
        pairs::start(&[role(true), role(false)], &mut environment)
    };
    let native: Outcome = start(LineOf::Native)?.recv(0)?;
    let mut found = Mappings {
        transport: native.transport.clone(),
        cycle_ns: tick_ns(),
        payload: PAYLOAD,
        points: vec![point("via", None, &native, None)],
        bulk: bulk("via", None, &native),
        copy_ns: native.copy.unwrap_or_default(),
        parts: Vec::new(),
    };
    for (number, shape) in shapes(options).into_iter().enumerate() {
        if interrupt::is_asked() {
            break;
        }
        let outcome: Outcome = start(LineOf::Active(shape))?.recv(0)?;
        let (name, over_vi) = (shape.mapping.name(), shape.mapping.variant().map(|_| shape));
        found.points.push(point(name, over_vi, &outcome, Some(&native)));
        found.bulk.extend(bulk(name, over_vi, &outcome));
        let is_first = shapes(options).iter().position(|other| other.mapping == shape.mapping) == Some(number);
        if over_vi.is_some() && is_first && !interrupt::is_asked() {
            let mut workers = start(LineOf::Parts(shape))?;
            let (count, asked): (u64, Spent) = workers.recv(0)?;
            found.parts.extend(parts(name, count, &[asked, workers.recv(1)?]));
        }
    }
    Ok(Found { environment, finding: Finding::Mappings(found), interrupted: interrupt::why() })
}

/// The lines after that of native VI: each mapping, with each number of credits and of messages
/// after which they go back.
fn shapes(options: &MappingsOptions) -> Vec<Shape> {
    let every: Vec<_> = match &options.update_every[..] {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let mut shapes = Vec::new();
    for mapping in options.mappings.iter().copied() {
        for credits in options.credits.iter().copied() {
            let by_power = options.by_power;
            let of = |update_every| Shape { mapping, credits, update_every, by_power };
            shapes.extend(every.iter().copied().map(of));
        }
        if mapping == MappingName::Cci {
            // It has no credits below the engine's: one line.
            let first = shapes.iter().position(|shape| shape.mapping == mapping).unwrap_or_default();
            shapes.truncate(first + 1);
        }
    }
    shapes
}

/// What both ends spent on each part of a request and its reply.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn parts(mapping: &str, count: u64, ends: &[Spent; 2]) -> Vec<MappingPart> {
    let of = |part: Part| {
        let (category, name) = category(part);
        let sum: f64 = ends.iter().filter_map(|Spent(parts)| parts.get(part as usize)).sum();
        let (mapping, category, name) = (mapping.into(), category.into(), name.into());
        MappingPart { mapping, category, name, ns: sum / count.max(1) as f64 }
    };
    Part::ALL.into_iter().filter(|part| *part != Part::Wait).map(of).collect()
}

fn point(name: &str, shape: Option<Shape>, outcome: &Outcome, native: Option<&Outcome>) -> MappingPoint {
    let LineParameters { latency, send, receive, gap, round_trip } = outcome.parameters;
    MappingPoint {
        name: name.into(),
        credits: shape.map(|shape| shape.credits),
        update_every: shape.and_then(|shape| shape.update_every),
        wire_bytes: PAYLOAD + ENGINE + if name == "cci" { 0 } else { FRAME },
        half_ns: outcome.half,
        difference_ns: native.map(|native| outcome.half - native.half),
        lone_ns: round_trip / 2.0,
        l_ns: latency,
        o_s_ns: send,
        o_r_ns: receive,
        g_ns: gap,
        store_ns: outcome.store,
    }
}

fn bulk(name: &str, shape: Option<Shape>, outcome: &Outcome) -> Vec<BulkPoint> {
    let of = |(bytes, mb_per_s): (&u64, &f64)| BulkPoint {
        name: name.into(),
        credits: shape.map(|shape| shape.credits),
        update_every: shape.and_then(|shape| shape.update_every),
        bytes: *bytes,
        mb_per_s: *mb_per_s,
    };
    BULK.iter().zip(&outcome.bulk).map(of).collect()
}

/// Megabytes per second of a stream of each size, for a share of the time each.
fn streams(time: Duration, mut stream: impl FnMut(u64, u64) -> Result<(), UserError>) -> Result<Vec<f64>, UserError> {
    let share = time / u32::try_from(2 * BULK.len()).unwrap_or(1);
    let of = |bytes| {
        let ns = per_operation(share, |count| stream(bytes, count))?;
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        Ok(bytes as f64 * 1e3 / ns)
    };
    BULK.into_iter().map(of).collect()
}

/// Half of a round trip of requests one after the other, nanoseconds: the median of blocks.
fn half(line: &mut impl Line, bytes: u64, time: Duration) -> Result<f64, UserError> {
    let message = vec![1; usize::try_from(bytes).map_err(while_doing("the size is too large"))?];
    let begin = Instant::now();
    let mut blocks = Vec::new();
    while blocks.len() < LEAST || begin.elapsed() < time && !interrupt::is_asked() {
        blocks.push(per_operation(BLOCK, |count| exchanges(line, &message, count))?);
    }
    Ok(median(&blocks) / 2.0)
}

/// Nanoseconds of an operation: of as many as fill the time, found by doubling.
fn per_operation(time: Duration, mut operations: impl FnMut(u64) -> Result<(), UserError>) -> Result<f64, UserError> {
    let mut count = WINDOW;
    loop {
        let begin = Instant::now();
        operations(count)?;
        let took = begin.elapsed();
        if took >= time || count >= 1 << 24 || interrupt::is_asked() {
            #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
            return Ok((took.as_nanos() as f64 / count as f64).max(f64::MIN_POSITIVE));
        }
        count *= 2;
    }
}

impl Role {
    fn opening(&self) -> DriverOptions {
        pairs::opening(self.transport.as_ref(), &self.keys, 4)
    }

    fn play_native(&self, channel: &mut Channel) -> Result<(), UserError> {
        let device = device(&self.opening())?;
        let opened = Opened::new(&device, 1 << 20)?;
        let message = (PAYLOAD + ENGINE + FRAME) as usize;
        if !self.requests {
            // The handle of the memory stands in no message: it is the card's.
            channel.send(&(opened.card(), opened.handle()))?;
            let mut native = opened.connect(None)?;
            native.resize(message)?;
            return native.serve();
        }
        let (card, target): (Card, u32) = channel.recv()?;
        let mut native = opened.connect(Some(&card))?;
        native.resize(message)?;
        let half = half(&mut native, message as u64, self.time / 4)?;
        let parameters = of_line(&mut native, message as u64, self.time / 2)?;
        let bulk = streams(self.time, |bytes, count| native.stream(target, bytes as usize, count))?;
        let copy = Some(per_operation(self.time / 20, |count| native.copy(&[7; COPIED], count))?);
        channel.send(&Outcome { transport: device.transport, half, parameters, store: None, bulk, copy })?;
        native.leave()
    }

    fn play<M: Mapping>(&self, mut active: Active<M>, channel: &mut Channel) -> Result<(), UserError> {
        if !self.requests {
            channel.send(&active.name().to_owned())?;
            while active.serve()?.is_some() {}
            return Ok(());
        }
        let name: String = channel.recv()?;
        active.map(&name)?;
        // The way is open once this is answered.
        active.turn_to(Some(Way::Active))?;
        let half = half(&mut active, PAYLOAD, self.time / 4)?;
        let parameters = of_line(&mut active, PAYLOAD, self.time / 2)?;
        let store = Some(per_operation(self.time / 8, |count| active.stores(count))?);
        let bulk = streams(self.time, |bytes, count| active.stream(bytes, WINDOW, count))?;
        let transport = device(&self.opening())?.transport;
        channel.send(&Outcome { transport, half, parameters, store, bulk, copy: None })?;
        active.turn_to(None)
    }

    /// Short requests and their replies, told to a clock at either end.
    fn play_parts(&self, shape: &Shape, channel: &mut Channel) -> Result<(), UserError> {
        let clock = Clock::new();
        let Some(mut active) = self.over_vi(shape, Told(clock.clone()))? else { return Ok(()) };
        if !self.requests {
            channel.send(&active.name().to_owned())?;
            // The first turn begins what is told, the second one ends it.
            active.serve()?;
            clock.reset();
            active.serve()?;
            return channel.send(&clock.read());
        }
        let name: String = channel.recv()?;
        active.map(&name)?;
        active.short(FIRST)?;
        active.turn_to(Some(Way::Active))?;
        clock.reset();
        let (begin, mut count) = (Instant::now(), 0);
        while count == 0 || begin.elapsed() < self.time / 4 && !interrupt::is_asked() {
            active.short(FIRST)?;
            count += FIRST;
        }
        let spent = clock.read();
        active.turn_to(None)?;
        channel.send(&(count, spent))
    }

    /// A mapping over VI; none where the mapping is another one.
    fn over_vi<W: Watch>(&self, shape: &Shape, watch: W) -> Result<Option<Active<ViaMapping<W>>>, UserError> {
        let Some(variant) = shape.mapping.variant() else { return Ok(None) };
        let opened = ViaMapping::watched(&device(&self.opening())?, &shape.options(variant), watch);
        Active::over(opened.map_err(while_doing("cannot open a mapping"))?).map(Some)
    }
}

impl Work for Role {
    const NAME: &'static str = "mappings";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        match &self.line {
            LineOf::Native => self.play_native(channel),
            LineOf::Parts(shape) => self.play_parts(shape, channel),
            LineOf::Active(shape) => match self.over_vi(shape, Unwatched)? {
                Some(active) => self.play(active, channel),
                None => self.play(Active::open(&self.opening())?, channel),
            },
        }
    }
}
