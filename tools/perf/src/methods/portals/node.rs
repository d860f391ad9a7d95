//! Programs of one node: with interfaces of their own, or at an engine that they share. One program
//! is the *single node* mode of the slides (SN), two are the *virtual node* mode (VN).

use super::options::PortalsOptions;
use super::program::{AREA, Network, Program};
use crate::interrupt;
use crate::machine::{allowed, spread};
use crate::measure::driver::DriverOptions;
use crate::measure::facade::device;
use crate::methods::pairs;
use crate::workers::{Channel, Work, Workers};
use cci_portals::shared::{Client, Engine};
use cci_portals::{Interface, Limits, Place, ProcessId};
use cci_report::finding::PortalsPoint;
use cci_report::statistics::{median, uncertainty};
use cci_report::{UserError, while_doing};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Who makes the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Way {
    /// The program's calls.
    Generic,
    /// A thread of each program, with one lock.
    Accelerated,
    /// A process that all programs share, by rings.
    Shared,
}

impl Way {
    const ALL: [Self; 3] = [Self::Generic, Self::Accelerated, Self::Shared];

    fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Accelerated => "accelerated",
            Self::Shared => "shared",
        }
    }
}

/// One process of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    /// None: the engine.
    program: Option<Way>,
    /// By which programs find the engine.
    name: String,
    /// Programs of the node.
    programs: usize,
    transport: Option<String>,
    keys: Vec<(String, String)>,
    /// Time of each figure.
    time: Duration,
    /// Of the run. A program has one of them where there are enough; engines may use all.
    processors: Vec<usize>,
}

/// What a program has measured.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    /// Updates per second.
    rate: f64,
    /// Nanoseconds of a put to itself, and of the call that begins it: of one program alone.
    handing: Option<[f64; 2]>,
}

/// What all launches have measured of one figure.
struct Figure {
    experiment: &'static str,
    x: u64,
    way: Way,
    values: Vec<f64>,
}

impl Role {
    fn opening(&self) -> DriverOptions {
        pairs::opening(self.transport.as_ref(), &self.keys, 2)
    }

    fn network(&self, way: Way) -> Result<Network, UserError> {
        if way == Way::Shared {
            let client = Client::join(&self.name, None, AREA);
            return Ok(Network::There(Box::new(client.map_err(while_doing("cannot join the engine"))?)));
        }
        let open = if way == Way::Generic { Interface::new } else { Interface::accelerated };
        let place = Place::by_rule(&device(&self.opening())?, None);
        let place = place.map_err(while_doing("cannot open an endpoint of Portals"))?;
        let opened = spread(&self.processors, || open(place, 0, Limits::default()));
        Ok(Network::Here(opened.map_err(while_doing("cannot open a network interface"))?))
    }

    fn serve(&self, channel: &Channel) -> Result<(), UserError> {
        let device = device(&self.opening())?;
        let engine = Engine::open(&self.name, move |pid| Place::by_rule(&device, pid));
        let mut engine = engine.map_err(while_doing("cannot open an engine"))?;
        channel.send(&true)?;
        engine.serve().map_err(while_doing("the engine has failed"))
    }
}

impl Work for Role {
    const NAME: &'static str = "portals-node";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        let Some(way) = self.program else { return self.serve(channel) };
        // The engine is there.
        channel.recv::<bool>()?;
        let mut program = Program::new(self.network(way)?)?;
        let ProcessId { nid, pid } = program.id();
        channel.send(&(nid, pid))?;
        let (nid, pid) = channel.recv()?;
        // The first updates open links.
        program.update(ProcessId { nid, pid }, self.time / 10)?;
        let rate = program.update(ProcessId { nid, pid }, self.time)?;
        let handing = (self.programs == 1).then(|| program.hand_over(self.time)).transpose()?;
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        let handing = handing.map(|times| times.map(|time| time.as_nanos() as f64));
        channel.send(&Measured { rate, handing })
    }
}

/// Runs so many programs once. Returns the figures of them together.
fn run(way: Way, programs: usize, role: &Role) -> Result<Measured, UserError> {
    let program = Role { program: Some(way), programs, ..role.clone() };
    let engine = (way == Way::Shared).then(|| Role { program: None, ..program.clone() });
    let has_engine = engine.is_some();
    let roles: Vec<_> = std::iter::repeat_n(program, programs).chain(engine).collect();
    let mut workers = Workers::start(&roles)?;
    if has_engine {
        workers.recv::<bool>(programs)?;
    }
    (0..programs).try_for_each(|number| workers.send(number, &true))?;
    let ids = (0..programs).map(|number| workers.recv::<(u32, u32)>(number)).collect::<Result<Vec<_>, _>>()?;
    for number in 0..programs {
        workers.send(number, &ids[(number + 1) % programs])?;
    }
    let measured = (0..programs).map(|number| workers.recv::<Measured>(number)).collect::<Result<Vec<_>, _>>()?;
    let rate = measured.iter().map(|of| of.rate).sum();
    Ok(Measured { rate, handing: measured.first().and_then(|of| of.handing) })
}

/// Measures one program and two, by each way in turn, as often as asked.
pub(super) fn measure(options: &PortalsOptions, keys: &[(String, String)]) -> Result<Vec<PortalsPoint>, UserError> {
    let launches = options.launches.max(1);
    let role = |number: u32| Role {
        program: None,
        name: format!("perf {} {number}", std::process::id()),
        programs: 0,
        transport: options.device.transport.clone(),
        keys: keys.to_vec(),
        time: options.time / launches,
        processors: allowed(),
    };
    let mut found: Vec<Figure> = Vec::new();
    let mut add = |experiment, x, way, value| match found
        .iter_mut()
        .find(|of| (of.experiment, of.x, of.way) == (experiment, x, way))
    {
        Some(of) => of.values.push(value),
        None => found.push(Figure { experiment, x, way, values: vec![value] }),
    };
    let mut number = 0;
    for launch in 0..launches {
        if launch > 0 && interrupt::is_asked() {
            break;
        }
        for (programs, way) in [1, 2].into_iter().flat_map(|programs| Way::ALL.map(|way| (programs, way))) {
            number += 1;
            let measured = run(way, programs, &role(number))?;
            add("node", programs as u64, way, measured.rate);
            for (experiment, value) in
                ["handing", "handing-call"].into_iter().zip(measured.handing.into_iter().flatten())
            {
                add(experiment, 8, way, value);
            }
        }
    }
    let point = |Figure { experiment, x, way, values }: Figure| PortalsPoint {
        experiment: experiment.into(),
        x,
        way: way.name().into(),
        value: median(&values),
        spread: uncertainty(&values),
    };
    Ok(found.into_iter().map(point).collect())
}
