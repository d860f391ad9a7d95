//! Which address an endpoint has, and on which interface.

use crate::address::is_link_local;
use crate::sys::{self, Home, Line};
use cci_proto::Status;
use cci_transport::OpenError;
use rustix::fd::AsFd;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// An address of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalAddress {
    pub(crate) ip: IpAddr,
    pub(crate) interface: String,
    /// Index of the interface; 0: not known.
    pub(crate) index: u32,
    pub(crate) loopback: bool,
}

impl LocalAddress {
    /// What to bind.
    pub(crate) fn socket(&self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V6(ip) if is_link_local(&self.ip) => SocketAddrV6::new(ip, port, 0, self.index).into(),
            ip => SocketAddr::new(ip, port),
        }
    }

    /// Where frames to a group come from, on IPv4.
    pub(crate) fn home(&self) -> Home {
        match self.ip {
            IpAddr::V4(ip) => Home { interface: self.index, ip: ip.octets() },
            IpAddr::V6(_) => Home::default(),
        }
    }

    /// HOST:PORT of the URI; a link-local address names its interface.
    pub(crate) fn host_and_port(&self, port: u16) -> String {
        match self.ip {
            IpAddr::V4(ip) => format!("{ip}:{port}"),
            IpAddr::V6(ip) if is_link_local(&self.ip) => format!("[{ip}%{}]:{port}", self.interface),
            IpAddr::V6(ip) => format!("[{ip}]:{port}"),
        }
    }
}

/// The interface of this name.
pub(crate) fn index(socket: impl AsFd, name: &str) -> Option<u32> {
    rustix::net::netdevice::name_to_index(socket, name).ok()
}

/// The address that the keys `ip` and `interface` name, or that an endpoint has without them: the
/// first IPv4 address of an interface that is up and no loop-back, else the loop-back's.
pub(crate) fn choose(ip: Option<IpAddr>, interface: Option<&str>) -> Result<LocalAddress, OpenError> {
    let lines = sys::interfaces().map_err(|source| OpenError::system("cannot list the interfaces", source))?;
    pick(&lines, ip, interface)
}

fn pick(lines: &[Line], ip: Option<IpAddr>, interface: Option<&str>) -> Result<LocalAddress, OpenError> {
    if let Some(name) = interface {
        check_interface(lines, name)?;
    }
    let of_interface = |line: &&Line| interface.is_none_or(|name| line.name == name);
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

fn check_interface(lines: &[Line], name: &str) -> Result<(), OpenError> {
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

fn no_such_address(lines: &[Line], ip: IpAddr, interface: Option<&str>) -> OpenError {
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
