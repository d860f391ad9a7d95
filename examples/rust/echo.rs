//! Echo: a server that sends every message back, and a client.
//!
//! ```text
//! echo server              prints its URI; ends when its first client has gone
//! echo client URI WORD...  sends the words one by one and prints the answers
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{Attribute, Context, Endpoint, EndpointOptions, Event, EventKind, Flags};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["server"] => serve(),
        ["client", uri, ref words @ ..] => call(uri, words),
        _ => Err("usage: echo server | echo client URI WORD...".into()),
    }
}

fn serve() -> Result<(), Box<dyn Error>> {
    let endpoint = open(None)?;
    println!("{}", endpoint.uri());
    loop {
        let event = next_event(&endpoint)?;
        match event.kind() {
            EventKind::ConnectRequest => endpoint.accept(&event, 0)?,
            EventKind::Recv => {
                if let (Some(connection), Some(message)) = (event.connection(), event.received()) {
                    endpoint.send(connection, &message.to_vec(), 0, Flags::SILENT)?;
                }
            }
            EventKind::Disconnect => return Ok(()),
            _ => event.outcome()?,
        }
        // Dropping the event gives its buffer back.
    }
}

fn call(uri: &str, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let endpoint = open(Some(uri))?;
    endpoint.connect(uri, b"", Attribute::ReliableOrdered, 0, Some(Duration::from_secs(10)))?;
    let connection = wait_for(&endpoint, EventKind::Connect)?.connection().ok_or("no connection")?;
    for word in words {
        endpoint.send(connection, word.as_bytes(), 0, Flags::SILENT)?;
        let event = wait_for(&endpoint, EventKind::Recv)?;
        let answer = event.received().ok_or("no message")?.to_vec();
        println!("{}", String::from_utf8_lossy(&answer));
    }
    endpoint.disconnect(connection)?;
    Ok(())
}

/// On the device that leads to `uri`, or on the default one.
fn open(uri: Option<&str>) -> Result<Endpoint, Box<dyn Error>> {
    let context = Context::new()?;
    let options = EndpointOptions { disconnect_events: true, ..EndpointOptions::default() };
    let device = uri.map_or_else(|| context.default_device(), |uri| context.device_for(uri))?;
    Ok(Endpoint::open(device, &options)?)
}

/// The next event of this kind. Others are given back; those that report a failure end the program.
fn wait_for(endpoint: &Endpoint, kind: EventKind) -> Result<Event<'_>, Box<dyn Error>> {
    loop {
        let event = next_event(endpoint)?;
        event.outcome()?;
        match event.kind() {
            found if found == kind => return Ok(event),
            EventKind::Disconnect => return Err("the server has gone".into()),
            _ => (),
        }
    }
}

/// Polls: the quickest way to an event. `epoll.rs` shows how to sleep meanwhile.
fn next_event(endpoint: &Endpoint) -> Result<Event<'_>, Box<dyn Error>> {
    loop {
        match endpoint.get_event()? {
            Some(event) => return Ok(event),
            None => std::thread::yield_now(),
        }
    }
}
