//! Which device a run uses, and how it is opened.

use crate::reach::{no_transport, scope};
use cci::{Context, Scope};
use cci_report::{UserError, while_doing};
use std::path::PathBuf;

/// A key of a device, and its value.
pub type Key = (String, String);

/// The device that is asked for.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Name of the transport; the default device's when absent.
    pub transport: Option<String>,
    /// Keys beyond those of its configuration.
    pub keys: Vec<Key>,
}

/// The shared library that a build puts beside this program, and an installation into `lib` next to
/// `bin`.
pub fn library_beside() -> Option<PathBuf> {
    let directory = std::env::current_exe().ok()?.parent()?.to_owned();
    let beside = ["libcci.so.2", "libcci.so", "libcci_c.so"].map(|name| directory.join(name));
    let installed = directory.join("../lib/libcci.so.2");
    beside.into_iter().chain([installed]).find(|path| path.exists())
}

/// The transport whose clock is virtual.
pub(crate) const VIRTUAL: &str = "sim";

/// The transport whose bare operations are those of a TCP stream.
pub(crate) const STREAMS: &str = "tcp";

/// What is said to those who ask for ends of a virtual network in different programs.
pub(crate) const VIRTUAL_IS_LOCAL: &str = "the network of `sim` is in one process: use --local with --transport sim";

/// A device without keys of a transport of this build whose devices come from a configuration only:
/// to be measured it needs none.
pub(crate) fn without_configuration(transport: &str) -> Option<cci::Device> {
    let driver = cci::driver(transport).filter(|driver| (driver.discover)().is_empty())?;
    let condition = (driver.inspect)(&[]);
    Some(cci::Device {
        name: transport.into(),
        transport: transport.into(),
        up: condition.up,
        reason: condition.reason,
        arguments: Vec::new(),
        max_send_size: condition.max_send_size,
        rate: 0,
        pci: None,
        priority: driver.priority,
        is_default: false,
        names: cci::SharedNames::default(),
    })
}

/// The keys of a device, and these in place of what its configuration says.
pub(crate) fn with_keys(configured: &[Key], keys: &[Key]) -> Vec<Key> {
    let kept = configured.iter().filter(|(key, _)| !keys.iter().any(|(other, _)| other == key));
    kept.chain(keys).cloned().collect()
}

/// Keys that keep both ends on the loop-back interface, as the probes are.
pub fn keys_of_loopback(transport: &str) -> Vec<Key> {
    let keys = cci::driver(transport).map_or(&[][..], |driver| driver.loopback);
    keys.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

/// The transport that a URI names.
pub(crate) fn scheme(uri: &str) -> Option<String> {
    let (scheme, _) = uri.split_once("://")?;
    Some(cci::driver_for_scheme(scheme).map_or(scheme, |driver| driver.name).to_owned())
}

/// The transport of a run, as far as it is known before the run.
pub(crate) struct Transport {
    pub(crate) name: String,
    /// Keys of its device by its configuration.
    pub(crate) arguments: Vec<Key>,
}

/// The transport that is asked for, or of the device that a program without preference gets.
pub(crate) fn transport(name: Option<&str>) -> Result<Transport, UserError> {
    let context = Context::new().map_err(while_doing("cannot find the devices"))?;
    let device = match name {
        Some(name) => context.devices().iter().find(|device| device.transport == name),
        None => context.default_device().ok(),
    };
    let name = name.map(str::to_owned).or_else(|| device.map(|device| device.transport.clone()));
    let arguments = device.map(|device| device.arguments.clone()).unwrap_or_default();
    Ok(Transport { name: name.unwrap_or_default(), arguments })
}

/// The transport by which two ends on this host meet: the first way of a device that stands over
/// several transports, or else its own.
pub(crate) fn nearest<'n>(transport: &'n str, arguments: &[Key]) -> &'n str {
    let over = cci::driver(transport).and_then(|driver| driver.over);
    let first = over.and_then(|over| (over.ways)(arguments, cci::drivers()).first().copied());
    first.unwrap_or(transport)
}

/// The name of the transport of a run, and the keys of its devices: of one whose ends are all on
/// this host, or against the server at `uri`.
pub(crate) fn device_of_ends(asked: &Device, uri: Option<&str>) -> Result<(String, Vec<Key>), UserError> {
    let name = asked.transport.clone().or_else(|| uri.and_then(scheme));
    let transport = transport(name.as_deref())?;
    let keys = with_keys(&transport.arguments, &asked.keys);
    let keys = if uri.is_none() { on_loopback(&transport.name, keys) } else { keys };
    Ok((transport.name, keys))
}

/// Whether a key of a device says which of this host's addresses it has.
fn places(key: &str) -> bool {
    key == "ip" || key == "interface"
}

/// Both ends of a local run meet on the loop-back interface, where the probe is, unless they are
/// told where.
pub(crate) fn on_loopback(transport: &str, mut keys: Vec<Key>) -> Vec<Key> {
    if !keys.iter().any(|(key, _)| places(key)) {
        keys.extend(keys_of_loopback(transport));
    }
    keys
}

/// The transport that is asked for, or of the default device.
///
/// # Errors
///
/// There is no such device, or its ends cannot be in different threads or processes.
pub(crate) fn real_transport(asked: Option<&str>) -> Result<String, UserError> {
    if asked == Some(VIRTUAL) {
        return Err(UserError::new(
            "this measures real hardware, and `sim` is a virtual network: use --transport sm or sock",
        ));
    }
    let context = Context::new().map_err(while_doing("cannot find the devices"))?;
    match asked {
        Some(name) if context.devices().iter().any(|device| device.transport == name) => Ok(name.to_owned()),
        Some(name) if scope(name) > Some(Scope::Process) && without_configuration(name).is_some() => {
            Ok(name.to_owned())
        }
        Some(name) => Err(no_transport(name)),
        None => {
            let device = context.default_device().map_err(|error| UserError(error.to_string()))?;
            Ok(device.transport.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_transport_that_finds_no_devices_has_one_without_configuration() {
        let device = without_configuration(VIRTUAL).unwrap();
        assert_eq!((device.transport.as_str(), device.up, device.max_send_size), (VIRTUAL, true, 8192));
        for other in ["sm", "pigeon"] {
            assert!(without_configuration(other).is_none(), "{other}");
        }
    }

    #[test]
    fn the_uri_says_the_transport() {
        assert_eq!(scheme("sock://192.0.2.1:5000").as_deref(), Some("sock"));
        assert_eq!(scheme("nothing"), None);
    }
}
