//! Shared memory between processes of one user on one host. `docs/design/sm.md` has the protocol.

#![deny(unsafe_code)]

mod clock;
mod descriptors;
mod driver;
mod endpoint;
#[cfg(test)]
mod fixture;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod lane;
mod memory;
mod progress;
mod rma;
mod setup;
mod shortcut;
mod slow_path;
#[allow(unsafe_code)]
mod sys;

pub use driver::DRIVER;
pub use format::layout::MAX_SEND_SIZE;
pub use shortcut::Sm;
