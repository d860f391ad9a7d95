//! The life of lanes and connections: from a Unix socket to a usable lane, requests and answers,
//! the end.

pub(crate) mod connect;
pub(crate) mod handshake;
pub(crate) mod teardown;
