//! The readers of URIs, match bits and messages, for the fuzz targets. No part of the interface.

use crate::wire::{Own, Place, bits, header, is_data};

/// A URI.
pub fn uri(bytes: &[u8]) {
    if let Some(place) = Place::of_uri(&String::from_utf8_lossy(bytes)) {
        assert_eq!(Place::of_uri(&place.uri()), Some(place));
    }
}

/// Match bits, and what the networks of two endpoints send each other.
pub fn message(bytes: &[u8]) {
    if let Some(word) = bytes.first_chunk().map(|word| u64::from_le_bytes(*word)) {
        let (of, class) = header(word);
        let _ = (bits(of, class), is_data(word));
    }
    if let Some(own) = Own::parse(bytes) {
        assert_eq!(Own::parse(&own.emit()), Some(own));
    }
}
