//! Portals 3.3 beside CCI's own messages and RMA. `docs/design/perf-portals.md` has the method.

mod client;
mod shots;
mod side;

use crate::device::{Device, device_of_ends};
use crate::interrupt;
use crate::machine;
use crate::measure::driver::DriverOptions;
use crate::methods::am::{Own, Way};
use crate::methods::{Found, warn_of_one_processor};
use crate::reach::scope;
use crate::workers::{Channel, Work, Workers};
use cci::Scope;
use cci_report::UserError;
use cci_report::environment::Path;
use cci_report::finding::{Finding, Portals, PortalsPoint};
use cci_report::names::{Mode, Threads};
use cci_report::statistics::{median, uncertainty};
use client::{Client, Sample};
use serde::{Deserialize, Serialize};
use side::{Mode as Progress, Sides, Turn};
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct PortalsOptions {
    /// The device of both ends.
    pub device: Device,
    /// Time for each figure.
    pub time: Duration,
    /// Pairs of processes that the time is shared out to, for each mode.
    pub launches: u32,
    /// Whether accelerated interfaces are measured too.
    pub has_accelerated: bool,
}

/// One end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    /// The one that measures.
    measures: bool,
    transport: Option<String>,
    keys: Vec<(String, String)>,
    /// Time for each figure, in this launch.
    time: Duration,
    /// There is an accelerated interface too, which is measured.
    has_engine: bool,
}

/// How the server is reached.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    portals: Vec<String>,
    own: String,
    /// Its memory, for RMA of CCI's own.
    handle: [u64; 4],
}

/// What one launch has measured.
#[derive(Debug, Serialize, Deserialize)]
struct Launch {
    transport: String,
    path: Option<Path>,
    samples: Vec<Sample>,
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
}

/// Measures, with both ends on this host. `warn` hears what the user should know before it begins.
///
/// # Errors
///
/// There is no such device, or an end failed in the first launch. What ends the run later is told
/// with what was found.
pub fn measure(options: &PortalsOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (name, keys) = device_of_ends(&options.device, None)?;
    if scope(&name) == Some(Scope::Process) {
        let why = format!("portals runs in two processes, and {name} is in one: use --transport sm or sock");
        return Err(UserError(why));
    }
    warn_of_one_processor(warn);
    let (transport, time) = (options.device.transport.clone(), options.time / options.launches.max(1));
    let role =
        |measures, has_engine| Role { measures, transport: transport.clone(), keys: keys.clone(), time, has_engine };
    let mut environment = machine::here(None);
    environment.settings.clone_from(&keys);
    let modes: &[bool] = if options.has_accelerated { &[false, true] } else { &[false] };
    let (mut launches, mut of, mut interrupted) = (Vec::<Vec<Sample>>::new(), String::new(), None);
    let most = options.launches.max(1) as usize * modes.len();
    while launches.len() < most && (launches.len() < modes.len() || !interrupt::is_asked()) {
        let has_engine = modes[launches.len() % modes.len()];
        let mut workers = Workers::start(&[role(true, has_engine), role(false, has_engine)])?;
        if let Some([first, second]) = workers.processors.as_deref() {
            environment.pinned = Some([*first, *second]);
        }
        match launch(&mut workers) {
            Ok(launch) => {
                (of, environment.path) = (launch.transport, launch.path);
                launches.push(launch.samples);
            }
            Err(why) if launches.is_empty() => return Err(why),
            Err(why) => {
                interrupted = Some(why.0);
                break;
            }
        }
    }
    let processors = crate::machine::allowed().len() as u64;
    let finding =
        Portals { transport: of, launches: launches.len() as u64, processors, points: points(&launches, modes.len()) };
    Ok(Found { environment, finding: Finding::Portals(finding), interrupted: interrupted.or_else(interrupt::why) })
}

/// One pair of processes.
fn launch(workers: &mut Workers) -> Result<Launch, UserError> {
    let card: Card = workers.recv(1)?;
    workers.send(0, &card)?;
    workers.recv(0)
}

/// A point for each figure of the first launch of each kind, of which there are so many in turn:
/// the median of all launches of the kind.
fn points(launches: &[Vec<Sample>], kinds: usize) -> Vec<PortalsPoint> {
    let of_kind = |kind: usize| {
        let launches: Vec<_> = launches.iter().skip(kind).step_by(kinds).collect();
        let of = |(at, sample): (usize, &Sample)| {
            let all = launches.iter().filter_map(|launch| launch.get(at));
            let values: Vec<f64> = all.map(|sample| sample.value).collect();
            let Sample { experiment, x, way, .. } = sample.clone();
            PortalsPoint { experiment, x, way, value: median(&values), spread: uncertainty(&values) }
        };
        let first = launches.first().map_or(&[][..], |first| &first[..]);
        first.iter().enumerate().map(of).collect::<Vec<_>>()
    };
    (0..kinds).flat_map(of_kind).collect()
}

impl Work for Role {
    const NAME: &'static str = "portals";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        let mut own = Own::open(&self.opening())?;
        if self.measures {
            let card: Card = channel.recv()?;
            own.connect(&card.own, card.handle)?;
            let sides = Sides::open(&self.opening(), 1, &card.portals, self.has_engine)?;
            let (transport, path) = (own.transport().to_owned(), own.path());
            let samples = Client::new(sides, own).measure(self.time)?;
            return channel.send(&Launch { transport, path, samples });
        }
        let mut sides = Sides::open(&self.opening(), 0, &[], self.has_engine)?;
        let handle = own.handle();
        channel.send(&Card { portals: sides.uris(), own: own.uri().to_owned(), handle })?;
        own.accept()?;
        let (mut mode, mut turn) = (Progress::Generic, Turn::Portals(Progress::Generic));
        loop {
            turn = match turn {
                Turn::End => return Ok(()),
                Turn::Sleep => sides.of(mode)?.serve(true)?,
                Turn::Away(milliseconds) => {
                    std::thread::sleep(Duration::from_millis(milliseconds.into()));
                    Turn::Portals(mode)
                }
                Turn::Portals(next) => {
                    mode = next;
                    sides.of(mode)?.serve(false)?
                }
                Turn::Own(number) => {
                    let way = Way::of(number).ok_or_else(|| UserError::new("there is no such way"))?;
                    own.serve(way)?.map_or(Turn::Portals(Progress::Generic), |way| Turn::Own(way as u8))
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_the_median_of_all_launches() {
        let sample = |way: &str, value| Sample { experiment: "depth".into(), x: 32, way: way.into(), value };
        let launches = [1.0, 9.0, 3.0].map(|value| vec![sample("generic", value), sample("cci", 10.0 * value)]);
        let points = points(&launches, 1);
        assert_eq!(points.iter().map(|point| point.value).collect::<Vec<_>>(), [3.0, 30.0]);
        assert_eq!((points[1].way.as_str(), points[1].x), ("cci", 32));
        let of_each = super::points(&launches, 2);
        assert_eq!(of_each.iter().map(|point| point.value).collect::<Vec<_>>(), [2.0, 20.0, 9.0, 90.0]);
    }
}
