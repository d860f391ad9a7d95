//! What the time of a request and its reply goes to. `docs/design/perf-logp.md` says what each
//! share means.

mod ends;

use crate::device::{Device, STREAMS, device_of_ends, nearest};
use crate::interrupt;
use crate::machine;
use crate::measure::client::call;
use crate::measure::driver::{Driver, DriverEvent, DriverOptions, await_event};
use crate::measure::ends::{OPERATIONS, payload_of};
use crate::measure::facade::Facade;
use crate::methods::{Found, warn_of_one_processor};
use crate::probe::ticks::ticks;
use crate::reach::scope;
use crate::workers::{Channel, Work, Workers};
use cci::trace::{Layer, Stamps};
use cci::{Attribute, Scope};
use cci_report::UserError;
use cci_report::environment::Path;
use cci_report::finding::{Breakdown, Finding, Share};
use cci_report::names::{Mode, ProbeKind, Threads};
use ends::{End, Layers, Medians};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Rounds that are measured in any case.
const ROUNDS: u32 = 5;
/// How long the client end may take to connect.
const ARRIVAL: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Clone, Debug)]
pub struct BreakdownOptions {
    /// The device of both ends.
    pub device: Device,
    /// Bytes of the request and of the reply, at least 1.
    pub size: u64,
    /// Endpoints for one thread, or for many.
    pub threads: Threads,
    /// Time for all rounds.
    pub time: Duration,
}

/// An end in a process of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    leads: bool,
    transport: Option<String>,
    keys: Vec<(String, String)>,
    size: u64,
    threads: Threads,
    time: Duration,
    probe: ProbeKind,
}

/// Measures, with both ends as processes of this host. `warn` hears what the user should know
/// before it begins.
///
/// # Errors
///
/// There is no such device, or no bare operation for it, or an end failed.
pub fn measure(options: &BreakdownOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let (name, keys) = device_of_ends(&options.device, None)?;
    let near = nearest(&name, &keys);
    let probe = match scope(near) {
        Some(Scope::Host) => ProbeKind::Line,
        Some(Scope::Network) if near == STREAMS => ProbeKind::TcpPing,
        Some(Scope::Network) => ProbeKind::Udp,
        Some(Scope::Process) | None => {
            return Err(UserError(format!(
                "a breakdown needs a bare operation beside it, and there is none for {name}: use --transport sm or sock"
            )));
        }
    };
    if options.size == 0 {
        return Err(UserError::new("the request has at least one byte: ask for another --size"));
    }
    warn_of_one_processor(warn);
    let role = |leads| Role {
        leads,
        transport: options.device.transport.clone(),
        keys: keys.clone(),
        size: options.size,
        threads: options.threads,
        time: options.time,
        probe,
    };
    let mut workers = Workers::start(&[true, false].map(role))?;
    let mut environment = machine::here(None);
    if let Some([client, server]) = workers.processors.as_deref() {
        environment.pinned = Some([*client, *server]);
    }
    let uri: String = workers.recv(1)?;
    workers.send(0, &uri)?;
    environment.path = workers.recv(0)?;
    let medians: Vec<Medians> = workers.recv_all()?;
    let [client, server] = &medians[..] else { return Err(UserError::new("an end sent no result")) };
    let found = shares(&name, options.size, probe, client, server);
    Ok(Found { environment, finding: Finding::Breakdown(found), interrupted: interrupt::why() })
}

impl Work for Role {
    const NAME: &'static str = "breakdown";

    fn work(&self, channel: &mut Channel) -> Result<(), UserError> {
        play(self, channel)
    }
}

/// Plays one end.
fn play(role: &Role, channel: &mut Channel) -> Result<(), UserError> {
    let opening = DriverOptions {
        transport: role.transport.clone(),
        threads: role.threads,
        mode: Mode::Polling,
        keys: role.keys.clone(),
        library: None,
        ends: 2,
    };
    let stamps = Arc::new(Stamps::new(ticks));
    let driver = Facade::open_stamped(&opening, Some(stamps.clone()))?;
    let connection = if role.leads {
        let uri: String = channel.recv()?;
        let connection = call(&driver, &uri, payload_of(OPERATIONS), Attribute::ReliableOrdered, OPERATIONS)?;
        let path: Option<Path> = driver.path(connection);
        channel.send(&path)?;
        connection
    } else {
        channel.send(&driver.uri())?;
        let arrived = await_event(&driver, &mut Vec::new(), ARRIVAL, |event, _| match event {
            DriverEvent::Open(connection, _) => Some(connection),
            _ => None,
        })?;
        arrived.ok_or_else(|| UserError::new("the client end did not connect"))?
    };
    let most = driver.max_send_size(connection);
    if role.size > most {
        return Err(UserError(format!("a message of this connection has at most {most} bytes: give a smaller --size")));
    }
    let end = End::new(driver, connection, &stamps, channel.probe()?, role.probe, role.size)?;
    let medians = if role.leads { end.lead(role.time, ROUNDS)? } else { end.follow()? };
    channel.send(&medians)
}

/// The shares of a request and its reply: what both ends spent on sending one message and receiving
/// one.
fn shares(transport: &str, size: u64, probe: ProbeKind, client: &Medians, server: &Medians) -> Breakdown {
    let all = |layer: Layer| {
        let of = |layers: &Layers| layers[layer as usize];
        of(&client.send) + of(&server.receive) + of(&server.send) + of(&client.receive)
    };
    let (semantics, event) = (all(Layer::Semantics), all(Layer::Event));
    // A link shows what is its own. Where the transport has none, the bare operation stands for it.
    let has_link = cci::driver(transport).is_some_and(|driver| driver.is_link);
    let (base, flow) = if has_link {
        let flow = all(Layer::Transport);
        (client.total - semantics - event - flow, flow)
    } else {
        (client.bare, client.total - semantics - event - client.bare)
    };
    let share = |name: &str, ns: f64, meaning: &str| Share { name: name.into(), ns, meaning: meaning.into() };
    let (base_is, flow_is) = if has_link {
        (
            "system calls, the kernel and the way between the ends: what the stamps of the other layers leave over",
            "the engine: sequence, acknowledgement, window, timers, buffers; stamped at both ends",
        )
    } else {
        (
            "the bare round trip of a cache line, measured in alternation",
            "lengths, room in the ring, slots, peers that sleep: what the other shares leave over",
        )
    };
    Breakdown {
        transport: transport.into(),
        size,
        total_ns: client.total,
        probe: probe.name().into(),
        probe_ns: client.bare,
        shares: vec![
            share("base-transport", base, base_is),
            share(
                "event-notification",
                event,
                "taking the event from the queue, its fields, giving it back; stamped at both ends",
            ),
            share("flow-control", flow, flow_is),
            share(
                "semantics",
                semantics,
                "the interface: checks of flags, state and length, the endpoint's lock; stamped at both ends",
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(found: Breakdown) -> String {
        cci_report::output::findings::text(&Finding::Breakdown(found))
    }

    fn medians(total: f64, bare: f64, scale: f64) -> Medians {
        let layers = |event: f64| [3.0 * scale, event, 20.0 * scale, 100.0 * scale];
        Medians { total, bare, send: layers(0.0), receive: layers(8.0 * scale) }
    }

    #[test]
    fn shares_make_up_the_whole_over_a_link_and_over_memory() {
        for transport in ["sm", "sock"] {
            let found = shares(transport, 8, ProbeKind::Line, &medians(1000.0, 300.0, 1.0), &medians(0.0, 0.0, 2.0));
            let sum: f64 = found.shares.iter().map(|share| share.ns).sum();
            assert!((sum - 1000.0).abs() < 1e-9, "{found:?}");
            let of = |name: &str| found.shares.iter().find(|share| share.name == name).unwrap().ns;
            // Sent and received once at each end; the server's figures are twice the client's.
            assert!((of("semantics") - 18.0).abs() < 1e-9 && (of("event-notification") - 24.0).abs() < 1e-9);
            let (base, flow) = if transport == "sm" { (300.0, 658.0) } else { (838.0, 120.0) };
            assert!((of("base-transport") - base).abs() < 1e-9 && (of("flow-control") - flow).abs() < 1e-9);
        }
    }

    #[test]
    fn the_finding_on_the_terminal() {
        insta::assert_snapshot!(text(shares(
            "sock",
            8,
            ProbeKind::Udp,
            &medians(9000.0, 8000.0, 1.0),
            &medians(0.0, 0.0, 1.0)
        )));
        let disturbed = shares("sm", 8, ProbeKind::Line, &medians(500.0, 900.0, 1.0), &medians(0.0, 0.0, 1.0));
        assert!(text(disturbed).contains("flow-control came out below nothing"));
    }
}
