//! The readers of what partners send, for the fuzz targets. No part of the interface.

use crate::engine::fuzzing::{arguments_of, assembly};
use crate::mapping::Arrived;
use crate::message::Payload;
use crate::wire::{self, HEADER, Header, Hello, MAX_ARGUMENTS, RemoteSegment, Span};

/// A message: header, arguments, and what the kind adds.
pub fn message(bytes: &[u8]) {
    let _ = Span::parse(bytes);
    let _ = RemoteSegment::parse(bytes);
    let _ = Hello::parse(bytes).map(|hello| assert!(hello.name.len() <= bytes.len()));
    let Some(header) = bytes.first_chunk::<HEADER>().and_then(|header| Header::parse(*header)) else { return };
    assert_eq!(Header::parse(header.emit()), Some(header));
    let mut arguments = [0; MAX_ARGUMENTS];
    if let Some((short, words)) = Header::of_short(bytes) {
        assert_eq!((short, wire::arguments(words, &mut arguments)), (header, usize::from(header.count)));
    }
    let message = Arrived(Payload::of_bytes(bytes));
    let Ok((count, rest)) = arguments_of(header, message, &mut arguments) else { return };
    assert!(count <= MAX_ARGUMENTS && rest.len() + HEADER + 4 * count == bytes.len());
    // A message in parts: the first one, and all later ones of these bytes.
    let Ok(mut whole) = assembly(header, arguments, rest, bytes.len(), None) else { return };
    for part in bytes.chunks(7) {
        match whole.add(Payload::of_bytes(part)) {
            Ok(false) => {}
            Ok(true) | Err(_) => break,
        }
    }
}
