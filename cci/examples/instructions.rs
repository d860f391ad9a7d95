//! So many messages between two endpoints of this process, and nothing else: what `ci/instructions`
//! counts the instructions of. Arguments: the transport, how many messages, and `uu` for unreliable
//! ones.

use cci::{Attribute, Connect, Context, EndpointOptions, Event, EventKind, LocalEndpoint, Notify};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (transport, count) = (arguments.next().ok_or("which transport?")?, arguments.next().ok_or("how many?")?);
    let context = Context::new()?;
    let device = context.devices().iter().find(|device| device.transport == transport && device.up);
    let device = device.ok_or("no device has this transport")?;
    // Without a progress thread, whose instructions depend on time.
    let options = EndpointOptions::new();
    let (here, there) = (LocalEndpoint::open(device, &options)?, LocalEndpoint::open(device, &options)?);
    let is_unreliable = arguments.next().is_some_and(|kind| kind == "uu");
    let attribute = if is_unreliable { Attribute::Unreliable } else { Attribute::ReliableOrdered };
    here.connect(&Connect::to(there.uri()).attribute(attribute))?;
    let (mut ours, mut theirs) = (None, None);
    while ours.is_none() || theirs.is_none() {
        for (endpoint, connection) in [(&here, &mut ours), (&there, &mut theirs)] {
            let Some(event) = endpoint.get_event()? else { continue };
            match event {
                Event::Request(request) => request.accept(0)?,
                Event::Connected(_) | Event::Accepted(_) => *connection = event.connection(),
                event => event.outcome()?,
            }
        }
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return Err("not connected".into()) };
    for _ in 0..count.parse::<u64>()? {
        here.send(ours, &[1; 8], Notify::OnFailure(0))?;
        receive(&there)?;
        there.send(theirs, &[1; 8], Notify::OnFailure(0))?;
        receive(&here)?;
    }
    Ok(())
}

/// Takes a message and gives it back.
fn receive(endpoint: &LocalEndpoint) -> Result<(), Box<dyn Error>> {
    loop {
        if let Some(event) = endpoint.get_event()?
            && event.kind() == EventKind::Recv
        {
            return Ok(());
        }
    }
}
