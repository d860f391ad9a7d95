//! `cci job`: what a program would find out about its job.

use cci::{Connect, Context, EndpointOptions, Event, Notify};
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
    /// How many times each rank sends a message to the next one and waits for that of the one
    /// before, by endpoints; none unless given
    #[arg(long, default_value_t = 0)]
    rounds: u32,
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
            return Err(UserError::new(
                "an exchange brought something else than all ranks gave: the process manager that started the job \
                 changes values, or cci does; try another launcher, and report it as a bug",
            ));
        }
    }
    let mut line = line(&job, &mut times);
    if arguments.rounds > 0 {
        let (all, protection) = ring(&job, arguments.rounds, arguments.limit)?;
        line = format!(
            "{}; {} rounds, {:.3} ms each, {}\n",
            line.trim_end(),
            arguments.rounds,
            all.as_secs_f64() * 1e3 / f64::from(arguments.rounds),
            if protection.is_empty() { "over no network" } else { &protection }
        );
    }
    std::io::stdout().write_all(line.as_bytes()).map_err(while_doing("cannot write the line"))
}

/// Sends messages round a ring of all ranks: a round ends at a rank when that of the one before has
/// come. How long all rounds took, and what protects the connection to the next rank.
fn ring(job: &Job, rounds: u32, limit: Duration) -> Result<(Duration, String), UserError> {
    let failed = |what: &dyn std::fmt::Display| UserError(format!("the ring of ranks: {what}"));
    let context = Context::new().map_err(|error| failed(&error))?;
    let endpoint = job.open(&context, &EndpointOptions::new()).map_err(|error| failed(&error))?;
    let next = format!("job:{}", (job.rank() + 1) % job.size());
    endpoint.connect(&Connect::to(&next).timeout(limit)).map_err(|error| failed(&error))?;
    let (mut to, mut is_open, mut begin) = (None, false, None);
    let (mut sent, mut received) = (0, 0);
    while sent < rounds || received < rounds {
        // Both neighbours are there once this rank is connected to the next and by the one before.
        if let Some(connection) = to.filter(|_| is_open && sent <= received && sent < rounds) {
            begin.get_or_insert_with(Instant::now);
            endpoint.send(connection, &VALUE, Notify::OnFailure(0)).map_err(|error| failed(&error))?;
            sent += 1;
            continue;
        }
        let event = endpoint.wait(Some(limit)).map_err(|error| failed(&error))?;
        match event.ok_or_else(|| failed(&"a rank does not answer within the limit; see --limit"))? {
            Event::Request(request) => request.accept(0).map_err(|error| failed(&error))?,
            Event::Connected(connected) => to = connected.connection(),
            Event::Accepted(_) => is_open = true,
            Event::Received(_) => received += 1,
            event => event.outcome().map_err(|error| failed(&error))?,
        }
    }
    let all = begin.map_or(Duration::ZERO, |begin| begin.elapsed());
    let protection = to.map(|to| endpoint.report(to).map(|report| report.protection));
    let protection = protection.transpose().map_err(|error| failed(&error))?.unwrap_or_default();
    // Nobody closes before all have got theirs.
    job.exchange(&[]).map_err(|error| failed(&error))?;
    Ok((all, protection))
}

fn line(job: &Job, times: &mut [Duration]) -> String {
    times.sort_unstable();
    let local = job.local();
    let proven = if job.is_authenticated() { "authenticated" } else { "peers are not authenticated" };
    let clear = if job.is_plain() { ", connections in clear" } else { "" };
    let median = times.get(times.len() / 2).map_or(String::new(), |median| {
        format!("; {} exchanges, median {:.3} ms", times.len(), median.as_secs_f64() * 1e3)
    });
    format!(
        "rank {} of {}, {} of {} on this host with {} processors; by {}, {proven}{clear}{median}\n",
        job.rank(),
        job.size(),
        local.rank,
        local.size,
        local.processors,
        job.source(),
    )
}
