//! A token goes round a ring of Active Messages endpoints: each handler notes it, and its program
//! passes it on. Without arguments three endpoints of this process are the ring, one thread each.
//! With the URI of the next endpoint as argument this process is one of the ring: it prints its own
//! URI first. `first` before the URI starts the token; `-` reads the URI from standard input.

#![expect(clippy::print_stdout, reason = "a program of the command line")]

use cci_am::{Endpoint, Handlers, Options, Request, TAG_ALL};
use std::error::Error;
use std::time::Duration;

/// The number of the handler that takes the token.
const TOKEN: u8 = 1;
/// How often the token goes round.
const ROUNDS: u32 = 3;

/// The hops of the tokens that have come and were not passed on.
type Tokens = Vec<u32>;
type Failure = Box<dyn Error + Send + Sync>;

fn token(tokens: &mut Tokens, request: Request<'_>) {
    tokens.extend_from_slice(request.arguments());
}

fn open() -> Result<Endpoint<Tokens>, Failure> {
    let device = cci::Context::new()?.default_device()?.clone();
    Ok(Endpoint::open(&device, &Options::new(), Handlers::new().request(TOKEN, token), Vec::new())?)
}

/// Passes the token on until it has come `ROUNDS` times; the first of the ring keeps it then.
fn pass(mut endpoint: Endpoint<Tokens>, next: &str, is_first: bool) -> Result<u32, Failure> {
    let peer = endpoint.map(next, TAG_ALL)?;
    let (mut came, mut hops) = (0, 0);
    if is_first {
        endpoint.request(peer, TOKEN, &[1])?;
    }
    while came < ROUNDS {
        endpoint.wait(None)?;
        for token in std::mem::take(endpoint.state()) {
            (came, hops) = (came + 1, token);
            if came < ROUNDS || !is_first {
                endpoint.request(peer, TOKEN, &[hops + 1])?;
            }
        }
    }
    while endpoint.outstanding(peer) > 0 {
        endpoint.wait(Some(Duration::from_secs(1)))?;
    }
    Ok(hops)
}

fn ring_of_threads() -> Result<(), Failure> {
    let endpoints: Vec<_> = (0..3).map(|_| open()).collect::<Result<_, _>>()?;
    let names: Vec<String> = endpoints.iter().map(|endpoint| endpoint.name().to_owned()).collect();
    let start = |(at, endpoint): (usize, Endpoint<Tokens>)| {
        let next = names[(at + 1) % names.len()].clone();
        std::thread::spawn(move || pass(endpoint, &next, at == 0))
    };
    let threads: Vec<_> = endpoints.into_iter().enumerate().map(start).collect();
    for (at, thread) in threads.into_iter().enumerate() {
        let hops = thread.join().map_err(|_| "a thread has panicked")??;
        println!("endpoint {at}: the token has come {ROUNDS} times, last after {hops} hops");
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(mut next) = arguments.last().cloned() else { return ring_of_threads() };
    let endpoint = open()?;
    println!("{}", endpoint.name());
    if next == "-" {
        next = std::io::stdin().lines().next().ok_or("no URI on standard input")??;
    }
    let hops = pass(endpoint, &next, arguments[0] == "first")?;
    println!("the token has come {ROUNDS} times, last after {hops} hops");
    Ok(())
}
