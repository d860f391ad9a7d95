//! Endpoints of one process that are each other's peers.

mod driven;
mod ends;
mod messages;
mod places;
mod random;
mod remote;
mod world;
