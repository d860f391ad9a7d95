//! Opening the socket.

use crate::address::SCHEME;
use crate::driver::DRIVER;
use crate::groups::Groups;
use crate::link::Sock;
use crate::proof;
use crate::ready::Ready;
use crate::socket::{How, MAX_FRAME, configure, datagram_socket, overhead, set_buffers};
use crate::sockets::Sockets;
use crate::sys::{self, Choice};
use cci_proto::{Status, decimal};
use cci_transport::{
    Arguments, LocalAddress, NameCall, OpenError, Resolver, Service, child_holds_port, interface_index, retry_in_use,
    room_for,
};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{bind, getsockname};
use std::net::{IpAddr, SocketAddr};

/// Bytes of the socket's buffers unless the key `bufsize` is set.
const BUFFER: usize = 4 << 20;
/// Bytes of frame that every path is taken to carry at first: RFC 9000 section 14.
const BASE_FRAME: u16 = 1200;
/// More than the buffers of datagrams and the tables of an endpoint take, bytes.
const BUFFERS: usize = 4 << 20;
/// The loop-back interface.
const LOOPBACK: &str = "lo";

/// The settings of a device.
#[derive(Debug, Default)]
struct Settings {
    ip: Option<IpAddr>,
    interface: Option<String>,
    port: u16,
    /// Bytes of an IP packet.
    mtu: Option<u32>,
    buffer: Option<usize>,
    unchecked_on_host: bool,
    connects_outward: bool,
    /// No key says which address the endpoint has.
    chooses_address: bool,
}

impl Settings {
    fn parse(arguments: &[(String, String)], service: Option<&str>) -> Result<Self, OpenError> {
        let all = DRIVER.with_environment(arguments);
        let keys = Arguments::check(&DRIVER, &all)?;
        let (ip, interface) = (LocalAddress::given_ip(&keys)?, keys.text("interface").map(str::to_owned));
        let named = service.map(Service::parse).transpose()?;
        // The service stands above the keys.
        let at = named.and_then(|service| service.ip);
        let (ip, interface) = if at.is_some() { (at, None) } else { (ip, interface) };
        let is_local = keys.text("listen") == Some("local");
        // Not of the key `ip`: the loop-back interface may have one family alone.
        let home = (is_local && ip.is_none() && interface.is_none()).then(|| LOOPBACK.to_owned());
        Ok(Self {
            ip,
            chooses_address: ip.is_none() && interface.is_none() && home.is_none(),
            interface: interface.or(home),
            port: match service {
                Some(text) => named.and_then(|service| decimal(service.port)).ok_or_else(|| Service::refusal(text))?,
                None => keys.parsed("port").unwrap_or(0),
            },
            mtu: keys.parsed("mtu"),
            buffer: keys.parsed("bufsize"),
            unchecked_on_host: keys.text("check") == Some("remote"),
            connects_outward: keys.text("connect").map_or(is_local, |value| value == "network"),
        })
    }
}

impl Sock {
    /// Opens an endpoint's socket. `arguments`: the keys of its device ([`DRIVER`]); `service`: the
    /// port, which stands above the key `port`.
    ///
    /// # Errors
    ///
    /// A key's value or the service is wrong, the port is in use, the interface is down or has no
    /// address, or descriptors are short.
    pub fn open(arguments: &[(String, String)], service: Option<&str>) -> Result<Self, OpenError> {
        let settings = Settings::parse(arguments, service)?;
        let system = |refused| OpenError::call("cannot make the descriptors of a sock endpoint", refused);
        let mut local = LocalAddress::choose(settings.ip, settings.interface.as_deref())?;
        let is_v4 = local.ip.is_ipv4();
        let socket = datagram_socket(is_v4).by("socket").map_err(system)?;
        local.index = interface_index(&socket, &local.interface).unwrap_or(0);
        let port = bind_to(&socket, &local, settings.port)?;
        configure(&socket, is_v4, !local.loopback).by("setsockopt").map_err(system)?;
        let buffer = settings.buffer.unwrap_or(BUFFER);
        let recv_buffer = set_buffers(&socket, buffer);
        let mut offloads = proof::prove(is_v4);
        if offloads.no_coalescing.is_none()
            && let Err(error) = sys::choose(socket.as_fd(), is_v4, Choice::Coalesce, 1)
        {
            offloads.no_coalescing = Some(std::io::Error::from(error).to_string());
        }
        room_for(BUFFERS)?;
        let (mtu, base_mtu) = frame_sizes(&socket, &local, settings.mtu)?;
        let ready = Ready::new(&socket).map_err(system)?;
        let coalesces = offloads.no_coalescing.is_none();
        let how = How { is_v4, wants_marks: !local.loopback, is_outward: false, coalesces, buffer };
        Ok(Self {
            resolver: Resolver::new(ready.waker()),
            ready,
            uri: format!("{SCHEME}{}", local.host_and_port(port)),
            sockets: Sockets::new(socket, how, mtu, sys::Home::of(&local), offloads.no_segmentation)
                .by("mmap")
                .map_err(system)?,
            groups: Groups::default(),
            no_coalescing: offloads.no_coalescing,
            unchecked_on_host: settings.unchecked_on_host,
            // An address that a key names is the one from which frames leave.
            outward_base: (if local.loopback { settings.connects_outward } else { settings.chooses_address })
                .then(|| if settings.mtu.is_some() { base_mtu } else { base_mtu.min(BASE_FRAME) }),
            refusals: Vec::new(),
            local,
            mtu,
            base_mtu,
            recv_buffer,
            calls: 0,
        })
    }
}

/// Whether a child of this process has the port: it was made without the handlers of `fork`, and
/// keeps a copy of a socket.
fn is_held_by_child(ip: IpAddr, port: u16) -> bool {
    let table = if ip.is_ipv4() { "/proc/net/udp" } else { "/proc/net/udp6" };
    child_holds_port(table, port)
}

/// Binds the socket; returns its port.
fn bind_to(socket: &OwnedFd, local: &LocalAddress, port: u16) -> Result<u16, OpenError> {
    let ip = local.ip;
    let name = local.socket(port);
    // Without a port the system has looked at all of them.
    let bound = if port == 0 { bind(socket, &name) } else { retry_in_use(|| bind(socket, &name)) };
    bound.map_err(|error| match error {
        Errno::ADDRINUSE if port == 0 => {
            OpenError::new(Status::AddrNotAvail, format!("all ports of {ip} are in use; close endpoints"))
        }
        Errno::ADDRINUSE if is_held_by_child(ip, port) => {
            let what =
                format!("a child process of this program still holds port {port}; end it, or choose another port");
            OpenError::new(Status::AddrNotAvail, what)
        }
        Errno::ADDRINUSE => {
            let what = format!(
                "port {port} of {ip} is in use; choose another port, or none to get a free one; another process holds it, \
                 maybe a forked child"
            );
            OpenError::new(Status::AddrNotAvail, what)
        }
        Errno::ACCESS => {
            let what = format!("port {port} is not for this user; choose one above 1023, or none to get a free one");
            OpenError::system(what, error)
        }
        _ => OpenError::system(format!("cannot bind {}", local.host_and_port(port)), error),
    })?;
    let bound = getsockname(socket).and_then(SocketAddr::try_from);
    bound
        .map(|name| name.port())
        .map_err(|error| OpenError::system("cannot learn the port of a sock endpoint (getsockname)", error))
}

/// The largest frame on any path, and the largest on every path, bytes.
fn frame_sizes(socket: &OwnedFd, local: &LocalAddress, wanted: Option<u32>) -> Result<(u16, u16), OpenError> {
    let overhead = overhead(local.ip.is_ipv4());
    let frame = |packet: u32| u16::try_from(packet.saturating_sub(overhead)).unwrap_or(u16::MAX).min(MAX_FRAME);
    let name = &local.interface;
    let real = sys::interface_mtu(socket.as_fd(), name)
        .map_err(|source| OpenError::system(format!("cannot learn the MTU of interface {name} (ioctl)"), source))?;
    match wanted {
        Some(packet) if packet > real => {
            let what =
                format!("the key mtu says {packet} bytes, but interface {name} carries {real}; write at most that");
            Err(OpenError::new(Status::Inval, what))
        }
        Some(packet) => Ok((frame(packet), frame(packet))),
        None if local.loopback => Ok((frame(real), frame(real))),
        None => Ok((frame(real), frame(real).min(BASE_FRAME))),
    }
}
