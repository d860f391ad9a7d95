//! The readers of what strangers send, for the fuzz targets. No part of the interface.

use crate::attributes::MAX_DISCRIMINATOR;
use crate::rendezvous::{Answer, parse_ask, read_frame};
use crate::wire::{self, HEADER, Header};
use std::io::{ErrorKind, Read};

/// A stream that does not block, in pieces: between two of them nothing is there.
struct Pieces<'a> {
    rest: &'a [u8],
    longest: usize,
    is_empty: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        self.is_empty = !self.is_empty;
        if self.is_empty {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = target.len().min(self.longest);
        (&self.rest[..self.rest.len().min(count)]).read(target).inspect(|count| self.rest = &self.rest[*count..])
    }
}

/// A stream of the rendezvous: the first byte is the longest piece that arrives at once.
pub fn rendezvous(bytes: &[u8]) {
    let Some((longest, stream)) = bytes.split_first() else { return };
    let mut stream = Pieces { rest: stream, longest: usize::from(*longest).max(1), is_empty: false };
    let mut buffer = Vec::new();
    while let Ok(frame) = read_frame(&mut stream, &mut buffer) {
        let Some(frame) = frame else { continue };
        assert!(!frame.is_empty(), "a frame of nothing");
        buffer.clear();
        if let Some((.., address, _)) = parse_ask(&frame) {
            assert!((1..=MAX_DISCRIMINATOR).contains(&address.discriminator.len()), "no program has room for it");
        }
        if let Some(answer) = Answer::parse(&frame) {
            assert!(Answer::parse(&answer.emit()).is_some(), "an answer that is read and not written");
        }
    }
}

/// A message between two VIs, and the payload of a request for a connection.
pub fn message(bytes: &[u8]) {
    if let Some(header) = bytes.first_chunk::<HEADER>() {
        let parsed = Header::parse(header);
        assert_eq!(Header::parse(&parsed.emit()), parsed);
    }
    if let Some(number) = wire::ticket_of(bytes) {
        assert_eq!(wire::ticket(number), bytes);
    }
}
