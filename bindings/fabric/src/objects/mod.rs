//! Objects of libfabric: what C has of each comes first in its memory, and what is ours behind it.

mod address;
mod arguments;
mod counter;
mod domain;
mod endpoint;
mod event;
mod fabric;
mod kinds;
mod memory;
mod message;
mod object;
mod queue;
mod refused;
mod remote;
mod tagged;

pub(crate) use fabric::open as fabric;
