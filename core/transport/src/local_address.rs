//! Which address an endpoint has, and on which interface.

use crate::OpenError;
use cci_mem::interfaces::{InterfaceAddress, interface_addresses};
use cci_proto::Status;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
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
    /// Chooses the address that the keys `ip` and `interface` name, or that an endpoint has without
    /// them: the first IPv4 address of an interface that is up and no loop-back, else the
    /// loop-back's.
    ///
    /// # Errors
    ///
    /// This host has no such interface or address, or it is down.
    pub fn choose(ip: Option<IpAddr>, interface: Option<&str>) -> Result<Self, OpenError> {
        let lines = interface_addresses();
        pick(&lines.map_err(|source| OpenError::system("cannot list the interfaces", source))?, ip, interface)
    }

    /// What to bind.
    #[must_use]
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

/// Whether an address is good on its own link only.
#[must_use]
pub fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::is_link_local(ip),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
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
        None => usable()
            .filter(|(_, own)| interface.is_some() || own.is_ipv4())
            .min_by_key(|(line, own)| (line.loopback, own.is_ipv6(), is_link_local(own))),
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
                None => "no interface that is up has an IPv4 address; bring one up, or name an address with the key ip"
                    .into(),
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
