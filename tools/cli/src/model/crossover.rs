//! `cci model crossover`: where the best topology changes.

use super::answer::{Answer, Cell, Table};
use super::families::{FamilyName, families};
use super::figure::{Curves, curves_svg, title};
use super::pattern::positive;
use super::refusal::told;
use super::system;
use super::system::{System, SystemArguments};
use crate::results::FileArguments;
use cci_model::{Comparison, Crossover, Family, Parameter, Pattern, Preset, UNICASTS_NOTE, WholeCrossover};
use cci_report::UserError;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct CrossoverArguments {
    #[command(flatten)]
    pub(super) compared: ComparedArguments,
    /// Draw time over size, with the crossovers marked, to this SVG file
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    files: FileArguments,
}

/// What is compared.
#[derive(Args, Clone, Debug)]
pub(crate) struct ComparedArguments {
    /// Kinds of network to compare: ring, biring, torus:3d, bitorus:2d, mesh:2d, hypercube, star,
    /// fattree2, fattree3, dragonfly, or all; several, separated by blanks; those of the preset
    /// when absent
    #[arg(long, num_args = 1..)]
    pub(crate) family: Vec<FamilyName>,
    /// Who sends to whom: average, unicasts, multicast, all-to-all, neighbour, hot-spot=0.1
    #[arg(long)]
    pub(crate) pattern: Option<Pattern>,
    /// Messages per second from each node, so that contention counts
    #[arg(long, value_parser = positive)]
    pub(crate) rate: Option<f64>,
    /// Largest number of nodes
    #[arg(long, default_value_t = 4000, value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    pub(crate) most: u64,
    #[command(flatten)]
    pub(crate) system: SystemArguments,
}

impl ComparedArguments {
    /// The comparison.
    pub(crate) fn comparison(&self, system: &System) -> Result<Comparison, UserError> {
        let families = match (&system.preset, self.family.is_empty()) {
            (_, false) => families(&self.family),
            (Some(preset), true) => preset.families.clone(),
            (None, true) => {
                return Err(UserError::new("nothing to compare: give --family ring torus:2d, or --family all"));
            }
        };
        let pattern = self.pattern.unwrap_or(Pattern::Average);
        Ok(Comparison { families, pattern, parameters: system.parameters, rate: self.rate })
    }

    /// Whether this is what was published of the preset.
    fn is_published(&self, system: &System) -> bool {
        system.unchanged && self.family.is_empty() && self.pattern.is_none() && self.rate.is_none()
    }
}

pub(crate) fn crossover(arguments: &CrossoverArguments) -> Result<(), UserError> {
    let compared = &arguments.compared;
    let system = compared.system.system()?;
    let comparison = compared.comparison(&system)?;
    let mut files = arguments.files.open(arguments.plot.as_deref())?;
    let mut answer = Answer::new(&system.parameters);
    if let (Some(preset), true) = (&system.preset, compared.is_published(&system)) {
        published(&mut answer, preset)?;
    }
    let real = comparison.crossovers(compared.most as f64).map_err(told)?;
    let whole = comparison.whole_crossovers(compared.most).map_err(told)?;
    answer.say(&format!("{}; {}", title(&comparison), system::line(&system.parameters)));
    let names: Vec<_> = comparison.families.iter().map(ToString::to_string).collect();
    answer.say(&format!("Best of {} up to {} nodes:\n", names.join(", "), compared.most));
    if real.is_empty() {
        answer.say(&format!("{} is the best at every size.", best_of_all(&comparison, compared.most as f64)?));
    }
    answer.table("crossovers", &changes(&real));
    answer.say("\nOver sizes that can be built (sides that differ by one at most; the smallest with as many nodes as are needed):\n");
    answer.table("whole_crossovers", &whole_changes(&whole));
    let plot =
        arguments.plot.as_ref().map(|_| curves_svg(&[Curves::new(&comparison, compared.most as f64)?])).transpose()?;
    answer.tell(&mut files, plot)
}

/// The one that no other ever replaces.
fn best_of_all(comparison: &Comparison, most: f64) -> Result<Family, UserError> {
    let best = comparison.best(most).map_err(told)?.or(comparison.best(2.0).map_err(told)?);
    best.map(|(family, _)| family).ok_or_else(|| UserError::new("no network carries this rate: give a lower --rate"))
}

fn changes(found: &[Crossover]) -> Table {
    let mut table = Table::new(&[("from", "from"), ("to", "to"), ("from nodes", "nodes"), ("time there", "time_ns")]);
    for change in found {
        table.rows.push(vec![
            Cell::Text(change.from.to_string()),
            Cell::Text(change.to.to_string()),
            Cell::Number(change.nodes, 1),
            Cell::Time(change.time_ns),
        ]);
    }
    table
}

fn whole_changes(found: &[WholeCrossover]) -> Table {
    let mut table = Table::new(&[("from", "from"), ("to", "to"), ("first at", "first"), ("for good from", "settled")]);
    for change in found {
        table.rows.push(vec![
            Cell::Text(change.from.to_string()),
            Cell::Text(change.to.to_string()),
            Cell::Number(change.first as f64, 0),
            change.settled.map_or(Cell::Nothing, |nodes| Cell::Number(nodes as f64, 0)),
        ]);
    }
    table
}

/// The published crossover points with ours beside them.
fn published(answer: &mut Answer, preset: &Preset) -> Result<(), UserError> {
    answer.say(&format!("Crossover points of {}, in nodes; published (ours)", preset.name));
    answer.say(&format!("Published: {}\n", preset.source));
    let most = 4.0 * preset.published.iter().map(|row| f64::from(row.average)).fold(0.0, f64::max);
    let ours = |pattern, halved: bool, pair: (Family, Family)| {
        let factor = if halved { 0.5 } else { 1.0 };
        let parameters = Parameter::Switching.scaled(&preset.parameters, factor);
        let comparison = Comparison { families: preset.families.clone(), pattern, parameters, rate: None };
        Ok::<_, UserError>(
            comparison
                .crossing(pair.0, pair.1, most)
                .map_err(told)?
                .map_or(f64::NAN, |nodes| (nodes * 10.0).round() / 10.0),
        )
    };
    let mut table = Table::new(&[
        ("", "crossover"),
        ("average latency", "average"),
        ("ours", "average_ours"),
        ("multi-unicast", "unicasts"),
        ("ours", "unicasts_ours"),
        ("average, l_s halved", "average_halved"),
        ("ours", "average_halved_ours"),
        ("multi-unicast, l_s halved", "unicasts_halved"),
        ("ours", "unicasts_halved_ours"),
    ]);
    for row in &preset.published {
        let pair = row.families;
        table.rows.push(vec![
            Cell::Text(format!("{} to {}", pair.0, pair.1)),
            Cell::Number(f64::from(row.average), 0),
            Cell::Number(ours(Pattern::Average, false, pair)?, 1),
            Cell::Number(f64::from(row.unicasts), 0),
            Cell::Number(ours(Pattern::Unicasts, false, pair)?, 1),
            Cell::Number(f64::from(row.average_enhanced), 0),
            Cell::Number(ours(Pattern::Average, true, pair)?, 1),
            Cell::Number(f64::from(row.unicasts_enhanced), 0),
            Cell::Number(ours(Pattern::Unicasts, true, pair)?, 1),
        ]);
    }
    answer.table("published", &table);
    answer.say(&format!("\n{UNICASTS_NOTE}\n"));
    answer.field("note", UNICASTS_NOTE);
    Ok(())
}
