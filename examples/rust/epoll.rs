//! An event loop: one thread that sleeps in `epoll` until its endpoint or its standard input is
//! readable.
//!
//! ```text
//! epoll URI  sends the lines of its standard input (a pipe or a terminal) to `echo server` and prints the answers
//! ```

#![expect(clippy::print_stdout, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{Connect, Connection, Context, Endpoint, EndpointOptions, Event, Notify};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::retry_on_intr;
use std::error::Error;
use std::io::stdin;
use std::time::Duration;

/// What the endpoint and standard input are called in `epoll`.
const ENDPOINT: EventData = EventData::new_u64(0);
const INPUT: EventData = EventData::new_u64(1);

fn main() -> Result<(), Box<dyn Error>> {
    let uri = std::env::args().nth(1).ok_or("usage: epoll URI")?;
    let options = EndpointOptions::new().disconnect_events(true);
    let endpoint = Endpoint::open(Context::new()?.device_for(&uri)?, &options)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &endpoint, ENDPOINT, EventFlags::IN)?;
    endpoint.connect(&Connect::to(&uri).timeout(Duration::from_secs(10)))?;
    let mut server = None;
    let (mut lines, mut input_ended, mut unanswered) = (Vec::new(), false, 0);
    while !(input_ended && unanswered == 0) {
        let mut ready = Vec::with_capacity(2);
        retry_on_intr(|| epoll::wait(&epoll, spare_capacity(&mut ready), None))?;
        // Readable may be spurious: then there is no event.
        while let Some(event) = endpoint.get_event()? {
            match event {
                Event::Connected(connected) => {
                    server = connected.connection();
                    epoll::add(&epoll, stdin(), INPUT, EventFlags::IN)?;
                }
                Event::Received(answer) => {
                    println!("{}", String::from_utf8_lossy(&answer.to_vec()));
                    unanswered -= 1;
                }
                Event::Disconnected(_) => return Err("the server has gone".into()),
                event => event.outcome()?,
            }
        }
        if let (Some(server), true) = (server, ready.iter().any(|event| event.data.u64() == INPUT.u64())) {
            input_ended = read_input(&mut lines)?;
            unanswered += send_lines(&endpoint, server, &mut lines)?;
            if input_ended {
                epoll::delete(&epoll, stdin())?;
            }
        }
    }
    Ok(())
}

/// Reads what there is. True at the end of the input.
fn read_input(lines: &mut Vec<u8>) -> Result<bool, Box<dyn Error>> {
    let mut bytes = [0; 4096];
    let count = retry_on_intr(|| rustix::io::read(stdin(), &mut bytes))?;
    lines.extend_from_slice(&bytes[..count]);
    Ok(count == 0)
}

/// Sends the lines that are complete, and returns their number.
fn send_lines(endpoint: &Endpoint, server: Connection, lines: &mut Vec<u8>) -> Result<u64, Box<dyn Error>> {
    let mut count = 0;
    while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
        endpoint.send(server, &lines[..end], Notify::OnFailure(0))?;
        lines.drain(..=end);
        count += 1;
    }
    Ok(count)
}
