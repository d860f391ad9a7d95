//! Receiving: from the frame that arrives to the message and the memory.

pub(super) mod context;
pub(super) mod copy_verify;
pub(super) mod data;
pub(super) mod large;
pub(super) mod parts;
pub(super) mod records;
pub(super) mod refill;
pub(super) mod reorder;
pub(super) mod rma;
pub(super) mod sealed;
pub(super) mod slices;
