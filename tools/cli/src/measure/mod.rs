//! Measurements: what is measured, and the two ends that do it.

mod blocks;
pub(crate) mod client;
pub(crate) mod control;
pub(crate) mod driver;
pub(crate) mod ends;
pub(crate) mod interrupt;
pub(crate) mod local;
pub(crate) mod loops;
pub(crate) mod machine;
pub(crate) mod plan;
pub(crate) mod points;
pub(crate) mod ports;
pub(crate) mod server;
pub(crate) mod usage;
pub(crate) mod virtual_time;
mod visits;
