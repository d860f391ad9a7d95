//! A key-value store: the server keeps a table in memory that clients read by RMA, so that a get
//! takes none of its time; a put is a message.
//!
//! ```text
//! store                       serves; prints its URI
//! store URI put KEY VALUE     sets a value
//! store URI get KEY           prints a value
//! ```
//!
//! The same as `store.c` and `store.py` beside it: their clients understand its
//! server.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{
    Connect, Connection, Context, Endpoint, EndpointOptions, Event, Notify, Rights, Rma, RmaHandle, SharedMemory,
};
use std::error::Error;
use std::time::Duration;

const SLOTS: u64 = 4096;
/// Bytes of a slot: a key, then a value, each with a zero behind it.
const SLOT: usize = 64;
const KEY: usize = 24;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => serve(),
        [uri, "put", key, value] => put(uri, key, value),
        [uri, "get", key] => get(uri, key),
        _ => Err("usage: store [URI put KEY VALUE | URI get KEY]".into()),
    }
}

/// Where the slot of a key lies in the table. Another key of the same place takes it over.
fn place(key: &[u8]) -> u64 {
    let hash = key.iter().fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619));
    u64::from(hash) % SLOTS * SLOT as u64
}

/// A text without the zeroes behind it.
fn text(piece: &[u8]) -> &[u8] {
    piece.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn serve() -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::open(Context::new()?.default_device()?, &EndpointOptions::new().disconnect_events(true))?;
    let table = endpoint.register(SharedMemory::new(SLOTS as usize * SLOT)?, Rights::READ)?;
    println!("{}", endpoint.uri());
    while let Some(event) = endpoint.wait(None)? {
        match event {
            Event::Request(request) => request.accept(0)?,
            Event::Accepted(accepted) => {
                let Some(client) = accepted.connection() else { continue };
                answer(&endpoint, client, &table.handle().to_bytes());
            }
            Event::Received(message) => {
                let (mut slot, client) = (message.to_vec(), message.connection());
                let Some(client) = client.filter(|_| slot.len() == SLOT) else { continue };
                // What a client sent is not to be trusted: both texts end.
                (slot[KEY - 1], slot[SLOT - 1]) = (0, 0);
                if !table.write(place(text(&slot)), &slot) {
                    return Err("a place outside the table".into());
                }
                answer(&endpoint, client, b"");
            }
            Event::Disconnected(client) => {
                if let Some(client) = client.connection() {
                    endpoint.disconnect(client)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A client may have gone since it asked: then the answer fails, and the others are served on.
fn answer(endpoint: &Endpoint, client: Connection, bytes: &[u8]) {
    if let Err(error) = endpoint.send(client, bytes, Notify::OnFailure(0)) {
        eprintln!("a client got no answer: {error}");
    }
}

/// An endpoint with a connection to a server, and the handle of its table.
fn connect(uri: &str) -> Result<(Endpoint, Connection, RmaHandle), Box<dyn Error>> {
    let endpoint = Endpoint::open(Context::new()?.device_for(uri)?, &EndpointOptions::new().disconnect_events(true))?;
    endpoint.connect(&Connect::to(uri).timeout(Duration::from_secs(10)))?;
    let (server, handle) = answered(&endpoint)?;
    let table = RmaHandle::from_bytes(&handle).ok_or("the server sent something else than a handle")?;
    Ok((endpoint, server, table))
}

/// The next message, and whose it is.
fn answered(endpoint: &Endpoint) -> Result<(Connection, Vec<u8>), Box<dyn Error>> {
    while let Some(event) = endpoint.wait(None)? {
        match event {
            Event::Received(message) => {
                return Ok((message.connection().ok_or("the server has gone")?, message.to_vec()));
            }
            Event::ConnectFailed(connect) => return Err(connect.to_string().into()),
            Event::Disconnected(_) => break,
            event => event.outcome()?,
        }
    }
    Err("the server has gone".into())
}

fn put(uri: &str, key: &str, value: &str) -> Result<(), Box<dyn Error>> {
    let (endpoint, server, _) = connect(uri)?;
    let mut slot = [0; SLOT];
    for (text, at, room) in [(key, 0, KEY - 1), (value, KEY, SLOT - KEY - 1)] {
        let len = text.len().min(room);
        slot[at..at + len].copy_from_slice(&text.as_bytes()[..len]);
    }
    endpoint.send(server, &slot, Notify::OnFailure(0))?;
    // The answer: the table has it.
    answered(&endpoint).map(|_| ())
}

fn get(uri: &str, key: &str) -> Result<(), Box<dyn Error>> {
    let (endpoint, server, table) = connect(uri)?;
    let local = endpoint.register(vec![0; SLOT], Rights::NONE)?;
    let slot = Rma::new(local.handle(), &table, SLOT as u64).remote_offset(place(key.as_bytes()));
    endpoint.read_blocking(server, &slot)?;
    let slot = local.to_vec(0, SLOT).ok_or("less was read")?;
    if text(&slot[..KEY]) != key.as_bytes() {
        return Err("no such key".into());
    }
    println!("{}", String::from_utf8_lossy(text(&slot[KEY..])));
    Ok(())
}
