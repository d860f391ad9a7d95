//! Native VIs beside what they stand on, and Active Messages over them beside native VIs.
//! `docs/design/perf-via.md` has the method.

mod blocks;
mod end;
mod figures;
mod own;
mod row;

use crate::device::Device;
use crate::machine;
use crate::measure::driver::DriverOptions;
use crate::measure::facade::device;
use crate::methods::am::{self, Active};
use crate::methods::{Found, pairs};
use crate::probe::ticks::tick_ns;
use crate::workers::{Channel, Work};
use blocks::{Ends, Samples};
use cci_am_via::{Options, Variant, ViaMapping};
use cci_report::environment::Path;
use cci_report::finding::{Finding, Via};
use cci_report::{UserError, while_doing};
use cci_via::{Nic, Reliability};
use end::{Card, Kind, failed};
use figures::Launches;
use own::Own;
use row::{MANY, REQUEST, SHORT, Way};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ViaOptions {
    /// The device of both ends.
    pub device: Device,
    /// Time for each row of the table.
    pub time: Duration,
    /// Pairs of processes that the time is shared out to.
    pub launches: u32,
}

/// One end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    /// The one that sends first.
    asks: bool,
    transport: Option<String>,
    keys: Vec<(String, String)>,
    /// Time for each row, in this launch.
    time: Duration,
}

/// How the other end is reached.
#[derive(Debug, Serialize, Deserialize)]
struct Address {
    own: String,
    /// Its memory, for RMA of CCI's own.
    handle: [u64; 4],
    active: String,
    host: IpAddr,
    /// What its VIs are named by.
    word: String,
    /// Its memory, for RDMA writes.
    target: u32,
}

/// What one launch has measured.
#[derive(Debug, Serialize, Deserialize)]
struct Launch {
    transport: String,
    path: Option<Path>,
    samples: Samples,
}

/// Measures, with both ends on this host. `warn` gets what the user should know before it begins.
///
/// # Errors
///
/// There is no such device, or an end failed in the first launch. What ends the run later is told
/// with what was found.
pub fn measure(options: &ViaOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (_, keys) = pairs::device("via", &options.device, warn)?;
    let (transport, time) = (options.device.transport.clone(), options.time / options.launches.max(1));
    let role = |asks| Role { asks, transport: transport.clone(), keys: keys.clone(), time };
    let mut environment = machine::here(None);
    environment.settings.clone_from(&keys);
    let (mut launches, mut of) = (Launches::default(), String::new());
    let roles = |_| [role(true), role(false)];
    let most = options.launches.max(1) as usize;
    let interrupted = pairs::launch((1, most), &mut environment, roles, |launch: Launch, environment| {
        (of, environment.path) = (launch.transport, launch.path);
        launches.add(launch.samples);
    })?;
    let (cycle_ns, count) = (tick_ns(), launches.count().into());
    let points = launches.points(cycle_ns, of == "sm");
    let finding = Via { transport: of, cycle_ns, launches: count, points };
    Ok(Found { environment, finding: Finding::Via(finding), interrupted })
}

/// What the ends of a way are like.
fn kind(way: Way) -> Kind {
    let reliability = if way == Way::Reception { Reliability::Reception } else { Reliability::Delivery };
    let has_queue = !matches!(way, Way::Polled | Way::Reception);
    let bytes = if way == Way::Wide { REQUEST } else { SHORT };
    Kind { reliability, has_queue, vis: if way == Way::Many { MANY } else { 1 }, bytes }
}

impl Role {
    fn opening(&self) -> DriverOptions {
        pairs::opening(self.transport.as_ref(), &self.keys, 8)
    }

    fn card(&self) -> Result<Card, UserError> {
        let nic = Nic::open(&device(&self.opening())?).map_err(while_doing("cannot open a NIC"))?;
        let tag = nic.protection().map_err(failed)?;
        Ok(Card { nic, tag })
    }
}

impl Work for Role {
    const NAME: &'static str = "via";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        let mapping = ViaMapping::open(&device(&self.opening())?, &Options::new(Variant::V3));
        let mut active = Active::over(mapping.map_err(while_doing("cannot open a mapping"))?)?;
        let mut own = Own::open(&self.opening())?;
        // Many VIs have a NIC of their own.
        let (card, crowded) = (self.card()?, self.card()?);
        let target = card.target(&own.memory)?;
        let address: Address = if self.asks {
            channel.recv()?
        } else {
            let address = Address {
                own: own.end.uri().to_owned(),
                handle: own.end.handle(),
                active: active.name().to_owned(),
                host: card.nic.host(),
                word: format!("perf{}", std::process::id()),
                target: target.handle(),
            };
            channel.send(&address)?;
            address
        };
        if self.asks {
            own.end.connect(&address.own, address.handle)?;
        } else {
            own.end.accept()?;
        }
        let host = self.asks.then_some(address.host);
        let connect = |way: Way| {
            let word = format!("{}.{}", address.word, way as u8);
            if way == Way::Many { &crowded } else { &card }.connect(&kind(way), host, &word)
        };
        let [mut polled, queue, reception, wide, many] = [
            connect(Way::Polled)?,
            connect(Way::Queue)?,
            connect(Way::Reception)?,
            connect(Way::Wide)?,
            connect(Way::Many)?,
        ];
        polled.aim(&card, address.target, &own.memory)?;
        let (transport, path) = (own.end.transport().to_owned(), own.end.path());
        if self.asks {
            // The other end answers this once all is connected.
            own.turn_to(Some(Way::V3))?;
            active.map(&address.active)?;
            active.turn_to(Some(am::Way::Send))?;
            let samples = Ends { own, polled, queue, reception, wide, many, active }.measure(self.time)?;
            return channel.send(&Launch { transport, path, samples });
        }
        Ends { own, polled, queue, reception, wide, many, active }.serve()
    }
}
