//! The transports, in the only list of the library that names them, and how an endpoint gets one.
//!
//! `docs/design/transports.md` describes how a transport is added. `ci/transport-names` checks that
//! no other file of the facade, the core or the bindings names one.

use crate::device::Device;
use crate::endpoint_options::EndpointOptions;
use cci_proto::Status;
use cci_transport::{Check, Condition, Core, Driver, Key, OpenError, Transport, TransportOptions};
use std::borrow::Cow;

/// The transports of this build. The first one is the example in messages.
static DRIVERS: &[&Driver] = &[
    #[cfg(feature = "sm")]
    &cci_sm::DRIVER,
    #[cfg(feature = "sock")]
    &cci_sock::DRIVER,
    #[cfg(feature = "tcp")]
    &cci_tcp::DRIVER,
    #[cfg(feature = "auto")]
    &cci_auto::DRIVER,
    #[cfg(feature = "sim")]
    &cci_sim::DRIVER,
    #[cfg(feature = "mx")]
    &cci_over_mx::DRIVER,
    #[cfg(feature = "portals")]
    &cci_over_portals::DRIVER,
    #[cfg(feature = "template")]
    &cci_template::DRIVER,
    #[cfg(feature = "template_link")]
    &cci_template_link::DRIVER,
];

/// The transports that CCI knows and this build may not have: their names, the priority of their
/// devices, and their keys where these are known. A built one stands here too, for builds without.
static OTHERS: &[(&str, u32, Option<&[&str]>)] = &[
    ("sm", 20, None),
    ("sock", 30, None),
    ("sim", 10, None),
    ("tcp", 30, Some(&["ip", "interface", "port", "mss", "congestion", "check", "listen", "mtu", "bufsize"])),
    ("ofi", 50, None),
    ("verbs", 50, None),
    ("gni", 50, None),
    ("eth", 50, None),
    ("e2e", 50, None),
    ("mx", 50, None),
    ("portals", 50, None),
];

/// The transports of this build.
///
/// ```
/// for driver in cci::drivers() {
///     println!("{}: keys {:?}", driver.name, driver.keys.iter().map(|key| key.name).collect::<Vec<_>>());
/// }
/// ```
#[must_use]
pub fn drivers() -> &'static [&'static Driver] {
    DRIVERS
}

/// The transport of this name, if it is in this build.
///
/// ```
/// assert!(cci::driver("carrier-pigeon").is_none());
/// ```
#[must_use]
pub fn driver(name: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.name == name).copied()
}

/// The transport whose URIs begin with this, if it is in this build.
///
/// ```
/// assert!(cci::driver_for_scheme("carrier-pigeon").is_none());
/// assert!(cci::drivers().iter().all(|driver| cci::driver_for_scheme(driver.scheme()).is_some()));
/// ```
#[must_use]
pub fn driver_for_scheme(scheme: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.scheme() == scheme).copied()
}

/// A transport, whether or not this build has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    Built(&'static Driver),
    /// Its name, the priority of its devices, and its keys; `None`: every key is passed on.
    Absent(&'static str, u32, Option<&'static [&'static str]>),
}

impl Known {
    pub(crate) fn of(name: &str) -> Option<Self> {
        let absent =
            || OTHERS.iter().find(|other| other.0 == name).map(|&(name, priority, keys)| (name, priority, keys));
        let built = driver(name).map(Self::Built);
        built.or_else(|| absent().map(|(name, priority, keys)| Self::Absent(name, priority, keys)))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Built(driver) => driver.name,
            Self::Absent(name, ..) => name,
        }
    }

    /// Priority of its devices unless the configuration sets one.
    pub(crate) fn priority(self) -> u32 {
        match self {
            Self::Built(driver) => driver.priority,
            Self::Absent(_, priority, _) => priority,
        }
    }

    /// The names of its keys, if they are known.
    pub(crate) fn keys(self) -> Option<Vec<&'static str>> {
        match self {
            Self::Built(driver) => Some(driver.keys.iter().map(|key| key.name).collect()),
            Self::Absent(_, _, keys) => keys.map(<[_]>::to_vec),
        }
    }
}

/// How many ways the core of an endpoint with this service on this device needs; 0: none.
pub(crate) fn ways(device: &Device, service: Option<&str>) -> u8 {
    let over = driver(&device.transport).and_then(|driver| driver.over);
    over.map_or(0, |over| u8::try_from((over.most)(&own_keys(device), DRIVERS, service)).unwrap_or(u8::MAX))
}

/// Leaves out ways of a device that stands over others. False: no way is left.
pub(crate) fn keep_ways(device: &mut Device, keeps: impl Fn(&str) -> bool) -> bool {
    let Some((driver, over)) = driver(&device.transport).and_then(|driver| Some((driver, driver.over?))) else {
        return true;
    };
    let own = own_keys(device).into_owned();
    let all = (over.ways)(&own, DRIVERS);
    let kept: Vec<_> = all.iter().copied().filter(|name| keeps(name)).collect();
    if kept.len() < all.len() && !kept.is_empty() {
        device.arguments.push((over.key.to_owned(), kept.join(",")));
        let condition = inspect(driver, &own_keys(device));
        (device.up, device.reason, device.max_send_size) = (condition.up, condition.reason, condition.max_send_size);
    }
    !kept.is_empty()
}

/// Whether the transport of a device, or one of its ways, moves data by another library.
pub(crate) fn uses_library(device: &Device) -> bool {
    let Some(own) = driver(&device.transport) else { return false };
    let ways = own.over.map_or_else(Vec::new, |over| (over.ways)(&own_keys(device), DRIVERS));
    own.uses_library || ways.into_iter().filter_map(driver).any(|way| way.uses_library)
}

/// Whether endpoints can be opened on a device with these keys.
pub(crate) fn inspect(driver: &Driver, arguments: &[(String, String)]) -> Condition {
    driver.over.map_or_else(|| (driver.inspect)(arguments), |over| (over.inspect)(arguments, DRIVERS))
}

/// The names of the transports of this build.
pub(crate) fn built_names() -> Vec<&'static str> {
    DRIVERS.iter().map(|driver| driver.name).collect()
}

/// The names of all transports, first those of this build.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names = built_names();
    names.extend(OTHERS.iter().map(|other| other.0).filter(|name| driver(name).is_none()));
    names
}

/// The key, of devices of every transport, that says whether rights of registrations are enforced.
pub(crate) const RMA_RIGHTS: Key = Key { name: "rma_rights", check: Check::OneOf(&["enforced", "open"]) };

/// Whether peers may read and write every registration of endpoints on this device.
pub(crate) fn rights_are_open(device: &Device) -> Result<bool, OpenError> {
    let Some((_, value)) = device.arguments.iter().rfind(|(key, _)| key == RMA_RIGHTS.name) else { return Ok(false) };
    RMA_RIGHTS.check.accept(value).map_err(|remedy| {
        OpenError::new(Status::Inval, format!("the value of the key '{}' is '{value}'; {remedy}", RMA_RIGHTS.name))
    })?;
    Ok(value == "open")
}

/// The keys of a device that its transport reads.
fn own_keys(device: &Device) -> Cow<'_, [(String, String)]> {
    let common = |(key, _): &(String, String)| key == RMA_RIGHTS.name;
    if device.arguments.iter().any(common) {
        Cow::Owned(device.arguments.iter().filter(|pair| !common(pair)).cloned().collect())
    } else {
        Cow::Borrowed(&device.arguments)
    }
}

/// Opens the transport of an endpoint with this core.
pub(crate) fn open(core: &Core, device: &Device, options: &EndpointOptions) -> Result<Box<dyn Transport>, OpenError> {
    let name = &device.transport;
    let driver = driver(name)
        .ok_or_else(|| OpenError::new(Status::NoDev, format!("the transport {name} is not in this build")))?;
    let arguments = own_keys(device);
    let options = TransportOptions {
        service: options.service.as_deref(),
        threading: options.threading,
        drivers: DRIVERS,
        #[cfg(feature = "trace")]
        stamps: options.stamps.clone(),
        ..TransportOptions::new(&arguments, device.max_send_size)
    };
    let transport = cci_transport::within_one_open(|| (driver.open)(core, &options))?;
    #[cfg(feature = "trace")]
    if let Some(stamps) = &options.stamps {
        return Ok(Box::new(cci_transport::trace::Traced::new(transport, stamps.clone())));
    }
    Ok(transport)
}
