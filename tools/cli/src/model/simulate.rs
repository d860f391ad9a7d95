//! `cci model simulate`: a pattern on a topology with the real protocol engine on every node, in
//! virtual time, beside the analysis.

use super::answer::{Answer, Cell, Table};
use super::pattern::{positive, share};
use super::refusal::told;
use super::system;
use super::system::SystemArguments;
use crate::choice::choice;
use crate::results::FileArguments;
use cci_model::{Parameters, Pattern, Topology};
use cci_perf::measure::attribute;
use cci_report::UserError;
use cci_report::names::AttributeName;
use cci_simulator::plan::with_header;
use cci_simulator::{Outcome, Setting, simulate};
use clap::Args;
use std::time::Instant;

#[derive(Args, Debug)]
pub(crate) struct SimulateArguments {
    /// The network: ring:8, torus:10x10x10, bitorus:4x4, mesh:4x3, hypercube:64, star:24,
    /// fattree3:k=8, dragonfly:h=2; several, separated by blanks
    #[arg(long, num_args = 1.., required = true)]
    topology: Vec<Topology>,
    /// Who sends to whom: average, unicasts (one-to-all), multicast (along a tree), all-to-all,
    /// neighbour, transpose, hot-spot=0.1
    #[arg(long, default_value = "average")]
    pattern: Pattern,
    /// Messages per second that each node posts at random times; one message at a time when absent
    #[arg(long, conflicts_with = "load", value_parser = positive)]
    rate: Option<f64>,
    /// Utilisation of the busiest link instead, such as 0.7
    #[arg(long, value_parser = share)]
    load: Option<f64>,
    /// What connections promise. Acknowledgements of reliable ones load links and processors, which
    /// the analysis leaves out
    #[arg(long, value_parser = choice::<AttributeName>(), default_value = "uu")]
    attribute: AttributeName,
    /// Messages to measure, where the pattern does not say how many; 1,000, or 100,000 under load,
    /// when absent
    #[arg(long, value_parser = clap::value_parser!(u64).range(20..=100_000_000))]
    messages: Option<u64>,
    /// Determines everything that happens
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    system: SystemArguments,
    #[command(flatten)]
    files: FileArguments,
}

pub(crate) fn answer(arguments: &SimulateArguments) -> Result<(), UserError> {
    let parameters = with_header(&arguments.system.system()?.parameters);
    let mut files = arguments.files.open(None)?;
    let mut answer = Answer::new(&parameters);
    answer.say(&system::line(&parameters));
    let mut table = Table::new(&[
        ("topology", "topology"),
        ("pattern", "pattern"),
        ("load", "utilisation"),
        ("connections", "connections"),
        ("messages", "messages"),
        ("analysis", "analysis_ns"),
        ("simulation", "simulated_ns"),
        ("+-", "half_width_ns"),
        ("deviation %", "deviation_percent"),
        ("in whole ns", "whole_ns"),
        ("other than analysed", "different"),
        ("trace", "trace"),
    ]);
    let begin = Instant::now();
    for topology in &arguments.topology {
        let outcome = run(arguments, topology, &parameters)?;
        table.rows.push(row(topology, arguments.pattern, &outcome));
    }
    answer.table("simulations", &table);
    answer.field("attribute", arguments.attribute.name());
    answer.field("seed", arguments.seed);
    answer.say("\nThe header is the engine's. Analysis in whole ns: of the same messages, each component rounded as virtual time has it;");
    answer.say("messages other than analysed took another time than that. +-: interval of 95 %. The same seed gives the same trace.");
    answer.say(&notes(arguments));
    answer.say(&format!("Took {:.1} s.", begin.elapsed().as_secs_f64()));
    answer.tell(&mut files, None)
}

fn run(arguments: &SimulateArguments, topology: &Topology, parameters: &Parameters) -> Result<Outcome, UserError> {
    let rate = match (arguments.rate, arguments.load) {
        (None, Some(load)) => Some(load * arguments.pattern.saturation(topology, parameters).map_err(told)?),
        (rate, _) => rate,
    };
    let usual = if rate.is_some() { 100_000 } else { 1000 };
    let setting = Setting {
        topology,
        parameters,
        pattern: arguments.pattern,
        rate: rate.filter(|rate| *rate > 0.0),
        attribute: attribute(arguments.attribute),
        messages: arguments.messages.unwrap_or(usual),
        seed: arguments.seed,
    };
    simulate(&setting).map_err(|error| UserError(error.to_string()))
}

fn row(topology: &Topology, pattern: Pattern, outcome: &Outcome) -> Vec<Cell> {
    let time = |time: Option<f64>| time.map_or(Cell::Nothing, Cell::Time);
    #[expect(clippy::cast_precision_loss, reason = "counts of what was simulated, below 2^53")]
    let number = |number: u64| Cell::Number(number as f64, 0);
    vec![
        Cell::Text(topology.to_string()),
        Cell::Text(pattern.to_string()),
        outcome.utilisation.map_or(Cell::Nothing, |utilisation| Cell::Number(utilisation, 2)),
        number(outcome.connections),
        number(outcome.messages),
        Cell::Time(outcome.analysis_ns),
        Cell::Time(outcome.simulated_ns),
        time(outcome.half_width_ns),
        Cell::Number(100.0 * outcome.deviation(), 2),
        time(outcome.whole_ns),
        outcome.different.map_or(Cell::Nothing, number),
        Cell::Text(format!("{:016x}", outcome.trace)),
    ]
}

/// What has to be known to read the numbers.
fn notes(arguments: &SimulateArguments) -> String {
    let mut notes = match arguments.pattern {
        _ if arguments.rate.is_some() || arguments.load.is_some() => {
            "Under load overheads delay and do not occupy, as in the analysis, whose queues are links alone."
        }
        Pattern::AllToAll => "The analysis of all-to-all has the ends, or the busiest link, busy without a gap, and the longest way after that.",
        Pattern::Multicast | Pattern::Unicasts => "Messages go out from node 0; the time until all have arrived.",
        _ => "One message at a time on an idle, connected network; mean latency.",
    }
    .to_owned();
    if arguments.attribute != AttributeName::Uu {
        notes += "\nAcknowledgements take part in the simulation, and not in the analysis.";
    }
    notes
}
