//! The readers of what ranks, stores and process managers send, for the fuzz targets. No part of
//! the interface.

use crate::joining;
use crate::place::{self, Local};
use crate::server::Server;
use crate::source::Environment;
use crate::store_client::Client;
use crate::wire::{Reply, Request};
use cci_mem::descriptors;
use std::ffi::OsString;
use std::io::Write;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Ranks of a job that is fuzzed.
const RANKS: u32 = 3;
/// Longest input that a socket takes at once.
const MOST: usize = 16_384;

/// A request and a reply, behind their length: what is read is written again as it came.
pub fn frame(bytes: &[u8]) {
    if let Some(request) = Request::parse(bytes) {
        assert_eq!(Request::parse(&request.emit()[4..]), Some(request));
    }
    if let Some(reply) = Reply::parse(bytes) {
        assert_eq!(Reply::parse(&reply.emit()[4..]), Some(reply));
    }
}

/// What three ranks send to the store: pieces behind a byte that tells whose, and how long.
///
/// # Panics
///
/// The system has no socket, or the store fails.
pub fn store(mut bytes: &[u8]) {
    let mut server = Server::new(RANKS, None).expect("a descriptor");
    let mut ends: Vec<Option<UnixStream>> = Vec::new();
    for rank in 0..RANKS {
        let (ours, theirs) = descriptors::stream_pair().expect("a socket");
        theirs.set_nonblocking(true).expect("a socket");
        server.adopt(ours, rank, Local { rank, size: RANKS, processors: 1 }).expect("a descriptor");
        ends.push(Some(theirs));
    }
    while let Some((first, rest)) = bytes.split_first() {
        let Some(end) = ends.get_mut(usize::from(first & 3)) else { break };
        let (piece, rest) = rest.split_at(usize::from(first >> 2).min(rest.len()));
        bytes = rest;
        // A rank that sends nothing ends.
        if piece.is_empty() {
            *end = None;
        }
        // The store may have closed it.
        let _ = end.as_mut().map(|end| end.write(piece));
        server.progress().expect("a descriptor");
    }
    drop(ends);
    server.progress().expect("a descriptor");
}

/// What a false store sends to a rank, which joins, looks up and exchanges.
pub fn client(bytes: &[u8]) {
    let Some(socket) = said(bytes) else { return };
    let Ok((mut client, welcome)) = Client::trusted(socket, Duration::ZERO) else { return };
    use crate::source::Source;
    let _ = client.publish("key", b"value");
    let _ = client.look_up(0, "key", Duration::ZERO);
    if let Ok(places) = client.exchange(b"place", Duration::ZERO) {
        let _ = place::local(welcome.rank, &places);
    }
    let _ = client.ended();
}

/// What a process manager sends to a rank, which joins it, looks up and exchanges. The first byte
/// decides the version that the rank begins with.
pub fn process_manager(bytes: &[u8]) {
    let Some((version, bytes)) = bytes.split_first() else { return };
    let Some(socket) = said(bytes) else { return };
    let (descriptor, version) = (socket.as_raw_fd().to_string(), if version & 1 == 0 { "1" } else { "2" });
    let variables = move |name: &str| -> Option<OsString> {
        Some(match name {
            "PMI_FD" => descriptor.clone().into(),
            "PMI_RANK" => "1".into(),
            "PMI_SIZE" => "3".into(),
            "CCI_PMI" => version.into(),
            _ => return None,
        })
    };
    let Ok(mut joined) = joining::join(&Environment(&variables), Duration::ZERO) else { return };
    let _ = joined.source.publish("key", b"value");
    let _ = joined.source.look_up(0, "key", Duration::ZERO);
}

/// Places that ranks give each other: pieces behind a byte that tells how long.
pub fn places(mut bytes: &[u8]) {
    let mut places = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (place, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        places.push(place.to_vec());
        bytes = rest;
    }
    for rank in 0..=places.len().min(8) as u32 {
        let local = place::local(rank, &places);
        assert!(local.processors > 0);
    }
}

/// A socket whose other end has sent this, and sends no more.
fn said(bytes: &[u8]) -> Option<OwnedFd> {
    // The other end stays open, or what the rank sends would fail: the socket holds it.
    let (mut other, socket) = descriptors::stream_pair().ok()?;
    other.write_all(&bytes[..bytes.len().min(MOST)]).ok()?;
    other.shutdown(Shutdown::Write).ok()?;
    OTHERS.with_borrow_mut(|others| *others = Some(other));
    Some(socket.into())
}

thread_local! {
    static OTHERS: std::cell::RefCell<Option<UnixStream>> = const { std::cell::RefCell::new(None) };
}
