//! The readers of what partners send, for the fuzz targets. No part of the interface.

use crate::wire::{self, LONGEST};

/// A message between two endpoints.
pub fn message(bytes: &[u8]) {
    let eager = wire::parse_eager(bytes);
    let head = wire::parse(&bytes[..bytes.len().min(LONGEST)], bytes.len());
    if let Some((header, data)) = eager {
        assert_eq!(head.map(|head| (head.header, head.from)), Some((header, bytes.len() - data.len())));
    }
    let Some(head) = head else { return };
    assert!(head.from <= bytes.len());
    let mut parts = Vec::new();
    if wire::parse_parts(&bytes[head.from..], &head.header, &mut parts) {
        assert_eq!(parts.iter().map(|part| part.len).sum::<u64>(), u64::from(head.header.word));
    }
    let _ = wire::parse_parts(bytes, &head.header, &mut parts);
}
