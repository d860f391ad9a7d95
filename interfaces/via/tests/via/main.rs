//! The VI Architecture over each transport.

mod conformance;
mod connecting;
mod failures;
mod threads;
mod world;
