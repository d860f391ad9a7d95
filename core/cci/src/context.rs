//! The devices of this host.

use crate::config;
use crate::device::Device;
use cci_transport::OpenError;
use std::path::Path;

/// The devices of this host, as configured or found. Every endpoint is opened on one of them.
#[derive(Debug)]
pub struct Context {
    devices: Vec<Device>,
}

impl Context {
    /// Reads the file that `CCI_CONFIG` names; without one, finds the devices.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has a mistake; the sentence names file, line and nearest valid key.
    pub fn new() -> Result<Self, OpenError> {
        match std::env::var_os("CCI_CONFIG").filter(|name| !name.is_empty()) {
            Some(name) => Self::from_file(Path::new(&name)),
            None => Self::from_text(None),
        }
    }

    /// Reads this configuration file.
    ///
    /// # Errors
    ///
    /// As [`Context::new`].
    pub fn from_file(path: &Path) -> Result<Self, OpenError> {
        let text = std::fs::read_to_string(path).map_err(|source| {
            OpenError::system(format!("cannot read the configuration file {}", path.display()), source)
        })?;
        Self::from_text(Some((&path.display().to_string(), &text)))
    }

    fn from_text(file: Option<(&str, &str)>) -> Result<Self, OpenError> {
        let selection = std::env::var("CCI_CTP").unwrap_or_default();
        Ok(Self { devices: config::devices(file, &selection)? })
    }

    /// The devices: those up first, then the default, then by priority and rate, descending.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The device for a program that has no preference: the default one, else the first, if it is up.
    ///
    /// # Errors
    ///
    /// No device is usable.
    pub fn default_device(&self) -> Result<&Device, OpenError> {
        let device = self.devices.iter().find(|device| device.is_default).or_else(|| self.devices.first());
        device.filter(|device| device.up).ok_or_else(|| {
            OpenError::new(cci_proto::Status::NoDev, "no usable device; `cci info` says why each is not")
        })
    }
}
