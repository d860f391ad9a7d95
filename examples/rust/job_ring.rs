//! Each rank of a parallel job sends its number to the next one: `cci run -n 4 job_ring`.

#![expect(clippy::print_stdout, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{Connect, Context, EndpointOptions, Event};
use cci_job::Job;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = Job::join()?;
    let endpoint = job.open(&Context::new()?, &EndpointOptions::new())?;
    let next = format!("job:{}", (job.rank() + 1) % job.size());
    endpoint.connect(&Connect::to(&next).timeout(Duration::from_secs(60)))?;
    let (mut from, mut is_sent) = (None, false);
    while from.is_none() || !is_sent {
        // `None` waits without a limit.
        match endpoint.wait(None)?.ok_or("no event")? {
            Event::Request(request) => request.accept(0)?,
            Event::Connected(connected) => {
                let connection = connected.connection().ok_or("the next rank has gone")?;
                endpoint.send(connection, &job.rank().to_le_bytes(), 1)?;
            }
            Event::Completed(sent) => {
                sent.outcome()?;
                is_sent = true;
            }
            Event::Received(message) => from = message.to_vec().first_chunk().copied().map(u32::from_le_bytes),
            event => event.outcome()?,
        }
    }
    println!("rank {} of {} got the message of rank {}", job.rank(), job.size(), from.ok_or("no number")?);
    // Nobody closes before all have got theirs.
    job.exchange(&[])?;
    Ok(())
}
