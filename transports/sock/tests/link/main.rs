//! The link over the loop-back interface, and in network name spaces where this user may make them.

mod allocation;
mod connected;
mod ends;
mod exchange;
mod groups;
mod keys;
mod namespace;
mod outward;
mod readiness;
mod refusal;
#[allow(unsafe_code)]
mod sys;
