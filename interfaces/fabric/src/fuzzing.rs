//! The readers of what partners send and of addresses, for the fuzz targets. No part of the
//! interface.

use crate::record::Record;
use crate::wire::{self, Front, Head};

/// A message between two endpoints: what is read is written again as it came.
pub fn message(bytes: &[u8]) {
    let Some((header, head)) = wire::parse(bytes, bytes.len()) else { return };
    let mut again = Vec::new();
    match head {
        Head::Eager { number, data, from } => {
            again.extend(Front::eager(header, number, data).as_bytes());
            again.extend(&bytes[from..]);
        }
        Head::Offer { length, number, data, pieces } => {
            assert_eq!(pieces.iter().map(|piece| piece.len).sum::<u64>(), length);
            let pieces = pieces.iter().map(|piece| (piece.len, &piece.handle));
            wire::emit_offer(header, (length, number, data), pieces, &mut again);
        }
        Head::Done { numbers, count, .. } => wire::emit_done(header, &numbers[..count], &mut again),
        Head::Given { memory, .. } => wire::emit_given(header, memory.as_ref(), &mut again),
        Head::Written { len, .. } => {
            again.extend(header.emit());
            again.extend(len.to_le_bytes());
        }
        Head::Ident(_) | Head::Credit | Head::Ask { .. } => again.extend(header.emit()),
    }
    assert_eq!(again, bytes);
}

/// A record, or the URI of one: what is kept of a URI makes the same record again.
pub fn record(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let of_bytes = Record::from_bytes(bytes).and_then(|record| record.uri());
    for uri in of_bytes.iter().map(String::as_str).chain([&*text]) {
        let Some(record) = Record::of_uri(uri, 1) else { continue };
        assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
        let again = record.uri().expect("a record has a URI");
        assert_eq!(Record::of_uri(&again, 1), Some(record));
    }
}
