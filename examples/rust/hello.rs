//! The client that docs/first-client.md shows, to which a test compares it. To be used with `echo
//! server`.

#![expect(clippy::print_stdout, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{Connect, Context, Endpoint, EndpointOptions, Event, Notify};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let uri = std::env::args().nth(1).ok_or("usage: hello URI")?;
    let options = EndpointOptions::new().disconnect_events(true);
    let endpoint = Endpoint::open(Context::new()?.device_for(&uri)?, &options)?;
    endpoint.set_keepalive(Duration::from_secs(2))?;
    endpoint.connect(&Connect::to(&uri).timeout(Duration::from_secs(10)))?;
    // Sleeps until there is an event; `get_event` polls.
    while let Some(event) = endpoint.wait(None)? {
        match event {
            Event::Connected(connected) => {
                let connection = connected.connection().ok_or("the server has gone")?;
                endpoint.send(connection, b"hello", Notify::OnFailure(0))?;
            }
            Event::Received(message) => {
                println!("{}", String::from_utf8_lossy(&message.to_vec()));
                return Ok(());
            }
            Event::ConnectFailed(connect) => return Err(connect.to_string().into()),
            Event::Disconnected(_) | Event::Keepalive(_) => return Err("the server has gone".into()),
            event => event.outcome()?,
        }
    }
    Ok(())
}
