//! `cci model` alone: the thesis's system as a worked example.

use super::answer::{Answer, Cell, Table};
use super::refusal::told;
use super::system;
use cci_model::{Comparison, Pattern, Topology, sci2000};
use cci_report::UserError;
use cci_report::output::Files;

/// Sizes that rings and tori of up to four dimensions are shown at.
const SIZES: [f64; 5] = [16.0, 64.0, 256.0, 1000.0, 4096.0];

pub(crate) fn example() -> Result<(), UserError> {
    let preset = sci2000();
    let parameters = preset.parameters;
    let mut answer = Answer::new(&parameters);
    answer.say(&format!("A worked example: {} ({})", preset.name, preset.source));
    answer.say(&format!("{}\n", system::line(&parameters)));
    let ring: Topology = "ring:6".parse().map_err(told)?;
    let path = ring.route(0, 3).count();
    answer.say(&format!(
        "Three hops on a ring of six: 2o + 3 l_p + 2 l_f = {} ns (cci model latency --topology ring:6 --to 3)\n",
        parameters.latency_ns(&path).map_err(told)?
    ));
    answer.say("Average latency by number of dimensions (unidirectional, equal sides), of real-valued size:\n");
    let columns = [
        ("nodes", "nodes"),
        ("ring", "ring"),
        ("torus:2d", "torus_2d"),
        ("torus:3d", "torus_3d"),
        ("torus:4d", "torus_4d"),
    ];
    let mut table = Table::new(&columns);
    for nodes in SIZES {
        let mut row = vec![Cell::Number(nodes, 0)];
        for family in &preset.families {
            row.push(Cell::Time(family.time_ns(Pattern::Average, nodes, &parameters, None).map_err(told)?));
        }
        table.rows.push(row);
    }
    answer.table("averages", &table);
    let comparison = Comparison { families: preset.families, pattern: Pattern::Average, parameters, rate: None };
    answer.say("");
    for change in comparison.crossovers(4000.0).map_err(told)? {
        answer.say(&format!("From {:.1} nodes on, {} is better than {}.", change.nodes, change.to, change.from));
    }
    answer.say("\nNext: cci model crossover --preset sci2000     the published crossover points beside ours");
    answer.say("      cci model plot --preset sci2000 --out .    the figures");
    answer.say("      cci model pattern --topology torus:10x10x10    traffic patterns, idle and under load");
    answer.say("      cci model --help    everything else");
    answer.tell(&mut Files::default(), None)
}
