//! `cci model pattern`: how long traffic takes, idle and under load.

use super::answer::{Answer, Cell, Table};
use super::average::NetworkArguments;
use super::refusal::told;
use super::system;
use super::system::SystemArguments;
use crate::results::FileArguments;
use cci_model::{Parameters, Pattern, Topology};
use cci_report::UserError;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct PatternArguments {
    #[command(flatten)]
    networks: NetworkArguments,
    /// Who sends to whom: average, unicasts (one-to-all), multicast (along a tree), all-to-all,
    /// neighbour, transpose, hot-spot=0.1; several, separated by blanks; all when absent
    #[arg(long, num_args = 1..)]
    pattern: Vec<Pattern>,
    /// Messages per second that each node sends on average
    #[arg(long, conflicts_with = "load", value_parser = positive)]
    rate: Option<f64>,
    /// Utilisation of the busiest link instead, such as 0.7; 0.5 when absent
    #[arg(long, value_parser = share)]
    load: Option<f64>,
    #[command(flatten)]
    system: SystemArguments,
    #[command(flatten)]
    files: FileArguments,
}

/// A number above zero.
pub(crate) fn positive(text: &str) -> Result<f64, UserError> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| UserError(format!("`{text}` is no rate: give messages per second above 0, such as 1e5")))
}

/// Of a link.
pub(crate) fn share(text: &str) -> Result<f64, UserError> {
    let number = text.parse().ok().filter(|number: &f64| (0.0..1.0).contains(number));
    number.ok_or_else(|| UserError(format!("`{text}` is no load: a link carries from 0 to below 1, such as 0.7")))
}

/// How much is offered.
#[derive(Clone, Copy)]
enum Offered {
    Rate(f64),
    Load(f64),
}

pub(crate) fn pattern(arguments: &PatternArguments) -> Result<(), UserError> {
    let parameters = arguments.system.system()?.parameters;
    let mut files = arguments.files.open(None)?;
    let offered = match (arguments.rate, arguments.load) {
        (Some(rate), _) => Offered::Rate(rate),
        (None, load) => Offered::Load(load.unwrap_or(0.5)),
    };
    let all = [
        Pattern::Average,
        Pattern::Unicasts,
        Pattern::Multicast,
        Pattern::AllToAll,
        Pattern::Neighbour,
        Pattern::Transpose,
        Pattern::HotSpot(0.1),
    ];
    let patterns = if arguments.pattern.is_empty() { &all[..] } else { &arguments.pattern };
    let mut answer = Answer::new(&parameters);
    answer.say(&system::line(&parameters));
    answer.say(&match offered {
        Offered::Rate(rate) => format!("under load: {rate} messages per second from each node\n"),
        Offered::Load(load) => format!("under load: {:.0} % of what the busiest link carries\n", 100.0 * load),
    });
    let mut table = Table::new(&[
        ("topology", "topology"),
        ("pattern", "pattern"),
        ("idle", "idle_ns"),
        ("under load", "loaded_ns"),
        ("waiting", "wait_ns"),
        ("busiest link", "utilisation"),
        ("msg/s of each node", "rate_per_second"),
        ("at most", "saturation_per_second"),
    ]);
    let mut left_out = vec![];
    for topology in arguments.networks.topologies()? {
        for pattern in patterns {
            // With all patterns, those that this network cannot have are named below.
            match row(&topology, *pattern, &parameters, offered) {
                Ok(row) => table.rows.push(row),
                Err(why) if arguments.pattern.is_empty() => left_out.push(why.0),
                Err(why) => return Err(why),
            }
        }
    }
    answer.table("patterns", &table);
    answer.say("\naverage, neighbour, transpose, hot-spot: mean latency of a message; unicasts, multicast, all-to-all: until complete.");
    answer
        .say("Waiting is for links (queues of M/D/1 kind, docs/design/model.md); all-to-all has the ends or the busiest link busy without a gap.");
    for why in left_out {
        answer.say(&format!("Left out: {why}."));
    }
    answer.tell(&mut files, None)
}

fn row(
    topology: &Topology,
    pattern: Pattern,
    parameters: &Parameters,
    offered: Offered,
) -> Result<Vec<Cell>, UserError> {
    let idle = pattern.time_ns(topology, parameters).map_err(told)?;
    let mut row = vec![Cell::Text(topology.to_string()), Cell::Text(pattern.to_string()), Cell::Time(idle)];
    if parameters.link.bytes_per_ns.is_none() {
        row.resize(8, Cell::Nothing);
        return Ok(row);
    }
    let saturation = pattern.saturation(topology, parameters).map_err(told)?;
    let rate = match offered {
        Offered::Rate(rate) => rate,
        Offered::Load(load) => load * saturation,
    };
    let loaded = pattern.loaded(topology, parameters, rate).map_err(told)?;
    row.extend([Cell::Time(loaded.time_ns), Cell::Time(loaded.wait_ns)]);
    // All messages of all-to-all are there at once.
    row.extend(if pattern == Pattern::AllToAll {
        [Cell::Nothing, Cell::Nothing]
    } else {
        [Cell::Number(loaded.utilisation, 2), Cell::Number(rate, 0)]
    });
    row.push(Cell::Number(saturation, 0));
    Ok(row)
}
