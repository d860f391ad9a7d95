//! What the engine keeps for strangers: requests, and replies that need no connection.

pub(super) mod admission;
pub(super) mod handshake_limit;
pub(super) mod reply;
pub(super) mod reply_limit;
