//! From names to URIs.

use crate::name::{Name, NoName};
use std::collections::BTreeMap;

/// What a [`Directory`] has for a name.
///
/// # Example
///
/// ```
/// use cci_peers::{Directory, Found, Name, Ranks};
///
/// assert_eq!(Ranks::new(4).find(&Name::Rank(3)), Found::Uri("job:3".into()));
/// assert_eq!(Ranks::new(4).find(&Name::Rank(4)), Found::Unknown);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is one, not yet, or never")]
pub enum Found {
    /// The URI, or what `connect` takes in its place.
    Uri(String),
    /// There is none yet: it is asked again.
    NotYet,
    /// There is no such peer.
    Unknown,
}

/// Gives the URIs of peers.
///
/// # Example
///
/// ```
/// use cci_peers::{Directory, Found, Name};
///
/// /// Everybody is at one place.
/// struct Exchange(String);
///
/// impl Directory for Exchange {
///     fn find(&mut self, _: &Name) -> Found {
///         Found::Uri(self.0.clone())
///     }
/// }
/// # let _: Box<dyn Directory + Send> = Box::new(Exchange("sm://1/1".into()));
/// ```
pub trait Directory {
    /// The URI of a peer now; asked before each attempt. Must not block.
    fn find(&mut self, name: &Name) -> Found;

    /// Whether a process that calls itself this may connect. The default: whoever has an entry, or
    /// may get one.
    fn admits(&mut self, name: &Name) -> bool {
        self.find(name) != Found::Unknown
    }
}

/// The ranks of a job whose names the context has (`cci_job::Job::open`).
///
/// # Example
///
/// ```
/// use cci_peers::{Directory, Name, Ranks};
///
/// let mut ranks = Ranks::new(2);
/// assert!(ranks.admits(&Name::Rank(1)) && !ranks.admits(&Name::Number(1)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ranks {
    size: u32,
}

impl Ranks {
    /// Of a job of this size.
    #[must_use]
    pub const fn new(size: u32) -> Self {
        Self { size }
    }
}

impl Directory for Ranks {
    fn find(&mut self, name: &Name) -> Found {
        match name {
            Name::Rank(rank) if *rank < self.size => Found::Uri(name.to_string()),
            _ => Found::Unknown,
        }
    }
}

/// A table of URIs, which may grow.
///
/// # Example
///
/// ```
/// use cci_peers::{Directory, Found, Name, Table};
///
/// let mut table = Table::parse("# who is where\n1 sm://1/1\nnode7:2 tcp://node7:5002\n")?;
/// assert_eq!(table.find(&Name::Number(1)), Found::Uri("sm://1/1".into()));
/// assert_eq!(table.find(&Name::Number(2)), Found::NotYet);
/// table.insert(Name::Number(2), "sm://1/2");
/// assert_eq!(table.find(&Name::Number(2)), Found::Uri("sm://1/2".into()));
/// # Ok::<(), cci_peers::NoName>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Table(BTreeMap<Name, String>);

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads lines `NAME URI`. Empty lines, and those that begin with `#`, are skipped.
    ///
    /// # Errors
    ///
    /// The first line that begins with no name, or has nothing behind it.
    pub fn parse(text: &str) -> Result<Self, NoName> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let entry = |line: &str| {
            let (name, uri) = line.split_once(char::is_whitespace).ok_or_else(|| NoName::of(line))?;
            Ok((name.parse()?, uri.trim().to_owned()))
        };
        lines.map(entry).collect::<Result<_, _>>().map(Self)
    }

    /// Sets the URI of a peer, in place of the one that it had.
    pub fn insert(&mut self, name: Name, uri: impl Into<String>) {
        self.0.insert(name, uri.into());
    }

    /// Removes a peer.
    pub fn remove(&mut self, name: &Name) {
        self.0.remove(name);
    }
}

impl Directory for Table {
    fn find(&mut self, name: &Name) -> Found {
        self.0.get(name).map_or(Found::NotYet, |uri| Found::Uri(uri.clone()))
    }
}

/// A rule: number `n` of a host is at port `first + n` there. The endpoint of number `n` is opened
/// with that port as its service ([`Services::service`]).
///
/// # Example
///
/// ```
/// use cci_peers::{Directory, Found, Name, Services};
///
/// let mut services = Services::new("tcp", 5000);
/// assert_eq!(services.find(&"node7:2".parse()?), Found::Uri("tcp://node7:5002".into()));
/// assert_eq!(services.service(2).as_deref(), Some("5002"));
/// assert_eq!(services.find(&Name::Rank(2)), Found::Unknown);
/// # Ok::<(), cci_peers::NoName>(())
/// ```
#[derive(Clone, Debug)]
pub struct Services {
    transport: String,
    first: u16,
}

impl Services {
    /// With URIs of this transport, and this port for number 0.
    #[must_use]
    pub fn new(transport: impl Into<String>, first: u16) -> Self {
        Self { transport: transport.into(), first }
    }

    /// The service of an endpoint with this number; `None`: there is no such port.
    #[must_use]
    pub fn service(&self, number: u32) -> Option<String> {
        self.port(number).map(|port| port.to_string())
    }

    fn port(&self, number: u32) -> Option<u16> {
        self.first.checked_add(u16::try_from(number).ok()?)
    }
}

impl Directory for Services {
    fn find(&mut self, name: &Name) -> Found {
        let Name::Service { host, number } = name else { return Found::Unknown };
        let uri = self.port(*number).map(|port| format!("{}://{host}:{port}", self.transport));
        uri.map_or(Found::Unknown, Found::Uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_name_or_uri_is_refused() {
        for text in ["1", "1 ", "job:x sm://1/1", "node7 sm://1/1"] {
            assert!(Table::parse(text).is_err(), "{text:?}");
        }
        let mut table = Table::parse("  job:2\tsm://1/1  \n\n# 3 none\n").expect("one line");
        assert_eq!(table.find(&Name::Rank(2)), Found::Uri("sm://1/1".into()));
        table.remove(&Name::Rank(2));
        assert_eq!(table.find(&Name::Rank(2)), Found::NotYet);
        assert!(table.admits(&Name::Rank(2)), "it may come");
    }

    #[test]
    fn a_port_beyond_the_last_is_none() {
        let mut services = Services::new("tcp", 65_535);
        let of = |number| Name::Service { host: "h".into(), number };
        assert_eq!(services.find(&of(0)), Found::Uri("tcp://h:65535".into()));
        assert_eq!(services.find(&of(1)), Found::Unknown);
        assert_eq!(services.find(&of(1 << 20)), Found::Unknown);
    }
}
