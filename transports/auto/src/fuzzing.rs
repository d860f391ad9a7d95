//! The readers of URIs and of requests, for the fuzz targets. No part of the interface.

use crate::connect::Head;
use crate::uri::{LONGEST, Uri, is_loopback};
use cci_proto::REQUEST_HEAD;

/// A URI: what is read is written again so that it reads the same, as far as it has room.
pub fn uri(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = is_loopback(&text);
    let _ = crate::port::parse(&text);
    let Some(uri) = Uri::parse(&text) else { return };
    for (name, _) in &uri.ways {
        assert!(!uri.rests(name).is_empty());
    }
    let again = uri.write();
    assert!(again.len() <= LONGEST);
}

/// The header of a request for a connection.
pub fn request(bytes: &[u8]) {
    if let Some(bytes) = bytes.first_chunk::<REQUEST_HEAD>()
        && let Some(head) = Head::read(bytes)
    {
        assert_eq!(head.write(), *bytes);
    }
}
