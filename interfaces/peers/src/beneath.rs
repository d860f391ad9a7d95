//! The device of a library that may lie beneath CCI.

use cci::{Context, Device, OpenError};
use std::fmt;

/// Why a library has no device.
///
/// # Example
///
/// ```
/// assert!(cci_peers::NoDevice::Cycle.to_string().contains("another library"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum NoDevice {
    /// The configuration cannot be read, or there is no device.
    Opening(OpenError),
    /// No device has the name that the variable gives.
    Unknown(String),
    /// The variable names a device that uses another library, which may be this one.
    Cycle,
}

impl fmt::Display for NoDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opening(why) => why.fmt(f),
            Self::Unknown(name) => write!(f, "no device is named {name}; name one that cci info lists"),
            Self::Cycle => f.write_str("the device uses another library in its turn; name another one, such as sm"),
        }
    }
}

impl std::error::Error for NoDevice {}

impl From<OpenError> for NoDevice {
    fn from(why: OpenError) -> Self {
        Self::Opening(why)
    }
}

/// Returns the device of a library that may lie beneath CCI, and the context that it is of: the one
/// that the environment variable `variable` names, in the configuration or among those that are
/// found, or the default one. A device that uses another library is never it, because that library
/// may be this one.
///
/// # Errors
///
/// The variable names no device, or one that uses another library; the configuration cannot be
/// read.
///
/// # Example
///
/// ```
/// let (_, device) = cci_peers::device_beneath("CCI_EXAMPLE_DEVICE")?;
/// assert!(!device.uses_library());
/// # Ok::<(), cci_peers::NoDevice>(())
/// ```
pub fn device_beneath(variable: &str) -> Result<(Context, Device), NoDevice> {
    let configured = Context::new()?;
    if let Some(name) = std::env::var(variable).ok().filter(|name| !name.is_empty()) {
        let found = Context::found()?;
        let of_name = configured.devices().iter().find(|device| device.name == name);
        // Devices that are found have made-up names, such as sm0.
        let found = found.devices().iter().find(|device| device.name == name || device.transport == name);
        let device = of_name.or(found).cloned().ok_or(NoDevice::Unknown(name))?;
        return if device.uses_library() { Err(NoDevice::Cycle) } else { Ok((configured, device)) };
    }
    let own = configured.default_device().ok().filter(|device| !device.uses_library()).cloned();
    if let Some(device) = own {
        return Ok((configured, device));
    }
    let found = Context::found()?;
    let device = found.default_device()?.clone();
    Ok((found, device))
}
