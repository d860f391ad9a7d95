//! The client that README.md shows, to which a test compares it. To be used with `echo server`.

#![expect(clippy::print_stdout, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{Attribute, Context, Endpoint, EndpointOptions, EventKind, Flags};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let uri = std::env::args().nth(1).ok_or("usage: hello URI")?;
    let context = Context::new()?;
    let options = EndpointOptions { disconnect_events: true, ..EndpointOptions::default() };
    let endpoint = Endpoint::open(context.device_for(&uri)?, &options)?;
    endpoint.set_keepalive(2_000_000)?; // microseconds
    endpoint.connect(&uri, b"", Attribute::ReliableOrdered, 0, Some(Duration::from_secs(10)))?;
    loop {
        let Some(event) = endpoint.get_event()? else {
            std::thread::yield_now(); // or sleep until endpoint.handle() is readable
            continue;
        };
        event.outcome()?;
        match (event.kind(), event.connection()) {
            (EventKind::Connect, Some(connection)) => endpoint.send(connection, b"hello", 0, Flags::SILENT)?,
            (EventKind::Recv, _) => {
                let message = event.received().map(|message| message.to_vec()).unwrap_or_default();
                println!("{}", String::from_utf8_lossy(&message));
                return Ok(());
            }
            (EventKind::Disconnect | EventKind::KeepaliveTimedOut, _) => return Err("the server has gone".into()),
            _ => (),
        }
    }
}
