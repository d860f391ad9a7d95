//! How lanes and connections begin and end.

mod connect;
mod dial;
mod hello;
pub(crate) mod listen;
mod teardown;
