//! The readers of what other ranks send, for the fuzz targets. No part of the interface.

use crate::frame::Header;
use crate::start::Card;

/// A message between ranks, and what a rank states of its memory.
pub fn message(bytes: &[u8]) {
    if let Some((header, payload)) = Header::parse(bytes) {
        let again = [&header.emit()[..], payload].concat();
        assert_eq!(Header::parse(&again), Some((header, payload)));
    }
    if let Some(card) = Card::parse(bytes) {
        assert_eq!(card.emit().len(), bytes.len() / 8 * 8);
        let _ = card.pieces();
    }
}
