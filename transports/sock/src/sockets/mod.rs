//! The sockets that carry an endpoint's frames: the own one, the connected one, and what they report.

pub(crate) mod connected;
pub(crate) mod receive;
pub(crate) mod reports;
pub(crate) mod transmit;
