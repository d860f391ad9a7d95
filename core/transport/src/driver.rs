//! The record by which a program's side of the library knows a transport: [`Driver`]
//! (`docs/design/transports.md`).

use crate::{Core, OpenError, Transport};
use cci_mem::guarded::Threading;
use cci_proto::{Status, decimal};
use std::fmt;
use std::str::FromStr;

/// How far a transport reaches.
///
/// # Example
///
/// ```
/// # use cci_transport as cci;
/// use cci::Scope;
///
/// assert!(Scope::Process < Scope::Host && Scope::Host < Scope::Network);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Endpoints of this process.
    Process,
    /// Endpoints of this host.
    Host,
    /// Endpoints of any host.
    Network,
}

/// Opens the transport of an endpoint.
pub type Open = fn(&Core, &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError>;

/// A transport. Each transport's crate has one static record, and one list in the facade names it.
///
/// The record contains everything that differs between transports before an endpoint is opened.
/// Afterwards the endpoint has a [`Transport`].
///
/// # Example
///
/// ```
/// # use cci_transport::Driver;
/// fn describe(driver: &Driver) -> String {
///     let keys: Vec<_> = driver.keys.iter().map(|key| key.name).collect();
///     format!("{} ({}): {}", driver.name, driver.example_uri, keys.join(", "))
/// }
/// ```
pub struct Driver {
    /// Its name in configurations, and the scheme of its URIs.
    pub name: &'static str,
    /// How far it reaches.
    pub scope: Scope,
    /// Preference among the transports that reach a peer, for a transport that chooses between
    /// them: 0 to 100, 100 first.
    pub rank: u8,
    /// Position of its devices in the list unless the configuration sets one: 0 to 100, 100 first.
    pub priority: u32,
    /// A link makes it, driven by the engine; otherwise it implements [`Transport`] itself.
    pub is_link: bool,
    /// It moves data by another communication library, which it loads, and which may in turn use
    /// this one: what that library opens must not be a device of such a transport.
    pub uses_library: bool,
    /// A URI, for messages that explain what one looks like.
    pub example_uri: &'static str,
    /// What its devices can be configured with.
    pub keys: &'static [Key],
    /// Keys with which both ends of a connection stay within this host; for measurements.
    pub loopback: &'static [(&'static str, &'static str)],
    /// Finds the devices of this host that a program has without a configuration.
    pub discover: fn() -> Vec<Discovered>,
    /// Reports whether endpoints can be opened on a device with these keys, whose values are
    /// checked.
    pub inspect: fn(&[(String, String)]) -> Condition,
    /// Opens the transport of an endpoint with this core. The keys' values need not be checked.
    pub open: Open,
    /// What a transport has that stands over others; `None`: it stands over none.
    pub over: Option<Over>,
}

/// The keys of a device, each with its value.
pub type Keys<'a> = &'a [(String, String)];

/// The transports of a build.
pub type Drivers<'a> = &'a [&'static Driver];

/// What the facade asks about a device of a transport that stands over others, instead of
/// [`Driver::inspect`]. Both get the keys of the device, whose values are checked, and the
/// transports of the build.
#[derive(Clone, Copy, Debug)]
pub struct Over {
    /// The key that names the ways, separated by commas.
    pub key: &'static str,
    /// The names of the ways, in order.
    pub ways: fn(Keys<'_>, Drivers<'_>) -> Vec<&'static str>,
    /// The most ways that an endpoint with this service opens: one way may listen at several
    /// addresses.
    pub most: fn(Keys<'_>, Drivers<'_>, Option<&str>) -> usize,
    /// Reports whether endpoints can be opened on the device.
    pub inspect: fn(Keys<'_>, Drivers<'_>) -> Condition,
}

impl Driver {
    /// What the URIs of its endpoints begin with, before "://".
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        self.example_uri.split_once("://").map_or(self.name, |(scheme, _)| scheme)
    }

    /// The key of this name.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The keys of a device, and after them those that only the environment has: `CCI_SOCK_PORT`
    /// for the key `port` of the transport `sock`. No secret is read there: other programs inherit
    /// the environment.
    #[must_use]
    pub fn with_environment(&self, arguments: &[(String, String)]) -> Vec<(String, String)> {
        let is_given = |key: &str| arguments.iter().any(|(given, _)| given == key);
        let of_environment = |key: &str| {
            let value = std::env::var(format!("CCI_{}_{key}", self.name).to_ascii_uppercase()).ok()?;
            (!value.is_empty()).then(|| (key.to_owned(), value))
        };
        let readable = self.keys.iter().filter(|key| !key.check.is_secret()).map(|key| key.name);
        let others = readable.filter(|key| !is_given(key)).filter_map(of_environment);
        arguments.iter().cloned().chain(others).collect()
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver({})", self.name)
    }
}

/// A device that exists without a configuration.
///
/// # Example
///
/// ```
/// # use cci_transport as cci;
/// use cci::Discovered;
///
/// let found = Discovered { name: "fast".into(), arguments: vec![("interface".into(), "eth0".into())] };
/// assert_eq!(found.arguments.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovered {
    /// Its name.
    pub name: String,
    /// Its keys.
    pub arguments: Vec<(String, String)>,
}

/// Whether endpoints can be opened on a device.
///
/// # Example
///
/// ```
/// # use cci_transport as cci;
/// use cci::Condition;
///
/// fn shown(condition: &Condition) -> String {
///     format!("{}: {}", if condition.up { "up" } else { "down" }, condition.reason)
/// }
/// let condition = Condition { up: false, reason: "no such interface".into(), max_send_size: 0 };
/// assert_eq!(shown(&condition), "down: no such interface");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether they can.
    pub up: bool,
    /// Why, or why not, as a sentence.
    pub reason: String,
    /// Largest message, bytes.
    pub max_send_size: u32,
}

/// What the transport of an endpoint is opened with.
#[derive(Clone, Debug)]
pub struct TransportOptions<'a> {
    /// The keys of the device.
    pub arguments: &'a [(String, String)],
    /// The transport's own name for the endpoint, such as a port.
    pub service: Option<&'a str>,
    /// Largest message, bytes.
    pub max_send_size: u32,
    /// Which threads may call the endpoint.
    pub threading: Threading,
    /// The transports of the build, for one that stands over others.
    pub drivers: Drivers<'a>,
    /// The stamps of an endpoint that is measured.
    #[cfg(feature = "trace")]
    pub stamps: Option<std::sync::Arc<crate::trace::Stamps>>,
}

impl<'a> TransportOptions<'a> {
    /// An endpoint on a device with these keys.
    #[must_use]
    pub fn new(arguments: &'a [(String, String)], max_send_size: u32) -> Self {
        Self {
            arguments,
            service: None,
            max_send_size,
            threading: Threading::Many,
            drivers: &[],
            #[cfg(feature = "trace")]
            stamps: None,
        }
    }
}

/// A key of a transport's devices.
///
/// # Example
///
/// ```
/// # use cci_transport::{Driver, Key};
/// fn has_key(driver: &Driver, name: &str) -> bool {
///     driver.key(name).is_some_and(|key: &Key| key.name == name)
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Which values it takes.
    pub check: Check,
}

/// Which values a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// Any text.
    Text,
    /// A decimal number between these, both included.
    Number(u64, u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The values that this function accepts. Its error is the remedy.
    By(fn(&str) -> Result<(), String>),
    /// The same of a value that nobody is to see: a refusal has its length in its place.
    Secret(fn(&str) -> Result<(), String>),
}

impl Check {
    /// Checks a value.
    ///
    /// # Errors
    ///
    /// The value is refused; the text is the remedy, in the imperative.
    pub fn accept(&self, value: &str) -> Result<(), String> {
        let is_fine = match self {
            Self::Text => true,
            Self::Number(least, most) => decimal(value).is_some_and(|number| (*least..=*most).contains(&number)),
            Self::OneOf(words) => words.contains(&value),
            Self::By(accept) | Self::Secret(accept) => return accept(value),
        };
        if is_fine { Ok(()) } else { Err(self.remedy()) }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Number(least, most) => format!("write a whole number from {least} to {most}"),
            Self::OneOf(words) => format!("write {}", words.join(" or ")),
            Self::Text | Self::By(_) | Self::Secret(_) => "write another value".into(),
        }
    }

    /// Whether nobody is to see a value.
    #[must_use]
    pub const fn is_secret(&self) -> bool {
        matches!(self, Self::Secret(_))
    }

    /// A value of the key as a message may show it.
    ///
    /// ```
    /// # use cci_transport::Check;
    /// assert_eq!(Check::Text.show("abc"), "'abc'");
    /// assert_eq!(Check::Secret(|_| Ok(())).show("abc"), "a secret of 3 characters");
    /// ```
    #[must_use]
    pub fn show(&self, value: &str) -> String {
        match self {
            Self::Secret(_) => format!("a secret of {} characters", value.chars().count()),
            _ => format!("'{value}'"),
        }
    }
}

/// The keys of a device, each with a value that its [`Check`] accepts.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a>(&'a [(String, String)]);

impl<'a> Arguments<'a> {
    /// Checks the keys of a device of this driver.
    ///
    /// # Errors
    ///
    /// The driver has no such key, or the key does not take the value.
    pub fn check(driver: &Driver, pairs: &'a [(String, String)]) -> Result<Self, OpenError> {
        for (name, value) in pairs {
            let refused = |what: String| OpenError::new(Status::Inval, what);
            let Some(key) = driver.key(name) else {
                let names: Vec<_> = driver.keys.iter().map(|key| key.name).collect();
                let what = format!("{} has no key '{name}'; its keys are {}", driver.name, names.join(", "));
                return Err(refused(what));
            };
            let shown = |remedy| format!("the value of the key '{name}' is {}; {remedy}", key.check.show(value));
            key.check.accept(value).map_err(|remedy| refused(shown(remedy)))?;
        }
        Ok(Self(pairs))
    }

    /// The value of a key. The last one counts if there are several.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.0.iter().rfind(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The value of a key as the type of which its check accepts texts only.
    #[must_use]
    pub fn parsed<T: FromStr>(&self, key: &str) -> Option<T> {
        self.text(key)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &Core, _: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
        Err(OpenError::new(Status::NoDev, "there is none"))
    }

    static DRIVER: Driver = Driver {
        name: "pipe",
        scope: Scope::Host,
        rank: 0,
        priority: 0,
        is_link: false,
        uses_library: false,
        example_uri: "pipe://1",
        keys: &[
            Key { name: "depth", check: Check::Number(2, 9) },
            Key { name: "kind", check: Check::OneOf(&["round", "square"]) },
            Key { name: "name", check: Check::Text },
            Key { name: "secret", check: Check::Secret(|_| Err("write it again".into())) },
            Key {
                name: "even",
                check: Check::By(
                    |value| if value.len() % 2 == 0 { Ok(()) } else { Err("write a longer value".into()) },
                ),
            },
        ],
        loopback: &[],
        discover: Vec::new,
        inspect: |_| Condition { up: true, reason: String::new(), max_send_size: 1 },
        open: nothing,
        over: None,
    };

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn checked_keys_are_read() {
        let pairs = pairs(&[("depth", "3"), ("kind", "round"), ("name", ""), ("even", "ab"), ("depth", "09")]);
        let arguments = Arguments::check(&DRIVER, &pairs).expect("fine");
        assert_eq!((arguments.parsed("depth"), arguments.text("name")), (Some(9_u8), Some("")));
        assert_eq!(arguments.text("absent"), None);
    }

    #[test]
    fn a_refusal_names_key_value_and_remedy() {
        for (key, value, sentence) in [
            ("depth", "1", "the value of the key 'depth' is '1'; write a whole number from 2 to 9"),
            ("depth", "10", "the value of the key 'depth' is '10'; write a whole number from 2 to 9"),
            ("depth", "+3", "the value of the key 'depth' is '+3'; write a whole number from 2 to 9"),
            ("depth", "", "the value of the key 'depth' is ''; write a whole number from 2 to 9"),
            ("kind", "Round", "the value of the key 'kind' is 'Round'; write round or square"),
            ("even", "a", "the value of the key 'even' is 'a'; write a longer value"),
            ("secret", "höre", "the value of the key 'secret' is a secret of 4 characters; write it again"),
            ("colour", "red", "pipe has no key 'colour'; its keys are depth, kind, name, secret, even"),
        ] {
            let error = Arguments::check(&DRIVER, &pairs(&[(key, value)])).expect_err(sentence);
            assert_eq!((error.to_string().as_str(), error.status), (sentence, Status::Inval));
        }
    }
}
