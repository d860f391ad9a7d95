//! The reader of URIs, for the fuzz targets. No part of the interface.

use crate::address::Uri;

/// A URI.
pub fn uri(bytes: &[u8]) {
    if let Some(uri) = Uri::parse(&String::from_utf8_lossy(bytes)) {
        let _ = uri.at.literal();
    }
}
