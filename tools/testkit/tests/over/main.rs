//! The transports over the API of a library, between processes.

#![forbid(unsafe_code)]

mod common;
mod mx;
mod portals;
