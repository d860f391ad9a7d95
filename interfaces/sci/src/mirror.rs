//! Windows to segments of other hosts: private memory that the library keeps equal by RMA
//! (`docs/design/sci-mirror.md`).

mod calls;
mod cast;
mod changes;
#[allow(unsafe_code)]
mod lines;
mod memory;
mod pass;
mod patch;
mod reads;
mod staging;
mod state;
#[allow(unsafe_code)]
mod sys;
mod thread;

pub(crate) use calls::Looks;
pub(crate) use memory::{Mirror, Sent};
pub(crate) use patch::{Groups, apply};
pub(crate) use state::Mirrors;
