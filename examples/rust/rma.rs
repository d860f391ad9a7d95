//! RMA: the client writes into the server's memory and reads it back; the server computes nothing meanwhile.
//!
//! ```text
//! rma server           prints its URI; registers memory, and prints what a client has written into it
//! rma client URI TEXT  writes TEXT into the server's memory, reads it back, and prints it
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{
    Attribute, Connection, Context, Endpoint, EndpointOptions, Event, EventKind, Flags, Rights, Rma, RmaHandle,
    SharedMemory,
};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

/// Size of the server's memory, bytes.
const SIZE: usize = 1 << 20;
/// The client's context of its write.
const WRITE: u64 = 1;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rma: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["server"] => serve(),
        ["client", uri, text] if (1..=SIZE).contains(&text.len()) => call(uri, text.as_bytes()),
        _ => Err("usage: rma server | rma client URI TEXT".into()),
    }
}

fn serve() -> Result<(), Box<dyn Error>> {
    let endpoint = open(None)?;
    // Memory that the library allocates is the quickest: peers of this host copy to it without a system call.
    let memory = SharedMemory::new(SIZE)?;
    let handle = endpoint.register(memory.memory(), Rights::READ_WRITE)?;
    println!("{}", endpoint.uri());
    loop {
        let event = next_event(&endpoint)?;
        event.outcome()?;
        match event.kind() {
            EventKind::ConnectRequest => endpoint.accept(&event, 0)?,
            // Whoever has the 32 bytes of the handle has the rights that come with it.
            EventKind::Accept => {
                let connection = event.connection().ok_or("no connection")?;
                endpoint.send(connection, &handle.to_bytes(), 0, Flags::SILENT)?;
            }
            // The completion message of the client's write: the data are here already.
            EventKind::Recv => {
                let message = event.received().ok_or("no message")?.to_vec();
                let len = u32::from_ne_bytes(message.as_slice().try_into()?) as usize;
                let text = memory.to_vec(0, len.min(SIZE));
                println!("written: {}", String::from_utf8_lossy(&text));
            }
            EventKind::Disconnect => break,
            _ => (),
        }
    }
    // From here on nobody touches the memory.
    endpoint.deregister(&handle)?;
    Ok(())
}

fn call(uri: &str, text: &[u8]) -> Result<(), Box<dyn Error>> {
    let endpoint = open(Some(uri))?;
    endpoint.connect(uri, b"", Attribute::ReliableOrdered, 0, Some(Duration::from_secs(10)))?;
    let connection = wait_for(&endpoint, EventKind::Connect)?.connection().ok_or("no connection")?;
    let handle = wait_for(&endpoint, EventKind::Recv)?.received().ok_or("no message")?.to_vec();
    let remote = RmaHandle::from_bytes(&handle).ok_or("the server sent something else than a handle")?;
    transfer(&endpoint, connection, &remote, text)?;
    endpoint.disconnect(connection)?;
    Ok(())
}

fn transfer(
    endpoint: &Endpoint,
    connection: Connection,
    remote: &RmaHandle,
    text: &[u8],
) -> Result<(), Box<dyn Error>> {
    // The text to write, and behind it room for what is read.
    let memory = SharedMemory::new(2 * text.len())?;
    memory.write(0, text);
    let local = endpoint.register(memory.memory(), Rights::NONE)?;
    let len = u32::try_from(text.len())?.to_ne_bytes();
    let write =
        Rma { local: &local, local_offset: 0, remote, remote_offset: 0, len: text.len() as u64, message: Some(&len) };
    endpoint.rma(connection, &write, WRITE, Flags::WRITE)?;
    let event = wait_for(endpoint, EventKind::Send)?;
    assert_eq!(event.context(), WRITE, "the only operation that asked for an event");

    // The same without an event: the call returns when the data are here.
    let read = Rma { local_offset: text.len() as u64, message: None, ..write };
    endpoint.rma(connection, &read, 0, Flags::READ | Flags::BLOCKING)?;
    println!("read: {}", String::from_utf8_lossy(&memory.to_vec(text.len(), text.len())));
    endpoint.deregister(&local)?;
    Ok(())
}

/// On the device that leads to `uri`, or on the default one.
fn open(uri: Option<&str>) -> Result<Endpoint, Box<dyn Error>> {
    let context = Context::new()?;
    let options = EndpointOptions { disconnect_events: true, ..EndpointOptions::default() };
    let device = uri.map_or_else(|| context.default_device(), |uri| context.device_for(uri))?;
    Ok(Endpoint::open(device, &options)?)
}

/// The next event of this kind. Others are given back; those that report a failure end the program.
fn wait_for(endpoint: &Endpoint, kind: EventKind) -> Result<Event<'_>, Box<dyn Error>> {
    loop {
        let event = next_event(endpoint)?;
        event.outcome()?;
        match event.kind() {
            found if found == kind => return Ok(event),
            EventKind::Disconnect => return Err("the server has gone".into()),
            _ => (),
        }
    }
}

fn next_event(endpoint: &Endpoint) -> Result<Event<'_>, Box<dyn Error>> {
    loop {
        match endpoint.get_event()? {
            Some(event) => return Ok(event),
            None => std::thread::yield_now(),
        }
    }
}
