//! RMA, atomic operations and large messages.

mod begin;
mod fragment;
mod large;
mod order;
mod serve;

pub(crate) use begin::{local_memory, local_piece};
