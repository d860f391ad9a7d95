//! `cci model latency`: one message.

use super::answer::{Answer, Cell, Table};
use super::refusal::told;
use super::system;
use super::system::SystemArguments;
use crate::results::FileArguments;
use cci_model::{Component, Components, Parameters, Route, Topology, Transaction};
use cci_report::UserError;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct LatencyArguments {
    /// The network: ring:8, biring:8, torus:10x10x10, bitorus:4x4, mesh:4x3, hypercube:64, star:24,
    /// fattree2:k=8, fattree3:k=8, dragonfly:h=2
    #[arg(long)]
    topology: Topology,
    /// Source node
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Destination node
    #[arg(long)]
    to: u64,
    #[command(flatten)]
    system: SystemArguments,
    #[command(flatten)]
    files: FileArguments,
}

/// Longer routes are summed up rather than listed.
const LISTED_HOPS: f64 = 64.0;

pub(crate) fn latency(arguments: &LatencyArguments) -> Result<(), UserError> {
    let (topology, parameters) = (&arguments.topology, arguments.system.system()?.parameters);
    let nodes = topology.nodes();
    for node in [arguments.from, arguments.to] {
        if node >= nodes {
            return Err(UserError(format!("{topology} has no node {node}: give one from 0 to {}", nodes - 1)));
        }
    }
    if arguments.from == arguments.to {
        return Err(UserError::new("a node sends itself nothing over the network: give another node as --to"));
    }
    let mut files = arguments.files.open(None)?;
    let mut answer = Answer::new(&parameters);
    answer.say(&format!("{topology}, node {} to node {}; {}", arguments.from, arguments.to, system::line(&parameters)));
    let there = topology.count(arguments.from, arguments.to);
    let back = topology.count(arguments.to, arguments.from);
    if there.propagations.max(back.propagations) <= LISTED_HOPS {
        let ways = Transaction::between(topology, arguments.from, arguments.to);
        answer.say(&format!("request:  {}", route(topology, &ways.request)));
        answer.say(&format!("response: {}", route(topology, &ways.response)));
        answer.field("request_components", symbols(&ways.request));
        answer.field("response_components", symbols(&ways.response));
    }
    answer.say("");
    answer.table("latency", &parts(&parameters, &there, &back)?);
    answer.field("topology", topology.to_string());
    answer.tell(&mut files, None)
}

/// What each component contributes to request, response, and both.
fn parts(parameters: &Parameters, there: &Components, back: &Components) -> Result<Table, UserError> {
    let mut table = Table::new(&[
        ("", "part"),
        ("l_p", "propagations"),
        ("l_f", "forwardings"),
        ("l_s", "switchings"),
        ("overheads", "overheads_ns"),
        ("network", "network_ns"),
        ("latency", "latency_ns"),
    ]);
    let both = there.plus(1.0, back);
    let [request, response] = [parameters.latency_ns(there).map_err(told)?, parameters.latency_ns(back).map_err(told)?];
    let rows = [("request", there, request), ("response", back, response), ("transaction", &both, request + response)];
    for (ends, (name, count, latency)) in [2.0, 2.0, 4.0].into_iter().zip(rows) {
        let overheads = ends * parameters.overhead_ns();
        table.rows.push(vec![
            Cell::Text(name.into()),
            Cell::Number(count.propagations, 0),
            Cell::Number(count.forwardings, 0),
            Cell::Number(count.switchings, 0),
            Cell::Time(overheads),
            Cell::Time(latency - overheads),
            Cell::Time(latency),
        ]);
    }
    Ok(table)
}

/// The vertices passed, with what happens at each.
fn route(topology: &Topology, route: &Route) -> String {
    let vertex = |vertex: u64| {
        if vertex < topology.nodes() { vertex.to_string() } else { format!("switch {}", vertex - topology.nodes()) }
    };
    let crossing = |at: usize| match at.checked_sub(1).and_then(|before| route.crossings.get(before)) {
        Some(Component::Forwarding) => " (forwards)",
        // That a switch switches goes without saying.
        Some(Component::Switching) if route.vertices[at] < topology.nodes() => " (switches)",
        _ => "",
    };
    let passed = route.vertices.iter().enumerate().map(|(at, number)| vertex(*number) + crossing(at));
    passed.collect::<Vec<_>>().join(" - ")
}

fn symbols(route: &Route) -> Vec<&'static str> {
    let symbol = |component: &Component| match component {
        Component::Overhead => "o",
        Component::Propagation => "l_p",
        Component::Forwarding => "l_f",
        Component::Switching => "l_s",
    };
    route.components().iter().map(symbol).collect()
}
