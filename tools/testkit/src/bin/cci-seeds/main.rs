//! Runs simulated worlds, one seed after the other, and says which broke a rule.

use cci_testkit::simulation::{Outcome, Rule, Tamper, Violation, run};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Every so many seeds, one is run twice: both runs must be the same.
const AGAIN: u64 = 64;

/// What the program was asked for.
struct Arguments {
    seeds: u64,
    first: u64,
    limit: Option<Duration>,
    jobs: u64,
    keep: Option<String>,
}

const USAGE: &str = "usage: cci-seeds [--seeds N] [--first S] [--seconds T] [--jobs J] [--keep FILE]
  N seeds (default: 1000; with --seconds: as many as there is time for), beginning with S (default: 1), by J threads (default: 2);
  those that break a rule are appended to FILE";

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut arguments = Self { seeds: 1000, first: 1, limit: None, jobs: 2, keep: None };
        let mut counted = false;
        while let Some(word) = words.next() {
            let value = words.next()?;
            match word.as_str() {
                "--seeds" => (arguments.seeds, counted) = (value.parse().ok()?, true),
                "--first" => arguments.first = value.parse().ok()?,
                "--seconds" => arguments.limit = Some(Duration::from_secs(value.parse().ok()?)),
                "--jobs" => arguments.jobs = value.parse().ok().filter(|jobs| *jobs > 0)?,
                "--keep" => arguments.keep = Some(value),
                _ => return None,
            }
        }
        if arguments.limit.is_some() && !counted {
            arguments.seeds = u64::MAX - arguments.first;
        }
        Some(arguments)
    }
}

/// What all threads have done.
#[derive(Default)]
struct Sum {
    seeds: u64,
    messages: u64,
    transfers: u64,
    frames: u64,
    resent: u64,
    failed: Vec<(u64, Violation)>,
}

fn run_one(seed: u64, sum: &Mutex<Sum>) {
    let (mut outcome, totals) = run(seed, Tamper::None);
    if seed.is_multiple_of(AGAIN) && outcome.is_ok() {
        let again: Outcome = run(seed, Tamper::None).0;
        if again != outcome {
            let detail = format!("{outcome:?}, then {again:?}");
            outcome = Err(Violation { rule: Rule::Trace, at: Default::default(), detail });
        }
    }
    let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    sum.seeds += 1;
    sum.messages += u64::from(totals.messages);
    sum.transfers += u64::from(totals.transfers);
    sum.frames += totals.frames;
    sum.resent += totals.resent;
    if let Err(violation) = outcome {
        let _ = writeln!(io::stdout(), "seed {seed}: {violation}");
        sum.failed.push((seed, violation));
    }
}

fn keep(file: &str, failed: &[(u64, Violation)]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    for (seed, violation) in failed {
        writeln!(file, "{seed} {:?}", violation.rule)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1)) else {
        let _ = writeln!(io::stderr(), "{USAGE}");
        return ExitCode::FAILURE;
    };
    // A panic is reported as the rule that it breaks, with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let (start, next, sum) = (Instant::now(), AtomicU64::new(0), Mutex::new(Sum::default()));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                while arguments.limit.is_none_or(|limit| start.elapsed() < limit) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= arguments.seeds {
                        break;
                    }
                    run_one(arguments.first + number, &sum);
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let seconds = start.elapsed().as_secs_f64();
    let _ = writeln!(
        io::stdout(),
        "{} seeds in {seconds:.1} s: {} messages, {} RMAs, {} frames, {} sent again; {} failed",
        sum.seeds,
        sum.messages,
        sum.transfers,
        sum.frames,
        sum.resent,
        sum.failed.len()
    );
    if let (Some(file), false) = (&arguments.keep, sum.failed.is_empty())
        && let Err(error) = keep(file, &sum.failed)
    {
        let _ = writeln!(io::stderr(), "the failed seeds could not be kept in {file}: {error}");
    }
    if sum.failed.is_empty() && sum.seeds > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
