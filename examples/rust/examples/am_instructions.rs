//! So many requests with replies between two endpoints of this process over `sm`, and nothing else:
//! what callgrind counts the instructions of. Arguments: `am`, or `v1` to `v4` for the same over
//! the VI Architecture, or `send` or `reserve` for the same bytes by CCI alone; how many; and, for
//! a medium request and a reply of its header, the bytes of the payload. Two messages are one
//! request with its reply.

use cci::{Connect, Connection, Context, Device, Endpoint, EndpointOptions, Event, Notify};
use cci_am::{Handlers, Mapping, Options, Reply, Request, TAG_ALL};
use cci_am_via::{Variant, ViaMapping};
use std::error::Error;

const PING: u8 = 1;
const PONG: u8 = 2;
/// Bytes of a header.
const HEADER: usize = 8;
/// Of a short message.
const ARGUMENTS: [u32; 4] = [1, 2, 3, 4];

fn ping(_: &mut u64, request: Request<'_>) {
    let arguments = request.arguments();
    request.reply(PONG, arguments).expect("as many arguments as came");
}

fn pong(pongs: &mut u64, _: Reply<'_>) {
    *pongs += 1;
}

fn handlers() -> Handlers<u64> {
    Handlers::new().request(PING, ping).reply(PONG, pong)
}

fn by_requests<M: Mapping>(
    open: impl Fn() -> Result<cci_am::Endpoint<u64, M>, cci::OpenError>,
    count: u64,
    payload: Option<&[u8]>,
) -> Result<(), Box<dyn Error>> {
    let (mut server, mut client) = (open()?, open()?);
    let name = server.name().to_owned();
    let peer = client.map(&name, TAG_ALL)?;
    for number in 1..=count {
        loop {
            let sent = match payload {
                Some(bytes) => client.now().request_medium(peer, PING, &[], bytes),
                None => client.now().request(peer, PING, &ARGUMENTS),
            };
            if sent.is_ok() {
                break;
            }
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
                bytes += message.bytes().map_or_else(|| message.view().len(), <[u8]>::len);
            }
        })?;
    }
    Ok(())
}

fn by_messages(
    device: &Device,
    count: u64,
    (request, reply): (&[u8], &[u8]),
    reserves: bool,
) -> Result<(), Box<dyn Error>> {
    let open = || Endpoint::open(device, &EndpointOptions::new());
    let (here, there) = (open()?, open()?);
    let (ours, theirs) = connect(&here, &there)?;
    let send = |endpoint: &Endpoint, connection, message: &[u8]| -> Result<(), Box<dyn Error>> {
        if reserves {
            let mut room = endpoint.reserve(connection, message.len())?;
            assert!(room.write_at(0, message));
            room.send(Notify::OnFailure(0)).map_err(|unsent| unsent.why)?;
        } else {
            endpoint.send(connection, message, Notify::OnFailure(0))?;
        }
        Ok(())
    };
    for _ in 0..count {
        send(&here, ours, request)?;
        receive(&there)?;
        send(&there, theirs, reply)?;
        receive(&here)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (way, count, payload) = match &arguments[..] {
        [way, count] => (way, count, None),
        [way, count, payload] => (way, count, Some(vec![1; payload.parse()?])),
        _ => return Err("usage: am_instructions am|v1|v2|v3|v4|send|reserve COUNT [PAYLOAD]".into()),
    };
    let (context, count) = (Context::new()?, count.parse()?);
    let device = context.devices().iter().find(|device| device.transport == "sm").ok_or("no device of sm")?;
    let short = vec![1; HEADER + size_of_val(&ARGUMENTS)];
    let medium = payload.as_ref().map(|bytes| [&[1; HEADER], &bytes[..]].concat());
    let messages = medium.as_ref().map_or((&short[..], &short[..]), |request| (request, &request[..HEADER]));
    match way.as_str() {
        "am" => {
            by_requests(|| cci_am::Endpoint::open(device, &Options::new(), handlers(), 0), count, payload.as_deref())
        }
        "send" => by_messages(device, count, messages, false),
        "reserve" => by_messages(device, count, messages, true),
        other => {
            let variant = Variant::ALL.into_iter().find(|variant| variant.name() == other);
            let variant = variant.ok_or_else(|| format!("{other} is not a way; give am, v1 to v4, send or reserve"))?;
            let options = cci_am_via::Options::new(variant);
            let open = || cci_am::Endpoint::over(ViaMapping::open(device, &options)?, &Options::new(), handlers(), 0);
            by_requests(open, count, payload.as_deref())
        }
    }
}
