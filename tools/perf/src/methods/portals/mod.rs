//! Portals 3.3 beside CCI's own messages and RMA. `docs/design/perf-portals.md` has the method.

mod client;
mod node;
mod options;
mod program;
mod shots;
mod side;

use crate::machine::{self, allowed, spread};
use crate::measure::driver::DriverOptions;
use crate::methods::am::{Own, Way};
use crate::methods::blocks::{Sample, points};
use crate::methods::over::Over;
use crate::methods::{Found, pairs};
use crate::workers::{Channel, Work};
use cci_report::environment::Path;
use cci_report::finding::{Finding, Portals};
use cci_report::{UserError, while_doing};
use client::Client;
pub(crate) use node::Role as NodeRole;
pub use options::PortalsOptions;
use serde::{Deserialize, Serialize};
use side::{Buffers, Mode as Progress, Sides, Turn};
use std::time::Duration;

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
    /// The generic one is measured beside an engine that nobody uses.
    beside: bool,
    /// The library of CCI over Portals.
    over: Option<String>,
    /// Processors of the run: each end has one of them, and engines may use all.
    processors: Vec<usize>,
}

/// How the server is reached.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    portals: Vec<String>,
    own: String,
    /// Its memory, for RMA of CCI's own.
    handle: [u64; 4],
    /// The end of CCI over Portals.
    over: Option<(String, [u64; 4])>,
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
        pairs::opening(self.transport.as_ref(), &self.keys, 5)
    }

    fn sides(&self, number: u32, uris: &[String], buffers: &Buffers) -> Result<Sides, UserError> {
        spread(&self.processors, || Sides::open(&self.opening(), number, uris, buffers, self.has_engine))
    }
}

/// Measures, with both ends on this host. `warn` hears what the user should know before it begins.
///
/// # Errors
///
/// There is no such device, or an end failed in the first launch. What ends the run later is told
/// with what was found.
pub fn measure(options: &PortalsOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (_, keys) = pairs::device("portals", &options.device, warn)?;
    let (transport, time) = (options.device.transport.clone(), options.time / options.launches.max(1));
    let role = |measures: bool, has_engine: bool| {
        // Beside generic interfaces alone.
        let over = options.over.clone().filter(|_| !has_engine);
        let beside = options.has_accelerated && !has_engine;
        let (transport, keys, processors) = (transport.clone(), keys.clone(), allowed());
        Role { measures, transport, keys, time, has_engine, beside, over, processors }
    };
    let mut environment = machine::here(None);
    environment.settings.clone_from(&keys);
    let modes: &[bool] = if options.has_accelerated { &[false, true] } else { &[false] };
    let (mut launches, mut of) = (Vec::<Vec<Sample>>::new(), String::new());
    let roles = |number: usize| [true, false].map(|measures| role(measures, modes[number % modes.len()]));
    let counts = (modes.len(), options.launches.max(1) as usize * modes.len());
    let interrupted = pairs::launch(counts, &mut environment, roles, |launch: Launch, environment| {
        (of, environment.path) = (launch.transport, launch.path);
        launches.push(launch.samples);
    })?;
    let processors = allowed().len() as u64;
    let mut points = points(&launches, modes.len());
    if options.has_accelerated && interrupted.is_none() {
        points.extend(node::measure(options, &keys)?);
    }
    let finding = Portals { transport: of, launches: launches.len() as u64, processors, points };
    Ok(Found { environment, finding: Finding::Portals(finding), interrupted })
}

impl Work for Role {
    const NAME: &'static str = "portals";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        let buffers = Buffers::new()?;
        // RMA of the same memory.
        let memory = if self.measures { &buffers.source } else { &buffers.target };
        let mut own = Own::with_memory(&self.opening(), memory.clone())?;
        let mut over =
            self.over.as_deref().map(|library| Over::open("CCI over Portals", "portals", library)).transpose()?;
        if self.measures {
            let card: Card = channel.recv()?;
            own.end.connect(&card.own, card.handle)?;
            let sides = self.sides(1, &card.portals, &buffers)?;
            let (transport, path) = (own.end.transport().to_owned(), own.end.path());
            if let (Some(over), Some(card)) = (&mut over, &card.over) {
                over.connect(card)?;
            }
            let beside = self.beside.then(|| self.opening());
            let samples =
                Client::new(sides, own, over, channel.probe()?, self.processors.len()).measure(self.time, beside)?;
            return channel.send(&Launch { transport, path, samples });
        }
        let mut sides = self.sides(0, &[], &buffers)?;
        let handle = own.end.handle();
        let over_card = over.as_ref().map(Over::card);
        channel.send(&Card { portals: sides.uris(), own: own.end.uri().to_owned(), handle, over: over_card })?;
        own.end.accept()?;
        over.as_mut().map(Over::accept).transpose()?;
        let (mut mode, mut turn) = (Progress::Generic, Turn::Portals(Progress::Generic));
        loop {
            turn = match turn {
                Turn::End => return Ok(()),
                Turn::Sleep => sides.of(mode)?.serve(true)?,
                Turn::Away(milliseconds) => {
                    std::thread::sleep(Duration::from_millis(milliseconds.into()));
                    Turn::Portals(mode)
                }
                Turn::Compute(milliseconds) => {
                    sides.of(mode)?.compute(Duration::from_millis(milliseconds.into()))?;
                    Turn::Portals(mode)
                }
                Turn::Portals(next) => {
                    mode = next;
                    sides.of(mode)?.serve(false)?
                }
                Turn::Bare(count) => {
                    let woken = channel.probe()?.wake_by_futexes(count as usize, Duration::ZERO);
                    woken.map_err(while_doing("cannot sleep on a word"))?;
                    Turn::Portals(mode)
                }
                Turn::Unused(is_there) => {
                    sides.have_unused(&self.opening(), is_there)?;
                    Turn::Portals(Progress::Generic)
                }
                Turn::Over => {
                    over.as_mut().map(Over::serve).transpose()?;
                    Turn::Portals(mode)
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
        let sample = |way: &str, value| Sample::new("depth", 32, way, value);
        let launches = [1.0, 9.0, 3.0].map(|value| vec![sample("generic", value), sample("cci", 10.0 * value)]);
        let points = points(&launches, 1);
        assert_eq!(points.iter().map(|point| point.value).collect::<Vec<_>>(), [3.0, 30.0]);
        assert_eq!((points[1].way.as_str(), points[1].x), ("cci", 32));
        let of_each = super::points(&launches, 2);
        assert_eq!(of_each.iter().map(|point| point.value).collect::<Vec<_>>(), [2.0, 20.0, 9.0, 90.0]);
    }
}
