//! Recovery: what was acknowledged, what was lost, and what is due (RFC 9002, RFC 8899).

pub(super) mod ack;
pub(super) mod mtu;
pub(super) mod network_reports;
pub(super) mod timeout;
