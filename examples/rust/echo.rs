//! Echo: a server that sends every message back, and a client.
//!
//! ```text
//! echo server [PORT]       prints its URI; ends when its first client has gone. With a port (of UDP
//!                          and TCP) it serves other hosts too
//! echo client URI WORD...  sends the words one by one and prints the answers
//! ```

#![expect(clippy::print_stdout, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{Connect, Context, Endpoint, EndpointOptions, Event, Notify};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let options = EndpointOptions::new().disconnect_events(true);
    match arguments[..] {
        ["server"] => serve(&options),
        ["server", port] => serve(&options.service(port)),
        ["client", uri, ref words @ ..] => call(uri, words, &options),
        _ => Err("usage: echo server [PORT] | echo client URI WORD...".into()),
    }
}

fn serve(options: &EndpointOptions) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::open(Context::new()?.default_device()?, options)?;
    println!("{}", endpoint.uri());
    loop {
        match next_event(&endpoint)? {
            Event::Request(request) => request.accept(0)?,
            Event::Received(message) => {
                let client = message.connection().ok_or("a message of nobody")?;
                endpoint.send(client, &message.to_vec(), Notify::OnFailure(0))?;
            }
            Event::Disconnected(_) => return Ok(()),
            event => event.outcome()?,
        }
        // The event is dropped here, which gives its buffer back.
    }
}

fn call(uri: &str, words: &[&str], options: &EndpointOptions) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::open(Context::new()?.device_for(uri)?, options)?;
    endpoint.connect(&Connect::to(uri).timeout(Duration::from_secs(10)))?;
    let (mut connection, mut words) = (None, words.iter());
    loop {
        match next_event(&endpoint)? {
            Event::Connected(connected) => connection = connected.connection(),
            Event::Received(answer) => println!("{}", String::from_utf8_lossy(&answer.to_vec())),
            Event::ConnectFailed(connect) => return Err(connect.to_string().into()),
            Event::Disconnected(_) => return Err("the server has gone".into()),
            event => event.outcome()?,
        }
        let (Some(server), Some(word)) = (connection, words.next()) else { return Ok(()) };
        endpoint.send(server, word.as_bytes(), Notify::OnFailure(0))?;
    }
}

/// Polls: the quickest way to an event. `hello.rs` sleeps meanwhile.
fn next_event(endpoint: &Endpoint) -> Result<Event<'_>, Box<dyn Error>> {
    loop {
        match endpoint.get_event()? {
            Some(event) => return Ok(event),
            None => std::thread::yield_now(),
        }
    }
}
