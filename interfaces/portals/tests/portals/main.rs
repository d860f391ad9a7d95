//! Portals 3.3 over each transport.

mod accelerated;
mod ends;
mod events;
mod faults;
mod lists;
mod operations;
mod places;
mod sealed;
mod world;
