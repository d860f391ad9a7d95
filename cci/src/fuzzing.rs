//! The reader of configuration files, for the fuzz targets. No part of the interface.

/// A configuration file, and the value of `CCI_CTP`. No device is tried.
pub fn configuration(bytes: &[u8]) {
    crate::config::check_bytes(bytes);
}
