//! Tests of CCI that do not depend on a transport, and what the tests of transports and interfaces
//! stand on. Which transports there are is said by the features that a test asks of `libcci`.
//!
//! [`conformance!`] turns every rule of the API into one `#[test]` for a device; it is in the
//! feature `suite`. [`World`] drives several endpoints of one process from one thread. [`Peer`] is
//! another process of the same test, playing a role of the program `cci-peer`. [`sm_raw`] speaks
//! the protocol of the transport `sm` byte by byte, to speak it wrongly.

#![deny(unsafe_code)]

pub mod allocations;
mod built;
pub mod idle;
pub mod installed;
pub mod memory;
pub mod namespace;
mod peer;
pub mod process;
mod run_folder;
pub mod sealed;
pub mod sleepers;
pub mod sm_raw;
#[cfg(feature = "suite")]
pub mod suite;
pub mod sys;
mod world;

pub use built::{build, build_example};
pub use peer::{Peer, open_pidfd};
pub use run_folder::run_folder;
pub use world::{
    LIMIT, World, device_of, drain, local_device, most, open, open_with, pattern, pattern_into, readable,
    sealed_device_of, sm_device, while_polled,
};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets the tests of one binary run one after the other: those that count descriptors or measure
/// time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
