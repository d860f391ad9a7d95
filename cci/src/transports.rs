//! The transports, in the only list of the library that names them.
//!
//! `docs/design/transports.md` describes how a transport is added. `ci/transport-names` checks that
//! no other file of the facade, the core or the bindings names one.

pub(crate) mod of_device;

use cci_transport::{Check, Condition, Driver, Key};

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
