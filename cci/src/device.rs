//! Devices.

use crate::names::SharedNames;
use cci_transport::Check;
use std::fmt;

/// Where a device sits on the PCI bus.
///
/// # Example
///
/// ```
/// use cci::Pci;
///
/// fn shown(pci: Pci) -> String {
///     format!("{:04x}:{:02x}:{:02x}.{}", pci.domain, pci.bus, pci.dev, pci.func)
/// }
/// assert_eq!(shown(Pci { domain: 0, bus: 0x3b, dev: 0, func: 1 }), "0000:3b:00.1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pci {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device.
    pub dev: u32,
    /// Function.
    pub func: u32,
}

/// A device: something that endpoints are opened on.
///
/// A plain description that a program may clone; no endpoint depends on it once it is open.
///
/// # Example
///
/// ```
/// use cci::{Context, Device};
///
/// let context = Context::new()?;
/// let usable: Vec<&Device> = context.devices().iter().filter(|device| device.up).collect();
/// assert!(usable.iter().all(|device| device.max_send_size > 0));
/// # Ok::<(), cci::OpenError>(())
/// ```
#[derive(Clone)]
pub struct Device {
    /// Its name: the section of the configuration file, or one made from the transport.
    pub name: String,
    /// Name of its transport.
    pub transport: String,
    /// Whether endpoints can be opened on it.
    pub up: bool,
    /// Why it is, or is not, usable, as a sentence.
    pub reason: String,
    /// The transport's keys, in file order.
    pub arguments: Vec<(String, String)>,
    /// Largest message, bytes.
    pub max_send_size: u32,
    /// Rate in bit/s; 0 = not known.
    pub rate: u64,
    /// Where it sits, if on a bus.
    pub pci: Option<Pci>,
    /// 0 to 100, 100 first.
    pub priority: u32,
    /// Whether the configuration makes it the default.
    pub is_default: bool,
    /// The names that endpoints on it connect to, those of its [`crate::Context`].
    pub names: SharedNames,
}

/// Shows no secret.
impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, transport, up, reason, arguments, max_send_size, rate, pci, priority, is_default, names } =
            self;
        let check = |key| crate::transports::driver(transport)?.key(key).map(|key| key.check);
        let shown = arguments.iter().map(|(key, value)| (key, check(key).unwrap_or(Check::Text).show(value)));
        f.debug_struct("Device")
            .field("name", name)
            .field("transport", transport)
            .field("up", up)
            .field("reason", reason)
            .field("arguments", &shown.collect::<Vec<_>>())
            .field("max_send_size", max_send_size)
            .field("rate", rate)
            .field("pci", pci)
            .field("priority", priority)
            .field("is_default", is_default)
            .field("names", names)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_secret_is_not_shown() {
        let text = |key: &str| {
            let mut device = crate::Context::new().expect("devices").default_device().expect("auto").clone();
            device.arguments = vec![(key.into(), "a".repeat(64))];
            format!("{device:?}")
        };
        let (secret, port) = (text("secret"), text("port"));
        assert!(secret.contains("a secret of 64 characters") && !secret.contains("aaaa"), "{secret}");
        assert!(port.contains("aaaa"), "{port}");
    }
}
