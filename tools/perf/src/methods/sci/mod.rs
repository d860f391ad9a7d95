//! Windows of SCI beside bare memory, as the thesis's `scibench` measures them, and beside MPI.
//! `docs/design/perf-sci.md` has the method.

mod client;
mod end;
mod loops;
mod mirrors;
pub mod mpi;
mod rows;

use crate::device::Device;
use crate::machine;
use crate::measure::driver::DriverOptions;
use crate::methods::{Found, pairs};
use crate::peers::{Choice, PeerSelection, Program, Timeouts};
use crate::workers::{Channel, Work};
use cci_report::environment::{Environment, Path};
use cci_report::finding::{Finding, Sci};
use cci_report::{UserError, while_doing};
use cci_sci::Nodes;
use client::{Client, Group, Other};
use end::{Alone, Card, End, Order};
use loops::{Lane, Messages};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct SciOptions {
    /// The device of both ends.
    pub device: Device,
    /// Bytes of messages.
    pub sizes: Vec<u64>,
    /// Time for each figure.
    pub time: Duration,
    /// Runs of each figure, which the time is shared out to.
    pub runs: u32,
    /// Pairs of processes that the runs are shared out to.
    pub launches: u32,
    /// Where the ends are, the one that measures first: then ping-pongs of flushed windows alone
    /// are measured. `None`: both on this host.
    pub between: Option<[Place; 2]>,
}

/// Where an end is, if both are in name spaces of the network: as a host of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Place {
    /// The file of its name space.
    pub net: String,
    /// Its address there.
    pub ip: String,
    /// The node table.
    pub nodes: String,
}

impl Place {
    /// Puts this process there, before it starts a thread that uses the network.
    fn enter(&self) -> Result<(), UserError> {
        let net = File::open(&self.net).map_err(while_doing("cannot open a name space"))?;
        let entered = move_into_link_name_space(net.as_fd(), Some(LinkNameSpaceType::Network));
        entered.map_err(while_doing("cannot enter a name space"))
    }
}

/// Bytes of messages where none are asked for.
pub const SIZES: [u64; 17] =
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// One end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    /// The one that measures.
    measures: bool,
    place: Option<Place>,
    transport: Option<String>,
    keys: Vec<(String, String)>,
    sizes: Vec<u64>,
    /// Runs in this launch, and how long one lasts.
    runs: u32,
    run: Duration,
    /// Other libraries, beside which windows stand.
    peers: PeerSelection,
}

/// What one launch has measured.
#[derive(Debug, Serialize, Deserialize)]
struct Launch {
    transport: String,
    window: String,
    path: Option<Path>,
    /// What other libraries tell of themselves.
    programs: Vec<String>,
    groups: Vec<Group>,
}

/// What all launches have measured.
struct Measured {
    environment: Environment,
    transport: String,
    window: String,
    programs: Vec<String>,
    launches: Vec<Vec<Group>>,
    interrupted: Option<String>,
}

/// Measures, with both ends on this host. `warn` gets what the user should know before it begins.
///
/// # Errors
///
/// There is no such device, a size cannot be measured, or an end failed in the first launch. What
/// ends the run later is told with what was found.
pub fn measure(options: &SciOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let measured = launches("sci", options, &PeerSelection::default(), warn)?;
    let Measured { environment, transport, window, launches, interrupted, .. } = measured;
    let finding = Sci {
        rows: rows::rows(&launches, &window),
        transport,
        window,
        launches: launches.len() as u64,
        runs: options.runs.into(),
        processors: machine::allowed().len() as u64,
        points: rows::points(&launches),
    };
    Ok(Found { environment, finding: Finding::Sci(finding), interrupted })
}

/// All launches, of windows and of what is beside them.
fn launches(
    what: &str,
    options: &SciOptions,
    peers: &PeerSelection,
    warn: &dyn Fn(&str),
) -> Result<Measured, UserError> {
    check(&options.sizes, if options.between.is_some() { loops::LONGEST_SMALL } else { loops::LONGEST })?;
    let keys = match options.between {
        Some(_) => options.device.keys.clone(),
        None => pairs::device(what, &options.device, warn)?.1,
    };
    let runs = options.runs.max(1);
    let most = options.launches.clamp(1, runs);
    let role = |number: u32, measures| Role {
        measures,
        place: options.between.as_ref().map(|places| places[usize::from(!measures)].clone()),
        transport: options.device.transport.clone(),
        keys: keys.clone(),
        sizes: options.sizes.clone(),
        runs: share(runs, most, number),
        run: options.time / runs,
        peers: peers.clone(),
    };
    let mut environment = machine::here(None);
    environment.settings.clone_from(&keys);
    let (mut launches, mut last) = (Vec::new(), None);
    let roles = |number| [true, false].map(|measures| role(u32::try_from(number).unwrap_or(0), measures));
    let most = usize::try_from(most).unwrap_or(1);
    let interrupted = pairs::launch((1, most), &mut environment, roles, |launch: Launch, environment| {
        environment.path = launch.path;
        launches.push(launch.groups);
        last = Some((launch.transport, launch.window, launch.programs));
    })?;
    let (transport, window, programs) = last.unwrap_or_default();
    Ok(Measured { environment, transport, window, programs, launches, interrupted })
}

/// Refuses sizes that have no last element.
fn check(sizes: &[u64], longest: u64) -> Result<(), UserError> {
    match sizes.iter().find(|size| !loops::is_size(**size) || **size > longest) {
        None => Ok(()),
        Some(size) => Err(UserError(format!(
            "a message of {size} bytes has no last element to poll; give 1, 2, 4, or multiples of 8 up to {}",
            longest
        ))),
    }
}

/// The runs of a launch: all have as many, the first ones one more where they do not divide.
fn share(runs: u32, launches: u32, number: u32) -> u32 {
    runs / launches + u32::from(number < runs % launches)
}

impl Role {
    fn opening(&self) -> DriverOptions {
        let mut keys = self.keys.clone();
        keys.extend(self.place.iter().map(|place| ("ip".to_owned(), place.ip.clone())));
        pairs::opening(self.transport.as_ref(), &keys, 4)
    }

    fn lead(&self, end: End, channel: &mut Channel) -> Result<Launch, UserError> {
        let (transport, path) = (end.own.transport().to_owned(), end.own.path());
        let window = end.kind().to_owned();
        let programs = self.programs()?;
        let described = programs.iter().map(|program| program.told.clone()).collect();
        let bare = channel.probe()?.stores();
        let (sizes, runs, run) = (&self.sizes[..], self.runs, self.run);
        let is_apart = self.place.is_some();
        let groups = Client { end, bare, programs, is_apart, sizes, runs, run, number: 0 }.measure()?;
        Ok(Launch { transport, window, path, programs: described, groups })
    }

    /// Starts the programs of other libraries.
    fn programs(&self) -> Result<Vec<Other>, UserError> {
        let PeerSelection { names, directory, processors } = &self.peers;
        let largest = self.sizes.iter().max().copied().unwrap_or(1);
        let start = |name: &String| {
            let unknown =
                || UserError(format!("no peer is named {name}; give --peers all, installed, or a list of names"));
            let choice = Choice::named(name).ok_or_else(unknown)?;
            let lost = |why: UserError| UserError(format!("the peer {name} is lost: {}", why.0));
            let mut program =
                Program::start(choice, directory, *processors, largest, Timeouts::default()).map_err(lost)?;
            let told = program.ready(choice.peer.library).map_err(lost)?;
            Ok(Other { name: choice.peer.library, told: format!("{name}: {told}"), program })
        };
        names.iter().map(start).collect()
    }
}

impl Work for Role {
    const NAME: &'static str = "sci";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        let nodes = match &self.place {
            Some(place) => {
                place.enter()?;
                Some(Nodes::parse(&place.nodes).map_err(|why| UserError(why.to_string()))?)
            }
            None => None,
        };
        let alone = Alone::open(&self.opening(), nodes)?;
        if self.measures {
            let other: Card = channel.recv()?;
            let launch = self.lead(alone.meet(&other)?, channel)?;
            return channel.send(&launch);
        }
        channel.send(&alone.card())?;
        serve(&alone.accept()?, channel)
    }
}

/// Does what the other end orders, until it has measured all.
fn serve(end: &End, channel: &mut Channel) -> Result<(), UserError> {
    let bare = channel.probe()?.stores();
    let mut order = end.next_order(Order::Rest)?;
    loop {
        match order {
            Order::Windows(messages) => messages.reset(&end.windows[messages.windows]),
            Order::Bare(messages) => messages.reset(&bare),
            Order::Written(messages) => messages.reset(&end.writes()?),
            Order::Watch(_) => bare.store::<8>(mirrors::WORD, 0),
            Order::Rma | Order::Drive | Order::Answers | Order::Rest | Order::End => {}
        }
        end.answer()?;
        match order {
            Order::Windows(messages) => both_parts(&messages, &end.windows[messages.windows]),
            Order::Bare(messages) => both_parts(&messages, &bare),
            Order::Written(messages) => both_parts(&messages, &end.writes()?),
            Order::Watch(watch) => end.watch(watch, &bare)?,
            Order::Rma | Order::Drive | Order::Answers | Order::Rest => {}
            Order::End => return Ok(()),
        }
        order = end.next_order(order)?;
    }
}

/// The server's part of untimed messages, and of timed ones.
fn both_parts(messages: &Messages, lane: &impl Lane) {
    [false, true].iter().for_each(|timed| messages.run(lane, false, *timed));
    // The ends of the last messages are not those of the next block.
    lane.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_shared_out_to_launches() {
        assert_eq!([0, 1, 2].map(|number| share(15, 3, number)), [5, 5, 5]);
        assert_eq!([0, 1, 2].map(|number| share(4, 3, number)), [2, 1, 1]);
    }

    #[test]
    fn a_size_without_a_last_element_is_refused() {
        assert!(check(&SIZES, loops::LONGEST).is_ok() && check(&[4096], 2048).is_err());
        let why = check(&[8, 12], loops::LONGEST).unwrap_err().0;
        assert!(why.contains("12 bytes") && why.contains("multiples of 8"), "{why}");
    }
}
