//! Active Messages beside CCI's own messages and RMA. `docs/design/perf-am.md` has the method.

mod active;
mod blocks;
mod figures;
mod own;
mod shot;

use crate::device::Device;
use crate::machine;
use crate::measure::driver::DriverOptions;
use crate::methods::{Found, pairs};
use crate::peers::{Choice, PeerSelection, Program, Timeouts, parse_list, select};
use crate::probe::ticks::tick_ns;
use crate::reach::scope;
use crate::workers::{Channel, Work};
pub(in crate::methods) use active::Active;
pub(in crate::methods) use own::Own;

use blocks::{Client, Samples};
use cci::Scope;
use cci_report::UserError;
use cci_report::environment::Path;
use cci_report::finding::{Am, Finding};
use figures::Launches;
use serde::{Deserialize, Serialize};
pub(in crate::methods) use shot::{Load, Shot, Way};
use std::path::PathBuf;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct AmOptions {
    /// The device of both ends.
    pub device: Device,
    /// Time for each line of the table.
    pub time: Duration,
    /// Pairs of processes that the time is shared out to.
    pub launches: u32,
    /// Where the programs of other libraries are; where `make peers` puts them when absent.
    pub peers_in: Option<PathBuf>,
}

/// Bytes of the longest message of a peer.
const LONGEST_OF_PEER: u64 = 4096;

/// One end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    /// The one that sends requests.
    requests: bool,
    transport: Option<String>,
    keys: Vec<(String, String)>,
    /// Time for each line, in this launch.
    time: Duration,
    /// Another library beside it, if its program is there.
    peers: PeerSelection,
}

/// How the other end is reached.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    active: String,
    own: String,
    /// Its memory, for RMA of CCI's own.
    handle: [u64; 4],
}

/// What one launch has measured.
#[derive(Debug, Serialize, Deserialize)]
struct Launch {
    transport: String,
    path: Option<Path>,
    /// The peer, as its program describes it.
    peer: Option<String>,
    samples: Samples,
}

impl Role {
    /// The program of the peer, and how it describes itself.
    fn program(&self) -> Result<Option<(Program, String)>, UserError> {
        let Some(choice) = self.peers.names.first().and_then(|name| Choice::named(name)) else { return Ok(None) };
        let (directory, processors) = (&self.peers.directory, self.peers.processors);
        let mut program = Program::start(choice, directory, processors, LONGEST_OF_PEER, Timeouts::default())?;
        let described = program.ready(choice.peer.library)?;
        Ok(Some((program, format!("{choice}: {described}"))))
    }

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
pub fn measure(options: &AmOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (name, keys) = pairs::device("am", &options.device, warn)?;
    let (transport, time) = (options.device.transport.clone(), options.time / options.launches.max(1));
    let peers = peers(&name, options.peers_in.as_deref(), warn)?;
    let role =
        |requests| Role { requests, transport: transport.clone(), keys: keys.clone(), time, peers: peers.clone() };
    let mut environment = machine::here(None);
    environment.settings.clone_from(&keys);
    let (mut launches, mut of, mut peer) = (Launches::default(), String::new(), None);
    let roles = |_| [role(true), role(false)];
    let most = options.launches.max(1) as usize;
    let interrupted = pairs::launch((1, most), &mut environment, roles, |launch: Launch, environment| {
        (of, environment.path, peer) = (launch.transport, launch.path, launch.peer);
        launches.add(launch.samples);
    })?;
    let points = launches.points();
    let finding = Am { transport: of, cycle_ns: tick_ns(), launches: launches.count().into(), peer, points };
    Ok(Found { environment, finding: Finding::Am(finding), interrupted })
}

/// The peers beside a transport of shared memory. One that is not built is left out, and said so.
fn peers(
    transport: &str,
    directory: Option<&std::path::Path>,
    warn: &dyn Fn(&str),
) -> Result<PeerSelection, UserError> {
    if scope(transport) == Some(Scope::Network) {
        return Ok(PeerSelection::default());
    }
    let list = parse_list("installed:am").map_err(UserError)?;
    let (peers, status) = select(&list, directory);
    status.notices.iter().for_each(|notice| warn(notice));
    Ok(peers)
}

impl Work for Role {
    const NAME: &'static str = "am";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        let mut active = Active::open(&self.opening())?;
        let mut own = Own::open(&self.opening())?;
        if self.requests {
            let card: Card = channel.recv()?;
            own.end.connect(&card.own, card.handle)?;
            active.map(&card.active)?;
            let (transport, path) = (own.end.transport().to_owned(), own.end.path());
            let (program, peer) = self.program()?.unzip();
            let samples = Client::new(active, own, program).measure(self.time)?;
            return channel.send(&Launch { transport, path, peer, samples });
        }
        let handle = own.end.handle();
        channel.send(&Card { active: active.name().to_owned(), own: own.end.uri().to_owned(), handle })?;
        own.end.accept()?;
        let mut way = Some(Way::Active);
        while let Some(now) = way {
            way = match now {
                Way::Active => active.serve()?,
                Way::Peer => active.sleep()?,
                Way::Send | Way::Reserve | Way::Write => own.serve(now)?,
            };
        }
        Ok(())
    }
}
