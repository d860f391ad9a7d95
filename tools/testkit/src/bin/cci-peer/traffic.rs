//! Roles that send and receive.

use crate::{hear, say};
use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, BlockingError, Connect, Connection, Device, Endpoint, Event, EventKind, HeapBytes, Memory, Rights, Rma,
    RmaHandle, SendError,
};
use cci_conformance::memory::Origin;
use cci_conformance::{LIMIT, World, drain, open, pattern, sm_device};
use std::sync::Arc;

/// Connects to the endpoint of the test.
pub(crate) fn connect(endpoint: &Endpoint, uri: &str) -> Connection {
    World::new([endpoint]).connect_to(0, uri, Attribute::ReliableOrdered)
}

/// Sends, making progress while there is no buffer; false when the connection is gone.
fn send(endpoint: &Endpoint, connection: Connection, message: &[u8], flags: Flags) -> bool {
    loop {
        match endpoint.send_flags(connection, message, 0, flags) {
            Ok(()) => return true,
            Err(BlockingError::Refused(SendError::NoBuffers)) => {
                drain(endpoint);
            }
            Err(_) => return false,
        }
    }
}

fn answer(endpoint: &Endpoint, event: Event<'_>) {
    match event.kind() {
        EventKind::ConnectRequest => event.into_request().expect("a request").accept(0).expect("an accept"),
        EventKind::Recv => {
            let message = event.received().expect("a message").to_vec();
            let connection = event.connection().expect("one");
            drop(event);
            send(endpoint, connection, &message, Flags::SILENT);
        }
        _ => {}
    }
}

/// Says which devices there are: transport, keys, and whether it is the default one.
pub(crate) fn devices() {
    let context = cci::Context::new().expect("a valid environment");
    for device in context.devices() {
        let keys: Vec<_> = device.arguments.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let default = if device.is_default { "default" } else { "" };
        say(&format!("{} {} {default}", device.transport, keys.join(" ")));
    }
}

/// Accepts everybody and sends every message back.
pub(crate) fn echo(device: &Device) -> ! {
    let endpoint = open(device);
    say(endpoint.uri());
    loop {
        match endpoint.get_event() {
            Ok(Some(event)) => answer(&endpoint, event),
            Ok(None) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Connects, and says by which path, or why there is none.
pub(crate) fn meet(device: &Device, uri: &str) {
    let endpoint = open(device);
    endpoint.connect(&Connect::to(uri).context(1).timeout(LIMIT)).expect("a connect");
    let event = World::new([&endpoint]).next(0, EventKind::Connect);
    match event.connection() {
        Some(connection) => say(&endpoint.report(connection).expect("open").path),
        None => say(&event.reason().unwrap_or_default()),
    }
}

/// Opens an endpoint on the default device, and says its URI, or why there is none.
pub(crate) fn open_default() {
    let opened = cci::Context::new().and_then(|context| {
        let device = context.default_device()?;
        cci::Endpoint::open(device, &cci::EndpointOptions::new())
    });
    match opened {
        Ok(endpoint) => say(endpoint.uri()),
        Err(why) => say(&why.to_string()),
    }
}

/// Sends numbered messages as fast as possible, for ever, taking what comes.
pub(crate) fn flood(uri: &str, len: usize) {
    let endpoint = open(&sm_device());
    let connection = connect(&endpoint, uri);
    say("connected");
    let mut number = 0u64;
    while send(&endpoint, connection, &numbered(number, len), Flags::SILENT) {
        number += 1;
        drain(&endpoint);
    }
    say("disconnected");
}

/// Sends numbered messages beyond the connection's maximum for ever, two at a time.
pub(crate) fn flood_large(uri: &str, len: usize) {
    let endpoint = open(&sm_device());
    let connection = connect(&endpoint, uri);
    say("connected");
    for number in 0.. {
        let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(numbered(number, len))));
        if endpoint.send_large(connection, &memory, number).is_err() {
            break;
        }
        while number > 0 && endpoint.get_event().expect("usable").is_none() {}
    }
}

fn numbered(number: u64, len: usize) -> Vec<u8> {
    let mut message = pattern(number, len.max(8));
    message[..8].copy_from_slice(&number.to_ne_bytes());
    message
}

/// Connects and never polls again.
pub(crate) fn stall(uri: &str) {
    let endpoint = open(&sm_device());
    connect(&endpoint, uri);
    say("connected");
    hear();
}

/// Registers 64 MiB, sends the handle, and polls until the test is gone.
pub(crate) fn target(device: &Device, uri: &str, origin: &str) {
    let endpoint = open(device);
    let connection = connect(&endpoint, uri);
    let memory = if origin == "library" { Origin::Library } else { Origin::Program }.allocate(64 << 20);
    let handle = endpoint.register_memory(memory.memory(), Rights::READ_WRITE).expect("a registration");
    assert!(send(&endpoint, connection, &handle.to_bytes(), Flags::SILENT));
    say("connected");
    loop {
        drain(&endpoint);
        std::thread::yield_now();
    }
}

/// Receives handles of registrations in messages (with the length behind each) and writes to the
/// latest one for ever: words that are never zero. Failed writes are expected: their target has
/// gone.
pub(crate) fn writer(uri: &str) {
    const PIECE: usize = 64 << 10;
    let endpoint = open(&sm_device());
    let connection = connect(&endpoint, uri);
    let source = Origin::Program.allocate(PIECE);
    source.write(0, &[0xff; PIECE]);
    let local = endpoint.register_memory(source.memory(), Rights::NONE).expect("a registration");
    say("connected");
    let (mut remote, mut number): (Option<(RmaHandle, u64)>, u64) = (None, 0);
    loop {
        while let Ok(Some(event)) = endpoint.get_event() {
            if let Some(message) = event.received() {
                let bytes = message.to_vec();
                let len = u64::from_ne_bytes(bytes[32..40].try_into().expect("8 bytes"));
                remote = RmaHandle::from_bytes(&bytes[..32]).map(|handle| (handle, len));
            }
        }
        let Some((handle, len)) = &remote else { continue };
        let piece = (PIECE as u64).min(*len);
        let remote_offset = (number * 4096) % (len - piece + 1);
        number += 1;
        let rma = Rma::new(&local, handle, piece).remote_offset(remote_offset);
        // Refused or failed: the registration is gone, the next message names another.
        let _ = endpoint.rma(connection, &rma, 0, Flags::WRITE | Flags::SILENT);
    }
}

/// Sends messages, sees each complete, and exits at once without a farewell.
pub(crate) fn send_and_exit(uri: &str, count: u64, len: usize) -> ! {
    let endpoint = open(&sm_device());
    let connection = connect(&endpoint, uri);
    let world = World::new([&endpoint]);
    for number in 0..count {
        while let Err(error) = endpoint.send(connection, &pattern(number, len), number) {
            assert_eq!(error, SendError::NoBuffers);
            world.step();
        }
        assert_eq!(world.sent(0), number);
    }
    // No destructor runs: the endpoint is not closed but lost.
    std::process::exit(0)
}
