//! `cci job`: what a program would find out about its job.

use cci_job::{Job, Join};
use cci_report::sizes::parse_time;
use cci_report::{UserError, while_doing};
use clap::Args;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Arguments of `cci job`.
#[derive(Args, Debug)]
pub(crate) struct JobArguments {
    /// How many exchanges to time
    #[arg(long, default_value_t = 1)]
    exchanges: u32,
    /// How long to wait for other ranks
    #[arg(long, default_value = "60s", value_parser = parse_time)]
    limit: Duration,
}

/// What each rank exchanges: as long as a URI of `auto` at most is.
const VALUE: [u8; 120] = [b'u'; 120];

/// Joins the job, exchanges, and shows a line about it.
pub(crate) fn job(arguments: &JobArguments) -> Result<(), UserError> {
    let job = Join::new().limit(arguments.limit).join().map_err(|error| UserError(error.to_string()))?;
    let mut times = Vec::new();
    for _ in 0..arguments.exchanges {
        let begin = Instant::now();
        let values = job.exchange(&VALUE).map_err(|error| UserError(error.to_string()))?;
        times.push(begin.elapsed());
        if values.iter().any(|value| *value != VALUE) {
            return Err(UserError::new("an exchange brought something else than all ranks gave; report it as a bug"));
        }
    }
    let line = line(&job, &mut times);
    std::io::stdout().write_all(line.as_bytes()).map_err(while_doing("cannot write the line"))
}

fn line(job: &Job, times: &mut [Duration]) -> String {
    times.sort_unstable();
    let local = job.local();
    let proven = if job.is_authenticated() { "authenticated" } else { "peers are not authenticated" };
    let median = times.get(times.len() / 2).map_or(String::new(), |median| {
        format!("; {} exchanges, median {:.3} ms", times.len(), median.as_secs_f64() * 1e3)
    });
    format!(
        "rank {} of {}, {} of {} on this host with {} processors; by {}, {proven}{median}\n",
        job.rank(),
        job.size(),
        local.rank,
        local.size,
        local.processors,
        job.source(),
    )
}
