//! The devices of this host.

use crate::config;
use crate::device::Device;
use crate::names::{Names, SharedNames};
use cci_proto::{ConnectError, Status};
use cci_transport::OpenError;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A configuration file is shorter than this, bytes; `CCI_CONFIG` may name a device or a data file
/// by mistake.
const LONGEST_FILE: u64 = 1 << 20;

/// The devices of this host, as configured or found. Every endpoint is opened on one of them.
///
/// It reads the configuration once, holds no resource of the system, and may go before the
/// endpoints that were opened on its devices.
///
/// # Example
///
/// ```
/// for device in cci::Context::new()?.devices() {
///     println!("{}: {} ({})", device.name, device.transport, device.reason);
/// }
/// # Ok::<(), cci::OpenError>(())
/// ```
#[derive(Debug)]
pub struct Context {
    devices: Vec<Device>,
    names: SharedNames,
}

impl Context {
    /// Reads the file that `CCI_CONFIG` names; without one, finds the devices.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has a mistake; the sentence names file, line and nearest valid
    /// key.
    pub fn new() -> Result<Self, OpenError> {
        match std::env::var_os("CCI_CONFIG").filter(|name| !name.is_empty()) {
            Some(name) => Self::from_file(Path::new(&name)),
            None => Self::from_bytes(None),
        }
    }

    /// Finds the devices of this host, as if there was neither `CCI_CONFIG` nor `CCI_CTP`. For
    /// libraries beneath a program whose configuration is not theirs.
    ///
    /// # Errors
    ///
    /// None today.
    ///
    /// ```
    /// assert!(cci::Context::found()?.default_device().is_ok());
    /// # Ok::<(), cci::OpenError>(())
    /// ```
    pub fn found() -> Result<Self, OpenError> {
        Self::of(config::devices(None, "")?)
    }

    /// Reads this configuration file.
    ///
    /// # Errors
    ///
    /// As [`Context::new`].
    pub fn from_file(path: &Path) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        let refused = |what: String, source| OpenError { what: what.into(), status: Status::Inval, source };
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(LONGEST_FILE + 1).read_to_end(&mut bytes)).map_err(|source| {
            refused(format!("cannot read the configuration file {name}; correct CCI_CONFIG, or unset it"), Some(source))
        })?;
        if bytes.len() as u64 > LONGEST_FILE {
            let what = format!("{name} is longer than {LONGEST_FILE} bytes, too long for a configuration file");
            return Err(refused(what, None));
        }
        Self::from_bytes(Some((&name, &bytes)))
    }

    fn from_bytes(file: Option<(&str, &[u8])>) -> Result<Self, OpenError> {
        #[cfg(feature = "tracing")]
        for sentence in crate::environment::unknown_variables() {
            cci_transport::log_event!(warn, "{sentence}");
        }
        let selection = std::env::var_os("CCI_CTP").unwrap_or_default();
        Self::of(config::devices(file, &selection.to_string_lossy())?)
    }

    fn of(mut devices: Vec<Device>) -> Result<Self, OpenError> {
        let names = SharedNames::default();
        devices.iter_mut().for_each(|device| device.names = names.clone());
        cci_transport::log_event!(debug, number = devices.len(), "devices found");
        Ok(Self { devices, names })
    }

    /// The devices: those up first, then the default, then by priority and rate, descending.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Sets what gives the URIs of names such as `job:3`, for all endpoints on devices of this
    /// context, also those that are open. It replaces what was set before.
    pub fn set_names(&self, names: Arc<dyn Names>) {
        self.names.set(names);
    }

    /// Returns the URI that a name such as `job:3` stands for. A URI stands for itself.
    ///
    /// # Errors
    ///
    /// [`ConnectError::NoJob`]: no names are set. [`ConnectError::NoRank`]: this is none of them.
    ///
    /// # Example
    ///
    /// ```
    /// let context = cci::Context::new()?;
    /// assert_eq!(context.resolve("sm://1/1")?, "sm://1/1");
    /// assert_eq!(context.resolve("job:0"), Err(cci::ConnectError::NoJob));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resolve<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, ConnectError> {
        self.names.uri_of(text)
    }

    /// The device that leads to the endpoint at `uri`: the first, in the order of
    /// [`Context::devices`], whose transport the URI, or that of the name, names.
    ///
    /// # Errors
    ///
    /// Not a URI, a transport that does not exist, or no usable device of it; or as
    /// [`Context::resolve`].
    ///
    /// # Example
    ///
    /// ```
    /// let context = cci::Context::new()?;
    /// assert_eq!(context.device_for("sm://1/1")?.transport, "sm");
    /// assert!(context.device_for("carrier-pigeon://home").is_err());
    /// # Ok::<(), cci::OpenError>(())
    /// ```
    pub fn device_for(&self, uri: &str) -> Result<&Device, OpenError> {
        let uri = self.resolve(uri).map_err(|why| OpenError::new(why.status(), why.to_string()))?;
        let name = config::transport_of(&uri)?;
        let of_this = || self.devices.iter().filter(|device| device.transport == name);
        of_this().find(|device| device.up).ok_or_else(|| {
            let what = match of_this().next() {
                Some(device) => format!("the device {} is not usable: {}", device.name, device.reason),
                None => format!(
                    "no device of the transport {name} leads to {uri}; add one to the file of CCI_CONFIG, and to CCI_CTP if \
                     that is set"
                ),
            };
            OpenError::new(Status::NoDev, what)
        })
    }

    /// The device for a program that has no preference: the default one, else the first, if it is
    /// up.
    ///
    /// # Errors
    ///
    /// No device is usable.
    pub fn default_device(&self) -> Result<&Device, OpenError> {
        let device = self.devices.iter().find(|device| device.is_default).or_else(|| self.devices.first());
        device
            .filter(|device| device.up)
            .ok_or_else(|| OpenError::new(Status::NoDev, "no usable device; `cci info` says why each is not"))
    }
}
