//! What an endpoint is to be.

use crate::network::{LinkSettings, Processor};

/// What the keys and the service hint of an endpoint say.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) network: String,
    pub(crate) node: Option<u32>,
    pub(crate) port: Option<u16>,
    pub(crate) seed: Option<u64>,
    pub(crate) mtu: u16,
    /// What the links are like on which the node sends.
    pub(crate) link: LinkSettings,
    /// What the node's processor takes for a frame.
    pub(crate) processor: Processor,
}
