//! Myrinet Express beside CCI's own messages and RMA. `docs/design/perf-mx.md` has the method.

mod beside;
mod client;
mod shots;
mod side;

use crate::device::Device;
use crate::machine;
use crate::measure::driver::DriverOptions;
use crate::methods::am::{Own, Way};
use crate::methods::blocks::{Sample, points};
use crate::methods::over::Over;
use crate::methods::{Found, pairs};
use crate::peers::PeerSelection;
use crate::reach::scope;
use crate::workers::{Channel, Work};
use cci::Scope;
use cci_report::UserError;
use cci_report::environment::Path;
use cci_report::finding::{Finding, Mx};
use client::Client;
use serde::{Deserialize, Serialize};
use side::{Buffers, Side, Turn};
use std::path::PathBuf;
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
    /// A library of MX: CCI over it is measured beside native messages.
    pub over: Option<String>,
    /// Where the programs of other libraries are; where `make peers` puts them when absent.
    pub peers_in: Option<PathBuf>,
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
    /// The library of CCI over MX.
    over: Option<String>,
    /// Other libraries.
    peers: PeerSelection,
}

/// How the server is reached.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    mx: String,
    own: String,
    /// Its memory, for RMA of CCI's own.
    handle: [u64; 4],
    /// The end of CCI over MX.
    over: Option<(String, [u64; 4])>,
}

/// What one launch has measured.
#[derive(Debug, Serialize, Deserialize)]
struct Launch {
    transport: String,
    path: Option<Path>,
    /// What each other library tells of itself.
    others: Vec<String>,
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
    let (name, keys) = pairs::device("mx", &options.device, warn)?;
    let (transport, time) = (options.device.transport.clone(), options.time / options.launches.max(1));
    // The programs meet in shared memory.
    let peers = match scope(&name) {
        Some(Scope::Network) => PeerSelection::default(),
        _ => beside::programs(options.peers_in.as_deref(), warn)?,
    };
    let role = |measures| {
        let (transport, keys) = (transport.clone(), keys.clone());
        Role { measures, transport, keys, time, over: options.over.clone(), peers: peers.clone() }
    };
    let mut environment = machine::here(None);
    environment.settings.clone_from(&keys);
    let (mut launches, mut of, mut others) = (Vec::<Vec<Sample>>::new(), String::new(), Vec::new());
    let counts = (1, options.launches.max(1) as usize);
    let roles = |_| [true, false].map(role);
    let interrupted = pairs::launch(counts, &mut environment, roles, |launch: Launch, environment| {
        (of, environment.path, others) = (launch.transport, launch.path, launch.others);
        launches.push(launch.samples);
    })?;
    let processors = crate::machine::allowed().len() as u64;
    let points = points(&launches, 1);
    let finding = Mx { transport: of, others, launches: launches.len() as u64, processors, points };
    Ok(Found { environment, finding: Finding::Mx(finding), interrupted })
}

impl Work for Role {
    const NAME: &'static str = "mx";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        let buffers = Buffers::new()?;
        // RMA of the same memory.
        let memory = if self.measures { &buffers.source } else { &buffers.target };
        let mut own = Own::with_memory(&self.opening(), memory.clone())?;
        let over = self.over.as_deref().map(|library| Over::open("CCI over MX", "mx", library));
        let mut over = over.transpose()?;
        if self.measures {
            let card: Card = channel.recv()?;
            own.end.connect(&card.own, card.handle)?;
            if let (Some(over), Some(card)) = (&mut over, &card.over) {
                over.connect(card)?;
            }
            let mut side = Side::open(&self.opening(), 1, Some(&card.mx), buffers)?;
            side.connect()?;
            let (transport, path) = (own.end.transport().to_owned(), own.end.path());
            let programs = beside::start(&self.peers)?;
            let others = programs.iter().map(|other| other.told.clone()).collect();
            let samples = Client::new(side, own, over, programs).measure(self.time)?;
            return channel.send(&Launch { transport, path, others, samples });
        }
        let mut side = Side::open(&self.opening(), 0, None, buffers)?;
        let handle = own.end.handle();
        let card = over.as_ref().map(Over::card);
        channel.send(&Card { mx: side.uri().to_owned(), own: own.end.uri().to_owned(), handle, over: card })?;
        own.end.accept()?;
        over.as_mut().map(Over::accept).transpose()?;
        let mut turn = Turn::Mx;
        loop {
            turn = match turn {
                Turn::End => return Ok(()),
                Turn::Mx | Turn::Shared => side.serve()?,
                Turn::Sleep => side.sleep()?,
                Turn::Over => {
                    over.as_mut().map(Over::serve).transpose()?;
                    Turn::Mx
                }
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
        let sample = |way: &str, value| Sample::new("pingpong", 8, way, value);
        let launches = [1.0, 9.0, 3.0].map(|value| vec![sample("mx", value), sample("cci", 10.0 * value)]);
        let points = points(&launches, 1);
        assert_eq!(points.iter().map(|point| point.value).collect::<Vec<_>>(), [3.0, 30.0]);
        assert_eq!((points[1].way.as_str(), points[1].x), ("cci", 8));
    }
}
