//! Which host is which node.

use crate::errors::NotOpened;
use cci_mem::interfaces::interface_addresses;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The node of a host that has no table.
const OWN: u32 = 4;
/// The port at which a host is asked for its names, unless the table has another one.
const PORT: u16 = 7284;
/// The node of a connection to a broadcast group: no node has this number.
///
/// # Example
///
/// ```
/// use cci_sci::{EVERY_NODE, RemoteSegment};
///
/// fn is_broadcast(far: &RemoteSegment) -> bool {
///     far.node() == EVERY_NODE
/// }
/// ```
pub const EVERY_NODE: u32 = 0x1_0000;
/// The highest number of a node.
pub(crate) const LAST: u32 = 0xffff;

/// The nodes, and which of them this process is of.
///
/// # Example
///
/// ```
/// use cci_sci::Nodes;
///
/// let nodes = Nodes::parse("# two on this host, one elsewhere\n4 localhost\n8 localhost\n12 192.0.2.7\n")?;
/// assert_eq!((nodes.own(), nodes.is_here(8), nodes.is_here(12)), (4, Some(true), Some(false)));
/// assert_eq!(nodes.at(8)?.own(), 8);
/// # Ok::<(), cci_sci::NotOpened>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// By number.
    all: BTreeMap<u32, Place>,
    own: u32,
}

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: String,
    /// Where its host is asked for names.
    pub(crate) port: u16,
    pub(crate) is_here: bool,
}

impl Place {
    /// Reads `HOST[:PORT]`, with brackets around an address of IPv6 that has a port.
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = match (text.parse::<IpAddr>(), text.parse::<SocketAddr>()) {
            (Ok(_), _) => (text.to_owned(), PORT),
            (_, Ok(both)) => (both.ip().to_string(), both.port()),
            _ => match text.split_once(':') {
                Some((host, port)) => (host.to_owned(), port.parse().ok()?),
                None => (text.to_owned(), PORT),
            },
        };
        let is_here = is_this_host(&host);
        (port != 0 && !host.is_empty()).then_some(Self { host, port, is_here })
    }
}

impl Nodes {
    /// Returns the table without a file: node 4 alone, this host.
    #[must_use]
    pub fn new() -> Self {
        let here = Place { host: "localhost".to_owned(), port: PORT, is_here: true };
        Self { all: BTreeMap::from([(OWN, here)]), own: OWN }
    }

    /// Returns the table that the environment names: `SCI_NODES` is its file, `SCI_NODE` the node
    /// of this process.
    ///
    /// # Errors
    ///
    /// The file cannot be read, a line is wrong, or the node of this process is not of this host.
    pub fn from_environment() -> Result<Self, NotOpened> {
        let nodes = match std::env::var_os("SCI_NODES") {
            None => Self::new(),
            Some(path) => {
                let text = std::fs::read_to_string(&path).map_err(|why| {
                    NotOpened::Nodes(format!("the node table {path:?} cannot be read: {why}; correct SCI_NODES"))
                })?;
                Self::parse(&text)?
            }
        };
        match std::env::var("SCI_NODE") {
            Err(_) => Ok(nodes),
            Ok(own) => {
                let number = own.trim().parse();
                let number = number.map_err(|_| {
                    NotOpened::Nodes(format!("SCI_NODE is '{own}', no number; write one of the node table"))
                })?;
                nodes.at(number)
            }
        }
    }

    /// Reads lines `NODE HOST` or `NODE HOST:PORT`. The first node of this host is that of this
    /// process.
    ///
    /// # Errors
    ///
    /// A line is no node, a number comes twice, or no node is this host.
    pub fn parse(text: &str) -> Result<Self, NotOpened> {
        let (mut all, mut own) = (BTreeMap::new(), None);
        for (line, at) in text.lines().zip(1..) {
            let words: Vec<_> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            let node = match words[..] {
                [number, place] => number.parse().ok().filter(is_number).zip(Place::parse(place)),
                _ => None,
            };
            let (number, place) = node.ok_or_else(|| {
                let text = format!(
                    "line {at} of the node table, '{line}', is no node; write NODE HOST or NODE HOST:PORT, with NODE from 1 to 65535"
                );
                NotOpened::Nodes(text)
            })?;
            let is_here = place.is_here;
            if all.insert(number, place).is_some() {
                let text = format!("line {at} of the node table names node {number} again; give each node one line");
                return Err(NotOpened::Nodes(text));
            }
            own = own.or(is_here.then_some(number));
        }
        let own = own.ok_or_else(|| {
            NotOpened::Nodes("no node of the node table is this host; add a line NODE localhost".to_owned())
        })?;
        Ok(Self { all, own })
    }

    /// Returns the table for a process of this node.
    ///
    /// # Errors
    ///
    /// The node is not of this host.
    pub fn at(mut self, own: u32) -> Result<Self, NotOpened> {
        if self.is_here(own) != Some(true) {
            let text = format!("node {own} is no node of this host in the node table; correct SCI_NODE or the table");
            return Err(NotOpened::Nodes(text));
        }
        self.own = own;
        Ok(self)
    }

    /// Returns the node of this process.
    #[must_use]
    pub fn own(&self) -> u32 {
        self.own
    }

    /// Returns the nodes whose line names this host, in their order.
    pub fn of_host<'n>(&'n self, host: &'n str) -> impl Iterator<Item = u32> + 'n {
        self.all.iter().filter(move |(_, place)| place.host == host).map(|(number, _)| *number)
    }

    /// All nodes.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.all.keys().copied()
    }

    /// Returns whether a node is this host; `None`: there is no such node.
    #[must_use]
    pub fn is_here(&self, node: u32) -> Option<bool> {
        self.all.get(&node).map(|place| place.is_here)
    }

    /// Where a node is.
    pub(crate) fn place(&self, node: u32) -> Option<&Place> {
        self.all.get(&node)
    }

    /// Each other host once.
    pub(crate) fn others(&self) -> Vec<&Place> {
        let mut others: Vec<_> = self.all.values().filter(|place| !place.is_here).collect();
        others.sort_by(|left, right| (&left.host, left.port).cmp(&(&right.host, right.port)));
        others.dedup();
        others
    }

    /// The port at which other hosts ask this one. `None`: there are none.
    pub(crate) fn served_port(&self) -> Option<u16> {
        let has_others = self.all.values().any(|place| !place.is_here);
        self.all.get(&self.own).filter(|_| has_others).map(|place| place.port)
    }
}

impl Default for Nodes {
    fn default() -> Self {
        Self::new()
    }
}

pub(crate) fn is_number(number: &u32) -> bool {
    (1..=LAST).contains(number)
}

/// Why other hosts cannot ask this one.
pub(crate) fn unserved(port: u16, why: &std::io::Error) -> NotOpened {
    let text = format!("other hosts cannot ask this one at port {port}: {why}; name another port in the node table");
    NotOpened::Nodes(text)
}

fn is_this_host(host: &str) -> bool {
    if host == "localhost" || rustix::system::uname().nodename().to_str() == Ok(host) {
        return true;
    }
    let Ok(address) = host.parse::<IpAddr>() else { return false };
    let own = interface_addresses().unwrap_or_default();
    address.is_loopback() || own.iter().any(|line| line.ip == Some(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_is_named() {
        for (text, why) in [
            ("4", "line 1"),
            ("4 localhost extra", "line 1"),
            ("\n0 localhost", "line 2"),
            ("65536 localhost", "line 1"),
            ("-4 localhost", "line 1"),
            ("4 localhost:0", "line 1"),
            ("4 localhost:65536", "line 1"),
            ("4 :7000", "line 1"),
            ("4 localhost\n4 192.0.2.1", "names node 4 again"),
            ("4 192.0.2.1 # documentation", "no node of the node table is this host"),
            ("", "no node of the node table is this host"),
        ] {
            let said = Nodes::parse(text).expect_err("wrong").to_string();
            assert!(said.contains(why), "{text:?}: {said}");
        }
    }

    #[test]
    fn a_port_is_named_or_left_out() {
        for (text, host, port) in [
            ("192.0.2.1", "192.0.2.1", PORT),
            ("192.0.2.1:7000", "192.0.2.1", 7000),
            ("2001:db8::1", "2001:db8::1", PORT),
            ("[2001:db8::1]:7000", "2001:db8::1", 7000),
            ("name.example:7000", "name.example", 7000),
        ] {
            let expected = Place { host: host.to_owned(), port, is_here: false };
            assert_eq!(Place::parse(text), Some(expected));
        }
        let ports = |text| Nodes::parse(text).map(|nodes| nodes.served_port()).ok();
        assert_eq!(ports("4 localhost\n8 localhost:7000"), Some(None), "nobody asks");
        assert_eq!(ports("4 localhost:7000\n8 192.0.2.1"), Some(Some(7000)));
    }

    #[test]
    fn this_host_has_several_names() {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let nodes = Nodes::parse(&format!("8 192.0.2.1\n12 127.0.0.1\n16 {name}\n20 ::1\n")).expect("a table");
        assert_eq!(
            [8, 12, 16, 20, 24].map(|node| nodes.is_here(node)),
            [Some(false), Some(true), Some(true), Some(true), None]
        );
        assert_eq!(nodes.own(), 12);
        assert!(nodes.clone().at(8).is_err() && nodes.clone().at(24).is_err());
        assert_eq!(nodes.at(16).expect("here").own(), 16);
    }
}
