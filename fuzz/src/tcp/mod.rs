//! The receive state of the transport `tcp`, behind the facade: a client that speaks the frames by
//! hand sends to a listening endpoint. Bytes decide what it sends, and where the stream is cut.
//!
//! A stream of frames that are right gives the same events, the same memory and the same answers
//! whether it is sent whole or cut anywhere. After any other stream the lane ends, and the endpoint
//! serves the next client. An endpoint of two streams takes parts too, and any bytes on the second.

mod client;
mod server;
mod stream;

use crate::bytes::Bytes;
use client::{Answer, Client};
use server::{Seen, Server};
use std::collections::BTreeMap;
use stream::{MESSAGES, Stream};

/// Longest pieces of a stream that is cut, bytes, as the first byte decides.
const PIECES: [usize; 4] = [1, 7, 256, 16 << 10];
/// First bytes from this one on: the endpoint has two streams.
const TAKES_PARTS: u8 = 0xf0;
/// Pieces of a stream, of which the last is what is left.
const MOST_PIECES: usize = 1000;

/// What a stream has caused.
#[derive(Debug, PartialEq, Eq)]
struct Effects {
    events: BTreeMap<Option<u64>, Vec<Seen>>,
    memory: Vec<u8>,
    answers: BTreeMap<u32, Answer>,
}

/// Any bytes: the frames that a client sends, and how its stream is cut.
///
/// # Panics
///
/// When the endpoint breaks a promise.
pub fn tcp(bytes: &[u8]) {
    let mut decisions = Bytes::new(bytes);
    let options = decisions.byte();
    let longest = PIECES[usize::from(options >> 1) % PIECES.len()];
    let takes_parts = options >= TAKES_PARTS;
    if options & 1 == 0 {
        let cut = right_frames(bytes, longest, takes_parts);
        assert_eq!(
            right_frames(bytes, usize::MAX, takes_parts),
            cut,
            "a stream that is sent whole, and one that is cut"
        );
    } else {
        any_frames(bytes, longest, takes_parts);
    }
}

/// The lengths of the pieces of a stream: the bytes decide them too.
fn pieces(bytes: &[u8], longest: usize) -> impl Iterator<Item = usize> + '_ {
    let lengths = bytes.iter().cycle().map(move |byte| 1 + usize::from(*byte) * longest / 256);
    let is_cut = longest < usize::MAX;
    lengths.take(if is_cut { MOST_PIECES } else { 0 })
}

fn right_frames(bytes: &[u8], longest: usize, takes_parts: bool) -> Effects {
    let (mut server, mut client) = connected(takes_parts);
    let stream = Stream::right(&mut after_options(bytes), server.names(&client), takes_parts);
    client.send(&mut server, &stream.bytes, pieces(bytes, longest));
    client.until_answered(&mut server, stream.results);
    client.end(&mut server);
    let mut answers = client.answers();
    // Of a connection that ends meanwhile, they may have been late.
    stream.unsure.iter().for_each(|operation| drop(answers.remove(operation)));
    Effects { events: server.events(), memory: server.memory(), answers }
}

fn any_frames(bytes: &[u8], longest: usize, takes_parts: bool) {
    let (mut server, mut client) = connected(takes_parts);
    let stream = Stream::any(&mut after_options(bytes), server.names(&client), takes_parts);
    if takes_parts {
        // First half of it on a further stream.
        let (there, here) = stream.bytes.split_at(stream.bytes.len() / 2);
        let mut further = client.join(&mut server);
        further.send(&mut server, there, pieces(bytes, longest));
        client.send(&mut server, here, pieces(bytes, longest));
        further.end(&mut server);
    } else {
        client.send(&mut server, &stream.bytes, pieces(bytes, longest));
    }
    client.end(&mut server);
    drop(client);
    let mut next = Client::connect(&mut server);
    let greeting = Stream::greeting(server.names(&next));
    next.send(&mut server, &greeting.bytes, pieces(&[], usize::MAX));
    next.end(&mut server);
    let is_greeting = |seen: &Seen| matches!(seen, Seen::Message(bytes) if bytes == stream::GREETING);
    assert!(server.events().values().flatten().any(is_greeting), "the endpoint does not serve the next client");
}

fn connected(takes_parts: bool) -> (Server, Client) {
    let mut server = Server::open(takes_parts);
    let client = Client::connect(&mut server);
    assert!(client.grants() >= MESSAGES, "{} grants", client.grants());
    (server, client)
}

fn after_options(bytes: &[u8]) -> Bytes<'_> {
    Bytes::new(bytes.get(1..).unwrap_or_default())
}
