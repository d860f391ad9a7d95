//! What one endpoint over several transports costs beside an endpoint of one of them: half a round
//! trip by each way, and a call that finds nothing. Each end is a process that stays on a processor
//! of its own.

use super::exchange::{CALLS, EXCHANGES, LIMIT, accept, both, echo, empty_calls, exchange, idle_for};
use super::other_process::{OtherProcess, obey};
use crate::machine::{pin, two_processors};
use crate::measure::driver::{Driver, DriverEvent, DriverOptions};
use crate::measure::facade::Facade;
use crate::task;
use crate::task::Task;
use cci::{Attribute, Connection};
use cci_report::{UserError, while_doing};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::time::{Duration, Instant};

/// Nanoseconds over one way of the endpoint, and over the way's transport alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// The way's transport.
    pub way: String,
    /// With the endpoint over several ways.
    pub shared: f64,
    /// With an endpoint of this transport.
    pub alone: f64,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Half a round trip of 8 bytes, way by way.
    pub exchange: Vec<Beside>,
    /// A call that finds nothing, beside the first way alone.
    pub empty: Beside,
}

/// Which end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WaysTask {
    transport: String,
    /// Processor of the other end.
    cpu: Option<usize>,
    /// For each way its transport, and the URIs of both endpoints; without them this end measures.
    ways: Option<Vec<Way>>,
}

/// A way: its transport, its URI at the shared endpoint, and that of the endpoint of this transport
/// alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Way {
    name: String,
    shared: String,
    alone: String,
}

/// Measures a transport over others, in processes of their own.
///
/// # Errors
///
/// A process cannot be started, or fails; or the transport stands over no others.
pub fn in_a_child(transport: &str) -> Result<Figures, UserError> {
    let task = WaysTask { transport: transport.to_owned(), cpu: None, ways: None };
    super::footprint::figures(task::command(&task)?)
}

impl Task for WaysTask {
    const NAME: &'static str = "ways";

    fn run(&self) -> Result<(), Option<UserError>> {
        ways(self).map_err(Some)
    }
}

/// Measures, or plays the other end, in the child process.
fn ways(task: &WaysTask) -> Result<(), UserError> {
    let [here, there] = two_processors();
    let stay = |cpu| pin(cpu).map_err(while_doing("cannot pin this process to its processor"));
    if let Some(ways) = &task.ways {
        // The other process has told: this one sees only the processor that it has inherited.
        stay(task.cpu.unwrap_or(there))?;
        return OtherEnd::open(&task.transport, ways)?.serve();
    }
    stay(here)?;
    let text = serde_json::to_string(&measure(task, there)?).map_err(while_doing("cannot write the figures"))?;
    writeln!(std::io::stdout(), "{text}").map_err(while_doing("cannot write the figures"))
}

/// The ways in the URI of an endpoint over several, and the URI of each: `SCHEME://ENDPOINT` is
/// followed by `,NAME=REST`, or by `,NAME` where the rest is that of the way before.
fn parts(uri: &str) -> Vec<(String, String)> {
    let mut rest = "";
    let mut part = |part| {
        let (name, own) = match part_of(part) {
            (name, Some(own)) => (name, own),
            (name, None) => (name, rest),
        };
        rest = own;
        (name.to_owned(), format!("{name}://{own}"))
    };
    uri.split(',').skip(1).map(&mut part).collect()
}

fn part_of(part: &str) -> (&str, Option<&str>) {
    part.split_once('=').map_or((part, None), |(name, rest)| (name, Some(rest)))
}

fn open(transport: &str) -> Result<Facade, UserError> {
    Facade::open(&DriverOptions::on_loopback(transport))
}

fn measure(task: &WaysTask, there: usize) -> Result<Figures, UserError> {
    let shared = open(&task.transport)?;
    let parts = parts(&shared.uri());
    let alone: Vec<Facade> = parts.iter().map(|(name, _)| open(name)).collect::<Result<_, _>>()?;
    let way = |((name, uri), alone): (&(String, String), &Facade)| Way {
        name: name.clone(),
        shared: uri.clone(),
        alone: alone.uri(),
    };
    let ways: Vec<Way> = parts.iter().zip(&alone).map(way).collect();
    let first = alone.first().ok_or_else(|| UserError(format!("{} stands over no others", task.transport)))?;
    let other = WaysTask { cpu: Some(there), ways: Some(ways.clone()), ..task.clone() };
    let mut other = OtherProcess::start(task::command(&other)?)?;
    let mut open = Vec::new();
    for (at, alone) in alone.iter().enumerate() {
        other.tell(&format!("connect {at}"))?;
        open.push([accept(&shared, 1)?[0], accept(alone, 1)?[0]]);
        other.answer()?;
    }
    for endpoint in [&shared, first] {
        idle_for(endpoint, Duration::from_millis(100))?;
    }
    let beside = |way: &Way, [alone, shared]: [f64; 2]| Beside { way: way.name.clone(), shared, alone };
    let empty = both(|is_shared| empty_calls(if is_shared { &shared } else { first }))?;
    let empty = beside(&ways[0], empty.map(|time| nanoseconds(time, f64::from(CALLS))));
    let mut halves = Vec::new();
    for (at, way) in ways.iter().enumerate() {
        let times = both(|is_shared| {
            let endpoint = if is_shared { &shared } else { &alone[at] };
            other.tell(&format!("echo {at} {} {EXCHANGES}", u8::from(is_shared)))?;
            let time = exchange(endpoint, open[at][usize::from(!is_shared)])?;
            other.answer()?;
            Ok(time)
        });
        let times = times.map_err(|why: UserError| UserError(format!("over {}: {}", way.name, why.0)))?;
        halves.push(beside(way, times.map(half_round_trip)));
    }
    Ok(Figures { exchange: halves, empty })
}

fn nanoseconds(seconds: f64, count: f64) -> f64 {
    seconds * 1e9 / count
}

/// Of a block, whose first tenth was not timed.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn half_round_trip(seconds: f64) -> f64 {
    nanoseconds(seconds, 2.0 * (EXCHANGES - EXCHANGES / 10) as f64)
}

/// The endpoints of the other process, with their connections.
struct OtherEnd<'w> {
    ways: &'w [Way],
    shared: Facade,
    alone: Vec<Facade>,
    /// By way, of the endpoint alone and the shared one.
    open: Vec<[Connection; 2]>,
}

impl<'w> OtherEnd<'w> {
    fn open(transport: &str, ways: &'w [Way]) -> Result<Self, UserError> {
        let alone = ways.iter().map(|way| open(&way.name)).collect::<Result<_, _>>()?;
        Ok(Self { ways, shared: open(transport)?, alone, open: Vec::new() })
    }

    /// Does what it is told until there is nobody to tell.
    fn serve(mut self) -> Result<(), UserError> {
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        obey(|order, numbers| match (order, numbers) {
            ("connect", [at]) => self.connect(place(*at)),
            ("echo", [at, is_shared @ (0 | 1), count]) => {
                let endpoint = if *is_shared == 1 { &self.shared } else { &self.alone[place(*at)] };
                echo(endpoint, self.open[place(*at)][place(*is_shared)], *count)
            }
            _ => Err(UserError(format!("there is no order {order}"))),
        })
    }

    fn connect(&mut self, at: usize) -> Result<(), UserError> {
        let way = &self.ways[at];
        let shared = connect(&self.shared, &way.shared)?;
        let alone = connect(&self.alone[at], &way.alone)?;
        self.open.push([alone, shared]);
        Ok(())
    }
}

fn connect(endpoint: &Facade, uri: &str) -> Result<Connection, UserError> {
    let (begin, mut bytes) = (Instant::now(), Vec::new());
    endpoint.connect(uri, &[], Attribute::ReliableOrdered, 0, LIMIT)?;
    loop {
        match endpoint.poll_event(&mut bytes, |_| 0)? {
            DriverEvent::Open(connection, _) => return Ok(connection),
            DriverEvent::NotOpen(status, _) => return Err(UserError(format!("a connection failed: {status}"))),
            _ if begin.elapsed() > LIMIT => return Err(UserError::new("no peer answers")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_of_a_uri_and_their_uris() {
        let part = |name: &str, uri: &str| (name.to_owned(), uri.to_owned());
        let uri = "cci://q2Vb0c_S1xk.Jf83kQpa.x9E,sm=4711/0,sock=192.0.2.1:5000,tcp";
        let expected =
            [part("sm", "sm://4711/0"), part("sock", "sock://192.0.2.1:5000"), part("tcp", "tcp://192.0.2.1:5000")];
        assert_eq!(parts(uri), expected);
        assert_eq!(parts("sm://4711/0"), []);
    }

    #[test]
    fn half_a_round_trip_in_nanoseconds() {
        let exchanges = 0.9 * 20_000.0;
        assert!((half_round_trip(exchanges * 2.0 * 250e-9) - 250.0).abs() < 1e-6);
    }
}
