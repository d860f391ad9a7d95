//! Running seeds, and the seeds that once failed.

use super::plan::Plan;
use super::tamper::Tamper;
use super::violation::{Rule, Violation};
use super::world::{Totals, World};
use cci_sim::network::Time;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came of a run: its trace hash, or the rule that was broken.
pub type Outcome = Result<u64, Violation>;

/// Runs a seed's world.
pub fn run(seed: u64, tamper: Tamper) -> (Outcome, Totals) {
    run_plan(Plan::new(seed), tamper)
}

/// Runs a plan's world. A panic of the engine is a rule that was broken.
pub fn run_plan(plan: Plan, tamper: Tamper) -> (Outcome, Totals) {
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(plan, tamper);
        let outcome = world.run();
        (outcome, world.totals())
    }));
    ran.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        let detail = said.unwrap_or("a panic").to_owned();
        (Err(Violation { rule: Rule::Panic, at: Time(0), detail }), Totals::default())
    })
}

/// The seeds that failed once; each stands in a line, followed by why.
pub fn kept() -> impl Iterator<Item = u64> {
    include_str!("../../seeds.txt").lines().filter_map(|line| line.split_whitespace().next()?.parse().ok())
}
