//! The reader of URIs, for the fuzz targets. No part of the interface.

use crate::setup::host_and_port;

/// A URI.
pub fn uri(bytes: &[u8]) {
    if let Some(at) = host_and_port(&String::from_utf8_lossy(bytes)) {
        let _ = at.literal();
    }
}
