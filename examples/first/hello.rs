//! The client of which README.md shows the loop, to which a test compares it. To be used with
//! `echo server`.

#![expect(clippy::print_stdout, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{Connect, Context, Endpoint, EndpointOptions, Event, Notify};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let uri = std::env::args().nth(1).ok_or("usage: hello URI")?;
    let endpoint = Endpoint::open(Context::new()?.device_for(&uri)?, &EndpointOptions::new())?;
    endpoint.connect(&Connect::to(&uri))?;
    while let Some(event) = endpoint.wait(None)? {
        if let Some(reason) = event.reason() {
            return Err(reason.into());
        }
        event.outcome()?;
        if let Event::Connected(it) = &event {
            endpoint.send(it.connection().ok_or("gone")?, b"hello", Notify::OnFailure(0))?;
        } else if let Some(message) = event.received() {
            println!("{}", String::from_utf8_lossy(&message.to_vec()));
            break;
        }
    }
    Ok(())
}
