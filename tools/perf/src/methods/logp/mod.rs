//! The parameters of the LogP model. `docs/design/perf-logp.md` has the method.

mod computing;
mod ideal;
mod machine;
mod method;
mod remote;
mod requester;
mod simulated;

use crate::device::{Device, VIRTUAL, VIRTUAL_IS_LOCAL, device_of_ends};
use crate::effort;
use crate::interrupt;
use crate::measure::client::{call, report};
use crate::measure::control::Report;
use crate::measure::driver::{Driver, DriverOptions};
use crate::measure::ends;
use crate::measure::facade::{Facade, device};
use crate::measure::loops::Lane;
use crate::measure::plan::Plan;
use crate::methods::am::{Active, Way};
use crate::methods::{Found, warn_of_one_processor};
use crate::peers::PeerSelection;
use crate::workers::{Channel, Work, Workers};
use cci_report::environment::{Environment, Path};
use cci_report::finding::{Finding, Logp, LogpPoint};
use cci_report::names::{Abi, AttributeName, Measurement, MemoryOrigin, Mode, Operation, Target, Threads};
use cci_report::output::table::time;
use cci_report::{UserError, session};
use machine::Machine;
use method::{Effort, Found as Fit};
use remote::Remote;
use requester::{Answerer, Beside, CONTEXT, LinePair, Pair};
pub(in crate::methods) use requester::{Line, exchanges};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Rounds of all bursts that are measured in any case, where time is real: one for each so long,
/// five at most; a median needs some.
const ROUND: Duration = Duration::from_millis(100);
const ROUNDS: u128 = 5;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct LogpOptions {
    /// The server to measure against; without it both ends are on this host: as processes, over sim
    /// in this process and in virtual time.
    pub server: Option<String>,
    /// The device of this end, or of both.
    pub device: Device,
    /// Bytes of a request and of a reply.
    pub size: u64,
    /// What the connection promises; ro when absent, but uu over sim, where a message is then one
    /// frame and nothing else travels.
    pub attribute: Option<AttributeName>,
    /// Endpoints for one thread, or for many.
    pub threads: Threads,
    /// Active Messages in place of CCI's own.
    pub active: bool,
    /// Time for all bursts; up to 500 ms it may take longer.
    pub time: Duration,
}

/// An end in a process of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    /// The one that issues requests.
    requests: bool,
    session: Session,
}

/// What both ends must agree on.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Session {
    transport: Option<String>,
    keys: Vec<(String, String)>,
    size: u64,
    attribute: AttributeName,
    threads: Threads,
    active: bool,
    time: Duration,
}

/// The result of a run, which the requester sends to the parent.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    logp: Logp,
    path: Option<Path>,
}

impl Session {
    fn opening(&self) -> DriverOptions {
        DriverOptions {
            transport: self.transport.clone(),
            threads: self.threads,
            mode: Mode::Polling,
            keys: self.keys.clone(),
            library: None,
            ends: 2,
        }
    }

    /// The ping-pong that a server takes part in.
    fn plan(&self) -> Plan {
        Plan {
            session: session::Session {
                measurement: Measurement::PingPong,
                operation: Operation::Send,
                attribute: self.attribute,
                mode: Mode::Polling,
                silent: self.is_silent(),
                threads: self.threads,
                memory: MemoryOrigin::Library,
                touch: false,
                target: Target::Polling,
                window: None,
                bidirectional: false,
                largest: self.size,
            },
            sizes: vec![self.size],
            effort: effort::Effort { time: self.time, count: None, blocks: None, launches: 1, bound: 0.0 },
            probe: None,
            transport: self.transport.clone(),
            keys: self.keys.clone(),
            abi: Abi::Rust,
            library: None,
            peers: PeerSelection::default(),
        }
    }

    /// SEND events are no part of LogP; only ordered connections can do without.
    fn is_silent(&self) -> bool {
        self.attribute == AttributeName::Ro
    }
}

/// Measures. `warn` hears what the user should know before it begins.
///
/// # Errors
///
/// There is no such device, an end failed, or a message of this size does not fit.
pub fn measure(options: &LogpOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (name, keys) = device_of_ends(&options.device, options.server.as_deref())?;
    let is_virtual = name == VIRTUAL;
    let natural = if is_virtual { AttributeName::Uu } else { AttributeName::Ro };
    let session = Session {
        transport: options.device.transport.clone(),
        keys,
        size: options.size,
        attribute: options.attribute.unwrap_or(natural),
        threads: options.threads,
        active: options.active,
        time: options.time,
    };
    if options.active && (options.server.is_some() || is_virtual) {
        return Err(UserError::new(
            "Active Messages are measured between two processes of this host: use --local, and --transport sm, sock or tcp",
        ));
    }
    let mut environment = Environment { settings: session.keys.clone(), is_virtual, ..crate::machine::here(None) };
    let outcome = match &options.server {
        Some(_) if is_virtual => return Err(UserError::new(VIRTUAL_IS_LOCAL)),
        Some(uri) => ask(&session, uri)?,
        None if is_virtual => simulate(&session)?,
        None => {
            warn_of_one_processor(warn);
            let mut workers =
                Workers::start(&[true, false].map(|requests| Role { requests, session: session.clone() }))?;
            if let Some([client, server]) = workers.processors.as_deref() {
                environment.pinned = Some([*client, *server]);
            }
            let uri: String = workers.recv(1)?;
            workers.send(0, &uri)?;
            workers.recv(0)?
        }
    };
    environment.path = outcome.path;
    Ok(Found { environment, finding: Finding::Logp(outcome.logp), interrupted: interrupt::why() })
}

/// Both ends in this process.
fn simulate(session: &Session) -> Result<Outcome, UserError> {
    let attribute = ends::attribute(session.attribute);
    let mut ends = simulated::Simulated::new(&session.opening(), attribute, session.is_silent(), session.size)?;
    // Virtual time repeats itself exactly.
    let effort = Effort { rounds: 1, goes_on: &|| false };
    check_size(session, &ends)?;
    let found = method::measure(&mut ends, session.size, &effort)?;
    let (driver, connection) = ends.driver();
    Ok(Outcome { logp: finding(session, driver.transport(), &found), path: driver.path(connection) })
}

impl Work for Role {
    const NAME: &'static str = "logp";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        play(self, channel)
    }
}

/// Plays one end.
fn play(role: &Role, channel: &Channel) -> Result<(), UserError> {
    let session = &role.session;
    if session.active {
        return play_active(role, channel);
    }
    let driver = Facade::open(&session.opening())?;
    if !role.requests {
        channel.send(&driver.uri())?;
        return requester::respond(&driver, session.size, session.is_silent());
    }
    let uri: String = channel.recv()?;
    let attribute = ends::attribute(session.attribute);
    let connection = call(&driver, &uri, ends::payload_of(CONTEXT), attribute, CONTEXT)?;
    let (outcome, _) = measured(session, Beside { driver, connection, silent: session.is_silent() })?;
    channel.send(&outcome)
}

/// Plays one end of Active Messages.
fn play_active(role: &Role, channel: &Channel) -> Result<(), UserError> {
    let session = &role.session;
    let mut active = Active::open(&session.opening())?;
    if !role.requests {
        channel.send(&active.name().to_owned())?;
        while active.serve()?.is_some() {}
        return Ok(());
    }
    let name: String = channel.recv()?;
    active.map(&name)?;
    let transport = device(&session.opening())?.transport;
    // The way is open once this is answered.
    active.turn_to(Some(Way::Active))?;
    let longest = active.longest();
    let mut pair = LinePair::new(&mut active, longest);
    check_size(session, &pair)?;
    let found = fit(session.time, session.size, &mut pair)?;
    let logp = Logp { attribute: "AM".into(), ..finding(session, &transport, &found) };
    channel.send(&Outcome { logp, path: None })?;
    active.turn_to(None)
}

/// The parameters of a line that is open, for requests of so many bytes.
pub(in crate::methods) fn of_line(
    line: &mut impl Line,
    size: u64,
    time: Duration,
) -> Result<LineParameters, UserError> {
    let found = fit(time, size, &mut LinePair::new(line, size))?;
    let parameters = found.parameters;
    Ok(LineParameters {
        latency: parameters.latency,
        send: parameters.send,
        receive: parameters.receive,
        gap: parameters.gap,
        round_trip: found.round_trip,
    })
}

/// What LogP says of a line, nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::methods) struct LineParameters {
    pub(in crate::methods) latency: f64,
    pub(in crate::methods) send: f64,
    pub(in crate::methods) receive: f64,
    pub(in crate::methods) gap: f64,
    pub(in crate::methods) round_trip: f64,
}

/// Measures in real time.
fn fit(time: Duration, size: u64, machine: &mut impl Machine) -> Result<Fit, UserError> {
    let begin = Instant::now();
    let rounds = (time.as_nanos() / ROUND.as_nanos()).clamp(1, ROUNDS);
    let rounds = u32::try_from(rounds).unwrap_or(1);
    let effort = Effort { rounds, goes_on: &|| begin.elapsed() < time };
    method::measure(machine, size, &effort)
}

/// Against a server that somebody else has started.
fn ask(session: &Session, uri: &str) -> Result<Outcome, UserError> {
    let plan = session.plan();
    let remote = Remote::new(&plan, session.size, uri)?;
    let asked = measured(session, remote).and_then(|(outcome, server)| server.leave().map(|()| outcome));
    let round_trip = |outcome: &Outcome| format!("parameters of LogP; round trip {}", time(outcome.logp.round_trip_ns));
    let ended = Report {
        result: asked.as_ref().map_or_else(|_| String::new(), round_trip),
        early: asked.as_ref().err().map(|why| why.0.clone()),
    };
    report::<Facade>(&plan, uri, ended);
    asked
}

/// Measures in real time what answers, and gives it back.
fn measured<A: Answerer>(session: &Session, answerer: A) -> Result<(Outcome, A), UserError> {
    let mut pair = Pair::new(answerer);
    check_size(session, &pair)?;
    let found = fit(session.time, session.size, &mut pair)?;
    let Lane { driver, connection, .. } = pair.answerer.lane();
    let outcome = Outcome { logp: finding(session, driver.transport(), &found), path: driver.path(connection) };
    Ok((outcome, pair.answerer))
}

fn check_size(session: &Session, machine: &impl Machine) -> Result<(), UserError> {
    let most = machine.largest();
    if session.size <= most {
        return Ok(());
    }
    Err(UserError(format!("a message of this connection has at most {most} bytes: give a smaller --size")))
}

fn finding(session: &Session, transport: &str, found: &Fit) -> Logp {
    let parameters = found.parameters;
    Logp {
        transport: transport.into(),
        size: session.size,
        attribute: session.attribute.name().to_uppercase(),
        l_ns: parameters.latency,
        o_s_ns: parameters.send,
        o_r_ns: parameters.receive,
        g_ns: parameters.gap,
        g_ns_per_byte: parameters.bulk,
        round_trip_ns: found.round_trip,
        turn_ns: found.turn(),
        window: found.window,
        window_bound: found.is_window_bound(),
        residual: found.residual,
        points: found
            .points
            .iter()
            .map(|point| LogpPoint {
                burst: point.burst.length,
                delay_ns: point.delay,
                ns_per_message: point.per_message(),
            })
            .collect(),
    }
}
