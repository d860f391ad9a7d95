//! So many short requests with replies between two endpoints of this process over `sm`, and nothing
//! else: what callgrind counts the instructions of. Arguments: `am`, or `send` or `reserve` for the
//! same bytes by CCI alone; and how many. Two messages are one request with its reply.

use cci::{Connect, Connection, Context, Device, Endpoint, EndpointOptions, Event, Notify};
use cci_am::{Handlers, Options, Reply, Request, TAG_ALL};
use std::error::Error;

const PING: u8 = 1;
const PONG: u8 = 2;
/// A header and four arguments.
const MESSAGE: [u8; 24] = [1; 24];

fn ping(_: &mut u64, request: Request<'_>) {
    let arguments = request.arguments();
    request.reply(PONG, arguments).expect("as many arguments as came");
}

fn pong(pongs: &mut u64, _: Reply<'_>) {
    *pongs += 1;
}

fn by_requests(device: &Device, count: u64) -> Result<(), Box<dyn Error>> {
    let open = || {
        let handlers = Handlers::new().request(PING, ping).reply(PONG, pong);
        cci_am::Endpoint::open(device, &Options::new(), handlers, 0)
    };
    let (mut server, mut client) = (open()?, open()?);
    let name = server.name().to_owned();
    let peer = client.map(&name, TAG_ALL)?;
    for number in 1..=count {
        while client.now().request(peer, PING, &[1, 2, 3, 4]).is_err() {
            server.poll()?;
            client.poll()?;
        }
        while *client.state() < number {
            server.poll()?;
            client.poll()?;
        }
    }
    Ok(())
}

fn connect(here: &Endpoint, there: &Endpoint) -> Result<(Connection, Connection), Box<dyn Error>> {
    here.connect(&Connect::to(there.uri()))?;
    let (mut ours, mut theirs) = (None, None);
    loop {
        for (endpoint, connection) in [(here, &mut ours), (there, &mut theirs)] {
            match endpoint.get_event()? {
                Some(Event::Request(request)) => request.accept(0)?,
                Some(event) => *connection = event.connection(),
                None => {}
            }
        }
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            return Ok((ours, theirs));
        }
    }
}

/// Takes a message in place, as the engine does: up to 64 events a poll.
fn receive(endpoint: &Endpoint) -> Result<(), Box<dyn Error>> {
    let mut bytes = 0;
    while bytes == 0 {
        endpoint.poll(64, |event| {
            if let Event::Received(message) = event {
                bytes += message.bytes().map_or(0, <[u8]>::len);
            }
        })?;
    }
    Ok(())
}

fn by_messages(device: &Device, count: u64, reserves: bool) -> Result<(), Box<dyn Error>> {
    let open = || Endpoint::open(device, &EndpointOptions::new());
    let (here, there) = (open()?, open()?);
    let (ours, theirs) = connect(&here, &there)?;
    let send = |endpoint: &Endpoint, connection| -> Result<(), Box<dyn Error>> {
        if reserves {
            let mut room = endpoint.reserve(connection, MESSAGE.len())?;
            assert!(room.write_at(0, &MESSAGE));
            room.send(Notify::OnFailure(0)).map_err(|unsent| unsent.why)?;
        } else {
            endpoint.send(connection, &MESSAGE, Notify::OnFailure(0))?;
        }
        Ok(())
    };
    for _ in 0..count {
        send(&here, ours)?;
        receive(&there)?;
        send(&there, theirs)?;
        receive(&here)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, count] = &arguments[..] else { return Err("usage: instructions am|send|reserve COUNT".into()) };
    let (context, count) = (Context::new()?, count.parse()?);
    let device = context.devices().iter().find(|device| device.transport == "sm").ok_or("no device of sm")?;
    match way.as_str() {
        "am" => by_requests(device, count),
        "send" => by_messages(device, count, false),
        "reserve" => by_messages(device, count, true),
        other => Err(format!("{other} is not a way; give am, send or reserve").into()),
    }
}
