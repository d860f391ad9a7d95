//! The VI Architecture over each transport.

mod conformance;
mod connecting;
mod failures;
mod sealed;
mod threads;
mod world;
