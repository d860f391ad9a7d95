//! What is asked for.

use crate::device::Device;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct PortalsOptions {
    /// The device of both ends.
    pub device: Device,
    /// Time for each figure.
    pub time: Duration,
    /// Pairs of processes that the time is shared out to, for each mode.
    pub launches: u32,
    /// Whether accelerated interfaces are measured too.
    pub has_accelerated: bool,
    /// A library of Portals: CCI over it is measured beside native puts.
    pub over: Option<String>,
}
