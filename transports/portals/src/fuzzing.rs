//! The reader of URIs, for the fuzz targets. No part of the interface.

use crate::wire::Address;

/// A URI, and match bits.
pub fn uri(bytes: &[u8]) {
    if let Some(address) = Address::of_uri(&String::from_utf8_lossy(bytes)) {
        assert_eq!(Address::of_uri(&address.uri()), Some(address));
    }
    if let Some(bits) = bytes.first_chunk() {
        let _ = Address::class(u64::from_le_bytes(*bits));
    }
}
