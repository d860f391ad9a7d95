//! Active Messages by several mappings, beside the native VI that most of them stand on.
//! `docs/design/perf-am.md` has the method.

mod native;

use crate::device::{Device, device_of_ends};
use crate::interrupt;
use crate::machine;
use crate::measure::driver::{DriverOptions, device};
use crate::methods::am::{Active, Way};
use crate::methods::logp::{LineParameters, of_line};
use crate::methods::{Found, warn_of_one_processor};
use crate::probe::ticks::tick_ns;
use crate::reach::scope;
use crate::workers::{Channel, Work, Workers};
use cci::Scope;
use cci_am::Mapping;
use cci_am_via::{Buffers, Options, Variant, ViaMapping};
use cci_report::finding::{BulkPoint, Finding, MappingPoint, Mappings};
use cci_report::names::{Mode, Threads};
use cci_report::{UserError, while_doing};
use native::{Card, Opened};
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
    /// Messages after which credits go back; a quarter of the credits when absent.
    pub update_every: Option<u16>,
    /// Buffers by the power of the credits, as the paper prints it.
    pub by_power: bool,
    /// Time for each line.
    pub time: Duration,
}

/// What a pair of processes measures.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum LineOf {
    Native,
    Active { mapping: MappingName, credits: u16, update_every: Option<u16>, by_power: bool },
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
    parameters: LineParameters,
    /// Megabytes per second, by the sizes of [`BULK`].
    bulk: Vec<f64>,
}

/// Measures, with both ends on this host. `warn` hears what the user should know before it begins.
///
/// # Errors
///
/// There is no such device, or an end failed.
pub fn measure(options: &MappingsOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (name, keys) = device_of_ends(&options.device, None)?;
    if scope(&name) == Some(Scope::Process) {
        return Err(UserError(format!("am runs in two processes, and {name} is in one: use --transport sm or sock")));
    }
    warn_of_one_processor(warn);
    let mut environment = machine::here(None);
    environment.settings.clone_from(&keys);
    let mut pair = |line| -> Result<Outcome, UserError> {
        let transport = options.device.transport.clone();
        let role =
            |requests| Role { requests, transport: transport.clone(), keys: keys.clone(), line, time: options.time };
        let mut workers = Workers::start(&[role(true), role(false)])?;
        if let Some([first, second]) = workers.processors.as_deref() {
            environment.pinned = Some([*first, *second]);
        }
        let card: serde_json::Value = workers.recv(1)?;
        workers.send(0, &card)?;
        workers.recv(0)
    };
    let native = pair(LineOf::Native)?;
    let mut found = Mappings {
        transport: native.transport.clone(),
        cycle_ns: tick_ns(),
        payload: PAYLOAD,
        points: vec![point("via", None, &native, None)],
        bulk: bulk("via", None, &native),
    };
    for mapping in &options.mappings {
        let sweep = if *mapping == MappingName::Cci {
            &options.credits[..1.min(options.credits.len())]
        } else {
            &options.credits
        };
        for credits in sweep {
            if interrupt::is_asked() {
                break;
            }
            let (mapping, credits) = (*mapping, *credits);
            let (update_every, by_power) = (options.update_every, options.by_power);
            let outcome = pair(LineOf::Active { mapping, credits, update_every, by_power })?;
            let credits = mapping.variant().map(|_| credits);
            found.points.push(point(mapping.name(), credits, &outcome, Some(&native)));
            found.bulk.extend(bulk(mapping.name(), credits, &outcome));
        }
    }
    Ok(Found { environment, finding: Finding::Mappings(found), interrupted: interrupt::why() })
}

fn point(name: &str, credits: Option<u16>, outcome: &Outcome, native: Option<&Outcome>) -> MappingPoint {
    let LineParameters { latency, send, receive, gap, round_trip } = outcome.parameters;
    let half = |outcome: &Outcome| outcome.parameters.round_trip / 2.0;
    MappingPoint {
        name: name.into(),
        credits,
        wire_bytes: PAYLOAD + ENGINE + if name == "cci" { 0 } else { FRAME },
        half_ns: round_trip / 2.0,
        difference_ns: native.map(|native| half(outcome) - half(native)),
        l_ns: latency,
        o_s_ns: send,
        o_r_ns: receive,
        g_ns: gap,
    }
}

fn bulk(name: &str, credits: Option<u16>, outcome: &Outcome) -> Vec<BulkPoint> {
    let of =
        |(bytes, mb_per_s): (&u64, &f64)| BulkPoint { name: name.into(), credits, bytes: *bytes, mb_per_s: *mb_per_s };
    BULK.iter().zip(&outcome.bulk).map(of).collect()
}

/// Megabytes per second of a stream of each size, for a share of the time each.
fn streams(time: Duration, mut stream: impl FnMut(u64, u64) -> Result<(), UserError>) -> Result<Vec<f64>, UserError> {
    let share = time / u32::try_from(2 * BULK.len()).unwrap_or(1);
    let mut found = Vec::new();
    for bytes in BULK {
        // As many as fill the share, found by doubling.
        let mut count = WINDOW;
        loop {
            let begin = Instant::now();
            stream(bytes, count)?;
            let took = begin.elapsed();
            if took >= share || count >= 1 << 24 || interrupt::is_asked() {
                #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
                found.push((bytes * count) as f64 / 1e6 / took.as_secs_f64().max(f64::MIN_POSITIVE));
                break;
            }
            count *= 2;
        }
    }
    Ok(found)
}

impl Role {
    fn opening(&self) -> DriverOptions {
        DriverOptions {
            transport: self.transport.clone(),
            threads: Threads::Many,
            mode: Mode::Polling,
            keys: self.keys.clone(),
            library: None,
            ends: 4,
        }
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
        let parameters = of_line(&mut native, message as u64, self.time / 2)?;
        let bulk = streams(self.time, |bytes, count| native.stream(target, bytes as usize, count))?;
        channel.send(&Outcome { transport: device.transport, parameters, bulk })?;
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
        let parameters = of_line(&mut active, PAYLOAD, self.time / 2)?;
        let bulk = streams(self.time, |bytes, count| active.stream(bytes, WINDOW, count))?;
        let transport = device(&self.opening())?.transport;
        channel.send(&Outcome { transport, parameters, bulk })?;
        active.turn_to(None)
    }
}

impl Work for Role {
    const NAME: &'static str = "mappings";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        let LineOf::Active { mapping, credits, update_every, by_power } = self.line else {
            return self.play_native(channel);
        };
        let Some(variant) = mapping.variant() else { return self.play(Active::open(&self.opening())?, channel) };
        let mut options = Options::new(variant).credits(credits);
        if let Some(every) = update_every {
            options = options.update_every(every);
        }
        if by_power {
            options = options.buffers(Buffers::Power);
        }
        let opened = ViaMapping::open(&device(&self.opening())?, &options);
        self.play(Active::over(opened.map_err(while_doing("cannot open a mapping"))?)?, channel)
    }
}
