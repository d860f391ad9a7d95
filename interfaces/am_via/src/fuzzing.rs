//! The readers of what partners send, for the fuzz targets. No part of the interface.

use crate::door::address_of;
use crate::flow::Flow;
use crate::frame::{HEADER, Header, LARGEST_RING, Placed};
use crate::space::Expected;

/// Frames of a channel, one after the other: their credits, and their places in a ring.
pub fn frames(bytes: &[u8]) {
    let (mut flow, mut expected) = (Flow::new(8, 8, 4), Expected::new(LARGEST_RING));
    for frame in bytes.as_chunks::<HEADER>().0 {
        let [word, length] = [[frame[0], frame[1], frame[2], frame[3]], [frame[4], frame[5], frame[6], frame[7]]];
        let placed = Placed::of(u32::from_le_bytes(word));
        let _ = expected.advance(placed.offset, placed.len);
        let _ = expected.advance(u32::from_le_bytes(word), u32::from_le_bytes(length));
        let Some(header) = Header::parse(*frame) else { continue };
        assert_eq!(Header::parse(header.emit()), Some(header));
        let _ = flow.take(header.class);
        if flow.returned(header.back) {
            flow.came(header.class);
        }
        flow.owe(header.back);
        let _ = flow.is_due();
    }
}

/// The name of an endpoint.
pub fn name(bytes: &[u8]) {
    let _ = address_of(&String::from_utf8_lossy(bytes));
}
