//! Sending: from the call of the program to the frame that leaves.

pub(super) mod departure;
pub(super) mod fast_path;
pub(super) mod frame;
pub(super) mod message;
pub(super) mod new_frame;
pub(super) mod post;
pub(super) mod rma;
pub(super) mod schedule;
pub(super) mod seal;
pub(super) mod transmit;
