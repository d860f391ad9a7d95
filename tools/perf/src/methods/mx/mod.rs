//! Myrinet Express beside CCI's own messages and RMA. `docs/design/perf-mx.md` has the method.

mod client;
mod shots;
mod side;

use crate::device::Device;
use crate::machine;
use crate::measure::driver::DriverOptions;
use crate::methods::am::{Own, Way};
use crate::methods::{Found, pairs};
use crate::workers::{Channel, Work};
use cci_report::UserError;
use cci_report::environment::Path;
use cci_report::finding::{Finding, Mx, PortalsPoint};
use cci_report::statistics::{median, uncertainty};
use client::{Client, Sample};
use serde::{Deserialize, Serialize};
use side::{Side, Turn};
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct MxOptions {
    /// The device of both ends.
    pub device: Device,
    /// Time for each figure.
    pub time: Duration,
    /// Pairs of processes that the time is shared out to.
    pub launches: u32,
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
}

/// How the server is reached.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    mx: String,
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
        pairs::opening(self.transport.as_ref(), &self.keys, 4)
    }
}

/// Measures, with both ends on this host. `warn` hears what the user should know before it begins.
///
/// # Errors
///
/// There is no such device, or an end failed in the first launch. What ends the run later is told
/// with what was found.
pub fn measure(options: &MxOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (_, keys) = pairs::device("mx", &options.device, warn)?;
    let (transport, time) = (options.device.transport.clone(), options.time / options.launches.max(1));
    let role = |measures| Role { measures, transport: transport.clone(), keys: keys.clone(), time };
    let mut environment = machine::here(None);
    environment.settings.clone_from(&keys);
    let (mut launches, mut of) = (Vec::<Vec<Sample>>::new(), String::new());
    let counts = (1, options.launches.max(1) as usize);
    let roles = |_| [true, false].map(role);
    let interrupted = pairs::launch(counts, &mut environment, roles, |launch: Launch, environment| {
        (of, environment.path) = (launch.transport, launch.path);
        launches.push(launch.samples);
    })?;
    let processors = crate::machine::allowed().len() as u64;
    let finding = Mx { transport: of, launches: launches.len() as u64, processors, points: points(&launches) };
    Ok(Found { environment, finding: Finding::Mx(finding), interrupted })
}

/// A point for each figure of the first launch: the median of all launches.
fn points(launches: &[Vec<Sample>]) -> Vec<PortalsPoint> {
    let of = |(at, sample): (usize, &Sample)| {
        let values: Vec<f64> = launches.iter().filter_map(|launch| launch.get(at)).map(|sample| sample.value).collect();
        let Sample { experiment, x, way, .. } = sample.clone();
        PortalsPoint { experiment, x, way, value: median(&values), spread: uncertainty(&values) }
    };
    launches.first().map_or(&[][..], |first| &first[..]).iter().enumerate().map(of).collect()
}

impl Work for Role {
    const NAME: &'static str = "mx";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        let mut own = Own::open(&self.opening())?;
        if self.measures {
            let card: Card = channel.recv()?;
            own.end.connect(&card.own, card.handle)?;
            let mut side = Side::open(&self.opening(), 1, Some(&card.mx))?;
            side.connect()?;
            let (transport, path) = (own.end.transport().to_owned(), own.end.path());
            let samples = Client::new(side, own).measure(self.time)?;
            return channel.send(&Launch { transport, path, samples });
        }
        let mut side = Side::open(&self.opening(), 0, None)?;
        let handle = own.end.handle();
        channel.send(&Card { mx: side.uri().to_owned(), own: own.end.uri().to_owned(), handle })?;
        own.end.accept()?;
        let mut turn = Turn::Mx;
        loop {
            turn = match turn {
                Turn::End => return Ok(()),
                Turn::Mx | Turn::Shared => side.serve()?,
                Turn::Own(number) => {
                    let way = Way::of(number).ok_or_else(|| UserError::new("there is no such way"))?;
                    own.serve(way)?.map_or(Turn::Mx, |way| Turn::Own(way as u8))
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
        let sample = |way: &str, value| Sample { experiment: "pingpong".into(), x: 8, way: way.into(), value };
        let launches = [1.0, 9.0, 3.0].map(|value| vec![sample("mx", value), sample("cci", 10.0 * value)]);
        let points = points(&launches);
        assert_eq!(points.iter().map(|point| point.value).collect::<Vec<_>>(), [3.0, 30.0]);
        assert_eq!((points[1].way.as_str(), points[1].x), ("cci", 8));
    }
}
