//! `cci model average`: mean latency over all pairs.

use super::answer::{Answer, Cell, Table};
use super::families::{FamilyName, families};
use super::refusal::told;
use super::system;
use super::system::SystemArguments;
use crate::results::FileArguments;
use cci_model::{Components, Shape, Topology};
use cci_report::UserError;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct AverageArguments {
    #[command(flatten)]
    networks: NetworkArguments,
    /// Count every pair of nodes as well, instead of trusting the closed form
    #[arg(long, conflicts_with = "real")]
    enumerate: bool,
    /// Sizes are real numbers: a torus:2d of 1000 nodes has sides of 31.6
    #[arg(long, requires = "family")]
    real: bool,
    #[command(flatten)]
    system: SystemArguments,
    #[command(flatten)]
    files: FileArguments,
}

/// Which networks.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true, id = "networks")]
pub(crate) struct NetworkArguments {
    /// A network of known size: ring:8, biring:8, torus:10x10x10, bitorus:4x4, mesh:4x3,
    /// hypercube:64, star:24, fattree2:k=8, fattree3:k=8, dragonfly:h=2; several, separated by
    /// blanks
    #[arg(long, num_args = 1..)]
    pub(crate) topology: Vec<Topology>,
    /// A kind of network, with --nodes: ring, biring, torus:3d, bitorus:2d, mesh:2d, hypercube,
    /// star, fattree2, fattree3, dragonfly, or all; several, separated by blanks
    #[arg(long, num_args = 1.., requires = "nodes")]
    pub(crate) family: Vec<FamilyName>,
    /// Numbers of nodes of each family, such as 64,1000
    #[arg(long, value_delimiter = ',', requires = "family")]
    pub(crate) nodes: Vec<u64>,
}

impl NetworkArguments {
    /// All of them.
    pub(crate) fn topologies(&self) -> Result<Vec<Topology>, UserError> {
        let mut all = self.topology.clone();
        for family in families(&self.family) {
            for nodes in &self.nodes {
                all.push(family.exactly(*nodes).map_err(told)?);
            }
        }
        Ok(all)
    }
}

pub(crate) fn average(arguments: &AverageArguments) -> Result<(), UserError> {
    let parameters = arguments.system.system()?.parameters;
    let mut files = arguments.files.open(None)?;
    let mut answer = Answer::new(&parameters);
    answer.say(&format!("Mean over all pairs of nodes; {}\n", system::line(&parameters)));
    let mut columns = vec![
        ("topology", "topology"),
        ("nodes", "nodes"),
        ("P (l_p)", "propagations"),
        ("F (l_f)", "forwardings"),
        ("S (l_s)", "switchings"),
        ("latency", "latency_ns"),
    ];
    if arguments.enumerate {
        columns.extend([("counted P", "counted_propagations"), ("counted S", "counted_switchings")]);
    }
    let mut table = Table::new(&columns);
    for (name, shape, counted) in networks(arguments)? {
        let mean = shape.mean();
        let mut row = vec![
            Cell::Text(name),
            Cell::Number(shape.nodes(), 0),
            Cell::Number(mean.propagations, 3),
            Cell::Number(mean.forwardings, 3),
            Cell::Number(mean.switchings, 3),
            Cell::Time(parameters.latency_ns(&mean).map_err(told)?),
        ];
        row.extend(
            counted.iter().flat_map(|counted| [counted.propagations, counted.switchings]).map(|n| Cell::Number(n, 3)),
        );
        table.rows.push(row);
    }
    answer.table("averages", &table);
    answer.tell(&mut files, None)
}

/// Each network's name and measures, and its counted mean if that is asked for.
fn networks(arguments: &AverageArguments) -> Result<Vec<(String, Shape, Option<Components>)>, UserError> {
    if !arguments.real {
        let one = |topology: &Topology| {
            let counted = arguments.enumerate.then(|| topology.mean_by_enumeration()).transpose().map_err(told)?;
            Ok((topology.to_string(), topology.shape(), counted))
        };
        return arguments.networks.topologies()?.iter().map(one).collect();
    }
    let mut all: Vec<_> =
        arguments.networks.topology.iter().map(|topology| (topology.to_string(), topology.shape(), None)).collect();
    for family in families(&arguments.networks.family) {
        for nodes in &arguments.networks.nodes {
            let nodes = *nodes as f64;
            if nodes < family.least() {
                return Err(UserError(format!(
                    "{family} has at least {} nodes, not {nodes}: give more",
                    family.least()
                )));
            }
            all.push((family.to_string(), family.shape(nodes), None));
        }
    }
    Ok(all)
}
