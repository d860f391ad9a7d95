//! `cci model sensitivity`: what each parameter does.

use super::answer::{Answer, Cell, Table};
use super::refusal::told;
use super::system;
use super::system::SystemArguments;
use crate::results::FileArguments;
use cci_model::{Comparison, Family, Parameter, Parameters, Pattern, Topology, elasticity};
use cci_report::UserError;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct SensitivityArguments {
    /// A network whose time to look at
    #[arg(long, required_unless_present = "between")]
    topology: Option<Topology>,
    /// Two kinds of network whose crossover point to look at, such as ring torus:2d
    #[arg(long, num_args = 2, value_names = ["FAMILY", "FAMILY"], conflicts_with = "topology")]
    between: Vec<Family>,
    /// Number of nodes to which the crossover point is to be moved, by the cheapest change of one
    /// parameter
    #[arg(long, requires = "between", value_name = "NODES", value_parser = super::pattern::positive)]
    move_to: Option<f64>,
    /// Who sends to whom
    #[arg(long, default_value = "average")]
    pattern: Pattern,
    /// Messages per second from each node, so that contention counts
    #[arg(long, value_parser = super::pattern::positive)]
    rate: Option<f64>,
    /// Largest number of nodes at which a crossover is looked for
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(2..=1 << 53))]
    most: u64,
    #[command(flatten)]
    system: SystemArguments,
    #[command(flatten)]
    files: FileArguments,
}

pub(crate) fn sensitivity(arguments: &SensitivityArguments) -> Result<(), UserError> {
    let parameters = arguments.system.system()?.parameters;
    let mut files = arguments.files.open(None)?;
    let mut answer = Answer::new(&parameters);
    answer.say(&system::line(&parameters));
    match (&arguments.topology, &arguments.between[..]) {
        (Some(topology), _) => of_time(arguments, topology, &parameters, &mut answer)?,
        (None, [from, to]) => of_crossover(arguments, (*from, *to), &parameters, &mut answer)?,
        (None, _) => return Err(UserError::new("give --topology, or two families to --between")),
    }
    answer.tell(&mut files, None)
}

fn of_time(
    arguments: &SensitivityArguments,
    topology: &Topology,
    parameters: &Parameters,
    answer: &mut Answer,
) -> Result<(), UserError> {
    let time = |parameters: &Parameters| match arguments.rate {
        None => arguments.pattern.time_ns(topology, parameters).map(Some),
        Some(rate) => arguments.pattern.loaded(topology, parameters, rate).map(|loaded| Some(loaded.time_ns)),
    };
    let now = time(parameters).map_err(told)?.map_or(Cell::Nothing, Cell::Time);
    let mut table = Table::new(&[("parameter", "parameter"), ("value", "value"), ("time, % for each %", "elasticity")]);
    for (parameter, value) in present(parameters) {
        let elasticity = elasticity(parameter, parameters, time)
            .map_err(told)?
            .map_or(Cell::Nothing, |share| Cell::Number(share, 3));
        table.rows.push(vec![Cell::Text(parameter.name().into()), Cell::Number(value, 3), elasticity]);
    }
    let mut result = Table::new(&[("topology", "topology"), ("pattern", "pattern"), ("time", "time_ns")]);
    result.rows.push(vec![Cell::Text(topology.to_string()), Cell::Text(arguments.pattern.to_string()), now]);
    answer.say("");
    answer.table("elasticities", &table);
    answer.say("");
    answer.table("time", &result);
    Ok(())
}

/// Those that have a value above zero.
fn present(parameters: &Parameters) -> impl Iterator<Item = (Parameter, f64)> + '_ {
    let all = Parameter::ALL.into_iter();
    all.filter_map(|parameter| Some((parameter, parameter.of(parameters).filter(|value| *value > 0.0)?)))
}

fn of_crossover(
    arguments: &SensitivityArguments,
    (from, to): (Family, Family),
    parameters: &Parameters,
    answer: &mut Answer,
) -> Result<(), UserError> {
    let comparison = Comparison {
        families: vec![from, to],
        pattern: arguments.pattern,
        parameters: *parameters,
        rate: arguments.rate,
    };
    let most = arguments.most as f64;
    let at =
        |parameters: &Parameters| Comparison { parameters: *parameters, ..comparison.clone() }.crossing(from, to, most);
    let now = at(parameters).map_err(told)?;
    answer.say(&match now {
        Some(nodes) => format!("{to} becomes better than {from} at {nodes:.1} nodes\n"),
        None => format!("{to} does not become better than {from} up to {} nodes\n", arguments.most),
    });
    answer.field("crossover_nodes", now);
    if now.is_some() {
        let columns = [("parameter", "parameter"), ("value", "value"), ("crossover, % for each %", "elasticity")];
        let mut table = Table::new(&columns);
        for (parameter, value) in present(parameters) {
            // What both have alike moves nothing; rounding does.
            let elasticity = elasticity(parameter, parameters, at).map_err(told)?;
            let shown = |share: f64| Cell::Number(if share.abs() < 1e-6 { 0.0 } else { share }, 3);
            let elasticity = elasticity.map_or(Cell::Nothing, shown);
            table.rows.push(vec![Cell::Text(parameter.name().into()), Cell::Number(value, 3), elasticity]);
        }
        answer.table("elasticities", &table);
    }
    let Some(nodes) = arguments.move_to else { return Ok(()) };
    let mut table = Table::new(&[("parameter", "parameter"), ("now", "now"), ("then", "then"), ("times", "factor")]);
    for change in comparison.changes(from, to, nodes).map_err(told)? {
        let value = change.parameter.of(parameters).unwrap_or_default();
        table.rows.push(vec![
            Cell::Text(change.parameter.name().into()),
            Cell::Number(value, 3),
            Cell::Number(value * change.factor, 3),
            Cell::Number(change.factor, 4),
        ]);
    }
    if table.rows.is_empty() {
        answer.say(&format!("\nNo change of a single parameter by up to 10,000 times moves it to {nodes} nodes."));
    } else {
        answer.say(&format!(
            "\nTo have it at {nodes} nodes, the cheapest change (to double costs as much as to halve) first:\n"
        ));
        answer.table("changes", &table);
    }
    Ok(())
}
