//! The readers of what the other end of a measurement sends, for the fuzz targets. No part of the
//! interface.

use crate::measure::control::{Answer, Command, Hello, parse};

/// A request, and messages of the control connection.
pub fn control(bytes: &[u8]) {
    let _ = Hello::parse(bytes);
    let _ = (parse::<Answer>(bytes), parse::<Command>(bytes));
    let _ = crate::peers::parse_list(&String::from_utf8_lossy(bytes));
}
