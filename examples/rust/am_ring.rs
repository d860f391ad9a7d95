//! A token goes round a ring of Active Messages endpoints: each handler notes it, and its program
//! passes it on. The ring is the ranks of a job: `cci run -n 4 am_ring`. Without a job it is three
//! endpoints of this process, one thread each.

#![expect(clippy::print_stdout, reason = "a program of the command line")]

use cci::{Context, Device};
use cci_am::{Endpoint, Handlers, Options, Request, TAG_ALL};
use cci_job::{Job, JobError};
use std::error::Error;

/// The number of the handlers that take the token, and its reply.
const TOKEN: u8 = 1;
/// How often the token goes round.
const ROUNDS: u32 = 3;

/// The hops of the tokens that have come and were not passed on.
type Tokens = Vec<u32>;
type Failure = Box<dyn Error + Send + Sync>;

fn token(tokens: &mut Tokens, request: Request<'_>) {
    tokens.extend_from_slice(request.arguments());
    // So that the sender knows that it has come.
    request.reply(TOKEN, &[]).expect("no argument");
}

fn open(device: &Device) -> Result<Endpoint<Tokens>, Failure> {
    let handlers = Handlers::new().request(TOKEN, token).reply(TOKEN, |_, _| ());
    Ok(Endpoint::open(device, &Options::new(), handlers, Vec::new())?)
}

/// Passes the token on until it has come `ROUNDS` times; the first of the ring keeps it then.
fn pass(endpoint: &mut Endpoint<Tokens>, next: &str, is_first: bool) -> Result<u32, Failure> {
    let peer = endpoint.map(next, TAG_ALL)?;
    let (mut came, mut hops) = (0, 0);
    if is_first {
        endpoint.request(peer, TOKEN, &[1])?;
    }
    while came < ROUNDS || endpoint.outstanding(peer) > 0 {
        endpoint.wait(None)?;
        for token in std::mem::take(endpoint.state()) {
            (came, hops) = (came + 1, token);
            if came < ROUNDS || !is_first {
                endpoint.request(peer, TOKEN, &[hops + 1])?;
            }
        }
    }
    Ok(hops)
}

fn ring_of_threads(device: &Device) -> Result<(), Failure> {
    let endpoints: Vec<_> = (0..3).map(|_| open(device)).collect::<Result<_, _>>()?;
    let names: Vec<_> = endpoints.iter().map(|endpoint| endpoint.name().to_owned()).collect();
    let start = |(at, mut endpoint): (usize, Endpoint<Tokens>)| {
        let next = names[(at + 1) % names.len()].clone();
        std::thread::spawn(move || pass(&mut endpoint, &next, at == 0))
    };
    let threads: Vec<_> = endpoints.into_iter().enumerate().map(start).collect();
    for (at, thread) in threads.into_iter().enumerate() {
        let hops = thread.join().map_err(|_| "a thread has panicked")??;
        println!("endpoint {at}: the token has come {ROUNDS} times, last after {hops} hops");
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let context = Context::new()?;
    let job = match Job::join() {
        Err(JobError::NoJob) => return ring_of_threads(context.default_device()?),
        joined => joined?,
    };
    let mut endpoint = open(&job.device(&context)?)?;
    context.set_names(job.announce(endpoint.name())?);
    let next = format!("job:{}", (job.rank() + 1) % job.size());
    let hops = pass(&mut endpoint, &next, job.rank() == 0)?;
    println!("rank {}: the token has come {ROUNDS} times, last after {hops} hops", job.rank());
    // Nobody closes before all have what they wait for.
    Ok(job.exchange(&[]).map(drop)?)
}
