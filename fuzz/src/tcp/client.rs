//! A client that speaks the frames by hand.

use super::server::{CONNECTIONS, Server};
use super::stream::{HEADER, Kind, connect, hello};
use rustix::net::sockopt::set_socket_linger;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long the endpoint may take for what it must do.
const LIMIT: Duration = Duration::from_secs(20);
/// Bytes of a HELLO.
const HELLO: usize = 64;

/// What has come for an operation: bytes, and the body of its RESULT.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    bytes: Vec<u8>,
    result: Vec<u8>,
}

pub(super) struct Client {
    stream: TcpStream,
    /// What has come and is no whole frame.
    bytes: Vec<u8>,
    has_greeted: bool,
    /// What the endpoint offers further streams.
    offer: [u8; 16],
    has_ended: bool,
    /// The endpoint's numbers of the connections, which were asked for in this order.
    connections: BTreeMap<u32, u32>,
    answers: BTreeMap<u32, Answer>,
    results: usize,
    grants: u32,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("a whole frame"))
}

impl Client {
    /// A client with a connection of each attribute.
    pub(super) fn connect(server: &mut Server) -> Self {
        let stream = TcpStream::connect(server.address()).expect("a stream");
        stream.set_nonblocking(true).expect("a stream");
        stream.set_nodelay(true).expect("a stream");
        // So many inputs would use up all ports, which are not free for a minute otherwise.
        set_socket_linger(&stream, Some(Duration::ZERO)).expect("a stream");
        let mut client = Self {
            stream,
            bytes: Vec::new(),
            has_greeted: false,
            offer: [0; 16],
            has_ended: false,
            connections: BTreeMap::new(),
            answers: BTreeMap::new(),
            results: 0,
            grants: 0,
        };
        server.expect_client();
        client.write(server, &hello([0; 16], 0));
        (0..CONNECTIONS).for_each(|number| client.write(server, &connect(number)));
        client.until(server, "connections", |client| client.connections.len() == CONNECTIONS && client.grants > 0);
        client
    }

    /// A further stream of the lane, with no frames of its own.
    pub(super) fn join(&self, server: &mut Server) -> Self {
        let stream = TcpStream::connect(server.address()).expect("a stream");
        stream.set_nonblocking(true).expect("a stream");
        set_socket_linger(&stream, Some(Duration::ZERO)).expect("a stream");
        let connections = self.connections.clone();
        let (bytes, answers) = (Vec::new(), BTreeMap::new());
        let (has_greeted, has_ended, results, grants) = (false, false, 0, 0);
        let mut further =
            Self { stream, bytes, has_greeted, offer: [0; 16], has_ended, connections, answers, results, grants };
        further.write(server, &hello(self.offer, 1));
        further.until(server, "a HELLO", |further| further.has_greeted);
        further
    }

    /// The endpoint's numbers of the connections.
    pub(super) fn connections(&self) -> [u32; CONNECTIONS] {
        std::array::from_fn(|number| self.connections[&(number as u32)])
    }

    pub(super) fn grants(&self) -> u32 {
        self.grants
    }

    /// Sends a stream, the first of it in pieces of these lengths. The endpoint makes calls after
    /// each.
    pub(super) fn send(&mut self, server: &mut Server, mut bytes: &[u8], pieces: impl Iterator<Item = usize>) {
        for length in pieces {
            let (piece, rest) = bytes.split_at(length.min(bytes.len()));
            self.write(server, piece);
            server.poll();
            bytes = rest;
            if bytes.is_empty() {
                return;
            }
        }
        self.write(server, bytes);
    }

    fn write(&mut self, server: &mut Server, mut bytes: &[u8]) {
        self.until(server, "room", |client| {
            match client.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) => client.has_ended |= error.kind() != ErrorKind::WouldBlock,
            }
            bytes.is_empty() || client.has_ended
        });
    }

    /// Waits until so many operations have ended.
    pub(super) fn until_answered(&mut self, server: &mut Server, results: usize) {
        self.until(server, "the end of all operations", |client| client.results >= results);
        assert_eq!(self.results, results, "as many results as operations");
    }

    /// Ends the stream, and waits until the endpoint has done so too.
    pub(super) fn end(&mut self, server: &mut Server) {
        // It may have ended already.
        let _ = self.stream.shutdown(Shutdown::Write);
        self.until(server, "the end of the stream", |client| client.has_ended);
    }

    pub(super) fn answers(&mut self) -> BTreeMap<u32, Answer> {
        std::mem::take(&mut self.answers)
    }

    /// Has the endpoint make calls until `done`.
    fn until(&mut self, server: &mut Server, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
            server.poll();
            self.read();
        }
    }

    fn read(&mut self) {
        let mut bytes = [0; 16 << 10];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => self.has_ended = true,
                Ok(count) => {
                    self.bytes.extend_from_slice(&bytes[..count]);
                    continue;
                }
                Err(error) => self.has_ended |= error.kind() != ErrorKind::WouldBlock,
            }
            return self.take_frames();
        }
    }

    fn take_frames(&mut self) {
        let mut at = 0;
        if !self.has_greeted && self.bytes.len() >= HELLO {
            (self.has_greeted, at) = (true, HELLO);
            self.offer.copy_from_slice(&self.bytes[32..48]);
        }
        while self.has_greeted && self.bytes.len() >= at + HEADER {
            let end = at + HEADER + word(&self.bytes, at) as usize;
            if self.bytes.len() < end {
                break;
            }
            let frame = self.bytes[at..end].to_vec();
            self.on_frame(&frame);
            at = end;
        }
        self.bytes.drain(..at);
    }

    fn on_frame(&mut self, frame: &[u8]) {
        let (kind, connection, body) = (frame[4], word(frame, 8), &frame[HEADER..]);
        if kind == Kind::Accept as u8 {
            self.connections.insert(connection, word(body, 0));
        } else if kind == Kind::Grant as u8 {
            self.grants = word(body, 0);
        } else if kind == Kind::Answer as u8 {
            self.answers.entry(word(body, 0)).or_default().bytes.extend_from_slice(&body[4..]);
        } else if kind == Kind::AnswerPart as u8 {
            let position = word(body, 8) as usize;
            let bytes = &mut self.answers.entry(word(body, 0)).or_default().bytes;
            bytes.resize(bytes.len().max(position + body.len() - 16), 0);
            bytes[position..position + body.len() - 16].copy_from_slice(&body[16..]);
        } else if kind == Kind::Result as u8 {
            self.results += 1;
            self.answers.entry(word(body, 0)).or_default().result.extend_from_slice(&body[4..]);
        }
    }
}
