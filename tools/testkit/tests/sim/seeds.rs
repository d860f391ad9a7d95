//! Simulated worlds: seeds that failed once, some more, and deliberate damage that must be found.

use cci_testkit::simulation::{MESSAGES, Plan, Rule, TRANSFERS, Tamper, Totals, Violation, kept, run, run_plan};
use std::sync::LazyLock;

/// Seeds that every run of the tests tries.
const SEEDS: std::ops::Range<u64> = 1..41;

/// What became of a seed: the trace hash, or the rule that was broken; and what happened in its
/// world.
type Run = (Result<u64, Violation>, Totals);

/// The runs of [`SEEDS`], once for all tests that look at them.
static RUNS: LazyLock<Vec<(u64, Run)>> = LazyLock::new(|| SEEDS.map(|seed| (seed, run(seed, Tamper::None))).collect());

fn held(seed: u64, (outcome, totals): Run) -> Totals {
    if let Err(violation) = outcome {
        panic!("seed {seed}: {violation}");
    }
    totals
}

fn check(seed: u64) -> Totals {
    held(seed, run(seed, Tamper::None))
}

#[test]
fn seeds_that_failed_once_hold() {
    for seed in kept() {
        check(seed);
    }
}

#[test]
fn some_seeds_hold() {
    for (seed, run) in RUNS.iter() {
        held(*seed, run.clone());
    }
}

#[test]
fn a_seed_is_as_much_as_it_promises() {
    for (seed, (_, totals)) in RUNS.iter() {
        assert!(totals.messages >= MESSAGES && totals.transfers >= TRANSFERS, "seed {seed}: {totals:?}");
    }
    let lossy = RUNS.iter().filter(|(_, (_, totals))| totals.resent > 0).count();
    assert!(lossy > 20, "only {lossy} of {} seeds had anything to send again", SEEDS.count());
}

#[test]
fn the_seeds_have_something_of_everything() {
    let runs: Vec<_> = RUNS.iter().map(|(_, (_, totals))| totals).collect();
    let plans: Vec<_> = SEEDS.map(Plan::new).collect();
    assert!(runs.iter().any(|totals| totals.slices > 0), "no path shrank under a frame");
    assert!(runs.iter().any(|totals| totals.at_once > 0), "no message took the fast path");
    assert!(runs.iter().any(|totals| totals.atomics > 0), "no word was changed");
    assert!(runs.iter().any(|totals| totals.large > 0), "no large message was sent");
    assert!(runs.iter().any(|totals| totals.redirected > 0), "no broker sent anybody anywhere");
    assert!(runs.iter().any(|totals| totals.refused > 0), "nobody was cut off");
    assert!(runs.iter().any(|totals| totals.copied_unchecked > 0), "nothing was copied before it was checked");
    let attacks: u32 = runs.iter().map(|totals| totals.attacks).sum();
    assert!(attacks > 1000, "somebody on the path of sealed connections sent {attacks} frames");
    assert!(plans.iter().any(|plan| plan.config.unchecked_on_host) && plans.iter().any(|plan| plan.tells > 0));
    assert!(plans.iter().any(|plan| plan.lies > 0) && plans.iter().any(|plan| plan.shrinks.is_some()));
}

#[test]
fn broken_frames_that_were_copied_spoil_nothing() {
    let copied_broken: u32 = [1308, 1868, 4907].into_iter().map(|seed| check(seed).copied_broken).sum();
    assert!(copied_broken > 0, "no such frame");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for (seed, once) in RUNS.iter().take(5) {
        assert_eq!(*once, run(*seed, Tamper::None), "seed {seed}");
        assert_ne!(once.0, run(seed + 1000, Tamper::None).0);
    }
}

/// The first of 100 seeds that finds the damage.
fn found(tamper: Tamper) -> (u64, Violation) {
    (1..101)
        .find_map(|seed| run(seed, tamper).0.err().map(|violation| (seed, violation)))
        .expect("100 seeds did not find the damage")
}

#[test]
fn a_retransmission_that_never_happens_is_found() {
    let (seed, violation) = found(Tamper::SwallowResent(0));
    assert!(matches!(violation.rule, Rule::Rest | Rule::Cause), "seed {seed}: {violation}");
}

#[test]
fn a_retransmission_with_other_content_is_found() {
    let (seed, violation) = found(Tamper::SpoilResent(1));
    let content = [Rule::Ordered, Rule::Unordered, Rule::Memory, Rule::Rest, Rule::Cause];
    assert!(content.contains(&violation.rule), "seed {seed}: {violation}");
}

#[test]
fn what_a_calm_network_needs_no_retransmission_for_is_not_disturbed_by_damage_to_it() {
    // The twin: the damage is in retransmissions alone, so that a network without faults does not
    // show it.
    for seed in [1, 2, 3] {
        let calm = || Plan { think: 200_000, ..Plan::new(seed).calm() };
        let (outcome, totals) = run_plan(calm(), Tamper::None);
        if totals.resent == 0 {
            assert_eq!(run_plan(calm(), Tamper::SwallowResent(0)).0, outcome);
        }
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
}
