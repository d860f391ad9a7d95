//! How a host is opened.

use crate::nodes::Nodes;
use cci::Device;
use std::path::PathBuf;

/// How a host is opened.
///
/// # Example
///
/// ```
/// use cci_sci::{Nodes, Options};
///
/// let options = Options::new().nodes(Nodes::parse("4 localhost\n8 localhost\n")?.at(8)?);
/// assert!(options.device.is_none());
/// # Ok::<(), cci_sci::NotOpened>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The node table; `None`: that of the environment.
    pub nodes: Option<Nodes>,
    /// The device of CCI; `None`: the default one.
    pub device: Option<Device>,
    /// The device file whose memory segments lie in; `None`: the one that `SCI_MEMORY` names, or
    /// memory of the library.
    pub memory: Option<PathBuf>,
    /// Whether quiet mirror windows are write-protected, where the system can. Otherwise they are
    /// compared at growing intervals.
    pub protect: bool,
}

impl Options {
    /// Returns the defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: None, device: None, memory: None, protect: true }
    }

    /// Sets the node table.
    #[must_use]
    pub fn nodes(mut self, nodes: Nodes) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// Sets the device of CCI. Windows are shared where its transport maps memory of peers, and
    /// mirrors elsewhere.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = Some(device);
        self
    }

    /// Sets the device file whose memory segments lie in: `/dev/dax0.0`, or a plain file. Nodes
    /// that have the same file and the same table connect without CCI.
    #[must_use]
    pub fn memory(mut self, path: impl Into<PathBuf>) -> Self {
        self.memory = Some(path.into());
        self
    }

    /// Sets whether quiet mirror windows are write-protected.
    #[must_use]
    pub fn protect(mut self, protect: bool) -> Self {
        self.protect = protect;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
