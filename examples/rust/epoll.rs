//! An event loop: one thread that sleeps in `epoll` until its endpoint or its standard input has something to say.
//!
//! ```text
//! epoll server      prints its URI; sends every message back; ends when its first client has gone
//! epoll client URI  sends the lines of its standard input (a pipe or a terminal) and prints the answers
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{Attribute, Connection, Context, Endpoint, EndpointOptions, Event, EventKind, Flags};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::retry_on_intr;
use std::error::Error;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

/// What the endpoint's handle and standard input are called in `epoll`.
const ENDPOINT: u64 = 0;
const INPUT: u64 = 1;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("epoll: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["server"] => serve(),
        ["client", uri] => call(uri),
        _ => Err("usage: epoll server | epoll client URI".into()),
    }
}

/// An endpoint on the device that leads to `uri`, or on the default one, and an epoll instance that watches it.
fn open(uri: Option<&str>) -> Result<(Endpoint, OwnedFd), Box<dyn Error>> {
    let context = Context::new()?;
    let options = EndpointOptions { disconnect_events: true, ..EndpointOptions::default() };
    let device = uri.map_or_else(|| context.default_device(), |uri| context.device_for(uri))?;
    let endpoint = Endpoint::open(device, &options)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    // The handle given here is a duplicate; what it leads to stays watched as long as the endpoint is open.
    watch(&epoll, endpoint.handle()?, ENDPOINT)?;
    Ok((endpoint, epoll))
}

fn watch(epoll: &OwnedFd, descriptor: impl AsFd, name: u64) -> Result<(), Box<dyn Error>> {
    Ok(epoll::add(epoll, descriptor, EventData::new_u64(name), EventFlags::IN)?)
}

/// Sleeps until something is readable, and says what.
fn wait(epoll: &OwnedFd) -> Result<Vec<u64>, Box<dyn Error>> {
    let mut ready = Vec::with_capacity(2);
    retry_on_intr(|| epoll::wait(epoll, spare_capacity(&mut ready), None))?;
    Ok(ready.iter().map(|event| event.data.u64()).collect())
}

fn serve() -> Result<(), Box<dyn Error>> {
    let (endpoint, epoll) = open(None)?;
    println!("{}", endpoint.uri());
    loop {
        wait(&epoll)?;
        // Readable may be spurious: then there is no event.
        while let Some(event) = endpoint.get_event()? {
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
        }
    }
}

/// What the client knows between two turns of its loop.
#[derive(Default)]
struct Client {
    connection: Option<Connection>,
    /// Input that does not end with a line yet.
    line: Vec<u8>,
    input_ended: bool,
    unanswered: usize,
}

fn call(uri: &str) -> Result<(), Box<dyn Error>> {
    let (endpoint, epoll) = open(Some(uri))?;
    let mut client = Client::default();
    endpoint.connect(uri, b"", Attribute::ReliableOrdered, 0, Some(Duration::from_secs(10)))?;
    while !(client.input_ended && client.unanswered == 0) {
        for name in wait(&epoll)? {
            if name == INPUT {
                client.on_input(&endpoint)?;
                if client.input_ended {
                    epoll::delete(&epoll, std::io::stdin())?;
                }
                continue;
            }
            while let Some(event) = endpoint.get_event()? {
                if client.on_event(&event)? {
                    watch(&epoll, std::io::stdin(), INPUT)?;
                }
            }
        }
    }
    Ok(())
}

impl Client {
    /// True when the connection has come.
    fn on_event(&mut self, event: &Event<'_>) -> Result<bool, Box<dyn Error>> {
        event.outcome()?;
        match event.kind() {
            EventKind::Connect => {
                self.connection = event.connection();
                return Ok(true);
            }
            EventKind::Recv => {
                let answer = event.received().ok_or("no message")?.to_vec();
                println!("{}", String::from_utf8_lossy(&answer));
                self.unanswered = self.unanswered.saturating_sub(1);
            }
            EventKind::Disconnect => return Err("the server has gone".into()),
            _ => (),
        }
        Ok(false)
    }

    /// Sends the lines that are complete.
    fn on_input(&mut self, endpoint: &Endpoint) -> Result<(), Box<dyn Error>> {
        let connection = self.connection.ok_or("input before the connection")?;
        let mut bytes = [0; 4096];
        let count = retry_on_intr(|| rustix::io::read(std::io::stdin(), &mut bytes))?;
        self.input_ended = count == 0;
        self.line.extend_from_slice(&bytes[..count]);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            endpoint.send(connection, &self.line[..end], 0, Flags::SILENT)?;
            self.unanswered += 1;
            self.line.drain(..=end);
        }
        Ok(())
    }
}
