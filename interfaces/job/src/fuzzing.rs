//! The readers of what ranks, stores and process managers send, for the fuzz targets. No part of
//! the interface.

use crate::joining;
use crate::place::{self, Local};
use crate::pmi::server::{ManagerEvent, ProcessManager, Seat};
use crate::secret::Secret;
use crate::server::Server;
use crate::source::Environment;
use crate::store_client::Client;
use crate::wire::{Reply, Request};
use cci_admission::Origin;
use cci_mem::descriptors;
use std::ffi::OsString;
use std::io::{Read, Write};
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

/// What three ranks send to the store, and a stranger that has to prove a secret: pieces behind a
/// byte that tells whose, and how long.
///
/// # Panics
///
/// The system has no socket, or the store fails.
pub fn store(bytes: &[u8]) {
    drop(answers(bytes));
}

/// What the store has sent to each of them that has not ended.
fn answers(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let secret = Secret::from_bytes(&[7; 32]).expect("memory");
    let mut server = Server::new(RANKS, Some(secret)).expect("a descriptor");
    let mut ends: Vec<Option<UnixStream>> = Vec::new();
    for rank in 0..RANKS {
        let (ours, theirs) = descriptors::stream_pair().expect("a socket");
        theirs.set_nonblocking(true).expect("a socket");
        server.adopt(ours, rank, Local { rank, size: RANKS, processors: 1 }).expect("a descriptor");
        ends.push(Some(theirs));
    }
    let (ours, stranger) = descriptors::stream_pair().expect("a socket");
    stranger.set_nonblocking(true).expect("a socket");
    server.meet(ours.into(), Origin::Here);
    ends.push(Some(stranger));
    while let Some((first, rest)) = bytes.split_first() {
        let end = &mut ends[usize::from(first & 3)];
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
    let answers = ends.iter_mut().map(|end| end.as_mut().map(received).unwrap_or_default()).collect();
    drop(ends);
    server.progress().expect("a descriptor");
    answers
}

/// What has come by now.
fn received(end: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // It ends in an error where the store has not closed it.
    let _ = end.read_to_end(&mut bytes);
    bytes
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

/// What ranks of an MPI send to the process manager that a launcher is: pieces behind a byte that
/// tells whose, and how long; an empty one is the end of that rank. The last rank is none of the
/// job.
pub fn manager(mut bytes: &[u8]) {
    let seats = [0, 0, 1].map(|host| Seat { host, program: 0 });
    let mut manager = ProcessManager::new("job", seats.to_vec()).traced();
    let mut is_closed = [false; RANKS as usize];
    while let Some((first, rest)) = bytes.split_first() {
        let (piece, rest) = rest.split_at(usize::from(first >> 2).min(rest.len()));
        let rank = u32::from(first & 3);
        bytes = rest;
        if piece.is_empty() {
            manager.handle_gone(rank);
        } else {
            manager.handle_bytes(rank, piece);
            manager.advance(|_| true);
        }
        check(&mut manager, &mut is_closed);
    }
    (0..RANKS).for_each(|rank| manager.handle_gone(rank));
    check(&mut manager, &mut is_closed);
    assert!((0..RANKS).all(|rank| !manager.is_behind(rank)));
}

/// A rank whose connection is closed gets nothing more, and whoever reads the output of the job
/// gets text.
fn check(manager: &mut ProcessManager, is_closed: &mut [bool; RANKS as usize]) {
    let is_text = |text: &str| !text.contains(char::is_control);
    while let Some(event) = manager.poll_event() {
        match event {
            ManagerEvent::Answer { rank, bytes } => assert!(!is_closed[rank as usize] && !bytes.is_empty()),
            ManagerEvent::Closed { rank, why } => {
                assert!(is_text(&why) && !std::mem::replace(&mut is_closed[rank as usize], true));
            }
            ManagerEvent::Aborted { rank, why, .. } => assert!(rank < RANKS && why.len() <= 200 && is_text(&why)),
            ManagerEvent::Report(text) | ManagerEvent::Line(text) => assert!(is_text(&text)),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Key, Refusal};

    /// The frames that ranks and the stranger get for a seed.
    fn replies(name: &str) -> Vec<Vec<Reply>> {
        let path = format!("{}/../../fuzz/corpus/job_store/{name}", env!("CARGO_MANIFEST_DIR"));
        let frames = |bytes: Vec<u8>| {
            let (mut rest, mut frames) = (&bytes[..], Vec::new());
            while let Some((length, behind)) = rest.split_first_chunk() {
                let (frame, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
                frames.push(Reply::parse(frame).expect("a reply"));
                rest = behind;
            }
            frames
        };
        answers(&std::fs::read(path).expect("a seed")).into_iter().map(frames).collect()
    }

    /// Seeds of another version of the protocol reach nothing of the store.
    #[test]
    fn seeds_of_the_store_get_the_answers_of_the_store() {
        let is_welcome = |reply: &Reply| matches!(reply, Reply::Welcome(welcome) if welcome.key != Key::None);
        let all = replies("exchange");
        for rank in &all[..3] {
            assert!(is_welcome(&rank[0]));
            assert_eq!(rank[1..], [Reply::Values(vec![b"place".to_vec(); 3])]);
        }
        assert!(matches!(all[3][..], [Reply::Challenge(_)]));
        assert_eq!(replies("gone")[0][1..], [Reply::Refused(Refusal::Gone, vec![1])]);
        let all = replies("look-up");
        assert_eq!((&all[0][1..], &all[1][1..]), (&[Reply::Value(b"value".to_vec())][..], &[Reply::Done][..]));
        // The second HELLO of a rank has its connection closed.
        assert!(matches!(&replies("twice")[0][..], [welcome] if is_welcome(welcome)));
    }

    #[test]
    fn seeds_of_frames_are_of_this_version() {
        let read = |name: &str| {
            let path = format!("{}/../../fuzz/corpus/job_frame/{name}", env!("CARGO_MANIFEST_DIR"));
            std::fs::read(path).expect("a seed")
        };
        for name in ["kind-2", "kind-2-proof"] {
            assert!(matches!(Request::parse(&read(name)), Some(Request::Hello(_))), "{name}");
        }
        assert!(matches!(Reply::parse(&read("kind-1")), Some(Reply::Challenge(_))));
        let key = |name| match Reply::parse(&read(name)) {
            Some(Reply::Welcome(welcome)) => welcome.key,
            other => panic!("{name}: {other:?}"),
        };
        assert!(matches!(key("kind-3"), Key::Secret(_)) && matches!(key("kind-3-in-clear"), Key::Plain(_)));
        assert!(matches!(key("kind-3-proof"), Key::Share(_)));
    }
}
