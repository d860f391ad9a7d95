//! The readers of what other processes send, for the fuzz targets. No part of the interface.

pub use crate::shared::fuzzing::{commands, events};

use crate::place::entries;
use crate::wire::{self, Head};

/// A message between two interfaces: what is read is written again as it came.
pub fn message(bytes: &[u8]) {
    let Some((head, len)) = wire::parse(bytes) else { return };
    assert!(len <= bytes.len());
    let mut again = Vec::new();
    match &head {
        Head::Ident { uid, jid } => again.extend(wire::ident(*uid, *jid)),
        Head::Request(request) => request.emit(&mut again),
        Head::Answer(answer) => answer.emit(&mut again),
    }
    assert_eq!(wire::parse(&again).map(|(again, _)| again), Some(head));
    for wanted in [0, 8, u64::MAX] {
        let _ = wire::parse_parts(&bytes[len..], wanted);
        let _ = wire::parse_parts(bytes, wanted);
    }
}

/// What the ranks of a job tell each other: processes and URIs.
pub fn card(bytes: &[u8]) {
    for (_, uri) in entries(bytes) {
        assert!(uri.len() <= 3 * bytes.len());
        let _ = cci_peers::host_of(&uri);
    }
}
