//! How lanes and connections begin and end.

mod connect;
mod dial;
mod hello;
mod listen;
mod teardown;
