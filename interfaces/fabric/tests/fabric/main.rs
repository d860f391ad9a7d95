//! Endpoints of one process that are each other's peers.

mod driven;
mod ends;
mod messages;
mod random;
mod remote;
mod world;
