//! What methods beside rows over size have in common.

pub mod additions;
pub mod am;
mod beside;
mod blocks;
pub mod breakdown;
pub mod changing;
mod compared;
pub mod connections;
mod exchange;
pub mod footprint;
pub mod footprints;
pub mod gups;
pub mod logp;
pub mod many_peers;
pub mod mappings;
pub mod memory_curves;
pub mod mx;
mod other_process;
mod over;
mod own_end;
mod pairs;
pub mod portals;
pub mod sci;
pub mod splitc;
pub mod threads;
pub mod turns;
pub mod via;
pub mod wakeup;
pub mod ways;

use crate::machine::{ONE_PROCESSOR, allowed};
use cci_report::environment::Environment;
use cci_report::finding::Finding;

/// What a method found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it ran on.
    pub environment: Environment,
    /// The result.
    pub finding: Finding,
    /// Why there is no more, when it ended early.
    pub interrupted: Option<String>,
}

/// Warns when ends on this host have to share a processor.
pub(crate) fn warn_of_one_processor(warn: &dyn Fn(&str)) {
    if allowed().len() < 2 {
        warn(ONE_PROCESSOR);
    }
}

/// The middle of figures, of two in the middle the larger; not a number where there is none.
pub fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
