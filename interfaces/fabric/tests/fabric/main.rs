//! Endpoints of one process that are each other's peers.

mod messages;
mod random;
mod remote;
mod world;
