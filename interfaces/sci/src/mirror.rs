//! Windows to segments of other hosts: private memory that the library keeps equal by RMA
//! (`docs/design/sci-mirror.md`).

mod calls;
mod cast;
mod changes;
#[cfg(test)]
mod fixture;
#[allow(unsafe_code)]
mod lines;
mod memory;
mod owner;
mod pass;
mod patch;
mod patches;
mod reading;
mod reads;
mod refresh;
mod reread;
mod shadow;
mod staging;
mod state;
#[allow(unsafe_code)]
mod sys;
mod thread;
mod watch;
mod watching;
mod words;

pub(crate) use changes::Change;
#[cfg(test)]
pub(crate) use fixture::connected;
pub(crate) use memory::{Mirror, Sent};
pub(crate) use pass::MOST_BYTES;
pub(crate) use patch::{Groups, apply, apply_watched, emit};
pub(crate) use shadow::Shadow;
pub(crate) use state::Mirrors;
pub(crate) use words::{WORD, mask_before};
