//! RMA: the client writes into the server's memory and reads it back.
//!
//! ```text
//! rma server [PORT]    prints its URI; registers memory, and prints what a client has written into it
//! rma client URI TEXT  writes TEXT into the server's memory, reads it back, and prints it
//! ```

#![expect(clippy::print_stdout, reason = "a program of the command line")]
#![forbid(unsafe_code)]

use cci::{Connect, Context, Endpoint, EndpointOptions, Event, Notify, Rights, Rma, RmaHandle, SharedMemory};
use std::error::Error;
use std::time::Duration;

/// Size of the server's memory, bytes.
const SIZE: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let options = EndpointOptions::new().disconnect_events(true);
    match arguments[..] {
        ["server"] => serve(&options),
        ["server", port] => serve(&options.service(port)),
        ["client", uri, text] if (1..=SIZE).contains(&text.len()) => call(uri, text.as_bytes(), &options),
        _ => Err("usage: rma server [PORT] | rma client URI TEXT".into()),
    }
}

fn serve(options: &EndpointOptions) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::open(Context::new()?.default_device()?, options)?;
    // Peers of this host copy to memory that the library allocates without a system call.
    let memory = endpoint.register(SharedMemory::new(SIZE)?, Rights::READ_WRITE)?;
    println!("{}", endpoint.uri());
    while let Some(event) = endpoint.wait(None)? {
        match event {
            Event::Request(request) => request.accept(0)?,
            // Whoever has the 32 bytes of the handle has the rights that come with it.
            Event::Accepted(accepted) => {
                let client = accepted.connection().ok_or("the client has gone")?;
                endpoint.send(client, &memory.handle().to_bytes(), Notify::OnFailure(0))?;
            }
            // The message of the client's write: the bytes are here already.
            Event::Received(message) => {
                let len = message.view().array(0).map_or(0, u32::from_le_bytes) as usize;
                let text = memory.to_vec(0, len).ok_or("the client has written less")?;
                println!("written: {}", String::from_utf8_lossy(&text));
            }
            Event::Disconnected(_) => break,
            event => event.outcome()?,
        }
    }
    // From here on nobody touches the memory, which is the program's again.
    let _memory: SharedMemory = memory.deregister()?;
    Ok(())
}

fn call(uri: &str, text: &[u8], options: &EndpointOptions) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::open(Context::new()?.device_for(uri)?, options)?;
    endpoint.connect(&Connect::to(uri).timeout(Duration::from_secs(10)))?;
    while let Some(event) = endpoint.wait(None)? {
        let (Event::Received(message), Some(server)) = (&event, event.connection()) else {
            event.outcome()?;
            continue;
        };
        let remote = RmaHandle::from_bytes(&message.to_vec()).ok_or("the server sent something else than a handle")?;
        // The text to write, and behind it room for what is read.
        let local = endpoint.register([text, &vec![0; text.len()]].concat(), Rights::NONE)?;
        let rma = Rma::new(local.handle(), &remote, text.len() as u64);
        let len = u32::try_from(text.len())?.to_le_bytes();
        endpoint.write(server, &rma.message(&len[..]), Notify::OnFailure(0))?;
        // Begins after the write; the bytes are here when the call returns.
        endpoint.read_blocking(server, &rma.local_offset(text.len() as u64).fence())?;
        let read = local.to_vec(text.len() as u64, text.len()).ok_or("less was read")?;
        println!("read: {}", String::from_utf8_lossy(&read));
        break;
    }
    Ok(())
}
