//! Setup: handshakes, requests, and frames for unknown connections.

pub(super) mod answers;
pub(super) mod handshake;
pub(super) mod offer;
pub(super) mod requests;
pub(super) mod strays;
