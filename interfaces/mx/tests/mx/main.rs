//! Myrinet Express over each transport.

mod connects;
mod credits;
mod faults;
mod handlers;
mod matching;
mod messages;
mod sealed;
mod waits;
mod world;
