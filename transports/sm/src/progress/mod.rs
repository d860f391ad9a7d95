//! What calls do beside sending: which lanes they poll, the OS handle, the clock, and what others
//! may see.

mod active;
pub(crate) mod gauges;
pub(crate) mod poll;
mod readiness;
mod timers;
