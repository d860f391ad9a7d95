//! So many messages between two endpoints of this process, and nothing else: what `ci/instructions` counts the instructions of.
//! Arguments: the transport, and how many messages.

use cci::{Attribute, Context, Endpoint, EndpointOptions, EventKind, Flags, Threading};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (transport, count) = (arguments.next().ok_or("which transport?")?, arguments.next().ok_or("how many?")?);
    let context = Context::new()?;
    let device = context.devices().iter().find(|device| device.transport == transport && device.up);
    let device = device.ok_or("no device has this transport")?;
    // Without a progress thread, whose instructions depend on time.
    let options = EndpointOptions { threading: Threading::One, ..EndpointOptions::default() };
    let (here, there) = (Endpoint::open(device, &options)?, Endpoint::open(device, &options)?);
    here.connect(there.uri(), b"", Attribute::ReliableOrdered, 0, None)?;
    let (mut ours, mut theirs) = (None, None);
    while ours.is_none() || theirs.is_none() {
        for (endpoint, connection) in [(&here, &mut ours), (&there, &mut theirs)] {
            let Some(event) = endpoint.get_event()? else { continue };
            match event.kind() {
                EventKind::ConnectRequest => endpoint.accept(&event, 0)?,
                EventKind::Connect | EventKind::Accept => {
                    event.outcome()?;
                    *connection = event.connection();
                }
                _ => {}
            }
        }
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return Err("not connected".into()) };
    for _ in 0..count.parse::<u64>()? {
        here.send(ours, &[1; 8], 0, Flags::SILENT)?;
        receive(&there)?;
        there.send(theirs, &[1; 8], 0, Flags::SILENT)?;
        receive(&here)?;
    }
    Ok(())
}

/// Takes a message and gives it back.
fn receive(endpoint: &Endpoint) -> Result<(), Box<dyn Error>> {
    loop {
        if let Some(event) = endpoint.get_event()?
            && event.kind() == EventKind::Recv
        {
            return Ok(());
        }
    }
}
