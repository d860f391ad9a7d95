//! A topology and its parameters as a machine, and the analysis of that machine in whole
//! nanoseconds.

use crate::machine::{Machine, Passage, Route};
use cci_model::Component;
use cci_model::ModelError;
use cci_model::Topology;
use cci_model::{FirstTransmission, Link, Overhead, Parameters, Relay};
use cci_proto::engine::Engine;
use cci_proto::{Attribute, wire};
use cci_sim::network::{Forward, LinkSettings, Processor};

/// What a frame of one message has besides the message, bytes.
pub const HEADER: u32 = (wire::DATA + wire::MESSAGE_HEAD) as u32;
/// The longest message of a single frame, bytes.
pub const LONGEST: u32 = Engine::FRAME as u32 - HEADER;

/// How overheads act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// A processor is busy for them: messages of one node wait for each other, as in LogP.
    Busy,
    /// They delay only, as in the queueing model, in which only links are queues.
    Delay,
}

/// A topology with everything that its simulation needs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is simulated.
    pub machine: Machine,
    /// The same parameters as the simulation has them: in whole nanoseconds, with the engine's
    /// header.
    pub whole: Parameters,
    topology: Topology,
    /// For each vertex, the vertices that it has links to, in order, and the links' numbers.
    links: Vec<Vec<(u64, u32)>>,
}

/// A time that the simulation can have.
fn whole(ns: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked by `Parameters::check`; saturates"
    )]
    let whole = ns.round() as u64;
    whole
}

#[expect(clippy::cast_precision_loss, reason = "times of parts of a latency, far below 2^53 ns")]
fn double(number: u64) -> f64 {
    number as f64
}

fn refused(name: &'static str, wrong: String) -> ModelError {
    ModelError::Parameter { name, wrong }
}

/// Times above this would overflow sums of them, nanoseconds.
const LONGEST_TIME: f64 = 1e12;

impl Plan {
    /// Plans a simulation. The header of `parameters` is taken to be the engine's, [`HEADER`].
    ///
    /// # Errors
    ///
    /// Parameters that no simulation can have: a message of more than one frame, times beyond a
    /// quarter of an hour, a rate of less than a byte per second.
    pub fn new(
        topology: &Topology,
        parameters: &Parameters,
        ends: Ends,
        attribute: Attribute,
        seed: u64,
    ) -> Result<Self, ModelError> {
        let parameters = with_header(parameters);
        parameters.check()?;
        let message = message(&parameters)?;
        for (name, ns) in [
            ("o_0", parameters.overhead_ns()),
            ("l_p", parameters.propagation_ns),
            ("l_f", parameters.forwarding_ns),
            ("l_s", parameters.switching_ns),
        ] {
            if ns > LONGEST_TIME {
                return Err(refused(
                    name,
                    format!("is {ns} ns, too long to simulate: give less than {LONGEST_TIME} ns"),
                ));
            }
        }
        let (bandwidth, transmission) = bandwidth(&parameters, message)?;
        let overhead = whole(parameters.overhead_ns());
        let overlap = overlap(&parameters, overhead, transmission)?;
        let links = numbered(topology)?;
        let nodes =
            u32::try_from(topology.nodes()).map_err(|_| ModelError::TooLarge { topology: topology.to_string() })?;
        let forward = match parameters.link.relay {
            Relay::CutThrough => Forward::CutThrough,
            Relay::StoreAndForward => Forward::Store,
        };
        let machine = Machine {
            nodes,
            links: u32::try_from(links.iter().map(Vec::len).sum::<usize>()).unwrap_or(u32::MAX),
            link: LinkSettings {
                delay: whole(parameters.propagation_ns),
                bandwidth,
                forward,
                ..LinkSettings::default()
            },
            forward: whole(parameters.forwarding_ns),
            switch: whole(parameters.switching_ns),
            processor: match ends {
                Ends::Busy => processor(&parameters, overhead, overlap, message),
                Ends::Delay => Processor::default(),
            },
            ends: if ends == Ends::Delay { [overhead - overlap, overhead] } else { [0; 2] },
            attribute,
            message,
            seed,
        };
        let whole = in_whole_ns(&parameters, &machine, overhead, transmission);
        Ok(Self { machine, whole, topology: topology.clone(), links })
    }

    /// The links that frames take from one node to another.
    #[must_use]
    pub fn route(&self, from: u32, to: u32) -> Route {
        let route = self.topology.route(from.into(), to.into());
        let passages = route.crossings.iter().map(|crossing| match crossing {
            Component::Forwarding => Some(Passage::Forward),
            _ => Some(Passage::Switch),
        });
        let link = |(from, to): (u64, u64)| {
            let row = &self.links[usize::try_from(from).unwrap_or(usize::MAX)];
            row.binary_search_by_key(&to, |(to, _)| *to).map_or(0, |at| row[at].1)
        };
        route.links().map(link).zip(passages.chain([None])).collect()
    }

    /// The analysis of a message from one node to another, in the simulation's whole nanoseconds.
    ///
    /// # Errors
    ///
    /// Store-and-forward without a rate.
    pub fn analysis(&self, from: u64, to: u64) -> Result<f64, ModelError> {
        self.whole.latency_ns(&self.topology.count(from, to))
    }
}

/// With the engine's header.
#[must_use]
pub fn with_header(parameters: &Parameters) -> Parameters {
    Parameters { link: Link { header_bytes: HEADER.into(), ..parameters.link }, ..*parameters }
}

/// The size of the messages, in one frame.
fn message(parameters: &Parameters) -> Result<u32, ModelError> {
    let bytes = parameters.message_bytes;
    if bytes.fract() != 0.0 || bytes > LONGEST.into() {
        return Err(refused(
            "m",
            format!("is {bytes}; a simulated message is one frame: give a whole number of up to {LONGEST} bytes"),
        ));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: whole, from 0 to LONGEST")]
    let bytes = bytes as u32;
    Ok(bytes)
}

/// Bytes per second of a link, 0 if it is unlimited, and how long a frame occupies it.
fn bandwidth(parameters: &Parameters, message: u32) -> Result<(u64, u64), ModelError> {
    let Some(rate) = parameters.link.bytes_per_ns else { return Ok((0, 0)) };
    let bandwidth = whole(rate * 1e9);
    if bandwidth == 0 {
        return Err(refused("rate", "is less than a byte per second: give a rate such as 3.2Gb/s".into()));
    }
    let bytes = u128::from(message + HEADER);
    let transmission = (bytes * 1_000_000_000).div_ceil(u128::from(bandwidth));
    Ok((bandwidth, u64::try_from(transmission).unwrap_or(u64::MAX)))
}

/// What of the sender's overhead is transmission.
fn overlap(parameters: &Parameters, overhead: u64, transmission: u64) -> Result<u64, ModelError> {
    if parameters.link.first == FirstTransmission::Apart {
        return Ok(0);
    }
    if transmission <= overhead {
        return Ok(transmission);
    }
    Err(refused(
        "o_0",
        format!(
            "makes an overhead of {overhead} ns, less than the {transmission} ns of the frame's transmission that it is to contain: \
             give a larger o_0, a higher rate, or first=apart"
        ),
    ))
}

/// A processor that takes `overhead` for the frame of a message, and for others more or less as
/// o(m) says.
fn processor(parameters: &Parameters, overhead: u64, overlap: u64, message: u32) -> Processor {
    Processor {
        send_overhead: overhead,
        recv_overhead: overhead,
        gap: 0,
        per_byte: whole(parameters.overhead.per_byte_ns * 1000.0),
        base: u64::from(message + HEADER),
        overlap,
    }
}

/// Links by the vertex they come from.
fn numbered(topology: &Topology) -> Result<Vec<Vec<(u64, u32)>>, ModelError> {
    let vertices = usize::try_from(topology.nodes() + topology.switches()).unwrap_or(usize::MAX);
    let list = topology.links()?;
    let mut links = vec![Vec::new(); vertices];
    for ((from, to), number) in list.into_iter().zip(0..) {
        links[usize::try_from(from).unwrap_or(usize::MAX)].push((to, number));
    }
    links.iter_mut().for_each(|row| row.sort_unstable());
    Ok(links)
}

/// The parameters that the machine has.
fn in_whole_ns(parameters: &Parameters, machine: &Machine, overhead: u64, transmission: u64) -> Parameters {
    let frame = f64::from(machine.message + HEADER);
    Parameters {
        overhead: Overhead::constant(double(overhead)),
        propagation_ns: double(machine.link.delay),
        forwarding_ns: double(machine.forward),
        switching_ns: double(machine.switch),
        link: Link { bytes_per_ns: (transmission > 0).then(|| frame / double(transmission)), ..parameters.link },
        ..*parameters
    }
}
