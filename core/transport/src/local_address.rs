//! Which address an endpoint has, and on which interface.

use crate::{Arguments, Check, Key, OpenError};
use cci_mem::cancellation::Uncancelled;
use cci_mem::descriptors;
use cci_mem::interfaces::{InterfaceAddress, interface_addresses};
use cci_proto::Status;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::AsFd;

/// An address of this host.
///
/// # Example
///
/// ```
/// # use cci_transport as cci;
/// use cci::LocalAddress;
///
/// let local = LocalAddress::choose(None, Some("lo"))?;
/// assert!(local.loopback && local.host_and_port(5000).ends_with(":5000"));
/// # Ok::<(), cci::OpenError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// The address.
    pub ip: IpAddr,
    /// The interface that has it.
    pub interface: String,
    /// Index of the interface; 0: not known.
    pub index: u32,
    /// Whether that is the loop-back interface.
    pub loopback: bool,
}

impl LocalAddress {
    /// The key `ip`: an address of this host.
    pub const IP: Key = Key { name: "ip", check: Check::By(check_ip_key) };
    /// The key `interface`: the name of an interface.
    pub const INTERFACE: Key = Key { name: "interface", check: Check::By(check_interface_key) };

    /// The key `listen`: whether an endpoint listens on this host only, where no key and no service
    /// names its address.
    pub const LISTEN: Key = Key { name: "listen", check: Check::OneOf(&["local", "network"]) };

    /// The keys of a device that is found without a configuration: it listens on this host only,
    /// unless `CCI_LISTEN` is `network`.
    #[must_use]
    pub fn found() -> Vec<(String, String)> {
        let is_open = std::env::var("CCI_LISTEN").is_ok_and(|value| value == "network");
        vec![(Self::LISTEN.name.to_owned(), if is_open { "network" } else { "local" }.to_owned())]
    }

    /// The value of the key [`LocalAddress::IP`], if it is given.
    ///
    /// # Errors
    ///
    /// No endpoint can be there ([`is_endpoint_ip`]).
    pub fn given_ip(keys: &Arguments<'_>) -> Result<Option<IpAddr>, OpenError> {
        let ip = keys.parsed("ip");
        if ip.is_none_or(|ip| is_endpoint_ip(&ip)) {
            return Ok(ip);
        }
        let value = keys.text("ip").unwrap_or_default();
        let what = format!(
            "the value of the key 'ip' is '{value}', to which others cannot connect; write one of this host's addresses"
        );
        Err(OpenError::new(Status::Inval, what))
    }

    /// Chooses the address that the keys `ip` and `interface` name, or that an endpoint has without
    /// them: of an interface that is up and no loop-back the first IPv4 address, else the first
    /// IPv6 address that is good beyond its own link, else an IPv4 address that is not; without
    /// any, the loop-back interface's.
    ///
    /// # Errors
    ///
    /// This host has no such interface or address, or it is down.
    pub fn choose(ip: Option<IpAddr>, interface: Option<&str>) -> Result<Self, OpenError> {
        let lines = interface_addresses();
        pick(
            &lines.map_err(|source| {
                OpenError::system("cannot list the interfaces (getifaddrs: socket, bind, sendto, recvmsg)", source)
            })?,
            ip,
            interface,
        )
    }

    /// The addresses by which other hosts may reach this one: of each interface that is up and no
    /// loop-back the first of IPv4, then of each the first of IPv6. None is good on its own link
    /// only. Empty also where the system does not list its interfaces.
    #[must_use]
    pub fn of_network() -> Vec<IpAddr> {
        interface_addresses().map(|lines| reached(&lines)).unwrap_or_default()
    }

    /// What to bind.
    pub fn socket(&self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V6(ip) if is_link_local(&self.ip) => SocketAddrV6::new(ip, port, 0, self.index).into(),
            ip => SocketAddr::new(ip, port),
        }
    }

    /// HOST:PORT of the URI; a link-local address names its interface.
    #[must_use]
    pub fn host_and_port(&self, port: u16) -> String {
        match self.ip {
            IpAddr::V4(ip) => format!("{ip}:{port}"),
            IpAddr::V6(ip) if is_link_local(&self.ip) => format!("[{ip}%{}]:{port}", self.interface),
            IpAddr::V6(ip) => format!("[{ip}]:{port}"),
        }
    }
}

/// The index of the interface of this name.
#[must_use]
pub fn interface_index(socket: impl AsFd, name: &str) -> Option<u32> {
    rustix::net::netdevice::name_to_index(socket, name).ok()
}

/// The address of this host from which datagrams to `to` leave, as the routes in the network name
/// space of this thread say. Nothing is sent.
///
/// ```
/// let home = std::net::SocketAddr::from(([127, 0, 0, 1], 5000));
/// assert_eq!(cci_transport::source_address(&home)?, home.ip());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// No route leads there, or the system has no socket to ask by.
pub fn source_address(to: &SocketAddr) -> std::io::Result<IpAddr> {
    let _uncancelled = Uncancelled::new();
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let probe = descriptors::udp((any, 0))?;
    probe.connect(to)?;
    Ok(probe.local_addr()?.ip())
}

/// Whether one endpoint can have this address: it is neither unspecified nor of a group.
///
/// ```
/// use cci_transport::is_endpoint_ip;
///
/// let refused = ["0.0.0.0", "::", "239.1.2.3", "ff15::1"];
/// assert!(refused.iter().all(|text| !is_endpoint_ip(&text.parse().expect("an IP"))));
/// assert!(is_endpoint_ip(&"127.0.0.1".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn is_endpoint_ip(ip: &IpAddr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast()
}

/// Whether an address is good on its own link only.
#[must_use]
pub fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::is_link_local(ip),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn check_ip_key(value: &str) -> Result<(), String> {
    let refused = |_| "write an IP address of this host, such as 192.0.2.1".into();
    value.parse::<IpAddr>().map(drop).map_err(refused)
}

fn check_interface_key(value: &str) -> Result<(), String> {
    if value.is_empty() { Err("write the name of an interface".into()) } else { Ok(()) }
}

fn reached(lines: &[InterfaceAddress]) -> Vec<IpAddr> {
    let mut found: Vec<(&str, IpAddr)> = Vec::new();
    for is_v4 in [true, false] {
        for line in lines.iter().filter(|line| line.up && !line.loopback) {
            let Some(ip) = line.ip.filter(|ip| ip.is_ipv4() == is_v4 && is_endpoint_ip(ip) && !is_link_local(ip))
            else {
                continue;
            };
            let is_second = |(name, other): &(&str, IpAddr)| *name == line.name && other.is_ipv4() == is_v4;
            if !found.iter().any(|other| is_second(other) || other.1 == ip) {
                found.push((&line.name, ip));
            }
        }
    }
    found.into_iter().map(|(_, ip)| ip).collect()
}

fn pick(lines: &[InterfaceAddress], ip: Option<IpAddr>, interface: Option<&str>) -> Result<LocalAddress, OpenError> {
    if let Some(name) = interface {
        check_interface(lines, name)?;
    }
    let of_interface = |line: &&InterfaceAddress| interface.is_none_or(|name| line.name == name);
    let usable = || lines.iter().filter(of_interface).filter(|line| line.up).filter_map(|line| Some((line, line.ip?)));
    let chosen = match ip {
        // All of 127.0.0.0/8 is the loop-back's, though it lists one address only.
        Some(ip) => usable().find(|(line, own)| *own == ip || line.loopback && ip.is_ipv4() && ip.is_loopback()),
        None if interface.is_some() => {
            usable().min_by_key(|(line, own)| (line.loopback, own.is_ipv6(), is_link_local(own)))
        }
        // Every interface that is up has a link-local address of IPv6, which no other link reaches.
        None => usable()
            .filter(|(_, own)| own.is_ipv4() || !is_link_local(own))
            .min_by_key(|(line, own)| (line.loopback, is_link_local(own), own.is_ipv6())),
    };
    match (chosen, ip) {
        (Some((line, own)), _) => {
            Ok(LocalAddress { ip: ip.unwrap_or(own), interface: line.name.clone(), index: 0, loopback: line.loopback })
        }
        (None, Some(ip)) => Err(no_such_address(lines, ip, interface)),
        (None, None) => Err(OpenError::new(
            Status::NoDev,
            match interface {
                Some(name) => format!("interface {name} has no IP address; give it one, or name another interface"),
                None => {
                    "no interface that is up has an IP address; bring one up, or name an address with the key ip".into()
                }
            },
        )),
    }
}

fn check_interface(lines: &[InterfaceAddress], name: &str) -> Result<(), OpenError> {
    let mut of_this = lines.iter().filter(|line| line.name == name).peekable();
    if of_this.peek().is_none() {
        let mut names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        let what = format!("there is no interface {name}; this host has {}", names.join(", "));
        return Err(OpenError::new(Status::NoDev, what));
    }
    if !of_this.any(|line| line.up) {
        let what = format!("interface {name} is down; bring it up (ip link set {name} up), or name another interface");
        return Err(OpenError::new(Status::NoDev, what));
    }
    Ok(())
}

fn no_such_address(lines: &[InterfaceAddress], ip: IpAddr, interface: Option<&str>) -> OpenError {
    let holder = lines.iter().find(|line| line.ip == Some(ip));
    let what = match (holder, interface) {
        (Some(line), _) if !line.up => {
            format!(
                "the address {ip} is on interface {}, which is down; bring it up (ip link set {} up)",
                line.name, line.name
            )
        }
        (Some(line), Some(name)) => {
            format!("the address {ip} is on interface {}, not on {name}; leave one of the two keys out", line.name)
        }
        _ => format!("this host has no address {ip}; write one of its own for the key ip"),
    };
    OpenError::new(Status::AddrNotAvail, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Condition, Core, Driver, Scope, Transport, TransportOptions};

    fn nothing(_: &Core, _: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
        Err(OpenError::new(Status::NoDev, "there is none"))
    }

    static DRIVER: Driver = Driver {
        name: "pipe",
        scope: Scope::Network,
        rank: 0,
        priority: 0,
        is_link: false,
        uses_library: false,
        example_uri: "pipe://192.0.2.1:1",
        keys: &[LocalAddress::IP, LocalAddress::INTERFACE],
        loopback: &[],
        discover: Vec::new,
        inspect: |_| Condition { up: true, reason: String::new(), max_send_size: 1 },
        open: nothing,
        over: None,
    };

    #[test]
    fn others_reach_one_address_of_each_interface_and_family() {
        let line = |name: &str, up, ip: &str| InterfaceAddress {
            name: name.into(),
            up,
            loopback: name == "lo",
            ip: Some(ip.parse().expect("an IP")),
        };
        let lines = [
            line("lo", true, "127.0.0.1"),
            line("e0", true, "10.0.1.1"),
            line("e0", true, "10.0.9.1"),
            line("down", false, "10.0.3.1"),
            line("e1", true, "10.0.2.1"),
            line("e0", true, "fe80::1"),
            line("e0", true, "2001:db8::1"),
            line("e0", true, "2001:db8::2"),
            line("e2", true, "169.254.1.1"),
            line("e3", true, "10.0.2.1"),
        ];
        let expected = ["10.0.1.1", "10.0.2.1", "2001:db8::1"].map(|ip| ip.parse::<IpAddr>().expect("an IP"));
        assert_eq!(reached(&lines), expected);
        assert!(reached(&lines[..1]).is_empty());
    }

    #[test]
    fn an_endpoint_without_keys_is_where_others_reach_it() {
        let line = |(name, ip): &(&str, &str)| InterfaceAddress {
            name: (*name).into(),
            up: true,
            loopback: *name == "lo",
            ip: Some(ip.parse().expect("an IP")),
        };
        let chosen = |all: &[(&str, &str)]| {
            let lines: Vec<_> = all.iter().map(line).collect();
            pick(&lines, None, None).expect("an address").ip.to_string()
        };
        let lo = [("lo", "127.0.0.1"), ("lo", "::1")];
        let with = |more: &[(&'static str, &'static str)]| chosen(&[&lo[..], more].concat());
        assert_eq!(with(&[("e0", "2001:db8::1"), ("e1", "10.0.0.1")]), "10.0.0.1");
        assert_eq!(with(&[("e0", "fe80::1"), ("e0", "2001:db8::1")]), "2001:db8::1");
        assert_eq!(with(&[("e0", "169.254.1.1"), ("e1", "2001:db8::1")]), "2001:db8::1");
        assert_eq!(with(&[("e0", "169.254.1.1"), ("e1", "fe80::1")]), "169.254.1.1");
        assert_eq!(with(&[("e0", "fe80::1")]), "127.0.0.1", "a link without addresses of its own");
        assert_eq!(chosen(&lo[1..]), "::1");
    }

    fn given(key: &str, value: &str) -> Result<Option<IpAddr>, OpenError> {
        LocalAddress::given_ip(&Arguments::check(&DRIVER, &[(key.into(), value.into())])?)
    }

    #[test]
    fn the_keys_take_addresses_at_which_an_endpoint_can_be() {
        assert_eq!(given("interface", "eth0").expect("a name"), None);
        for ip in ["127.0.0.1", "192.0.2.1", "::1", "fe80::1"] {
            assert_eq!(given("ip", ip).expect("an address"), Some(ip.parse().expect("an IP")));
        }
        let unfit = "to which others cannot connect; write one of this host's addresses";
        for (key, value, want) in [
            ("ip", "nonsense", "write an IP address of this host, such as 192.0.2.1"),
            ("ip", "192.0.2.1:5000", "write an IP address of this host, such as 192.0.2.1"),
            ("ip", "0.0.0.0", unfit),
            ("ip", "::", unfit),
            ("ip", "239.1.2.3", unfit),
            ("ip", "ff15::1", unfit),
            ("interface", "", "write the name of an interface"),
        ] {
            let error = given(key, value).expect_err(value);
            let sentence = error.to_string();
            assert_eq!(error.status, Status::Inval, "{sentence}");
            assert!(sentence.contains(&format!("'{key}' is '{value}'")) && sentence.ends_with(want), "{sentence}");
        }
    }
}
