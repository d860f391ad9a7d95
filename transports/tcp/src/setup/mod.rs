//! How lanes and connections begin and end.

pub(crate) mod addresses;
mod connect;
pub(crate) mod dial;
mod hello;
pub(crate) mod listen;
mod sealing;
mod teardown;

pub(crate) use connect::host_and_port;
pub(crate) use dial::{configure, open, pause_after};
pub(crate) use hello::own_hello;
